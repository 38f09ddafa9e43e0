//! What a container of kind [`Kind::Srs`] holds: `g` and/or `g_lagrange`, 2^k points of G1 each, then g2 and
//! s·g2. The curve has a pairing: BN254 or BLS12-381.

use crate::SRS_FRAME_BYTES_DEFAULT;
use crate::error::FormatError;
use crate::header::{Basis, Content, Curve, Header, Kind, Label, Section, SectionSpec, frame_bytes_for};

/// Default length of a frame in bytes: 1024 points of G1.
#[must_use]
pub const fn frame_bytes(curve: Curve) -> u32 {
    frame_bytes_for(
        2 * curve.coordinate_bytes() as usize,
        SRS_FRAME_BYTES_DEFAULT as usize,
    ) as u32
}

/// Label of the monomial points, s^i·g.
pub const G_LABEL: &str = "g";
/// Label of the Lagrange points, L_i(s)·g.
pub const G_LAGRANGE_LABEL: &str = "g_lagrange";
/// Label of the pair.
pub const PAIR_LABEL: &str = "g2,s_g2";

/// Refuses a k for which the scalars of a curve have no domain of 2^k points. `offset` is that of k in the
/// file.
///
/// # Errors
/// [`FormatError::Field`].
pub(crate) fn check_k(curve: Curve, k: u32, offset: u64) -> Result<(), FormatError> {
    if k <= curve.two_adicity() {
        return Ok(());
    }
    Err(FormatError::Field {
        what: "k",
        offset,
        value: k.to_string(),
        remedy: match curve {
            Curve::Bn254 => "BN254 has domains of at most 2^28 points",
            Curve::Pallas | Curve::Vesta | Curve::Bls12381 => "the curve has domains of at most 2^32 points",
        },
    })
}

/// The sections of an SRS for 2^k points, in file order.
///
/// # Errors
/// [`FormatError::Field`] when the scalars of the curve have no domain of 2^k points.
pub fn sections(
    curve: Curve,
    k: u32,
    monomial: bool,
    lagrange: bool,
) -> Result<Vec<SectionSpec>, FormatError> {
    check_k(curve, k, 256 + 8)?;
    let points = |basis, label| {
        Ok(SectionSpec {
            content: Content::G1,
            basis,
            elements: 1 << k,
            label: Label::new(label)?,
        })
    };
    let mut sections = Vec::with_capacity(3);
    if monomial {
        sections.push(points(Basis::Monomial, G_LABEL)?);
    }
    if lagrange {
        sections.push(points(Basis::Lagrange, G_LAGRANGE_LABEL)?);
    }
    let label = Label::new(PAIR_LABEL)?;
    sections.push(SectionSpec {
        content: Content::G2,
        basis: Basis::None,
        elements: 2,
        label,
    });
    Ok(sections)
}

/// The sections of an SRS, found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Srs<'a> {
    /// log2 of the number of points in each basis.
    pub k: u32,
    /// s^i·g.
    pub monomial: Option<&'a Section>,
    /// L_i(s)·g.
    pub lagrange: Option<&'a Section>,
    /// g2, then s·g2.
    pub pair: &'a Section,
}

impl<'a> Srs<'a> {
    /// Finds the sections of an SRS over `curve`.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the container is of another kind or curve, or has other sections.
    pub fn of(header: &'a Header, curve: Curve) -> Result<Self, FormatError> {
        let refuse = |what, offset, value: String, remedy| FormatError::Field {
            what,
            offset,
            value,
            remedy,
        };
        if header.kind() != Kind::Srs {
            let value = format!("{:?}", header.kind());
            return Err(refuse("kind", 12, value, "an SRS is needed here"));
        }
        if header.curve() != curve {
            let value = format!("{:?}", header.curve());
            let remedy = match curve {
                Curve::Bn254 => "an SRS over BN254 is needed here",
                Curve::Bls12381 => "an SRS over BLS12-381 is needed here",
                Curve::Pallas | Curve::Vesta => "an SRS is over a curve with a pairing",
            };
            return Err(refuse("curve", 16, value, remedy));
        }
        let monomial = header.find(Content::G1, Basis::Monomial);
        let lagrange = header.find(Content::G1, Basis::Lagrange);
        let points = monomial.or(lagrange).map_or(0, |section| section.elements);
        let k = points.checked_ilog2().unwrap_or(0);
        let pair = header.find(Content::G2, Basis::None);
        match pair {
            Some(pair)
                if sections(curve, k, monomial.is_some(), lagrange.is_some()).is_ok_and(|specs| {
                    specs.len() > 1
                        && specs.len() == header.sections().len()
                        && specs.iter().zip(header.sections()).all(|(spec, section)| {
                            (spec.content, spec.basis, spec.elements)
                                == (section.content, section.basis, section.elements)
                        })
                }) =>
            {
                Ok(Self {
                    k,
                    monomial,
                    lagrange,
                    pair,
                })
            }
            _ => Err(refuse(
                "section table",
                256,
                format!("{} sections, {points} points", header.sections().len()),
                "an SRS has 2^k points in one or both bases, then two points of G2",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVES: [Curve; 2] = [Curve::Bn254, Curve::Bls12381];

    fn header(kind: Kind, curve: Curve, sections: &[SectionSpec]) -> Header {
        let frame_bytes = frame_bytes(curve);
        Header::new(kind, curve, frame_bytes, [0; 16], 0, sections).expect("within limits")
    }

    #[test]
    fn sections_are_found_again() {
        for curve in CURVES {
            for (monomial, lagrange) in [(true, true), (true, false), (false, true)] {
                let sections = sections(curve, 7, monomial, lagrange).expect("k in range");
                let header = header(Kind::Srs, curve, &sections);
                let srs = Srs::of(&header, curve).expect("an SRS");
                assert_eq!(srs.k, 7);
                assert_eq!(
                    (srs.monomial.is_some(), srs.lagrange.is_some()),
                    (monomial, lagrange)
                );
                assert_eq!(srs.pair.elements, 2);
                for other in CURVES.into_iter().filter(|other| *other != curve) {
                    assert!(Srs::of(&header, other).is_err(), "another curve");
                }
            }
            let k_max = curve.two_adicity();
            assert!(sections(curve, k_max, true, true).is_ok());
            assert!(sections(curve, k_max + 1, true, true).is_err());
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for curve in CURVES {
            let good = sections(curve, 7, true, true).expect("k in range");
            let is_srs =
                |kind, sections: &[SectionSpec]| Srs::of(&header(kind, curve, sections), curve).is_ok();
            assert!(is_srs(Kind::Srs, &good));
            assert!(!is_srs(Kind::PointColumn, &good));
            assert!(!is_srs(Kind::Srs, &good[..2]), "no pair");
            assert!(!is_srs(Kind::Srs, &good[2..]), "no points");
            let mut other = good.clone();
            other[1].elements = 64;
            assert!(!is_srs(Kind::Srs, &other), "two lengths");
            other[0].elements = 63;
            other[1].elements = 63;
            assert!(!is_srs(Kind::Srs, &other), "no power of two");
        }
    }
}
