//! Constraints of a circuit as values of the engine's programs.
//!
//! A program's columns are numbered. [`Lowering`] says at which number a circuit's fixed, advice and instance columns
//! begin; challenges are constants by the time that a program is made.

use ::spillproof::commit::Scalar;
use ::spillproof::plonkish::{Builder, Value};
use ff::Field;

use super::values::scalar;
use crate::plonk::{Any, Column, Expression};

/// Where a circuit's columns and challenges are.
#[derive(Clone, Copy)]
pub(crate) struct Lowering<'a> {
    pub(crate) fixed: usize,
    pub(crate) advice: usize,
    pub(crate) instance: usize,
    pub(crate) challenges: &'a [Scalar],
}

impl Lowering<'_> {
    /// The number of a column.
    pub(crate) fn column(&self, column: &Column<Any>) -> usize {
        column.index()
            + match column.column_type() {
                Any::Fixed => self.fixed,
                Any::Advice(_) => self.advice,
                Any::Instance => self.instance,
            }
    }

    /// The number of the column that the expression is, if it is one, in its own row.
    pub(crate) fn plain_column<F: Field>(&self, expression: &Expression<F>) -> Option<usize> {
        let (column, rotation) = self.query(expression)?;
        (rotation == 0).then_some(column)
    }

    /// The expression's value.
    ///
    /// Panics for a selector: keygen replaces them.
    pub(crate) fn value<F: Field>(&self, builder: &mut Builder<Scalar>, expression: &Expression<F>) -> Value {
        if let Some((column, rotation)) = self.query(expression) {
            return builder.query(column, rotation);
        }
        match expression {
            Expression::Constant(value) => builder.constant(scalar(value)),
            Expression::Challenge(challenge) => builder.constant(self.challenges[challenge.index()]),
            Expression::Negated(a) => {
                let a = self.value(builder, a);
                builder.neg(a)
            }
            Expression::Sum(a, b) => {
                let (a, b) = (self.value(builder, a), self.value(builder, b));
                builder.add(a, b)
            }
            Expression::Product(a, b) => {
                let (a, b) = (self.value(builder, a), self.value(builder, b));
                builder.mul(a, b)
            }
            Expression::Scaled(a, factor) => {
                let a = self.value(builder, a);
                builder.scale(a, scalar(factor))
            }
            Expression::Selector(_)
            | Expression::Fixed(_)
            | Expression::Advice(_)
            | Expression::Instance(_) => {
                panic!("virtual selectors are removed during optimization")
            }
        }
    }

    /// Several expressions as one: Horner's rule in `theta`, the first one on top.
    pub(crate) fn compressed<F: Field>(
        &self,
        builder: &mut Builder<Scalar>,
        expressions: &[Expression<F>],
        theta: Scalar,
    ) -> Value {
        let parts: Vec<Value> = expressions
            .iter()
            .map(|expression| self.value(builder, expression))
            .collect();
        builder.fold(&parts, theta)
    }

    fn query<F: Field>(&self, expression: &Expression<F>) -> Option<(usize, i32)> {
        match expression {
            Expression::Fixed(query) => Some((self.fixed + query.column_index(), query.rotation().0)),
            Expression::Advice(query) => Some((self.advice + query.column_index(), query.rotation().0)),
            Expression::Instance(query) => Some((self.instance + query.column_index(), query.rotation().0)),
            _ => None,
        }
    }
}
