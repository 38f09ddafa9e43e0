//! From values to instructions: which are needed, in what order, in which registers.
//!
//! Order: depth first from each output, and of two operands the one first that needs more registers, as for
//! expression trees (Sethi and Ullman, *The generation of optimal code for arithmetic expressions*, 1970);
//! shared values make that a heuristic here. A register is free again after the last use of its value.
//! Recursion is unrolled, since a Horner chain over all constraints is as deep as it is long.

use std::collections::{HashMap, HashSet};

use super::program::{Node, Program, Value};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::vector::{Instruction, Operand, Operation, Target};

/// The program for `outputs`.
pub(super) fn schedule<F: KernelField>(nodes: &[Node<F>], outputs: &[Value]) -> Program<F> {
    let (nodes, outputs) = needed(nodes, outputs);
    let (nodes, uses) = fused(&nodes, &outputs);
    let mut scheduler = Scheduler {
        needs: needs(&nodes),
        nodes,
        uses,
        places: HashMap::new(),
        free: Vec::new(),
        program: Program::new(outputs.len()),
    };
    for (index, output) in outputs.into_iter().enumerate() {
        scheduler.compute(output);
        scheduler.store(output, index);
        scheduler.used(output);
    }
    scheduler.program
}

/// The nodes that `outputs` are made of, in their order, and the outputs among them: a program of a few constraints is not made
/// from the nodes of all.
fn needed<F: KernelField>(nodes: &[Node<F>], outputs: &[Value]) -> (Vec<Node<F>>, Vec<Value>) {
    let (mut seen, mut open) = (HashSet::new(), outputs.to_vec());
    while let Some(value) = open.pop() {
        if seen.insert(value) {
            open.extend(nodes[value.index()].operands());
        }
    }
    let mut kept: Vec<Value> = seen.into_iter().collect();
    kept.sort_unstable();
    let places: HashMap<Value, Value> = kept.iter().copied().zip((0..).map(Value)).collect();
    let nodes = kept
        .iter()
        .map(|value| nodes[value.index()].with_operands(|operand| places[&operand]));
    (
        nodes.collect(),
        outputs.iter().map(|output| places[output]).collect(),
    )
}

/// A node, or two nodes in one instruction.
#[derive(Clone, Copy, Debug)]
enum Step<F> {
    Node(Node<F>),
    /// The first times a constant, plus the second.
    ScaledSum(Value, F, Value),
}

impl<F> Step<F> {
    fn operands(&self) -> impl Iterator<Item = Value> + use<F> {
        let (node, pair) = match self {
            Step::Node(node) => (Some(node.operands()), None),
            Step::ScaledSum(a, _, b) => (None, Some([*a, *b])),
        };
        node.into_iter().flatten().chain(pair.into_iter().flatten())
    }
}

/// Puts a product with a constant that only one sum uses into that sum. Also gives how often each value is
/// used.
fn fused<F: KernelField>(nodes: &[Node<F>], outputs: &[Value]) -> (Vec<Step<F>>, Vec<usize>) {
    let mut uses = vec![0usize; nodes.len()];
    for output in outputs {
        uses[output.index()] += 1;
    }
    // Operands come before what is made of them, so downwards every use is known.
    for (index, node) in nodes.iter().enumerate().rev() {
        if uses[index] > 0 {
            node.operands().for_each(|operand| uses[operand.index()] += 1);
        }
    }
    let steps = nodes.iter().enumerate().map(|(index, node)| {
        if let Node::Sum(a, b) = *node
            && uses[index] > 0
        {
            for (scaled, other) in [(a, b), (b, a)] {
                if let Node::Scaled(factored, factor) = nodes[scaled.index()]
                    && uses[scaled.index()] == 1
                {
                    return Step::ScaledSum(factored, factor, other);
                }
            }
        }
        Step::Node(*node)
    });
    let steps: Vec<Step<F>> = steps.collect();
    // A product that became a part of its sum is not used any more; its own operand now is the sum's.
    (steps, uses)
}

