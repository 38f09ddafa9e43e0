//! The quotient of a rank-1 constraint system by an accelerator, from its coefficients and a witness: the values of its rows
//! need not be made, nor cross.

use ark_bn254::Fr;

use super::walk::Walk;
use super::{Output, declined, elements_of, same, wrong_answer};
use crate::Result;
use crate::accelerator::{self, Answer, COEFFICIENT_BYTES, ReadElements};
use crate::column::{Column, Element, Placement, Writer};
use crate::dry::Job;

/// A rank-1 constraint system with a witness, and the coset that its quotient is wanted on, as
/// [`accelerator::Constraints`] has them.
pub struct System<'a, F> {
    /// log2 of the number of rows.
    pub log_n: u32,
    /// A primitive `2^log_n`-th root of unity.
    pub omega: F,
    /// The first element of the coset.
    pub shift: F,
    /// The distinct values of coefficients.
    pub values: &'a Column<F>,
    /// The signals.
    pub witness: &'a Column<F>,
    /// The coefficients.
    pub coefficients: &'a Column<[u8; COEFFICIENT_BYTES as usize]>,
}

/// The quotient of a system by the accelerator; `None` if the processor has to make it.
///
/// # Errors
/// What the disk or the budget may give.
pub fn system_quotient<F: Element>(
    system: &System<'_, F>,
    placement: Placement,
) -> Result<Option<Column<F>>> {
    let workspace = system.witness.workspace();
    let (Some(omega), Some(shift)) = (same::<F, Fr>(&system.omega), same::<F, Fr>(&system.shift)) else {
        return Ok(None);
    };
    let (values, witness) = (elements_of(system.values)?, elements_of(system.witness)?);
    let coefficients = Walk::upwards(system.coefficients.clone());
    if let Some(dry_run) = workspace.dry_run() {
        let job = Job::Constraints {
            log_n: system.log_n,
            signals: system.witness.len(),
            coefficients: system.coefficients.len(),
            values: system.values.len(),
            ends_bytes: values.lease_bytes() + witness.lease_bytes() + coefficients.lease_bytes(),
        };
        dry_run.offered(job, 0);
        return Ok(None);
    }
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return Ok(None);
    };
    let n = 1u64 << system.log_n;
    let mut output = Output::new(system.witness, n, placement);
    let scalars = |len, source| accelerator::Scalars { len, source };
    // Three columns are written and read in each of three passes, if the output goes to the disk.
    let (written_bytes, between_bytes) = (output.written_bytes, 9 * output.written_bytes);
    let mut job = accelerator::Constraints {
        log_n: system.log_n,
        omega,
        shift,
        values: scalars(system.values.len(), values),
        witness: scalars(system.witness.len(), witness),
        coefficients: scalars(system.coefficients.len(), Box::new(coefficients)),
        output: Box::new(&mut output),
        disk_seconds: Box::new(|| {
            let read_bytes = bytes_on_disk(system.witness) + bytes_on_disk(system.coefficients);
            workspace.disk_seconds(read_bytes + between_bytes, written_bytes + between_bytes)
        }),
    };
    let answer = accelerator.constraints(&mut job, &workspace.budget);
    drop(job);
    let abandon = |writer: Option<Writer<_>>| writer.into_iter().for_each(Writer::abandon);
    match (answer, output.writer.take()) {
        (Ok(Answer::Done(())), Some(writer)) => writer.finish()?.cast().map(Some),
        (Ok(Answer::Done(())), None) => Err(wrong_answer("a quotient of which nothing was written".into())),
        (Ok(Answer::Declined(why)), writer) => {
            abandon(writer);
            Ok(declined("constraints", &why))
        }
        (Err(error), writer) => {
            abandon(writer);
            Err(error)
        }
    }
}

fn bytes_on_disk<E: Element>(column: &Column<E>) -> u64 {
    match column.on_disk() {
        true => column.len() * E::BYTES as u64,
        false => 0,
    }
}
