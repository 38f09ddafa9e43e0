//! The step on a coset for an accelerator, if the workspace has one: rows of the scratch columns as ends of a
//! [`accelerator::Coset`].
//!
//! What the accelerator declines, [`super`] does from the coset's first row; a column that was half written
//! is dropped. Memory while a job runs: a buffer of a tile's rows for each column that is read, and three for
//! the quotient's, where a tile is the processor's; so less than the processor takes. It is leased when the
//! accelerator asks for the ends, and given back before the processor goes on.

use std::any::Any;

use ark_bn254::Fr;

use super::domain::Source;
use super::matrix::Matrix;
use crate::stages::program::Program;
use spillproof_engine::Result;
use spillproof_engine::accelerator::{
    self, Answer, InTiles, Input, Order, ReadElements, RowSource, Run, SCALAR_BYTES, TileEnds, Tiles,
    WriteElements,
};
use spillproof_engine::column::{Column, Draft, Element, Placement, Reader, Region, Workspace, Writer};
use spillproof_engine::stream::{beyond, declined, elements_of, wrong_answer};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::NttElement;

type Scalar = [u8; SCALAR_BYTES];
/// A column that the program reads: its number, its smallest and largest rotation, what stands for it.
type Used<'a, F> = (usize, (i32, i32), &'a Source<'a, F>);

/// The inputs that are read.
#[derive(Clone, Copy)]
pub(super) enum Inputs<'a, F> {
    /// Their coefficients.
    Coefficients(&'a [&'a Column<F>]),
    /// Their rows on the coset.
    Rows(&'a [Column<F>]),
}

/// The quotient's rows on the coset of `shift`, times `scale`, by the accelerator; `None` if it does not make them of
/// these inputs.
pub(super) fn on_coset<F: KernelField + NttElement<F> + Element>(
    matrix: &Matrix<F>,
    numerator: &Program<F>,
    used: &[Used<'_, F>],
    from: Inputs<'_, F>,
    (shift, scale): (F, F),
) -> Result<Option<Column<F>>> {
    let workspace = matrix.workspace;
    let (Some(accelerator), Some(program), Some([omega, shift, scale])) = (
        workspace.accelerator.as_deref(),
        (numerator as &dyn Any).downcast_ref::<Program<Fr>>(),
        same([matrix.tables.omega, shift, scale]),
    ) else {
        return Ok(None);
    };
    let inputs = used.iter().map(|&(column, rotations, source)| Input {
        column,
        rotations,
        rows: source.rows(),
    });
    let inputs: Vec<Input> = inputs.collect();
    let read = inputs.iter().filter(|input| input.rows == RowSource::Read);
    let (rows, coefficients) = match from {
        Inputs::Rows(rows) => (rows, &[][..]),
        Inputs::Coefficients(columns) => (&[][..], columns),
    };
    let of_inputs = coefficients.iter().map(|column| elements_of(column));
    let mut of_inputs = of_inputs.collect::<Result<Vec<_>>>()?;
    let mut ends = Ends {
        matrix,
        columns: rows.iter().map(Column::cast).collect::<Result<_>>()?,
        rotations: read.map(|input| input.rotations).collect(),
        reader: None,
        writer: None,
    };
    let mut job = accelerator::Coset {
        log_rows: matrix.plan.log_n1,
        log_columns: matrix.plan.log_n2,
        omega,
        shift,
        scale,
        program: accelerator::Program {
            queries: program.queries(),
            instructions: program.code(),
            registers: program.registers(),
        },
        inputs,
        in_tiles: Box::new(&mut ends),
    };
    let answer = match from {
        Inputs::Rows(_) => accelerator.quotient(&mut job, &workspace.budget),
        Inputs::Coefficients(_) => accelerator.quotient_of(&mut job, &mut of_inputs, &workspace.budget),
    };
    drop((job, of_inputs));
    let writer = match &answer {
        Ok(Answer::Done(())) => ends.writer.take(),
        _ => None,
    };
    ends.abandon();
    match (answer?, writer) {
        (Answer::Done(()), Some(writer)) => writer.finish()?.cast().map(Some),
        (Answer::Done(()), None) => Err(wrong_answer("a quotient of which nothing was written".into())),
        (Answer::Declined(why), _) => Ok(declined("quotient", &why)),
    }
}

/// The same values, if their type is the accelerator's.
fn same<F: Any>(values: [F; 3]) -> Option<[Fr; 3]> {
    (&values as &dyn Any).downcast_ref::<[Fr; 3]>().copied()
}

/// What the ends of a coset are made of.
struct Ends<'a, F> {
    matrix: &'a Matrix<'a, F>,
    /// None if it takes coefficients.
    columns: Vec<Column<Scalar>>,
    rotations: Vec<(i32, i32)>,
    reader: Option<Reader<Scalar>>,
    writer: Option<Writer<Scalar>>,
}

impl<F> Ends<'_, F> {
    /// Bytes of the quotient that go to the disk.
    fn written_bytes(&self) -> u64 {
        let plan = self.matrix.plan;
        match plan.scratch {
            Placement::Disk => plan.rows() * plan.row_len() * SCALAR_BYTES as u64,
            _ => 0,
        }
    }

    /// Lets all of it go: read-ahead and writes that are still under way hold their leases.
    fn abandon(&mut self) {
        self.reader.take().into_iter().for_each(Reader::abandon);
        self.writer.take().into_iter().for_each(Writer::abandon);
    }
}

