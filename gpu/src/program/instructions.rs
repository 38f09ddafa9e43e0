//! A constraint program: straight-line code over columns, the same for every row.

use crate::error::{Invalid, Result, Values};

/// The number of a constant has 24 bits in an instruction.
const CONSTANTS_MAX: usize = 1 << 24;
/// One bit of an operand's word is its mark.
const NUMBERS_MAX: usize = 1 << 31;
/// The mark of an operand that is a query, and of a target that is an output.
const MARK: u32 = 1 << 31;

/// Bytes of an element of BN254's scalar field, in Montgomery form.
pub(super) const ELEMENT_BYTES: u64 = 32;
/// The field in the names of kernels.
pub(super) const FIELD: &str = "bn254_fr";

/// The place of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register, by number.
    Register(u32),
    /// A query, by number.
    Query(u32),
}

/// The place of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A register, by number.
    Register(u32),
    /// An output, by number; each is written once.
    Output(u32),
}

/// An operation; a number beside the operands is the number of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `a + b`.
    Sum(Operand, Operand),
    /// `a - b`.
    Difference(Operand, Operand),
    /// `a * b`.
    Product(Operand, Operand),
    /// The first operand times the constant, plus the second.
    ScaledSum(Operand, u32, Operand),
    /// `a * a`.
    Square(Operand),
    /// `2 * a`.
    Double(Operand),
    /// `-a`.
    Negated(Operand),
    /// `a * constant`.
    Scaled(Operand, u32),
    /// `a + constant`.
    Shifted(Operand, u32),
    /// `constant - a`.
    Reflected(Operand, u32),
    /// `a`.
    Copy(Operand),
    /// The constant, in every row.
    Constant(u32),
}

/// One operation and the place of its result. Operands are read before the result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub operation: Operation,
    /// The place of its result.
    pub to: Target,
}

/// Row i of a query is row `i + rotation` of a column, modulo the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Query {
    /// The column, by number.
    pub column: u32,
    /// The rotation in rows.
    pub rotation: i32,
}

/// A checked program: every number in it refers to something.
#[derive(Debug, Clone)]
pub struct DeviceProgram {
    instructions: Vec<Instruction>,
    constants: Vec<u8>,
    queries: Vec<Query>,
    registers: u32,
    outputs: u32,
}

impl Operation {
    /// The operands `a` and `b`, and the number of the constant.
    fn parts(self) -> (Option<Operand>, Option<Operand>, Option<u32>) {
        use Operation::*;
        match self {
            Sum(a, b) | Difference(a, b) | Product(a, b) => (Some(a), Some(b), None),
            ScaledSum(a, constant, b) => (Some(a), Some(b), Some(constant)),
            Square(a) | Double(a) | Negated(a) | Copy(a) => (Some(a), None, None),
            Scaled(a, constant) | Shifted(a, constant) | Reflected(a, constant) => {
                (Some(a), None, Some(constant))
            }
            Constant(constant) => (None, None, Some(constant)),
        }
    }

    /// As `Operation` in program.cuh.
    fn code(self) -> u32 {
        use Operation::*;
        match self {
            Sum(..) => 0,
            Difference(..) => 1,
            Product(..) => 2,
            ScaledSum(..) => 3,
            Square(_) => 4,
            Double(_) => 5,
            Negated(_) => 6,
            Scaled(..) => 7,
            Shifted(..) => 8,
            Reflected(..) => 9,
            Copy(_) => 10,
            Constant(_) => 11,
        }
    }
}

impl DeviceProgram {
    /// A program over `queries` and `constants` (the bytes of elements, one after the other) with `outputs`
    /// columns as its result.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a number that refers to nothing, a register that is read before it is
    /// written, an output that is not written exactly once.
    pub fn new(
        instructions: Vec<Instruction>,
        constants: Vec<u8>,
        queries: Vec<Query>,
        outputs: u32,
    ) -> Result<Self> {
        let bytes = constants.len() as u64;
        let count = bytes / ELEMENT_BYTES;
        if !bytes.is_multiple_of(ELEMENT_BYTES) {
            return Err(Invalid::part_of_an_element("constants of a program", bytes, ELEMENT_BYTES).into());
        }
        if outputs == 0 {
            return Err(Values::Empty {
                what: "outputs of a program",
            }
            .into());
        }
        for (what, given, limit) in [
            ("constants of a program", count, CONSTANTS_MAX),
            ("outputs of a program", outputs.into(), NUMBERS_MAX - 1),
            ("queries of a program", queries.len() as u64, NUMBERS_MAX - 1),
        ] {
            Values::unless_at_most(what, given, limit as u64)?;
        }
        let mut program = Self {
            instructions,
            constants,
            queries,
            registers: 0,
            outputs,
        };
        program.registers = program.check(count)?;
        Ok(program)
    }

