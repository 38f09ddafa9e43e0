//! Lowered programs, statement by statement, against the instructions that they come from.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::program::Query;

const P: i128 = 1_000_003;
const CONSTANTS: i128 = 7;

/// The value of a query, or of a constant, in these tests.
fn leaf(number: u32, of: i128) -> i128 {
    (i128::from(number) * 7919 + of) % P
}

fn plainly(instructions: &[Instruction]) -> HashMap<u32, i128> {
    let (mut registers, mut outputs) = (HashMap::new(), HashMap::new());
    for instruction in instructions {
        let get = |operand| match operand {
            Operand::Register(number) => registers[&number],
            Operand::Query(number) => leaf(number, 1),
        };
        let constant = |number| leaf(number, CONSTANTS);
        let value: i128 = match instruction.operation {
            Operation::Sum(a, b) => get(a) + get(b),
            Operation::Difference(a, b) => get(a) - get(b),
            Operation::Product(a, b) => get(a) * get(b),
            Operation::ScaledSum(a, c, b) => get(a) * constant(c) + get(b),
            Operation::Square(a) => get(a) * get(a),
            Operation::Double(a) => 2 * get(a),
            Operation::Negated(a) => -get(a),
            Operation::Scaled(a, c) => get(a) * constant(c),
            Operation::Shifted(a, c) => get(a) + constant(c),
            Operation::Reflected(a, c) => constant(c) - get(a),
            Operation::Copy(a) => get(a),
            Operation::Constant(c) => constant(c),
        };
        match instruction.to {
            Target::Register(number) => registers.insert(number, value.rem_euclid(P)),
            Target::Output(number) => outputs.insert(number, value.rem_euclid(P)),
        };
    }
    outputs
}

/// Runs the statements; a name or a slot that holds nothing is a panic.
fn lowered_outputs(lowered: &LoweredProgram) -> HashMap<u32, i128> {
    let (mut slots, mut outputs) = (HashMap::new(), HashMap::new());
    for statements in &lowered.kernels {
        let mut names: HashMap<u32, i128> = HashMap::new();
        for statement in statements {
            let (to, value) = match *statement {
                Statement::Read { to, query } => (to, leaf(query, 1)),
                Statement::Constant { to, number } => (to, leaf(number, CONSTANTS)),
                Statement::Zero { to } => (to, 0),
                Statement::Kept { to, slot } => (to, slots[&slot]),
                Statement::Compute { to, operator, a, b } => {
                    let (a, b) = (names[&a], names[&b]);
                    let value = match operator {
                        Operator::Sum => a + b,
                        Operator::Difference => a - b,
                        Operator::Product => a * b,
                    };
                    (to, value.rem_euclid(P))
                }
                Statement::Keep { slot, value } => {
                    assert!(slot < lowered.slots);
                    slots.insert(slot, names[&value]);
                    continue;
                }
                Statement::Give { output, value } => {
                    assert_eq!(outputs.insert(output, names[&value]), None);
                    continue;
                }
            };
            assert_eq!(names.insert(to, value), None, "a name has one value");
        }
    }
    outputs
}

/// The most values that a kernel holds at one time.
fn held_most(statements: &[Statement]) -> usize {
    let mut last = HashMap::new();
    for (at, statement) in statements.iter().enumerate() {
        let used = match *statement {
            Statement::Keep { value, .. } | Statement::Give { value, .. } => [value, value],
            Statement::Compute { a, b, .. } => [a, b],
            _ => continue,
        };
        last.extend(used.map(|name| (name, at)));
    }
    let begins = statements
        .iter()
        .enumerate()
        .filter_map(|(at, statement)| match *statement {
            Statement::Read { to, .. }
            | Statement::Constant { to, .. }
            | Statement::Zero { to }
            | Statement::Kept { to, .. }
            | Statement::Compute { to, .. } => Some((at, to)),
            _ => None,
        });
    let lives: Vec<(usize, usize)> = begins
        .map(|(at, name)| (at, *last.get(&name).unwrap_or(&at)))
        .collect();
    let living = |at: usize| lives.iter().filter(|life| life.0 <= at && at < life.1).count();
    (0..statements.len()).map(living).max().unwrap_or(0)
}

