//! A circuit's constraint system as bytes, before its selectors are compressed: what a program with another
//! circuit takes to read a key of this one, and to write the same key.
//!
//! A verifying key is hashed with its constraint system in it: columns, selectors, and queries in the order
//! in which `configure` made them; so the description keeps that order. Layout: little-endian, all numbers
//! `u32` but rotations (`i32`), tags (a byte) and field elements (32 bytes, canonical). A list is its length
//! and its entries.
//!
//! ```text
//!   version, key (32 bytes: what the key's hash is in a transcript), degree, minimum degree + 1 (0: none)
//!   numbers of fixed, advice and instance columns
//!   selectors     a byte each: 1 simple, 0 complex
//!   queries       three lists (fixed, advice, instance) of: column, rotation
//!   gates         each a list of expressions
//!   lookups       each a list of: input expression, table expression
//!   permuted      kind (a byte: 0 fixed, 1 advice, 2 instance), column
//!   constants     fixed columns
//! ```
//!
//! An expression is a tag and its parts, see [`Described`]; a cell is a number in the list of queries of its
//! kind.
//!
//! What is read is bounded: nothing is allocated by a number of the file, but entry by entry; an expression
//! is at most [`DEPTH_MAX`] deep, all of them together have at most [`NODES_MAX`] nodes.

use std::collections::HashSet;

use ark_ff::{BigInteger, PrimeField};

pub use crate::circuit::{ColumnId, Kind, Query};
use crate::curve::Scalar;

/// The version that is written and read.
const VERSION: u32 = 1;
/// How deep an expression may be.
pub const DEPTH_MAX: usize = 1024;
/// Nodes of all expressions.
pub const NODES_MAX: usize = 1 << 20;
/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
/// Columns of a kind.
const COLUMNS_MAX: u32 = 1 << 16;
/// Selectors; to compress them, each pair is compared.
const SELECTORS_MAX: u32 = 1 << 12;
/// Rows that a cell may be away.
const ROTATION_MAX: u32 = 1 << 28;
/// More than any circuit's degree: the domain of the quotient would not exist.
const DEGREE_MAX: u32 = 1 << 8;

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

/// A circuit's constraint system, of one phase and without challenges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitDescription {
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

impl CircuitDescription {
    /// As bytes.
    ///
    /// # Errors
    /// [`FieldError`] for a circuit that is larger than [`Self::decode`] allows.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut to = Encoder::default();
        to.count(VERSION as usize);
        to.bytes.extend(self.key);
        to.count(self.degree);
        to.count(self.minimum_degree.map_or(0, |degree| degree + 1));
        to.count(self.fixed_columns);
        to.count(self.advice_columns);
        to.count(self.instance_columns);
        to.count(self.simple_selectors.len());
        to.bytes
            .extend(self.simple_selectors.iter().map(|is_simple| u8::from(*is_simple)));
        for queries in [&self.fixed_queries, &self.advice_queries, &self.instance_queries] {
            to.count(queries.len());
            for (column, rotation) in queries {
                to.count(*column);
                to.bytes.extend(rotation.to_le_bytes());
            }
        }
        to.count(self.gates.len());
        for gate in &self.gates {
            to.count(gate.len());
            gate.iter().for_each(|constraint| to.expression(constraint));
        }
        to.count(self.lookups.len());
        for lookup in &self.lookups {
            to.count(lookup.len());
            for (input, table) in lookup {
                to.expression(input);
                to.expression(table);
            }
        }
        to.count(self.permuted.len());
        for column in &self.permuted {
            to.bytes.push(match column.kind {
                Kind::Fixed => 0,
                Kind::Advice => 1,
                Kind::Instance => 2,
            });
            to.count(column.index);
        }
        to.count(self.constants.len());
        self.constants.iter().for_each(|column| to.count(*column));
        // What is written is what can be read.
        match Self::decode(&to.bytes)? == *self {
            true => Ok(to.bytes),
            false => Err(FieldError {
                what: "the description of a circuit",
                offset: 0,
                value: "another one when it is read".into(),
                remedy: "numbers of columns and rows are below 2^32",
            }),
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`FieldError`] for bytes that describe no circuit, or one beyond the bounds of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Decoder::new(bytes)?;
        let version = from.number("version")?;
        if version != VERSION {
            return Err(from.refused(
                4,
                "version",
                version,
                "1 is known: read the file with a newer spillproof",
            ));
        }
        let mut of = Self {
            key: from.element("key")?,
            degree: from.at_most("degree", DEGREE_MAX)?,
            minimum_degree: from.at_most("minimum degree", DEGREE_MAX)?.checked_sub(1),
            fixed_columns: from.at_most("fixed columns", COLUMNS_MAX)?,
            advice_columns: from.at_most("advice columns", COLUMNS_MAX)?,
            instance_columns: from.at_most("instance columns", COLUMNS_MAX)?,
            ..Self::default()
        };
        for _ in 0..from.at_most("selectors", SELECTORS_MAX)? {
            of.simple_selectors.push(from.tag("kind of a selector", 1)? == 1);
        }
        of.fixed_queries = from.queries(of.fixed_columns)?;
        of.advice_queries = from.queries(of.advice_columns)?;
        of.instance_queries = from.queries(of.instance_columns)?;
        for _ in 0..from.number("gates")? {
            of.gates.push(from.gate(&of)?);
        }
        for _ in 0..from.number("lookups")? {
            of.lookups.push(from.lookup(&of)?);
        }
        of.permuted = from.permuted(&of)?;
        for _ in 0..from.number("columns of constants")? {
            of.constants
                .push(from.below("a column of constants", of.fixed_columns)?);
        }
        from.end()?;
        Ok(of)
    }
}

