//! What a container of kind [`Kind::IpaParams`] holds: `g` and `g_lagrange`, 2^k points of G1 each, then w
//! and u.

use crate::error::FormatError;
use crate::header::{Basis, Content, Curve, Header, Kind, Label, Section, SectionSpec};
use crate::srs::{G_LABEL, G_LAGRANGE_LABEL};

/// Label of the section of w and u.
pub const PAIR_LABEL: &str = "w,u";
/// The largest k: both Pasta curves' scalar fields have roots of unity of order 2^32.
pub const K_MAX: u32 = 32;

/// The sections of parameters for 2^k points, in file order.
///
/// # Errors
/// [`FormatError::Field`] when k is above 32.
pub fn sections(k: u32) -> Result<[SectionSpec; 3], FormatError> {
    if k > K_MAX {
        return Err(FormatError::Field {
            what: "k",
            offset: 256 + 8,
            value: k.to_string(),
            remedy: "the scalar fields have domains of at most 2^32 points",
        });
    }
    let points = |basis, elements, label| {
        Ok(SectionSpec {
            content: Content::G1,
            basis,
            elements,
            label: Label::new(label)?,
        })
    };
    Ok([
        points(Basis::Monomial, 1 << k, G_LABEL)?,
        points(Basis::Lagrange, 1 << k, G_LAGRANGE_LABEL)?,
        points(Basis::None, 2, PAIR_LABEL)?,
    ])
}

/// The sections of parameters, found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpaParams<'a> {
    /// log2 of the number of points in each basis.
    pub k: u32,
    /// For coefficients.
    pub g: &'a Section,
    /// For values on the domain.
    pub g_lagrange: &'a Section,
    /// w, then u.
    pub pair: &'a Section,
}

impl<'a> IpaParams<'a> {
    /// Finds the sections of parameters over `curve`.
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
        if header.kind() != Kind::IpaParams {
            let value = format!("{:?}", header.kind());
            return Err(refuse(
                "kind",
                12,
                value,
                "parameters of inner-product commitments are needed here",
            ));
        }
        if header.curve() != curve {
            let value = format!("{:?}", header.curve());
            return Err(refuse(
                "curve",
                16,
                value,
                "parameters over another curve are needed here",
            ));
        }
        let found = header.sections();
        let points = found.first().map_or(0, |section| section.elements);
        let k = points.checked_ilog2().unwrap_or(0);
        let is_same = |(spec, section): (&SectionSpec, &Section)| {
            (spec.content, spec.basis, spec.elements) == (section.content, section.basis, section.elements)
        };
        match found {
            [g, g_lagrange, pair] if sections(k).is_ok_and(|specs| specs.iter().zip(found).all(is_same)) => {
                Ok(Self {
                    k,
                    g,
                    g_lagrange,
                    pair,
                })
            }
            _ => Err(refuse(
                "section table",
                256,
                format!("{} sections, {points} points", found.len()),
                "parameters have 2^k points in each of two bases, then two more",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, sections: &[SectionSpec]) -> Header {
        Header::new(kind, Curve::Vesta, 4096, [0; 16], 0, sections).expect("within limits")
    }

    #[test]
    fn sections_are_found_again() {
        for k in [0, 7, 32] {
            let specs = sections(k).expect("k in range");
            let header = header(Kind::IpaParams, &specs);
            let found = IpaParams::of(&header, Curve::Vesta).expect("parameters");
            assert_eq!((found.k, found.g.elements, found.pair.elements), (k, 1 << k, 2));
            assert_eq!(found.g_lagrange.basis, Basis::Lagrange);
            assert!(IpaParams::of(&header, Curve::Pallas).is_err());
        }
        assert!(sections(33).is_err());
    }

    #[test]
    fn other_shapes_are_refused() {
        let good = sections(7).expect("k in range");
        let refused =
            |kind, sections: &[SectionSpec]| IpaParams::of(&header(kind, sections), Curve::Vesta).is_err();
        assert!(refused(Kind::Srs, &good));
        assert!(refused(Kind::IpaParams, &good[..2]), "no pair");
        assert!(refused(Kind::IpaParams, &good[1..]), "no coefficients");
        let mut other = good;
        other[1].elements = 64;
        assert!(refused(Kind::IpaParams, &other), "two lengths");
        other[0].elements = 63;
        other[1].elements = 63;
        assert!(refused(Kind::IpaParams, &other), "no power of two");
    }
}
