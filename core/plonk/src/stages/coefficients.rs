//! Many columns through one transform, of several short ones at a time, one by each thread.
//!
//! A column goes when what it was transformed to is there, so columns are taken in groups: their number is what lies in memory or on disk
//! twice. Memory: that of [`super::short`], or of a transform.

use super::short::Short;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Element, Placement};
use spillproof_engine::dry::Work;
use spillproof_engine::stream::{Transform, ntt};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{Domain, NttElement, forget_buffers};

/// Columns of a group.
const GROUP_COLUMNS: usize = 32;

/// Takes each of `columns` through `transform`.
///
/// # Errors
/// Those of [`ntt`].
pub fn coefficients<F: KernelField + NttElement<F> + Element>(
    columns: Vec<Column<F>>,
    transform: &Transform<F>,
) -> Result<Vec<Column<F>>> {
    let Some(workspace) = columns.first().map(|column| column.workspace().clone()) else {
        return Ok(Vec::new());
    };
    let n = 1u64 << transform.log_n;
    let is_plain = transform.before.is_one() && transform.after.is_one();
    let is_short =
        is_plain && workspace.accelerator.is_none() && columns.iter().all(|column| column.len() == n);
    let short = Short {
        workspace: &workspace,
        what: "transform",
        outputs: 1,
        rows: n,
        placement: Placement::Auto,
        spare: 0,
        work: Work::butterflies(n as f64 * f64::from(transform.log_n) / 2.0),
    };
    let domain = match is_short && !workspace.is_dry() {
        true => Some(workspace.run(|| Ok(Domain::new(transform.log_n, transform.omega)?))?),
        false => None,
    };
    let mut transformed = Vec::with_capacity(columns.len());
    let mut columns = columns.into_iter();
    loop {
        let group: Vec<Column<F>> = columns.by_ref().take(GROUP_COLUMNS).collect();
        if group.is_empty() {
            return Ok(transformed);
        }
        let items: Vec<Vec<&Column<F>>> = group.iter().map(|column| vec![column]).collect();
        let made = workspace.run(|| {
            if !is_short {
                return Ok(None);
            }
            let made = short.take(&items, F::ZERO, |_, tiles| {
                for (values, to) in tiles.inputs.iter().zip(&mut tiles.outputs) {
                    to.copy_from_slice(values);
                    // None in a dry run, which takes no tile.
                    if let Some(domain) = &domain {
                        domain.forward_scaled(to, transform.scale);
                    }
                }
                Ok(())
            })?;
            if !workspace.is_dry() {
                forget_buffers();
            }
            Ok(made)
        })?;
        match made {
            Some(made) => transformed.extend(made.into_iter().flatten()),
            None => {
                for column in group {
                    transformed.push(ntt(&column, transform, Placement::Auto)?);
                }
            }
        }
    }
}
