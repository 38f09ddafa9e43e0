//! Expressions to programs.
//!
//! A [`Builder`] takes expressions bottom up. Equal ones are one value (hash consing), constants are folded,
//! and what they make trivial disappears (`x * 0`, `x + 0`, `x - x`, `-(-x)`), so that the caller may write
//! constraints as they stand in the protocol. [`Builder::finish`] drops what no output needs and puts the
//! rest in an order that keeps few values at a time (`schedule`).

use std::collections::HashMap;

use super::program::{Node, Program, Value};
use super::schedule::schedule;
use spillproof_kernels::field::KernelField;

/// Takes expressions and makes a [`Program`] of them.
///
/// ```
/// use ark_bn254::Fr;
/// use spillproof_plonk::stages::Builder;
///
/// // The selector in column 2 switches on: the row's product of columns 0 and 1 is the next row's column 0.
/// let mut builder = Builder::new();
/// let (a, b, a_next) = (builder.query(0, 0), builder.query(1, 0), builder.query(0, 1));
/// let selector = builder.query(2, 0);
/// let product = builder.mul(a, b);
/// let difference = builder.sub(product, a_next);
/// let constraint = builder.mul(selector, difference);
/// let program = builder.finish(&[constraint]);
///
/// let f = |value: u64| Fr::from(value);
/// let (a, b, selector) = ([f(2), f(6), f(7)], [f(3), f(4), f(5)], [f(1), f(1), f(0)]);
/// let a_next = [a[1], a[2], a[0]];
/// let inputs: Vec<&[Fr]> = program
///     .queries()
///     .iter()
///     .map(|query| match query {
///         (0, 0) => &a[..],
///         (0, 1) => &a_next[..],
///         (1, 0) => &b[..],
///         _ => &selector[..],
///     })
///     .collect();
/// let mut values = [f(9); 3];
/// let mut registers = vec![f(0); 3 * program.registers()];
/// program.evaluate(&inputs, &mut [&mut values], &mut registers);
/// assert_eq!(values, [f(0), f(17), f(0)]);
/// ```
#[derive(Clone, Debug)]
pub struct Builder<F> {
    nodes: Vec<Node<F>>,
    known: HashMap<Node<F>, Value>,
}

impl<F: KernelField> Default for Builder<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: KernelField> Builder<F> {
    /// Without any value.
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// The same constant in every row.
    pub fn constant(&mut self, value: F) -> Value {
        self.node(Node::Constant(value))
    }

    /// In row i, what `column` has in row `i + rotation`, modulo the number of rows.
    pub fn query(&mut self, column: usize, rotation: i32) -> Value {
        self.node(Node::Query(column, rotation))
    }

    /// `a + b`.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        match (self.get(a), self.get(b)) {
            (Node::Constant(a), Node::Constant(b)) => self.constant(a.plus(&b)),
            (Node::Constant(shift), _) => self.shift(b, shift),
            (_, Node::Constant(shift)) => self.shift(a, shift),
            (_, Node::Negated(b)) => self.sub(a, b),
            (Node::Negated(a), _) => self.sub(b, a),
            _ if a == b => self.double(a),
            _ => self.node(Node::Sum(a.min(b), a.max(b))),
        }
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        match (self.get(a), self.get(b)) {
            (_, Node::Constant(b)) => self.shift(a, b.negated()),
            (Node::Constant(a), _) if a.is_zero() => self.neg(b),
            (Node::Constant(a), _) => self.node(Node::Reflected(b, a)),
            (_, Node::Negated(b)) => self.add(a, b),
            _ if a == b => self.constant(F::ZERO),
            _ => self.node(Node::Difference(a, b)),
        }
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        match (self.get(a), self.get(b)) {
            (Node::Constant(factor), _) => self.scale(b, factor),
            (_, Node::Constant(factor)) => self.scale(a, factor),
            _ if a == b => self.square(a),
            _ => self.node(Node::Product(a.min(b), a.max(b))),
        }
    }

    /// `-a`.
    pub fn neg(&mut self, a: Value) -> Value {
        match self.get(a) {
            Node::Constant(a) => self.constant(a.negated()),
            Node::Negated(a) => a,
            Node::Difference(a, b) => self.node(Node::Difference(b, a)),
            Node::Scaled(a, factor) => self.scale(a, factor.negated()),
            Node::Shifted(a, shift) => self.node(Node::Reflected(a, shift.negated())),
            Node::Reflected(a, constant) => self.shift(a, constant.negated()),
            _ => self.node(Node::Negated(a)),
        }
    }

    /// `2 * a`.
    pub fn double(&mut self, a: Value) -> Value {
        match self.get(a) {
            Node::Constant(a) => self.constant(a.doubled()),
            Node::Scaled(a, factor) => self.scale(a, factor.doubled()),
            _ => self.node(Node::Double(a)),
        }
    }

    /// `a * a`.
    pub fn square(&mut self, a: Value) -> Value {
        match self.get(a) {
            Node::Constant(a) => self.constant(a.squared()),
            Node::Negated(a) => self.node(Node::Square(a)),
            _ => self.node(Node::Square(a)),
        }
    }

    /// `a * factor`.
    pub fn scale(&mut self, a: Value, factor: F) -> Value {
        match self.get(a) {
            Node::Constant(a) => self.constant(a.times(&factor)),
            _ if factor.is_zero() => self.constant(F::ZERO),
            _ if factor.is_one() => a,
            Node::Scaled(a, other) => self.scale(a, factor.times(&other)),
            Node::Negated(a) => self.scale(a, factor.negated()),
            _ if factor == F::ONE.doubled() => self.node(Node::Double(a)),
            _ if factor == F::ONE.negated() => self.neg(a),
            _ => self.node(Node::Scaled(a, factor)),
        }
    }

    /// Horner's rule: `(parts[0] * factor + parts[1]) * factor + parts[2]`, and so on; 0 without parts. This
    /// is how constraints are put together with a challenge.
    pub fn fold(&mut self, parts: &[Value], factor: F) -> Value {
        let Some((&first, rest)) = parts.split_first() else {
            return self.constant(F::ZERO);
        };
        rest.iter().fold(first, |sum, &part| {
            let sum = self.scale(sum, factor);
            self.add(sum, part)
        })
    }

    /// The program that computes `outputs`, in this order.
    pub fn finish(self, outputs: &[Value]) -> Program<F> {
        schedule(&self.nodes, outputs)
    }

    /// How each value is made: operands come before what is made of them.
    pub(super) fn nodes(&self) -> &[Node<F>] {
        &self.nodes
    }

    fn shift(&mut self, a: Value, shift: F) -> Value {
        match self.get(a) {
            Node::Constant(a) => self.constant(a.plus(&shift)),
            _ if shift.is_zero() => a,
            Node::Shifted(a, other) => self.shift(a, shift.plus(&other)),
            Node::Reflected(a, constant) => {
                let constant = self.constant(constant.plus(&shift));
                self.sub(constant, a)
            }
            Node::Negated(a) => self.node(Node::Reflected(a, shift)),
            _ => self.node(Node::Shifted(a, shift)),
        }
    }

    fn get(&self, value: Value) -> Node<F> {
        self.nodes[value.index()]
    }

    fn node(&mut self, node: Node<F>) -> Value {
        let nodes = &mut self.nodes;
        *self.known.entry(node).or_insert_with(|| {
            nodes.push(node);
            // Four thousand million values would take hundreds of gigabytes.
            Value((nodes.len() - 1) as u32)
        })
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
