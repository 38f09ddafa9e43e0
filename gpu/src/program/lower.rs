//! Lowers instructions to kernels.
//!
//! 1. *Values*: each assignment of a register becomes a value that is written once. Copies and constants
//!    become names for what they copy. Values that no output needs are dropped.
//! 2. *Cuts*: a kernel has a limited number of multiplications and steps. Within the last quarter of that,
//!    the list is cut where the fewest values are live.
//! 3. *Places*: a thread holds a few values. When there are more, the one whose next use is farthest goes to
//!    a slot in device memory (Belady, "A study of replacement algorithms for a virtual-storage computer",
//!    1966); values that are live across a cut go to slots there. A value has one slot and is written there
//!    once; the slot is free after its last use.
//!
//! The slots are the scratch memory of a program: slots * rows of a launch * bytes of an element.

use std::collections::BTreeMap;

use super::instructions::{DeviceProgram, Instruction, Operand, Operation, Target};

/// The limits of compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Multiplications of a kernel. Origin about a hundred on the time of NVRTC grows with the square of
    /// their number: 240 take twice as long in one kernel as in two.
    pub multiplications: u32,
    /// Steps of a kernel, additions included.
    pub steps: u32,
    /// Values that a thread holds, at least 3: an element of BN254 takes eight registers, and the call of a
    /// product a hundred.
    pub held: u32,
    /// A program of fewer steps is not worth a second of compilation.
    pub steps_min: u32,
    /// A program of more kernels would compile for minutes.
    pub kernels_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            multiplications: 128,
            steps: 400,
            held: 7,
            steps_min: 8,
            kernels_max: 64,
        }
    }
}

/// One statement of a kernel. A name is valid in one kernel, for one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Read {
        to: u32,
        query: u32,
    },
    Constant {
        to: u32,
        number: u32,
    },
    Zero {
        to: u32,
    },
    Kept {
        to: u32,
        slot: u32,
    },
    Keep {
        slot: u32,
        value: u32,
    },
    Give {
        output: u32,
        value: u32,
    },
    Compute {
        to: u32,
        operator: Operator,
        a: u32,
        b: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Sum,
    Difference,
    Product,
}

/// A program as a list of kernels.
#[derive(Debug, Clone)]
pub(super) struct LoweredProgram {
    pub kernels: Vec<Vec<Statement>>,
    /// Slots of device memory for each row.
    pub slots: u32,
    pub multiplications: u32,
    pub steps: u32,
}

/// The operand of a step: a value by its number, or something that can be read again at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Value(u32),
    Query(u32),
    Constant(u32),
    Zero,
}

/// One operation. Without an operator it is an output whose value is `a`.
#[derive(Debug, Clone, Copy)]
struct Assignment {
    operator: Option<Operator>,
    a: Origin,
    b: Option<Origin>,
    output: Option<u32>,
}

impl Assignment {
    fn values(&self) -> impl Iterator<Item = u32> + use<> {
        [Some(self.a), self.b]
            .into_iter()
            .flatten()
            .filter_map(|from| match from {
                Origin::Value(value) => Some(value),
                _ => None,
            })
    }

    fn is_product(&self) -> bool {
        self.operator == Some(Operator::Product)
    }
}

impl LoweredProgram {
    pub fn new(program: &DeviceProgram, limits: &Limits) -> Self {
        let steps = needed(steps(program.instructions()));
        let uses = uses(&steps);
        let mut places = ValuePlaces {
            steps: &steps,
            uses: &uses,
            held_max: limits.held.max(3) as usize,
            held: BTreeMap::new(),
            slots: BTreeMap::new(),
            free: Vec::new(),
            slots_made: 0,
            names: 0,
            statements: Vec::new(),
        };
        let kernels = cuts(&steps, &uses, limits)
            .windows(2)
            .map(|cut| places.kernel(cut[0], cut[1]))
            .collect();
        Self {
            kernels,
            slots: places.slots_made,
            multiplications: steps.iter().filter(|step| step.is_product()).count() as u32,
            steps: steps.len() as u32,
        }
    }
}