    /// Checks all numbers; returns the number of registers.
    fn check(&self, constants: u64) -> Result<u32> {
        let mut written = std::collections::HashSet::new();
        let mut given = vec![false; self.outputs as usize];
        let mut registers = 0;
        for (at, instruction) in self.instructions.iter().enumerate() {
            let (a, b, constant) = instruction.operation.parts();
            for operand in [a, b].into_iter().flatten() {
                let known = match operand {
                    Operand::Register(number) => written.contains(&number),
                    Operand::Query(number) => (number as usize) < self.queries.len(),
                };
                if !known {
                    return Err(Invalid::Program {
                        place: format!("instruction {at}"),
                        fault: format!("reads {operand:?}, which is not written or does not exist"),
                    }
                    .into());
                }
            }
            if let Some(number) = constant {
                Values::unless_below("constant", number.into(), constants)?;
            }
            match instruction.to {
                Target::Register(number) if (number as usize) < NUMBERS_MAX => {
                    written.insert(number);
                    registers = registers.max(number + 1);
                }
                Target::Output(number) if given.get(number as usize) == Some(&false) => {
                    given[number as usize] = true;
                }
                to => {
                    return Err(Invalid::Program {
                        place: format!("instruction {at}"),
                        fault: format!("writes {to:?} a second time or beyond the last one"),
                    }
                    .into());
                }
            }
        }
        match given.iter().position(|given| !given) {
            Some(output) => Err(Invalid::Program {
                place: format!("output {output} of the program"),
                fault: "is never written".into(),
            }
            .into()),
            None => Ok(registers),
        }
    }

    /// Whether the two programs differ in the values of their constants at most.
    pub fn has_the_shape_of(&self, other: &Self) -> bool {
        (self.outputs, self.constants.len()) == (other.outputs, other.constants.len())
            && self.queries == other.queries
            && self.instructions == other.instructions
    }

    /// Its queries.
    pub fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// The number of its outputs.
    pub fn outputs(&self) -> u32 {
        self.outputs
    }

    /// The number of its registers.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// Its instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Its constants, element after element.
    pub fn constants(&self) -> &[u8] {
        &self.constants
    }

    /// Instructions as the interpreter reads them, four words each: see program.cuh.
    pub fn words(&self) -> Vec<[u32; 4]> {
        let operand = |operand: Option<Operand>| match operand {
            Some(Operand::Register(number)) => number,
            Some(Operand::Query(number)) => MARK | number,
            None => 0,
        };
        let word = |instruction: &Instruction| {
            let (a, b, constant) = instruction.operation.parts();
            let to = match instruction.to {
                Target::Register(number) => number,
                Target::Output(number) => MARK | number,
            };
            let operation = instruction.operation.code() | constant.unwrap_or(0) << 8;
            [operation, to, operand(a), operand(b)]
        };
        self.instructions.iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nothing_are_refused() {
        let (register, query) = (Operand::Register, Operand::Query);
        let good = |operation, to| Instruction { operation, to };
        let made = |instructions: &[Instruction], constants: usize| {
            let queries = vec![Query {
                column: 0,
                rotation: 1,
            }];
            DeviceProgram::new(instructions.to_vec(), vec![0; constants], queries, 1)
        };
        let first = good(Operation::Square(query(0)), Target::Register(2));
        let last = good(Operation::Scaled(register(2), 1), Target::Output(0));
        let program = made(&[first, last], 64).unwrap();
        assert_eq!(program.registers(), 3);
        assert_eq!(program.words(), [[4, 2, MARK, 0], [7 | 1 << 8, MARK, 2, 0]]);
        for (instructions, constants) in [
            (vec![last], 64),
            (vec![first], 64),
            (vec![first, last], 32),
            (vec![first, last], 48),
            (vec![first, last, last], 64),
            (vec![good(Operation::Copy(query(1)), Target::Output(0))], 64),
            (vec![good(Operation::Copy(query(0)), Target::Output(1))], 64),
        ] {
            let refusal = made(&instructions, constants).unwrap_err();
            assert!(
                matches!(refusal, crate::Error::Invalid(_)),
                "{instructions:?}: {refusal}"
            );
        }
    }
}
