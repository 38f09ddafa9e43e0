//! A description as bytes.

use super::{
    AXIOM, CircuitDescription, Described, Element, FieldError, Kind, MIDNIGHT, MidnightRelease, ProofsOf,
    Result,
};

impl CircuitDescription {
    /// As bytes.
    ///
    /// # Errors
    /// [`FieldError`] for a circuit that is larger than [`Self::decode`] allows.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut to = Encoder::default();
        match self.proofs {
            ProofsOf::Axiom => to.count(AXIOM as usize),
            ProofsOf::Midnight(of) => {
                to.count(MIDNIGHT as usize);
                to.bytes.push(match of.release {
                    MidnightRelease::V07 => 0,
                    MidnightRelease::V08 => 1,
                });
                to.bytes.push(of.has_truncated_challenges.into());
                to.count(of.committed_instances);
            }
        }
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
        if let ProofsOf::Midnight(_) = self.proofs {
            to.count(self.unblinded_advice.len());
            self.unblinded_advice.iter().for_each(|column| to.count(*column));
            to.count(self.trash.len());
            for argument in &self.trash {
                to.count(argument.name.len());
                to.bytes.extend(argument.name.as_bytes());
                to.count(argument.selector);
                to.count(argument.constraints.len());
                argument.constraints.iter().for_each(|of| to.expression(of));
            }
        }
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
