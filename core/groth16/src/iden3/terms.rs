//! The constraints of a `.r1cs` file as terms of three matrices, with the rows that bind public signals.

use std::path::PathBuf;

use spillproof_format::FormatError;
use spillproof_format::iden3::r1cs::{self, Term};
use spillproof_format::iden3::{LOG_DOMAIN_MAX, Matrix};

use super::source::Source;
use crate::dictionary::{Dictionary, Form};
use crate::{Coefficient, Constraints, MATRICES};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Placement, Writer};
use spillproof_kernels::field::KernelField;

/// Terms that are handed on at a time.
const TILE_TERMS: usize = 1 << 12;

/// A circuit.
pub(super) struct Circuit<F> {
    pub header: r1cs::Header,
    /// The terms of all three matrices ([`MATRICES`]), in the order of rows. The last rows bind the constant
    /// one and the public signals.
    pub terms: Constraints<F>,
    /// Terms of each matrix.
    pub counts: [u64; 3],
    path: PathBuf,
}

/// An error of the file, or of a tile that goes on.
enum Stop {
    Format(FormatError),
    Other(Error),
}

impl From<FormatError> for Stop {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl<F: KernelField> Circuit<F> {
    /// Reads the constraints twice: columns have a length before they are written.
    ///
    /// # Errors
    /// [`Error::Format`] for a file that is damaged; [`Error::Io`], [`Error::OverBudget`].
    pub fn read(source: &Source, progress: &mut dyn FnMut(Progress)) -> Result<Self> {
        let refuse = |error| source.refuse(error);
        let sections = &source.sections;
        let bytes = source.small(r1cs::Header::range(sections).map_err(refuse)?)?;
        let header = r1cs::Header::parse(sections, &bytes).map_err(refuse)?;
        let layout = r1cs::Layout::new(sections, &header).map_err(refuse)?;
        if header.log_domain() > LOG_DOMAIN_MAX {
            return Err(refuse(FormatError::Field {
                what: "number of constraints",
                offset: r1cs::Header::range(sections).map_err(refuse)?.offset,
                value: header.constraints.to_string(),
                remedy: "with the public signals there are at most 2^28 rows",
            }));
        }
        let mut counts = [0; 3];
        each_term(source, (&header, &layout), progress, |term| {
            counts[index(term.matrix)] += 1;
            Ok(())
        })?;
        let binding = header.public() + 1;
        counts[0] += binding;

        let workspace = &source.workspace;
        let mut dictionary = Dictionary::<F>::new(&workspace.budget, Form::Canonical)?;
        let count = counts.iter().sum();
        let mut writer = Writer::<Coefficient>::scratch(workspace, "terms", count, Placement::Disk)?;
        let mut tile = (workspace.budget).vec(TILE_TERMS, Coefficient::default(), "terms")?;
        let mut filled = 0;
        let mut put = |term: Coefficient| {
            tile[filled] = term;
            filled += 1;
            if filled == tile.len() {
                writer.push(&tile)?;
                filled = 0;
            }
            Ok(())
        };
        each_term(source, (&header, &layout), progress, |term| {
            put(Coefficient {
                row: term.constraint,
                signal: term.wire,
                value: dictionary.enter(&term.value)?,
                matrix: MATRICES[index(term.matrix)],
            })
        })?;
        let mut one = [0; 32];
        one[0] = 1;
        let one = dictionary.enter(&one)?;
        for signal in 0..binding as u32 {
            put(Coefficient {
                row: header.constraints + signal,
                signal,
                value: one,
                matrix: MATRICES[0],
            })?;
        }
        writer.push(&tile[..filled])?;
        let mut values = Writer::scratch(
            workspace,
            "values of coefficients",
            dictionary.values.len() as u64,
            Placement::Disk,
        )?;
        values.push(&dictionary.values)?;
        Ok(Self {
            header,
            terms: Constraints::new(values.finish()?, writer.finish()?),
            counts,
            path: source.path().to_owned(),
        })
    }

    /// The error of its file.
    pub fn refuse(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.path.clone(),
            source,
        }
    }
}

fn index(matrix: Matrix) -> usize {
    match matrix {
        Matrix::A => 0,
        Matrix::B => 1,
        Matrix::C => 2,
    }
}

/// Calls `each` with every term of the file.
fn each_term(
    source: &Source,
    (header, layout): (&r1cs::Header, &r1cs::Layout),
    progress: &mut dyn FnMut(Progress),
    mut each: impl FnMut(Term) -> Result<()>,
) -> Result<()> {
    let array = Array {
        what: "constraints",
        offset: layout.constraints.offset,
        count: layout.constraints.bytes,
        element_bytes: 1,
    };
    let mut constraints = r1cs::Constraints::new(header, layout);
    source.file.each_run(&array, progress, |_, bytes| {
        let given = constraints.give(bytes, |term| each(term).map_err(Stop::Other));
        given.map_err(|stop| match stop {
            Stop::Format(error) => source.refuse(error),
            Stop::Other(error) => error,
        })
    })?;
    constraints.finish().map_err(|error| source.refuse(error))
}