#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Numbers beyond `u32` are found when the bytes are read back.
    fn count(&mut self, count: usize) {
        self.bytes.extend((count as u32).to_le_bytes());
    }

    /// In the order of the tree, without recursion: a circuit's expression may be deeper than what is read
    /// back.
    fn expression(&mut self, whole: &Described) {
        let mut left = vec![whole];
        while let Some(expression) = left.pop() {
            match expression {
                Described::Constant(value) => self.tagged(0, value),
                Described::Selector(index) => self.leaf(1, *index),
                Described::Fixed(query) => self.leaf(2, *query),
                Described::Advice(query) => self.leaf(3, *query),
                Described::Instance(query) => self.leaf(4, *query),
                Described::Negated(a) => {
                    self.bytes.push(5);
                    left.push(a);
                }
                Described::Sum(a, b) => {
                    self.bytes.push(6);
                    left.extend([b.as_ref(), a.as_ref()]);
                }
                Described::Product(a, b) => {
                    self.bytes.push(7);
                    left.extend([b.as_ref(), a.as_ref()]);
                }
                Described::Scaled(a, factor) => {
                    self.tagged(8, factor);
                    left.push(a);
                }
            }
        }
    }

    fn leaf(&mut self, tag: u8, index: usize) {
        self.bytes.push(tag);
        self.count(index);
    }

    fn tagged(&mut self, tag: u8, value: &Element) {
        self.bytes.push(tag);
        self.bytes.extend(value);
    }
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    nodes: usize,
    /// Simple selectors of the expression that is being read.
    simple: usize,
}

impl<'b> Decoder<'b> {
    fn new(bytes: &'b [u8]) -> Result<Self> {
        let from = Self {
            bytes,
            at: 0,
            nodes: 0,
            simple: 0,
        };
        if bytes.len() as u64 > DESCRIPTION_BYTES_MAX {
            return Err(from.refused(0, "length", bytes.len(), "at most 16 MiB are read"));
        }
        Ok(from)
    }

    /// The error of a field that ends here and has `bytes` bytes.
    fn refused(
        &self,
        bytes: usize,
        what: &'static str,
        value: impl ToString,
        remedy: &'static str,
    ) -> FieldError {
        FieldError {
            what,
            offset: self.at.saturating_sub(bytes) as u64,
            value: value.to_string(),
            remedy,
        }
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let left = &self.bytes[self.at..];
        let Some(found) = left.first_chunk() else {
            let value = format!("{} bytes long", left.len());
            return Err(self.refused(0, what, value, "the description is cut short: save the key again"));
        };
        self.at += N;
        Ok(*found)
    }

