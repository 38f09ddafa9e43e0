//! A description from bytes, whose numbers are bounded.

use std::collections::HashSet;

use spillproof_format::Curve;
use spillproof_format::iden3::is_reduced;

use super::{
    AXIOM, CircuitDescription, ColumnId, DEPTH_MAX, DESCRIPTION_BYTES_MAX, Described, DescribedTrash,
    Element, FieldError, Kind, MIDNIGHT, Midnight, MidnightRelease, NODES_MAX, ProofsOf, Query, Result,
};

/// Columns of a kind.
const COLUMNS_MAX: u32 = 1 << 16;
/// Selectors; to compress them, each pair is compared.
const SELECTORS_MAX: u32 = 1 << 12;
/// Rows that a cell may be away.
const ROTATION_MAX: u32 = 1 << 28;
/// Bytes of the name of a trash argument.
const NAME_BYTES_MAX: u32 = 1 << 16;
/// More than any circuit's degree: the domain of the quotient would not exist.
const DEGREE_MAX: u32 = 1 << 8;

impl CircuitDescription {
    /// From bytes.
    ///
    /// # Errors
    /// [`FieldError`] for bytes that describe no circuit, or one beyond the bounds of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Decoder::new(bytes)?;
        let proofs = match from.number("version")? {
            AXIOM => ProofsOf::Axiom,
            MIDNIGHT => ProofsOf::Midnight(from.midnight()?),
            version => {
                let remedy = "1 and 2 are known: read the file with a newer spillproof";
                return Err(from.refused(4, "version", version, remedy));
            }
        };
        from.curve = proofs.curve();
        let mut of = Self {
            proofs,
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
        if let ProofsOf::Midnight(midnight) = proofs {
            of.unblinded_advice = from.unblinded(&of)?;
            for _ in 0..from.number("trash arguments")? {
                of.trash.push(from.trash(&of)?);
            }
            let (committed, columns) = (midnight.committed_instances, of.instance_columns);
            if committed > columns {
                let remedy = "more than there are instance columns: save the key again";
                return Err(from.refused(0, "committed instance columns", committed, remedy));
            }
        }
        from.end()?;
        Ok(of)
    }
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    nodes: usize,
    /// Simple selectors of the expression that is being read.
    simple: usize,
    /// Whose elements are read.
    curve: Curve,
}

impl<'b> Decoder<'b> {
    fn new(bytes: &'b [u8]) -> Result<Self> {
        let from = Self {
            bytes,
            at: 0,
            nodes: 0,
            simple: 0,
            curve: Curve::Bn254,
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
        if !is_reduced(self.curve, &found) {
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

    fn midnight(&mut self) -> Result<Midnight> {
        Ok(Midnight {
            release: match self.tag("the release", 1)? {
                0 => MidnightRelease::V07,
                _ => MidnightRelease::V08,
            },
            has_truncated_challenges: self.tag("the width of challenges", 1)? == 1,
            committed_instances: self.at_most("committed instance columns", COLUMNS_MAX)?,
        })
    }

    fn unblinded(&mut self, of: &CircuitDescription) -> Result<Vec<usize>> {
        let mut columns: Vec<usize> = Vec::new();
        for _ in 0..self.number("unblinded columns")? {
            let column = self.below("an unblinded column", of.advice_columns)?;
            // As circuits make them.
            if columns.last().is_some_and(|last| *last >= column) {
                return Err(self.refused(4, "an unblinded column", column, "columns ascend"));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn trash(&mut self, of: &CircuitDescription) -> Result<DescribedTrash> {
        let bytes = self.at_most("the name of a trash argument", NAME_BYTES_MAX)?;
        let mut name = Vec::new();
        for _ in 0..bytes {
            name.extend(self.take::<1>("the name of a trash argument")?);
        }
        let Ok(name) = String::from_utf8(name) else {
            return Err(self.refused(
                bytes,
                "the name of a trash argument",
                "no text",
                "save the key again",
            ));
        };
        let selector = self.below("a selector", of.simple_selectors.len())?;
        let mut constraints = Vec::new();
        let start = self.at;
        for _ in 0..self.number("constraints")? {
            constraints.push(self.expression(of, 0)?);
        }
        // Its name has theirs.
        if constraints.len() > name.matches('&').count() + 1 || constraints.is_empty() {
            let remedy = "one at least, and a name for each: save the key again";
            return Err(self.refused(self.at - start, "constraints", constraints.len(), remedy));
        }
        if std::mem::take(&mut self.simple) > 0 || of.simple_selectors[selector] {
            let bytes = self.at - start;
            let value = "in a trash argument";
            return Err(self.refused(bytes, "a simple selector", value, "save the key again"));
        }
        Ok(DescribedTrash {
            name,
            selector,
            constraints,
        })
    }

    fn end(&self) -> Result<()> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(self.refused(0, "the end", format!("{more} bytes more"), "save the key again")),
        }
    }
}
