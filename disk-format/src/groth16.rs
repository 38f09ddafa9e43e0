//! What a container of kind [`Kind::Groth16Key`] holds: the points of a Groth16 proving key and the matrices
//! A and B.
//!
//! With s signals (signal 0 is the constant one, then p public ones), a domain of n = 2^k rows, and the names
//! of Groth 2016 (section 3.2):
//!
//! | label | content | elements |
//! |---|---|---|
//! | `g1` | G1 | alpha, beta, delta |
//! | `g2` | G2 | beta, gamma, delta |
//! | `ic` | G1 | p + 1: one for each public signal, over gamma |
//! | `a` | G1 | s |
//! | `b_g1` | G1 | s |
//! | `b_g2` | G2 | s |
//! | `c` | G1 | s: one for each private signal, over delta; infinity for the others |
//! | `h` | G1 | n: the i-th is for the value of A·B - C at the i-th point of the coset |
//! | `values` | scalars | the values of coefficients |
//! | `coefficients` | coefficients | entries of A and B that are not zero, by ascending row |
//!
//! All ten sections are there, in this order (`FORMAT.md` says what each point is). `values` and
//! `coefficients` may have no elements, and then no frames; the others have at least one. There is no matrix
//! C: the prover takes the product of A·w and B·w for it. Values are scalars like all others (Montgomery
//! form), each at least once.
//!
//! **Frames** of [`crate::srs::frame_bytes`] hold a power of two of points of G1 and of G2.

use crate::element::Element;
use crate::error::FormatError;
use crate::header::{Basis, Content, Curve, Header, Kind, Label, Section, SectionSpec};

/// The largest log2 of the domain: that of BN254's scalar field.
pub const LOG_DOMAIN_MAX: u32 = 28;
/// Most signals, and most values: an index into them has 32 bits.
pub const INDEXED_MAX: u64 = 1 << 32;

/// Labels of the sections, in file order.
pub const LABELS: [&str; 10] = [
    "g1",
    "g2",
    "ic",
    "a",
    "b_g1",
    "b_g2",
    "c",
    "h",
    "values",
    "coefficients",
];

/// The numbers that decide how long every section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Signals, the constant one and the public ones included.
    pub signals: u64,
    /// Public signals, without the constant one.
    pub public: u64,
    /// log2 of the rows of the domain.
    pub log_domain: u32,
    /// Values of coefficients.
    pub values: u64,
    /// Coefficients of A and B together.
    pub coefficients: u64,
}

impl Shape {
    /// Private signals: elements of `c`. Zero in a shape that [`Self::check`] refuses.
    #[must_use]
    pub const fn private(&self) -> u64 {
        self.signals.saturating_sub(self.public).saturating_sub(1)
    }

    /// Rows of the domain: elements of `h`.
    ///
    /// # Errors
    /// [`FormatError::Field`] when there are more than 2^28.
    pub fn domain(&self) -> Result<u64, FormatError> {
        match self.log_domain {
            log_domain @ ..=LOG_DOMAIN_MAX => Ok(1 << log_domain),
            log_domain => Err(refuse(
                "log2 of the domain",
                TABLE_AT,
                log_domain.to_string(),
                "keys have domains of at most 2^28 rows",
            )),
        }
    }

    /// Whether there can be a key of this shape.
    ///
    /// # Errors
    /// [`FormatError::Field`] for more than 2^28 rows, more than 2^32 signals or values, not more signals
    /// than public ones, not more rows than public signals, coefficients without a value.
    pub fn check(&self) -> Result<(), FormatError> {
        let domain = self.domain()?;
        let table = |what, value: u64, remedy| Err(refuse(what, TABLE_AT, value.to_string(), remedy));
        if self.signals > INDEXED_MAX {
            return table(
                "number of signals",
                self.signals,
                "keys have at most 2^32 signals",
            );
        }
        if self.values > INDEXED_MAX {
            return table(
                "number of values",
                self.values,
                "keys have at most 2^32 values of coefficients",
            );
        }
        if self.public >= self.signals {
            return table(
                "number of public signals",
                self.public,
                "there are fewer than signals: one signal is the constant one",
            );
        }
        if self.public >= domain {
            return table(
                "number of public signals",
                self.public,
                "there are fewer than rows: each has one, and so has the constant one",
            );
        }
        if self.values == 0 && self.coefficients > 0 {
            return table(
                "number of coefficients",
                self.coefficients,
                "coefficients need at least one value",
            );
        }
        Ok(())
    }
}