impl<F: KernelField + NttElement<F> + Element> InTiles for &mut Ends<'_, F> {
    fn lease_bytes(&self) -> u64 {
        self.matrix.plan.accelerator_ends_bytes()
    }

    fn disk_seconds(&self) -> f64 {
        let bytes = SCALAR_BYTES as u64;
        let of_columns = self.columns.iter().filter(|column| column.on_disk());
        let read_bytes = of_columns.map(|column| column.len() * bytes).sum();
        let workspace = self.matrix.workspace;
        workspace.disk_seconds(read_bytes, self.written_bytes())
    }

    fn ends(&mut self, tiles: Tiles) -> Result<TileEnds<'_>> {
        let written_bytes = self.written_bytes();
        let plan = self.matrix.plan;
        let Tiles {
            log_tile_rows,
            chunk_rows,
        } = tiles;
        if log_tile_rows > plan.log_n1 || chunk_rows == 0 {
            return Err(wrong_answer(format!("{tiles:?} of 2^{} rows", plan.log_n1)));
        }
        // Of an attempt that began before and did not finish.
        self.abandon();
        let order = Order::new(self.rotations.iter().copied(), plan.log_n1, log_tile_rows);
        let cut = Cut {
            chunk_rows,
            piece_rows: plan.accelerator_tile_rows(),
        };
        let (n1, n2) = (plan.rows(), plan.row_len());
        // In the order of the device, with as many on their way as there are columns.
        let pieces = order.clone().runs().flat_map(move |run| {
            cut.pieces(run).map(move |(first_row, rows)| {
                let region = Region::Wrapped {
                    start: first_row.rem_euclid(n1 as i64) as u64 * n2,
                    len: rows * n2,
                    modulus: n1 * n2,
                };
                (run.input, region)
            })
        });
        let reader = match self.columns.len() {
            0 => None,
            depth => Some(Reader::in_turn(self.columns.clone(), pieces, depth)?),
        };
        self.reader = reader;
        let (workspace, frame_bytes) = (self.matrix.workspace, plan.frame_bytes() as usize);
        let what = "quotient on a coset";
        let draft = Draft::<Fr>::scratch_with_frames(workspace, what, n1 * n2, plan.scratch, frame_bytes)?;
        let writer = Writer::in_chunks(draft.cast()?, plan.accelerator_tile_rows() * n2);
        let writer = self.writer.insert(writer);
        Ok(TileEnds {
            input: match &mut self.reader {
                Some(reader) => Box::new(InOrder {
                    order,
                    cut,
                    reader,
                    row_len: n2,
                    next: 0,
                }),
                None => Box::new(|first: u64, into: &mut [u8]| Err(beyond(first, into.len() / SCALAR_BYTES))),
            },
            output: Box::new(OfTiles {
                writer,
                next: 0,
                workspace,
                written_bytes,
            }),
        })
    }
}

/// How runs are cut to what is read at a time: by the accelerator's chunks, and by the processor's tiles,
/// which its memory is for.
#[derive(Clone, Copy)]
struct Cut {
    chunk_rows: u64,
    piece_rows: u64,
}

impl Cut {
    /// Rows of the piece at `position` of the order, of which `left` are in its run.
    fn rows(&self, position: u64, left: u64) -> u64 {
        let in_chunk = self.chunk_rows - position % self.chunk_rows;
        in_chunk.min(left).min(self.piece_rows)
    }

    /// First row and length of the pieces of a run.
    fn pieces(self, run: Run) -> impl Iterator<Item = (i64, u64)> + Clone + Send {
        let piece = move |done: u64| {
            let left = run.rows - done;
            (left > 0).then(|| (done, self.rows(run.before + done, left)))
        };
        std::iter::successors(piece(0), move |&(done, rows)| piece(done + rows))
            .map(move |(done, rows)| (run.first_row + done as i64, rows))
    }
}

/// Rows of all columns.
struct InOrder<'a> {
    order: Order,
    cut: Cut,
    reader: &'a mut Reader<Scalar>,
    row_len: u64,
    /// The row of the order that is asked for next.
    next: u64,
}

impl ReadElements for InOrder<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        let (mut into, rest) = into.as_chunks_mut::<SCALAR_BYTES>();
        let wrong = || beyond(first, into.len());
        let whole_rows = (into.len() as u64).is_multiple_of(self.row_len) && rest.is_empty();
        if first != self.next * self.row_len || !whole_rows {
            return Err(wrong());
        }
        while !into.is_empty() {
            let run = self.order.run_at(self.next);
            let left = run.map_or(0, |run| run.before + run.rows - self.next);
            let rows = self.cut.rows(self.next, left);
            let count = (rows * self.row_len) as usize;
            let (Some(_), Some((piece, later))) = (run, into.split_at_mut_checked(count)) else {
                return Err(beyond(first, count));
            };
            self.reader.next_into(piece)?;
            (into, self.next) = (later, self.next + rows);
        }
        Ok(())
    }
}

/// Rows of the quotient.
struct OfTiles<'a> {
    writer: &'a mut Writer<Scalar>,
    workspace: &'a Workspace,
    /// Bytes that go to the disk.
    written_bytes: u64,
    next: u64,
}

impl WriteElements for OfTiles<'_> {
    fn disk_seconds_to_write(&self) -> f64 {
        self.workspace.disk_seconds(0, self.written_bytes)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let (elements, rest) = bytes.as_chunks::<SCALAR_BYTES>();
        if first != self.next || !rest.is_empty() {
            return Err(beyond(first, elements.len()));
        }
        self.next += elements.len() as u64;
        self.writer.push(elements)
    }
}
