//! Straight-line programs over vectors: one instruction works on a block of rows at a time.
//!
//! Cost: one pass over a block an instruction. Memory: [`Program::registers`] blocks, the caller's.

use spillproof_kernels::field::KernelField;
use spillproof_kernels::vector::Instruction;

/// A value of a [`Builder`](super::Builder). It means nothing to another builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Value(pub(super) u32);

impl Value {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a value is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node<F> {
    Constant(F),
    /// A column, rotated.
    Query(usize, i32),
    Sum(Value, Value),
    Difference(Value, Value),
    Product(Value, Value),
    Square(Value),
    Double(Value),
    Negated(Value),
    /// Times a constant.
    Scaled(Value, F),
    /// Plus a constant.
    Shifted(Value, F),
    /// A constant minus it.
    Reflected(Value, F),
}

impl<F> Node<F> {
    /// What it is made of.
    pub(super) fn operands(&self) -> impl Iterator<Item = Value> + use<F> {
        let (a, b) = match *self {
            Node::Constant(_) | Node::Query(..) => (None, None),
            Node::Sum(a, b) | Node::Difference(a, b) | Node::Product(a, b) => (Some(a), Some(b)),
            Node::Square(a)
            | Node::Double(a)
            | Node::Negated(a)
            | Node::Scaled(a, _)
            | Node::Shifted(a, _)
            | Node::Reflected(a, _) => (Some(a), None),
        };
        a.into_iter().chain(b)
    }

    /// The same of other values.
    pub(super) fn with_operands(self, other: impl Fn(Value) -> Value) -> Self {
        match self {
            Node::Constant(_) | Node::Query(..) => self,
            Node::Sum(a, b) => Node::Sum(other(a), other(b)),
            Node::Difference(a, b) => Node::Difference(other(a), other(b)),
            Node::Product(a, b) => Node::Product(other(a), other(b)),
            Node::Square(a) => Node::Square(other(a)),
            Node::Double(a) => Node::Double(other(a)),
            Node::Negated(a) => Node::Negated(other(a)),
            Node::Scaled(a, by) => Node::Scaled(other(a), by),
            Node::Shifted(a, by) => Node::Shifted(other(a), by),
            Node::Reflected(a, from) => Node::Reflected(other(a), from),
        }
    }
}

/// A straight-line program over vectors, made by a [`Builder`](super::Builder).
#[derive(Clone, Debug)]
pub struct Program<F> {
    queries: Vec<(usize, i32)>,
    /// Of each column that is read, its smallest and its largest rotation.
    rotations: Vec<Option<(i32, i32)>>,
    pub(super) instructions: Vec<Instruction<F>>,
    pub(super) registers: usize,
    pub(super) outputs: usize,
}

impl<F: KernelField> Program<F> {
    /// One that gives `outputs` vectors, without instructions yet.
    pub(super) fn new(outputs: usize) -> Self {
        Self {
            queries: Vec::new(),
            rotations: Vec::new(),
            instructions: Vec::new(),
            registers: 0,
            outputs,
        }
    }

    /// Adds a pair of a column and a rotation that is not read yet; gives its place in [`Self::queries`].
    pub(super) fn query(&mut self, column: usize, rotation: i32) -> usize {
        if self.rotations.len() <= column {
            self.rotations.resize(column + 1, None);
        }
        let (first, last) = self.rotations[column].unwrap_or((rotation, rotation));
        self.rotations[column] = Some((first.min(rotation), last.max(rotation)));
        self.queries.push((column, rotation));
        self.queries.len() - 1
    }

    /// What it reads: columns and rotations, each pair once. [`Self::evaluate`] takes its inputs in this
    /// order.
    pub fn queries(&self) -> &[(usize, i32)] {
        &self.queries
    }

    /// The highest column that it reads, plus one.
    pub fn columns(&self) -> usize {
        self.rotations.len()
    }

    /// Number of vectors that it gives.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Vectors that it needs room for while it works.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// Number of passes over a block of rows.
    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// The instructions themselves, in order, with their constants: operands that are inputs count
    /// [`Self::queries`], and a register is written before it is read.
    pub fn code(&self) -> &[Instruction<F>] {
        &self.instructions
    }

    /// The smallest and the largest rotation of `column`, or `None` if it is not read.
    pub fn rotations(&self, column: usize) -> Option<(i32, i32)> {
        self.rotations.get(column).copied().flatten()
    }
}