/// Offset of the section table in bytes, for errors.
pub(crate) const TABLE_AT: u64 = 256;

pub(crate) fn refuse(what: &'static str, offset: u64, value: String, remedy: &'static str) -> FormatError {
    FormatError::Field {
        what,
        offset,
        value,
        remedy,
    }
}

/// The sections of a key, in file order ([`LABELS`]).
///
/// # Errors
/// [`FormatError::Field`] as in [`Shape::check`].
pub fn sections(shape: &Shape) -> Result<Vec<SectionSpec>, FormatError> {
    shape.check()?;
    let contents = [
        (Content::G1, 3),
        (Content::G2, 3),
        (Content::G1, shape.public.saturating_add(1)),
        (Content::G1, shape.signals),
        (Content::G1, shape.signals),
        (Content::G2, shape.signals),
        (Content::G1, shape.signals),
        (Content::G1, shape.domain()?),
        (Content::Scalars, shape.values),
        (Content::Coefficients, shape.coefficients),
    ];
    let specs = contents.into_iter().zip(LABELS);
    specs
        .map(|((content, elements), label)| {
            Ok(SectionSpec {
                content,
                basis: Basis::None,
                elements,
                label: Label::new(label)?,
            })
        })
        .collect()
}

/// The curve of a container of Groth16.
pub(crate) fn pairing_curve(header: &Header) -> Result<Curve, FormatError> {
    match header.curve() {
        curve @ (Curve::Bn254 | Curve::Bls12381) => Ok(curve),
        curve => Err(refuse(
            "curve",
            16,
            format!("{curve:?}"),
            "Groth16 proving keys are over BN254 or BLS12-381",
        )),
    }
}

/// The sections of a key, found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groth16Key<'a> {
    /// The curve: BN254 or BLS12-381.
    pub curve: Curve,
    /// The numbers that the sections' lengths give.
    pub shape: Shape,
    /// alpha, beta, delta.
    pub g1: &'a Section,
    /// beta, gamma, delta.
    pub g2: &'a Section,
    /// For the constant one and the public signals.
    pub ic: &'a Section,
    /// For all signals, as in A.
    pub a: &'a Section,
    /// For all signals, as in B.
    pub b_g1: &'a Section,
    /// The same in G2.
    pub b_g2: &'a Section,
    /// For private signals.
    pub c: &'a Section,
    /// For values of A·B - C on the coset.
    pub h: &'a Section,
    /// What coefficients are.
    pub values: &'a Section,
    /// Entries of A and B.
    pub coefficients: &'a Section,
}

