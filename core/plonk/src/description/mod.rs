//! A circuit's constraint system as bytes, before its selectors are compressed: what a program with another
//! circuit takes to read a key of this one, and to write the same key.
//!
//! A verifying key is hashed with its constraint system in it: columns, selectors, and queries in the order
//! in which `configure` made them; so the description keeps that order. Layout: little-endian, all numbers
//! `u32` but rotations (`i32`), tags (a byte) and field elements (32 bytes, canonical). A list is its length
//! and its entries.
//!
//! Version 1 is of halo2-axiom's circuits, version 2 of midnight-proofs': it has more parts.
//!
//! ```text
//!   version
//!   2: proofs     release (a byte: 0 for 0.7, 1 for 0.8), challenges (a byte: 1 truncated), committed columns
//!   key (32 bytes: what the key's hash is in a transcript), degree, minimum degree + 1 (0: none)
//!   numbers of fixed, advice and instance columns
//!   selectors     a byte each: 1 simple, 0 complex
//!   queries       three lists (fixed, advice, instance) of: column, rotation
//!   gates         each a list of expressions
//!   lookups       each a list of: input expression, table expression
//!   permuted      kind (a byte: 0 fixed, 1 advice, 2 instance), column
//!   constants     fixed columns
//!   2: unblinded  advice columns
//!   2: trash      name (a list of bytes, UTF-8), selector, a list of expressions
//! ```
//!
//! An expression is a tag and its parts, see [`Described`]; a cell is a number in the list of queries of its
//! kind.
//!
//! What is read is bounded: nothing is allocated by a number of the file, but entry by entry; an expression
//! is at most [`DEPTH_MAX`] deep, all of them together have at most [`NODES_MAX`] nodes.

mod decode;
mod encode;

use spillproof_format::Curve;

pub use crate::circuit::{ColumnId, Kind, Query};

/// The version of descriptions of halo2-axiom's circuits.
const AXIOM: u32 = 1;
/// Of midnight-proofs'.
const MIDNIGHT: u32 = 2;
/// How deep an expression may be.
pub const DEPTH_MAX: usize = 1024;
/// Nodes of all expressions.
pub const NODES_MAX: usize = 1 << 20;
/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;

/// A field element: little-endian, below the modulus.
pub type Element = [u8; 32];

/// A polynomial in cells, as a circuit writes it. Cells are numbers in the lists of queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Described {
    /// Tag 0: a number.
    Constant(Element),
    /// Tag 1: a selector.
    Selector(usize),
    /// Tag 2: a cell of a fixed column.
    Fixed(usize),
    /// Tag 3: a cell of an advice column.
    Advice(usize),
    /// Tag 4: a cell of an instance column.
    Instance(usize),
    /// Tag 5: the negative.
    Negated(Box<Self>),
    /// Tag 6: a sum.
    Sum(Box<Self>, Box<Self>),
    /// Tag 7: a product.
    Product(Box<Self>, Box<Self>),
    /// Tag 8: a multiple; the number comes first.
    Scaled(Box<Self>, Element),
}

/// Whose proofs a key is for: proofs of the same circuit differ, as their verifiers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofsOf {
    /// halo2-axiom's, over BN254.
    #[default]
    Axiom,
    /// midnight-proofs', over BLS12-381.
    Midnight(Midnight),
}

impl ProofsOf {
    /// Their curve.
    pub const fn curve(self) -> Curve {
        match self {
            Self::Axiom => Curve::Bn254,
            Self::Midnight(_) => Curve::Bls12381,
        }
    }
}

/// What midnight-proofs' proofs of a circuit are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Midnight {
    /// Whose verifier takes them.
    pub release: MidnightRelease,
    /// Whether it has the feature `truncated-challenges`.
    pub has_truncated_challenges: bool,
    /// So many instance columns, the first ones, the verifier has as commitments.
    pub committed_instances: usize,
}

/// A line of releases of midnight-proofs, with proofs of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MidnightRelease {
    /// 0.7.
    V07,
    /// 0.8.
    V08,
}