/// One step for each value, whose number is the step's.
fn steps(instructions: &[Instruction]) -> Vec<Assignment> {
    let mut steps: Vec<Assignment> = Vec::new();
    let mut registers: BTreeMap<u32, Origin> = BTreeMap::new();
    for instruction in instructions {
        // A register that is read holds something, or `DeviceProgram::new` would have refused.
        let from = |operand: Operand| match operand {
            Operand::Query(number) => Origin::Query(number),
            Operand::Register(number) => registers.get(&number).copied().unwrap_or(Origin::Zero),
        };
        let mut compute = |operator, a, b| {
            steps.push(Assignment {
                operator: Some(operator),
                a,
                b: Some(b),
                output: None,
            });
            Origin::Value(steps.len() as u32 - 1)
        };
        use Operator::{Difference, Product, Sum};
        let value = match instruction.operation {
            Operation::Sum(a, b) => compute(Sum, from(a), from(b)),
            Operation::Difference(a, b) => compute(Difference, from(a), from(b)),
            Operation::Product(a, b) => compute(Product, from(a), from(b)),
            Operation::ScaledSum(a, constant, b) => {
                let scaled = compute(Product, from(a), Origin::Constant(constant));
                compute(Sum, scaled, from(b))
            }
            Operation::Square(a) => compute(Product, from(a), from(a)),
            Operation::Double(a) => compute(Sum, from(a), from(a)),
            Operation::Negated(a) => compute(Difference, Origin::Zero, from(a)),
            Operation::Scaled(a, constant) => compute(Product, from(a), Origin::Constant(constant)),
            Operation::Shifted(a, constant) => compute(Sum, from(a), Origin::Constant(constant)),
            Operation::Reflected(a, constant) => compute(Difference, Origin::Constant(constant), from(a)),
            Operation::Copy(a) => from(a),
            Operation::Constant(constant) => Origin::Constant(constant),
        };
        match instruction.to {
            Target::Register(number) => {
                registers.insert(number, value);
            }
            Target::Output(output) => steps.push(Assignment {
                operator: None,
                a: value,
                b: None,
                output: Some(output),
            }),
        }
    }
    steps
}

/// The steps that an output needs, with new numbers.
fn needed(steps: Vec<Assignment>) -> Vec<Assignment> {
    let mut wanted: Vec<bool> = steps.iter().map(|step| step.output.is_some()).collect();
    for at in (0..steps.len()).rev() {
        if wanted[at] {
            steps[at].values().for_each(|value| wanted[value as usize] = true);
        }
    }
    let mut numbers = vec![0; steps.len()];
    let mut kept: Vec<Assignment> = Vec::new();
    for (at, mut step) in steps.into_iter().enumerate().filter(|(at, _)| wanted[*at]) {
        numbers[at] = kept.len() as u32;
        let renumbered = |from: Origin| match from {
            Origin::Value(value) => Origin::Value(numbers[value as usize]),
            other => other,
        };
        (step.a, step.b) = (renumbered(step.a), step.b.map(renumbered));
        kept.push(step);
    }
    kept
}

/// By value, the steps that use it, in order.
fn uses(steps: &[Assignment]) -> Vec<Vec<u32>> {
    let mut uses = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for value in step.values() {
            let of_value: &mut Vec<u32> = &mut uses[value as usize];
            if of_value.last() != Some(&(at as u32)) {
                of_value.push(at as u32);
            }
        }
    }
    uses
}

/// Where kernels begin, and the end.
fn cuts(steps: &[Assignment], uses: &[Vec<u32>], limits: &Limits) -> Vec<usize> {
    // Values that live across the place before a step.
    let mut across = vec![0i64; steps.len() + 1];
    for (value, uses) in uses.iter().enumerate() {
        if let Some(&last) = uses.last() {
            across[value + 1] += 1;
            across[last as usize + 1] -= 1;
        }
    }
    let mut living = 0;
    for place in &mut across {
        living += *place;
        *place = living;
    }
    let (multiplications, length) = (limits.multiplications.max(1), limits.steps.max(1));
    let mut cuts = vec![0];
    let mut first = 0;
    while first < steps.len() {
        let (mut end, mut products) = (first, 0);
        let mut best: Option<usize> = None;
        while end < steps.len() {
            let products_then = products + u32::from(steps[end].is_product());
            if products_then > multiplications || end - first >= length as usize {
                break;
            }
            (products, end) = (products_then, end + 1);
            let late = 4 * products >= 3 * multiplications || 4 * (end - first) >= 3 * length as usize;
            if late && best.is_none_or(|best| across[end] <= across[best]) {
                best = Some(end);
            }
        }
        first = match best {
            Some(best) if end < steps.len() => best,
            _ => end,
        };
        cuts.push(first);
    }
    cuts
}