impl<'a> Groth16Key<'a> {
    /// Finds the sections of a key.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the container is of another kind, or of a curve without pairing, or has
    /// other sections, or sections whose lengths do not belong together.
    pub fn of(header: &'a Header) -> Result<Self, FormatError> {
        if header.kind() != Kind::Groth16Key {
            let value = format!("{:?}", header.kind());
            let remedy = match header.kind() {
                Kind::Groth16Dealt => {
                    "the key is dealt to ranks, and one rank reads it here: import it on one rank"
                }
                Kind::Groth16Share => {
                    "this is one rank's share of a dealt key: the key is the file that names it"
                }
                _ => "a Groth16 proving key is needed here",
            };
            return Err(refuse("kind", 12, value, remedy));
        }
        let curve = pairing_curve(header)?;
        let found = header.sections();
        let [g1, g2, ic, a, b_g1, b_g2, c, h, values, coefficients] = found else {
            return Err(refuse(
                "number of sections",
                24,
                found.len().to_string(),
                "a Groth16 proving key has ten",
            ));
        };
        let log_domain = h.elements.checked_ilog2().unwrap_or(0);
        let shape = Shape {
            signals: a.elements,
            public: ic.elements.saturating_sub(1),
            log_domain,
            values: values.elements,
            coefficients: coefficients.elements,
        };
        for (i, (spec, section)) in sections(&shape)?.iter().zip(found).enumerate() {
            let is_same = (spec.content, spec.basis, spec.elements, spec.label)
                == (section.content, section.basis, section.elements, section.label);
            if !is_same {
                return Err(refuse(
                    "a section of a Groth16 proving key",
                    TABLE_AT + 48 * i as u64,
                    format!("{} {:?} {}", section.elements, section.content, section.label),
                    "sections are g1 (3), g2 (3), ic (public signals + 1), a, b_g1, b_g2 (signals each), c (the signals that ic \
                     has not), h (a power of two), values, coefficients",
                ));
            }
        }
        Ok(Self {
            curve,
            shape,
            g1,
            g2,
            ic,
            a,
            b_g1,
            b_g2,
            c,
            h,
            values,
            coefficients,
        })
    }
}

/// One entry of A or B: its row, its column, where its value is, and its matrix. 16 bytes on disk: four
/// `u32`, little-endian, in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Coefficient {
    /// The row: the constraint. A section is sorted by it.
    pub row: u32,
    /// The column: the signal.
    pub signal: u32,
    /// Index into `values`.
    pub value: u32,
    /// 0 in A, 1 in B.
    pub matrix: u32,
}

impl Coefficient {
    /// Whether row, signal, value and matrix exist. `index` in the section and `offset` of the first byte in
    /// the file are for errors.
    ///
    /// # Errors
    /// [`FormatError::Coefficient`].
    #[inline]
    pub fn check(&self, index: u64, offset: u64, shape: &Shape) -> Result<(), FormatError> {
        let fields = [
            ("row", self.row, shape.domain()?, 0),
            ("signal", self.signal, shape.signals, 4),
            ("value", self.value, shape.values, 8),
            ("matrix", self.matrix, 2, 12),
        ];
        for (what, value, limit, at) in fields {
            let value = u64::from(value);
            if value >= limit {
                return Err(FormatError::Coefficient {
                    what,
                    index,
                    offset: offset.saturating_add(at),
                    value,
                    limit,
                });
            }
        }
        Ok(())
    }
}