/// An argument for constraints under an additive selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedTrash {
    /// Its name, which is part of the key's hash: those of its constraints, with `&` between them.
    pub name: String,
    /// Its selector, a complex one.
    pub selector: usize,
    /// Its constraints.
    pub constraints: Vec<Described>,
}

/// A circuit's constraint system, of one phase and without challenges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitDescription {
    /// Whose proofs the key is for.
    pub proofs: ProofsOf,
    /// The verifying key's hash, as transcripts absorb it.
    pub key: Element,
    /// The degree of the constraints.
    pub degree: usize,
    /// The degree that the circuit asked for at least.
    pub minimum_degree: Option<usize>,
    /// Fixed columns, without those of selectors.
    pub fixed_columns: usize,
    /// Advice columns.
    pub advice_columns: usize,
    /// Instance columns.
    pub instance_columns: usize,
    /// Whether each selector is a simple one.
    pub simple_selectors: Vec<bool>,
    /// Queries of fixed columns, in order.
    pub fixed_queries: Vec<Query>,
    /// Of advice columns.
    pub advice_queries: Vec<Query>,
    /// Of instance columns.
    pub instance_queries: Vec<Query>,
    /// The constraints of each gate.
    pub gates: Vec<Vec<Described>>,
    /// Input and table of each lookup.
    pub lookups: Vec<Vec<(Described, Described)>>,
    /// Columns under the permutation.
    pub permuted: Vec<ColumnId>,
    /// Fixed columns for constants.
    pub constants: Vec<usize>,
    /// Advice columns whose last rows are 0, and not random; in descriptions of midnight-proofs' circuits.
    pub unblinded_advice: Vec<usize>,
    /// Trash arguments, in the same.
    pub trash: Vec<DescribedTrash>,
}

/// A field of a file that is not what it should be, or that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at offset {offset} is {value}: {remedy}")]
pub struct FieldError {
    /// The field.
    pub what: &'static str,
    /// Its offset, in bytes.
    pub offset: u64,
    /// The value found.
    pub value: String,
    /// What would be right.
    pub remedy: &'static str,
}