/// Instructions from numbers: an operand is a written register or, modulo their number, a query.
fn program(numbers: &[[u32; 5]], registers: u32, outputs: u32) -> DeviceProgram {
    let mut written: Vec<u32> = Vec::new();
    let mut instructions = Vec::new();
    let length = numbers.len() as u32;
    for (at, &[operation, a, b, constant, to]) in numbers.iter().enumerate() {
        let operand = |number: u32| match written.get((number / 4) as usize % written.len().max(1)) {
            Some(&register) if !number.is_multiple_of(4) => Operand::Register(register),
            _ => Operand::Query(number % 5),
        };
        let (a, b, c) = (operand(a), operand(b), constant % 3);
        let operation = match operation % 12 {
            0 => Operation::Sum(a, b),
            1 => Operation::Difference(a, b),
            2 => Operation::Product(a, b),
            3 => Operation::ScaledSum(a, c, b),
            4 => Operation::Square(a),
            5 => Operation::Double(a),
            6 => Operation::Negated(a),
            7 => Operation::Scaled(a, c),
            8 => Operation::Shifted(a, c),
            9 => Operation::Reflected(a, c),
            10 => Operation::Copy(a),
            _ => Operation::Constant(c),
        };
        let left = length - at as u32;
        let to = if left <= outputs {
            Target::Output(outputs - left)
        } else {
            written.push(to % registers);
            Target::Register(to % registers)
        };
        instructions.push(Instruction { operation, to });
    }
    let queries = (0..5).map(|column| Query { column, rotation: 0 }).collect();
    DeviceProgram::new(instructions, vec![0; 96], queries, outputs).unwrap()
}

proptest! {
    #[test]
    fn kernels_compute_what_instructions_do(
        numbers in prop::collection::vec(any::<[u32; 5]>(), 4..150),
        registers in 1u32..30,
        outputs in 1u32..4,
        multiplications in 1u32..20,
        steps in 1u32..40,
        held in 1u32..9,
    ) {
        let program = program(&numbers, registers, outputs);
        let limits = Limits { multiplications, steps, held, ..Limits::default() };
        let lowered = LoweredProgram::new(&program, &limits);
        prop_assert_eq!(lowered_outputs(&lowered), plainly(program.instructions()));
        for statements in &lowered.kernels {
            let of = |wanted: Operator| statements.iter().filter(move |statement| {
                matches!(statement, Statement::Compute { operator, .. } if *operator == wanted)
            }).count();
            prop_assert!(of(Operator::Product) <= multiplications as usize);
            prop_assert!(of(Operator::Product) + of(Operator::Sum) + of(Operator::Difference) <= steps as usize);
            // Two operands that can be had again at any time are held while they are used.
            prop_assert!(held_most(statements) <= held.max(3) as usize + 2);
        }
    }
}

/// A sum of products of neighbours needs no slot beyond the sum, wherever it is cut; a sum that is taken
/// backwards needs one a term.
#[test]
fn slots_are_what_lives_across() {
    let mut instructions = Vec::new();
    let mut push = |operation, to| instructions.push(Instruction { operation, to });
    push(Operation::Square(Operand::Query(0)), Target::Register(0));
    for _ in 0..100 {
        push(
            Operation::Product(Operand::Query(1), Operand::Query(2)),
            Target::Register(1),
        );
        push(
            Operation::Sum(Operand::Register(0), Operand::Register(1)),
            Target::Register(0),
        );
    }
    push(Operation::Copy(Operand::Register(0)), Target::Output(0));
    let queries: Vec<Query> = (0..3).map(|column| Query { column, rotation: 0 }).collect();
    let program = DeviceProgram::new(instructions, vec![], queries.clone(), 1).unwrap();
    let limits = Limits {
        multiplications: 10,
        ..Limits::default()
    };
    let lowered = LoweredProgram::new(&program, &limits);
    assert!(
        (11..=14).contains(&lowered.kernels.len()),
        "{}",
        lowered.kernels.len()
    );
    assert_eq!((lowered.slots, lowered.multiplications), (1, 101));

    let mut instructions = Vec::new();
    for register in 0..40 {
        let operation = Operation::Shifted(Operand::Query(0), register);
        instructions.push(Instruction {
            operation,
            to: Target::Register(register),
        });
    }
    for register in (0..39).rev() {
        let operation = Operation::Product(Operand::Register(39), Operand::Register(register));
        instructions.push(Instruction {
            operation,
            to: Target::Register(39),
        });
    }
    let copy = Operation::Copy(Operand::Register(39));
    instructions.push(Instruction {
        operation: copy,
        to: Target::Output(0),
    });
    let program = DeviceProgram::new(instructions, vec![0; 1280], queries, 1).unwrap();
    let lowered = LoweredProgram::new(&program, &Limits::default());
    assert_eq!((lowered.kernels.len(), lowered.slots), (1, 40 - 7));
}