impl Element for Coefficient {
    const BYTES: usize = 16;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let Some(&[row, signal, value, matrix]) = words.first_chunk() else {
            panic!("{} bytes are fewer than a coefficient has", bytes.len());
        };
        Self {
            row: u32::from_le_bytes(row),
            signal: u32::from_le_bytes(signal),
            value: u32::from_le_bytes(value),
            matrix: u32::from_le_bytes(matrix),
        }
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let words = [self.row, self.signal, self.value, self.matrix];
        for (word, place) in words.iter().zip(out.as_chunks_mut::<4>().0) {
            *place = word.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srs::frame_bytes;

    const SHAPE: Shape = Shape {
        signals: 40,
        public: 3,
        log_domain: 6,
        values: 5,
        coefficients: 200,
    };

    fn header(curve: Curve, sections: &[SectionSpec]) -> Result<Header, FormatError> {
        Header::new(Kind::Groth16Key, curve, frame_bytes(curve), [0; 16], 0, sections)
    }

    #[test]
    fn sections_are_found_again() {
        let all_public = Shape {
            public: 39,
            values: 0,
            coefficients: 0,
            ..SHAPE
        };
        for curve in [Curve::Bn254, Curve::Bls12381] {
            for shape in [SHAPE, all_public] {
                let specs = sections(&shape).expect("a shape");
                let header = header(curve, &specs).expect("within limits");
                assert_eq!(Header::decode(&header.encode()).as_ref(), Ok(&header));
                let key = Groth16Key::of(&header).expect("a key");
                assert_eq!((key.curve, key.shape), (curve, shape));
                assert_eq!(key.c.elements, shape.signals);
                assert_eq!((key.h.elements, key.b_g2.content), (64, Content::G2));
                for (section, label) in header.sections().iter().zip(LABELS) {
                    assert_eq!(section.label.as_str(), label);
                    assert!(frame_bytes(curve).is_multiple_of(section.element_bytes()));
                }
            }
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for shape in [
            Shape { public: 40, ..SHAPE },
            Shape {
                log_domain: 29,
                ..SHAPE
            },
            Shape {
                log_domain: 1,
                ..SHAPE
            },
            Shape { values: 0, ..SHAPE },
            Shape {
                values: INDEXED_MAX + 1,
                ..SHAPE
            },
            Shape {
                signals: u64::MAX,
                ..SHAPE
            },
            Shape {
                signals: 0,
                public: 0,
                ..SHAPE
            },
        ] {
            assert!(sections(&shape).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn other_sections_are_refused() {
        let good = sections(&SHAPE).expect("a shape");
        let refused = |curve, specs: &[SectionSpec]| {
            let header = header(curve, specs).expect("within limits");
            Groth16Key::of(&header).is_err()
        };
        assert!(!refused(Curve::Bn254, &good));
        assert!(refused(Curve::Pallas, &good), "no pairing");
        assert!(refused(Curve::Bls12381, &good[..9]), "no coefficients");
        for i in 0..good.len() {
            let mut other = good.clone();
            other[i].elements += 1;
            // Any number of values and of coefficients is right, and a signal more may be public.
            assert_eq!(
                refused(Curve::Bn254, &other),
                i < 8 && i != 2,
                "section {i} is longer"
            );
            other[i] = good[i];
            other[i].label = Label::default();
            assert!(refused(Curve::Bn254, &other), "section {i} has no label");
            other[i] = good[i];
            other[i].basis = Basis::Lagrange;
            assert!(refused(Curve::Bn254, &other), "section {i} has a basis");
        }
        let other_kind =
            Header::new(Kind::Srs, Curve::Bn254, 4096, [0; 16], 0, &good).expect("within limits");
        assert!(Groth16Key::of(&other_kind).is_err());
    }

    #[test]
    fn frames_hold_a_power_of_two_of_points() {
        let specs = sections(&SHAPE).expect("a shape");
        for curve in [Curve::Bn254, Curve::Bls12381] {
            let header = header(curve, &specs).expect("within limits");
            let key = Groth16Key::of(&header).expect("a key");
            assert_eq!(header.geometry().elements_per_frame(key.a), 1024);
            assert_eq!(header.geometry().elements_per_frame(key.b_g2), 512);
            assert_eq!(
                Content::Coefficients.element_bytes(curve) as usize,
                Coefficient::BYTES
            );
        }
    }

    #[test]
    fn coefficients_roundtrip() {
        let coefficient = Coefficient {
            row: 63,
            signal: 39,
            value: 4,
            matrix: 1,
        };
        let mut bytes = [0; 16];
        coefficient.encode(&mut bytes);
        assert_eq!(bytes, [63, 0, 0, 0, 39, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(Coefficient::decode(&bytes), coefficient);
        assert_eq!(coefficient.check(0, 0, &SHAPE), Ok(()));
        for (at, value) in [(0, 64), (4, 40), (8, 5), (12, 2)] {
            let mut bytes = bytes;
            bytes[at] = value;
            let error = Coefficient::decode(&bytes)
                .check(7, 1000, &SHAPE)
                .expect_err("past the end");
            assert!(
                matches!(error, FormatError::Coefficient { index: 7, offset, .. } if offset == 1000 + at as u64),
                "{error}"
            );
        }
    }
}