type Result<T> = std::result::Result<T, FieldError>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Scalar;
    use ark_ff::{BigInteger, PrimeField};
    use proptest::prelude::*;

    /// Of midnight-proofs' circuits.
    fn midnights() -> CircuitDescription {
        CircuitDescription {
            proofs: ProofsOf::Midnight(Midnight {
                release: MidnightRelease::V08,
                has_truncated_challenges: false,
                committed_instances: 1,
            }),
            unblinded_advice: vec![0],
            trash: vec![DescribedTrash {
                name: "one&other".into(),
                selector: 1,
                constraints: vec![Described::Advice(1), Described::Constant([0x40; 32])],
            }],
            ..example()
        }
    }

    fn example() -> CircuitDescription {
        let (a, b) = (
            || Box::new(Described::Advice(0)),
            || Box::new(Described::Advice(1)),
        );
        let mut minus_one = [0; 32];
        minus_one.copy_from_slice(&(-Scalar::from(1u64)).into_bigint().to_bytes_le());
        let square = Described::Sum(
            Box::new(Described::Scaled(
                Box::new(Described::Product(a(), b())),
                minus_one,
            )),
            Box::new(Described::Negated(Box::new(Described::Constant([1; 32])))),
        );
        CircuitDescription {
            key: [2; 32],
            degree: 4,
            minimum_degree: Some(0),
            fixed_columns: 2,
            advice_columns: 1,
            instance_columns: 1,
            simple_selectors: vec![true, false],
            fixed_queries: vec![(1, 0)],
            advice_queries: vec![(0, 0), (0, 1)],
            instance_queries: vec![(0, -3)],
            gates: vec![vec![Described::Product(
                Box::new(Described::Selector(0)),
                Box::new(square),
            )]],
            lookups: vec![vec![(
                Described::Product(Box::new(Described::Selector(1)), a()),
                Described::Fixed(0),
            )]],
            permuted: vec![
                ColumnId {
                    kind: Kind::Instance,
                    index: 0,
                },
                ColumnId {
                    kind: Kind::Advice,
                    index: 0,
                },
            ],
            constants: vec![1],
            ..CircuitDescription::default()
        }
    }

    #[test]
    fn a_description_is_read_as_it_was_written_and_a_part_of_it_is_not() {
        for of in [example(), midnights()] {
            is_read(&of);
        }
    }

    fn is_read(of: &CircuitDescription) {
        let bytes = of.encode().unwrap();
        assert_eq!(CircuitDescription::decode(&bytes).as_ref(), Ok(of));
        for len in 0..bytes.len() {
            assert!(CircuitDescription::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        let more = [&bytes[..], &[0]].concat();
        assert!(CircuitDescription::decode(&more).is_err());
        // Nothing is allocated by a number of the file.
        for at in (0..bytes.len()).step_by(4) {
            let mut bytes = bytes.clone();
            bytes[at..].fill(0xff);
            assert!(CircuitDescription::decode(&bytes).is_err(), "{at}");
        }
    }

    #[test]
    fn bounds_hold() {
        let refused = |change: &dyn Fn(&mut CircuitDescription)| {
            let mut description = example();
            change(&mut description);
            description.encode().unwrap_err().to_string()
        };
        let deep = |depth| (0..depth).fold(Described::Fixed(0), |a, _| Described::Negated(Box::new(a)));
        let mut fits = example();
        fits.gates[0].push(deep(DEPTH_MAX));
        assert!(fits.encode().is_ok());
        assert!(refused(&|of| of.gates[0].push(deep(DEPTH_MAX + 1))).contains("1024"));
        let both = || Box::new(Described::Selector(0));
        let of_selectors = |of: &mut CircuitDescription| of.gates[0].push(Described::Product(both(), both()));
        assert!(refused(&of_selectors).contains("simple selectors"));
        assert!(refused(&|of| of.lookups[0][0].0 = Described::Selector(0)).contains("simple selector"));
        assert!(refused(&|of| of.advice_queries.push((0, 0))).contains("listed once"));
        assert!(refused(&|of| of.advice_queries.push((1, 0))).contains("no such one"));
        assert!(refused(&|of| of.gates.push(Vec::new())).contains("one at least"));
        assert!(refused(&|of| of.key = [0xff; 32]).contains("modulus"));
        assert!(refused(&|of| of.degree = 1 << 9).contains("degree"));
        assert!(refused(&|of| of.fixed_columns = (1 << 32) + 2).contains("another one"));
    }

    #[test]
    fn bounds_of_midnights_parts_hold() {
        let refused = |change: &dyn Fn(&mut CircuitDescription)| {
            let mut description = midnights();
            change(&mut description);
            description.encode().unwrap_err().to_string()
        };
        assert!(refused(&|of| of.trash[0].selector = 0).contains("a simple selector"));
        assert!(
            refused(&|of| of.trash[0].constraints[0] = Described::Selector(0)).contains("a simple selector")
        );
        assert!(refused(&|of| of.trash[0].name = "one".into()).contains("a name for each"));
        assert!(refused(&|of| of.trash[0].name = "&".repeat((1 << 16) + 1)).contains("the name"));
        assert!(refused(&|of| of.unblinded_advice.push(0)).contains("ascend"));
        assert!(refused(&|of| of.unblinded_advice = vec![1]).contains("no such one"));
        assert!(refused(&|of| of.instance_columns = 0).contains("no such one"));
        // Above BN254's modulus, below that of BLS12-381.
        let element = Described::Constant([0x40; 32]);
        let mut axioms = example();
        axioms.gates[0].push(element);
        assert!(axioms.encode().unwrap_err().to_string().contains("modulus"));
        // What version 1 has no place for.
        let without = CircuitDescription {
            proofs: ProofsOf::Axiom,
            ..midnights()
        };
        assert!(without.encode().is_err());
    }

    proptest! {
        #[test]
        fn any_change_is_refused_or_read(at in 0usize..1000, byte: u8, is_midnights: bool) {
            let of = if is_midnights { midnights() } else { example() };
            let mut bytes = of.encode().unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(read) = CircuitDescription::decode(&bytes) {
                prop_assert_eq!(read.encode().unwrap(), bytes);
            }
        }
    }
}
