//! A proving key's columns: on disk, where a session made it, or spilled for one proof, where it is in
//! memory.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use ff::Field;
use spillproof_engine::column::{Column, Workspace};
use spillproof_kernels::field::KernelField;
use spillproof_plonk::keygen::ProvingColumns;
use spillproof_plonk::{KeyColumns, ProverField, Result};

use super::convert::Foreign;
use crate::poly::Polynomial;

/// The field of a `ProvingKey` that is ours: its columns, if a session made it. Stock's own fields are empty
/// then.
#[derive(Clone, Default)]
pub(crate) struct StoredKey(Option<Arc<dyn Any + Send + Sync>>);

impl StoredKey {
    pub(crate) fn new<G: KernelField>(columns: ProvingColumns<G>) -> Self {
        Self(Some(Arc::new(columns)))
    }

    /// The columns, if there are any.
    pub(crate) fn columns<G: KernelField>(&self) -> Option<&ProvingColumns<G>> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Refuses a key on disk, for stock's prover.
    ///
    /// # Errors
    /// Says what to do.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(io::Error::other(
                "spillproof: this proving key was made in a session, on its disk, and there is no session now: install one, or make the key without",
            )),
        }
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.0.is_some() { "disk" } else { "memory" };
        f.debug_tuple("StoredKey").field(&place).finish()
    }
}

/// The polynomials of a key in memory. Each time that columns are asked for, scratch columns are written.
pub(crate) struct KeyInMemory<'k, F> {
    pub(crate) workspace: &'k Workspace,
    /// Fixed values and coefficients, sigma values and coefficients.
    pub(crate) polynomials: [Vec<&'k [F]>; 4],
}

impl<'k, F: Field> KeyInMemory<'k, F> {
    /// Values or coefficients, without their basis.
    pub(crate) fn slices<B>(polynomials: &'k [Polynomial<F, B>]) -> Vec<&'k [F]> {
        polynomials.iter().map(|polynomial| &polynomial[..]).collect()
    }

    fn columns<G: ProverField>(&self, which: usize) -> Result<Vec<Column<G>>> {
        let columns = self.polynomials[which].iter();
        let columns = columns.map(|values| {
            Ok(G::padded_column(
                self.workspace,
                values.len() as u64,
                &Foreign(values),
                &[],
            )?)
        });
        columns.collect()
    }
}

impl<F: Field, G: ProverField> KeyColumns<G> for KeyInMemory<'_, F> {
    fn fixed_values(&self) -> Result<Vec<Column<G>>> {
        self.columns(0)
    }

    fn fixed_polynomials(&self) -> Result<Vec<Column<G>>> {
        self.columns(1)
    }

    fn sigma_values(&self) -> Result<Vec<Column<G>>> {
        self.columns(2)
    }

    fn sigma_polynomials(&self) -> Result<Vec<Column<G>>> {
        self.columns(3)
    }
}