/// Registers that a value takes to compute, if nothing were shared.
fn needs<F: KernelField>(steps: &[Step<F>]) -> Vec<u32> {
    let mut needs: Vec<u32> = Vec::with_capacity(steps.len());
    for step in steps {
        let mut operands = step.operands().map(|operand| needs[operand.index()]);
        let need = match (operands.next(), operands.next(), step) {
            (None, _, _) => 0,
            (Some(a), None, _) => a.max(1),
            (Some(a), Some(b), _) if a == b => a + 1,
            (Some(a), Some(b), _) => a.max(b),
        };
        needs.push(need);
    }
    needs
}

struct Scheduler<F> {
    nodes: Vec<Step<F>>,
    needs: Vec<u32>,
    /// Uses that are still to come.
    uses: Vec<usize>,
    places: HashMap<Value, Operand>,
    free: Vec<usize>,
    program: Program<F>,
}

impl<F: KernelField> Scheduler<F> {
    fn compute(&mut self, value: Value) {
        let mut stack = vec![value];
        while let Some(&value) = stack.last() {
            if self.places.contains_key(&value) {
                stack.pop();
                continue;
            }
            let step = self.nodes[value.index()];
            let mut missing: Vec<Value> = step
                .operands()
                .filter(|operand| !self.places.contains_key(operand))
                .collect();
            if missing.is_empty() {
                stack.pop();
                self.emit(value, step);
            } else {
                // The last one goes first. Among equals, the one made later: the longer chain.
                missing.sort_by_key(|operand| (self.needs[operand.index()], *operand));
                stack.extend(missing);
            }
        }
    }

    fn emit(&mut self, value: Value, step: Step<F>) {
        let operation = match step {
            // Constants are folded: the only ones left are outputs.
            Step::Node(Node::Constant(_)) => return,
            Step::Node(Node::Query(column, rotation)) => {
                self.places
                    .insert(value, Operand::Input(self.program.query(column, rotation)));
                return;
            }
            Step::Node(Node::Sum(a, b)) => Operation::Sum(self.place(a), self.place(b)),
            Step::Node(Node::Difference(a, b)) => Operation::Difference(self.place(a), self.place(b)),
            Step::Node(Node::Product(a, b)) => Operation::Product(self.place(a), self.place(b)),
            Step::ScaledSum(a, factor, b) => Operation::ScaledSum(self.place(a), factor, self.place(b)),
            Step::Node(Node::Square(a)) => Operation::Square(self.place(a)),
            Step::Node(Node::Double(a)) => Operation::Double(self.place(a)),
            Step::Node(Node::Negated(a)) => Operation::Negated(self.place(a)),
            Step::Node(Node::Scaled(a, factor)) => Operation::Scaled(self.place(a), factor),
            Step::Node(Node::Shifted(a, shift)) => Operation::Shifted(self.place(a), shift),
            Step::Node(Node::Reflected(a, constant)) => Operation::Reflected(self.place(a), constant),
        };
        // Taken before the operands' registers are given back: an instruction never writes what it reads.
        let register = self.free.pop().unwrap_or_else(|| {
            self.program.registers += 1;
            self.program.registers - 1
        });
        self.places.insert(value, Operand::Register(register));
        self.program.instructions.push(Instruction {
            operation,
            to: Target::Register(register),
        });
        step.operands().for_each(|operand| self.used(operand));
    }

    /// Sees that `value` comes to stand in output `index`.
    fn store(&mut self, value: Value, index: usize) {
        let to = Target::Output(index);
        let operation = match self.nodes[value.index()] {
            Step::Node(Node::Constant(constant)) => Operation::Constant(constant),
            _ => Operation::Copy(self.place(value)),
        };
        // What was computed last, for this alone, is computed in place.
        if let Operation::Copy(Operand::Register(register)) = operation
            && self.uses[value.index()] == 1
            && let Some(last) = self.program.instructions.last_mut()
            && last.to == Target::Register(register)
        {
            last.to = to;
        } else {
            self.program.instructions.push(Instruction { operation, to });
        }
    }

    /// Where a value is that was computed. (A constant has no place, and needs none.)
    fn place(&self, value: Value) -> Operand {
        self.places.get(&value).copied().unwrap_or(Operand::Input(0))
    }

    fn used(&mut self, value: Value) {
        let uses = &mut self.uses[value.index()];
        *uses = uses.saturating_sub(1);
        if *uses == 0
            && let Some(Operand::Register(register)) = self.places.get(&value)
        {
            // It stays known, at a place that is no longer its own: it is not used again.
            self.free.push(*register);
        }
    }
}