/// Which values a thread holds, and which are in slots, as the steps go by.
struct ValuePlaces<'a> {
    steps: &'a [Assignment],
    uses: &'a [Vec<u32>],
    held_max: usize,
    /// By value, its name in this kernel.
    held: BTreeMap<u32, u32>,
    /// By value, for its whole life.
    slots: BTreeMap<u32, u32>,
    free: Vec<u32>,
    slots_made: u32,
    names: u32,
    statements: Vec<Statement>,
}

impl ValuePlaces<'_> {
    fn kernel(&mut self, first: usize, end: usize) -> Vec<Statement> {
        self.names = 0;
        for at in first..end {
            self.step(at as u32);
        }
        let living: Vec<u32> = self.held.keys().copied().collect();
        for value in living {
            self.put_away(value, end as u32);
        }
        std::mem::take(&mut self.statements)
    }

    fn step(&mut self, at: u32) {
        let step = self.steps[at as usize];
        let pinned: Vec<u32> = step.values().collect();
        let a = self.name_of(step.a, at, &pinned);
        let b = step.b.map(|b| {
            if b == step.a {
                a
            } else {
                self.name_of(b, at, &pinned)
            }
        });
        for &value in &pinned {
            if self.uses[value as usize].last() == Some(&at) {
                self.held.remove(&value);
                self.free.extend(self.slots.remove(&value));
            }
        }
        if let (Some(operator), Some(b)) = (step.operator, b) {
            // An operand that is still live may go to a slot to make room.
            self.make_room(at + 1, &[]);
            let to = self.name();
            self.statements.push(Statement::Compute { to, operator, a, b });
            self.held.insert(at, to);
        }
        if let Some(output) = step.output {
            self.statements.push(Statement::Give { output, value: a });
        }
    }

    /// The name of an operand, which is read now unless the thread holds it.
    fn name_of(&mut self, from: Origin, at: u32, pinned: &[u32]) -> u32 {
        if let Origin::Value(value) = from {
            if let Some(&name) = self.held.get(&value) {
                return name;
            }
            self.make_room(at, pinned);
        }
        let to = self.name();
        self.statements.push(match from {
            Origin::Query(query) => Statement::Read { to, query },
            Origin::Constant(number) => Statement::Constant { to, number },
            Origin::Zero => Statement::Zero { to },
            Origin::Value(value) => {
                self.held.insert(value, to);
                // A value that the thread does not hold is in a slot.
                let slot = self.slots.get(&value).copied().unwrap_or(0);
                Statement::Kept { to, slot }
            }
        });
        to
    }

    fn make_room(&mut self, at: u32, pinned: &[u32]) {
        while self.held.len() >= self.held_max {
            let next_use = |value: u32| {
                let uses = &self.uses[value as usize];
                uses.get(uses.partition_point(|&used| used < at))
                    .copied()
                    .unwrap_or(u32::MAX)
            };
            let candidates = self.held.keys().copied().filter(|value| !pinned.contains(value));
            let Some(farthest) = candidates.max_by_key(|&value| next_use(value)) else {
                return;
            };
            self.put_away(farthest, at);
        }
    }

    /// Moves a value to a slot, unless it is in one, or is not used from step `at` on.
    fn put_away(&mut self, value: u32, at: u32) {
        let Some(name) = self.held.remove(&value) else {
            return;
        };
        let lives = self.uses[value as usize].last().is_some_and(|&last| last >= at);
        if !lives || self.slots.contains_key(&value) {
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots_made += 1;
            self.slots_made - 1
        });
        self.slots.insert(value, slot);
        self.statements.push(Statement::Keep { slot, value: name });
    }

    fn name(&mut self) -> u32 {
        self.names += 1;
        self.names - 1
    }
}

#[cfg(test)]
#[path = "lower_tests.rs"]
mod tests;
