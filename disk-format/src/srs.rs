//! What a container of kind [`Kind::Srs`] holds: `g` and/or `g_lagrange`, 2^k points of G1 each, then g2 and
//! s·g2.

use crate::error::FormatError;
use crate::header::{Basis, Content, Curve, Header, Kind, Label, Section, SectionSpec};
use crate::params_kzg::K_MAX;

/// Label of the monomial points, s^i·g.
pub const G_LABEL: &str = "g";
/// Label of the Lagrange points, L_i(s)·g.
pub const G_LAGRANGE_LABEL: &str = "g_lagrange";
/// Label of the pair.
pub const PAIR_LABEL: &str = "g2,s_g2";

/// The sections of an SRS for 2^k points, in file order.
///
/// # Errors
/// [`FormatError::Field`] when k is above 28.
pub fn sections(k: u32, monomial: bool, lagrange: bool) -> Result<Vec<SectionSpec>, FormatError> {
    if k > K_MAX {
        return Err(FormatError::Field {
            what: "k",
            offset: 256 + 8,
            value: k.to_string(),
            remedy: "the scalar field has domains of at most 2^28 points",
        });
    }
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
    /// Finds the sections of an SRS over BN254.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the container is of another kind or curve, or has other sections.
    pub fn of(header: &'a Header) -> Result<Self, FormatError> {
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
        if header.curve() != Curve::Bn254 {
            let value = format!("{:?}", header.curve());
            return Err(refuse("curve", 16, value, "an SRS over BN254 is needed here"));
        }
        let monomial = header.find(Content::G1, Basis::Monomial);
        let lagrange = header.find(Content::G1, Basis::Lagrange);
        let points = monomial.or(lagrange).map_or(0, |section| section.elements);
        let k = points.checked_ilog2().unwrap_or(0);
        let pair = header.find(Content::G2, Basis::None);
        match pair {
            Some(pair)
                if k <= K_MAX
                    && sections(k, monomial.is_some(), lagrange.is_some()).is_ok_and(|specs| {
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

    fn header(kind: Kind, sections: &[SectionSpec]) -> Header {
        Header::new(kind, Curve::Bn254, 4096, [0; 16], 0, sections).expect("within limits")
    }

    #[test]
    fn sections_are_found_again() {
        for (monomial, lagrange) in [(true, true), (true, false), (false, true)] {
            let sections = sections(7, monomial, lagrange).expect("k in range");
            let header = header(Kind::Srs, &sections);
            let srs = Srs::of(&header).expect("an SRS");
            assert_eq!(srs.k, 7);
            assert_eq!(
                (srs.monomial.is_some(), srs.lagrange.is_some()),
                (monomial, lagrange)
            );
            assert_eq!(srs.pair.elements, 2);
        }
        assert!(sections(29, true, true).is_err());
    }

    #[test]
    fn other_shapes_are_refused() {
        let good = sections(7, true, true).expect("k in range");
        assert!(Srs::of(&header(Kind::PointColumn, &good)).is_err());
        assert!(Srs::of(&header(Kind::Srs, &good[..2])).is_err(), "no pair");
        assert!(Srs::of(&header(Kind::Srs, &good[2..])).is_err(), "no points");
        let mut other = good.clone();
        other[1].elements = 64;
        assert!(Srs::of(&header(Kind::Srs, &other)).is_err(), "two lengths");
        other[0].elements = 63;
        other[1].elements = 63;
        assert!(Srs::of(&header(Kind::Srs, &other)).is_err(), "no power of two");
    }
}