    fn number(&mut self, what: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(what)?))
    }

    fn at_most(&mut self, what: &'static str, limit: u32) -> Result<usize> {
        let found = self.number(what)?;
        if found > limit {
            return Err(self.refused(4, what, found, "beyond what this version reads"));
        }
        Ok(found as usize)
    }

    fn below(&mut self, what: &'static str, limit: usize) -> Result<usize> {
        let found = self.number(what)?;
        if found as usize >= limit {
            return Err(self.refused(4, what, found, "there is no such one: save the key again"));
        }
        Ok(found as usize)
    }

    fn tag(&mut self, what: &'static str, last: u8) -> Result<u8> {
        let [found] = self.take(what)?;
        if found > last {
            return Err(self.refused(1, what, found, "unknown: save the key again"));
        }
        Ok(found)
    }

    fn element(&mut self, what: &'static str) -> Result<Element> {
        let found: Element = self.take(what)?;
        let reduced = Scalar::from_le_bytes_mod_order(&found)
            .into_bigint()
            .to_bytes_le();
        if reduced != found {
            return Err(self.refused(found.len(), what, "not below the modulus", "save the key again"));
        }
        Ok(found)
    }

    fn queries(&mut self, columns: usize) -> Result<Vec<Query>> {
        let (mut queries, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..self.number("queries")? {
            let column = self.below("the column of a query", columns)?;
            let rotation = i32::from_le_bytes(self.take("a rotation")?);
            if rotation.unsigned_abs() > ROTATION_MAX {
                return Err(self.refused(4, "a rotation", rotation, "beyond 2^28 rows"));
            }
            if !seen.insert((column, rotation)) {
                return Err(self.refused(8, "the column of a query", column, "a query is listed once"));
            }
            queries.push((column, rotation));
        }
        Ok(queries)
    }

    fn gate(&mut self, of: &CircuitDescription) -> Result<Vec<Described>> {
        let mut constraints = Vec::new();
        for _ in 0..self.number("constraints")? {
            let (start, constraint) = (self.at, self.expression(of, 0)?);
            if std::mem::take(&mut self.simple) > 1 {
                let bytes = self.at - start;
                let remedy = "an expression has one at most: save the key again";
                return Err(self.refused(bytes, "a product of simple selectors", "a constraint", remedy));
            }
            constraints.push(constraint);
        }
        if constraints.is_empty() {
            return Err(self.refused(4, "constraints", 0, "a gate has one at least"));
        }
        Ok(constraints)
    }

    fn lookup(&mut self, of: &CircuitDescription) -> Result<Vec<(Described, Described)>> {
        let mut pairs = Vec::new();
        for _ in 0..self.number("columns of a lookup")? {
            let start = self.at;
            pairs.push((self.expression(of, 0)?, self.expression(of, 0)?));
            if std::mem::take(&mut self.simple) > 0 {
                let bytes = self.at - start;
                return Err(self.refused(bytes, "a simple selector", "in a lookup", "save the key again"));
            }
        }
        Ok(pairs)
    }

    fn expression(&mut self, of: &CircuitDescription, depth: usize) -> Result<Described> {
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX {
            let remedy =
                "expressions of depth 1024, and 2^20 nodes in all, are read: write it as several constraints";
            return Err(self.refused(0, "an expression", "too large", remedy));
        }
        let tag = self.tag("the tag of an expression", 8)?;
        let inner = |from: &mut Self| from.expression(of, depth + 1).map(Box::new);
        Ok(match tag {
            0 => Described::Constant(self.element("a constant")?),
            1 => {
                let index = self.below("a selector", of.simple_selectors.len())?;
                self.simple += usize::from(of.simple_selectors[index]);
                Described::Selector(index)
            }
            2 => Described::Fixed(self.below("a query of a fixed column", of.fixed_queries.len())?),
            3 => Described::Advice(self.below("a query of an advice column", of.advice_queries.len())?),
            4 => Described::Instance(self.below("a query of an instance column", of.instance_queries.len())?),
            5 => Described::Negated(inner(self)?),
            6 => Described::Sum(inner(self)?, inner(self)?),
            7 => Described::Product(inner(self)?, inner(self)?),
            _ => {
                let factor = self.element("a factor")?;
                Described::Scaled(inner(self)?, factor)
            }
        })
    }

    fn permuted(&mut self, of: &CircuitDescription) -> Result<Vec<ColumnId>> {
        let (mut columns, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..self.number("permuted columns")? {
            let tag = self.tag("the kind of a permuted column", 2)?;
            let (kind, count) = match tag {
                0 => (Kind::Fixed, of.fixed_columns),
                1 => (Kind::Advice, of.advice_columns),
                _ => (Kind::Instance, of.instance_columns),
            };
            let index = self.below("a permuted column", count)?;
            if !seen.insert((tag, index)) {
                return Err(self.refused(4, "a permuted column", index, "a column is listed once"));
            }
            columns.push(ColumnId { kind, index });
        }
        Ok(columns)
    }

    fn end(&self) -> Result<()> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(self.refused(0, "the end", format!("{more} bytes more"), "save the key again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        }
    }

    #[test]
    fn a_description_is_read_as_it_was_written_and_a_part_of_it_is_not() {
        let bytes = example().encode().unwrap();
        assert_eq!(CircuitDescription::decode(&bytes), Ok(example()));
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

    proptest! {
        #[test]
        fn any_change_is_refused_or_read(at in 0usize..1000, byte: u8) {
            let mut bytes = example().encode().unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(read) = CircuitDescription::decode(&bytes) {
                prop_assert_eq!(read.encode().unwrap(), bytes);
            }
        }
    }
}
