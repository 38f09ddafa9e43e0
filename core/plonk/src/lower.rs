//! Expressions as values of the engine's programs.
//!
//! A program's columns are numbered. [`Lowering`] says at which number a circuit's fixed, advice and instance
//! columns begin; challenges are constants by the time that a program is made.

use crate::stages::{Builder, Value};
use spillproof_kernels::field::KernelField;

use crate::circuit::{ColumnId, Expression, Kind};

/// Where a circuit's columns and challenges are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lowering<'a, F> {
    pub fixed: usize,
    pub advice: usize,
    pub instance: usize,
    pub challenges: &'a [F],
}

impl<F: KernelField> Lowering<'_, F> {
    /// The number of a column.
    pub fn column(&self, column: ColumnId) -> usize {
        column.index
            + match column.kind {
                Kind::Fixed => self.fixed,
                Kind::Advice => self.advice,
                Kind::Instance => self.instance,
            }
    }

    /// The number of the column that the expressions are, if they are one, in its own row.
    pub fn plain_column(&self, expressions: &[Expression<F>]) -> Option<usize> {
        match expressions {
            [Expression::Query(column, 0)] => Some(self.column(*column)),
            _ => None,
        }
    }

    /// The expression's value.
    pub fn value(&self, builder: &mut Builder<F>, expression: &Expression<F>) -> Value {
        match expression {
            Expression::Query(column, rotation) => builder.query(self.column(*column), *rotation),
            Expression::Constant(value) => builder.constant(*value),
            Expression::Challenge(index) => builder.constant(self.challenges[*index]),
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
                builder.scale(a, *factor)
            }
        }
    }

    /// Several expressions as one: Horner's rule in `theta`, the first one on top.
    pub fn compressed(&self, builder: &mut Builder<F>, expressions: &[Expression<F>], theta: F) -> Value {
        let parts: Vec<Value> = expressions
            .iter()
            .map(|expression| self.value(builder, expression))
            .collect();
        builder.fold(&parts, theta)
    }
}
