//! Running a program: block by block, on one thread or on all.

use super::program::Program;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::vector::{Evaluation, SCALARS_PER_EIGHT};

/// Rows of a block, where the caller is free to choose: registers and operands of a few dozen instructions
/// stay in the caches.
pub const BLOCK_ROWS: usize = 256;

impl<F: KernelField> Program<F> {
    /// Computes the outputs, row by row, on this thread.
    ///
    /// `inputs` has one slice for each of [`Self::queries`], `outputs` one for each output, all of one
    /// length; `registers` has room for [`Self::registers`] vectors of a block's length, and so says what a
    /// block is: any length does. Panics if there are too few slices or one is too short, or if the registers
    /// do not hold one row.
    pub fn evaluate(&self, inputs: &[&[F]], outputs: &mut [&mut [F]], registers: &mut [F]) {
        assert_eq!(inputs.len(), self.queries().len(), "one input for each query");
        assert_eq!(outputs.len(), self.outputs, "one slice for each output");
        let evaluation = Evaluation {
            instructions: &self.instructions,
            inputs,
            outputs,
            registers,
            register_count: self.registers,
        };
        evaluation.run(Backend::detect());
    }

    /// As [`Self::evaluate`], with the rows shared among the parts of `registers`, of `part` scalars each, on
    /// the rayon pool.
    pub(super) fn evaluate_parallel(
        &self,
        inputs: &[&[F]],
        outputs: &mut [&mut [F]],
        registers: &mut [F],
        part: usize,
    ) {
        let len = outputs.first().map_or(0, |output| output.len());
        let parts = registers.len().checked_div(part).unwrap_or(1).max(1);
        let rows = len.div_ceil(parts).next_multiple_of(64);
        let mut jobs = Vec::with_capacity(parts);
        let mut rest: Vec<&mut [F]> = outputs.iter_mut().map(|output| &mut **output).collect();
        let mut registers = registers;
        for start in (0..len).step_by(rows.max(1)) {
            let here = rows.min(len - start);
            let (now, later): (Vec<_>, Vec<_>) =
                rest.into_iter().map(|output| output.split_at_mut(here)).unzip();
            rest = later;
            let (mine, others) = registers.split_at_mut(part.min(registers.len()));
            registers = others;
            jobs.push((start, here, now, mine));
        }
        jobs.into_iter()
            .parallel()
            .for_each(|(start, rows, mut outputs, registers)| {
                let inputs: Vec<&[F]> = inputs.iter().map(|input| &input[start..start + rows]).collect();
                self.evaluate(&inputs, &mut outputs, registers);
            });
    }
}

/// Registers of all threads together, in scalars, and of one.
pub(crate) fn register_scalars(registers: usize, threads: usize) -> (usize, usize) {
    let part = registers * (BLOCK_ROWS / 8 * SCALARS_PER_EIGHT);
    (part * threads.max(1), part)
}
