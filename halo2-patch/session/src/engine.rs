//! Where the stages of a proof run.

use spillproof::Session;
use spillproof::column::{Column, Placement, Workspace, Writer};
use spillproof::stream::{Transform, ntt};

use crate::curve::Scalar;
use crate::error::Result;

/// A session, for stages that run one at a time on its threads; or a dry workspace.
#[derive(Clone, Copy, Debug)]
pub struct Engine<'s> {
    workspace: &'s Workspace,
    session: Option<&'s Session>,
}

impl<'s> Engine<'s> {
    /// Stages run in this session.
    pub fn new(session: &'s Session) -> Self {
        Self {
            workspace: session.workspace(),
            session: Some(session),
        }
    }

    /// Stages are recorded by this dry workspace.
    pub fn dry(workspace: &'s Workspace) -> Self {
        Self {
            workspace,
            session: None,
        }
    }

    /// Where columns live.
    pub fn workspace(&self) -> &'s Workspace {
        self.workspace
    }

    /// The rows of a quotient's tiles, where the session says so.
    pub(crate) fn quotient_tile_rows(&self) -> Option<u64> {
        self.session?.quotient_tile_rows()
    }

    /// Runs a stage.
    ///
    /// # Errors
    /// Those of `stage`.
    pub fn run<T: Send>(
        &self,
        stage: impl FnOnce(&Workspace) -> spillproof::Result<T> + Send,
    ) -> spillproof::Result<T> {
        let workspace = self.workspace;
        match self.session {
            Some(session) => session.run_in_turn(|| stage(workspace)),
            None => stage(workspace),
        }
    }

    /// The transform of a column.
    pub(crate) fn transform(
        &self,
        input: &Column<Scalar>,
        transform: &Transform<Scalar>,
    ) -> Result<Column<Scalar>> {
        Ok(self.run(|_| ntt(input, transform, Placement::Auto))?)
    }
}

/// Values of another library, converted piece by piece.
pub trait Values: Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The values from `start` on, as many as `out` holds.
    fn fill(&self, start: usize, out: &mut [Scalar]);
}

/// Values that are converted at a time.
const TILE: usize = 4096;

impl dyn Values + '_ {
    /// Hands all values to `take`, tile by tile.
    pub(crate) fn for_each_tile<E>(
        &self,
        mut take: impl FnMut(&[Scalar]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut tile = vec![Scalar::from(0u64); self.len().min(TILE)];
        for start in (0..self.len()).step_by(TILE) {
            let len = TILE.min(self.len() - start);
            self.fill(start, &mut tile[..len]);
            take(&tile[..len])?;
        }
        Ok(())
    }
}

/// A column of `rows` rows with `values` in its first ones, `tail` in its last ones, and 0 between.
///
/// # Errors
/// Where the disk or the budget has no room.
pub fn padded_column(
    engine: Engine<'_>,
    rows: u64,
    values: &dyn Values,
    tail: &[Scalar],
) -> spillproof::Result<Column<Scalar>> {
    engine.run(|workspace| {
        let mut writer = Writer::scratch(workspace, "column", rows, Placement::Auto)?;
        if workspace.is_dry() {
            return writer.finish();
        }
        values.for_each_tile(|tile| writer.push(tile))?;
        let mut left = rows.saturating_sub((values.len() + tail.len()) as u64) as usize;
        let zeros = vec![Scalar::from(0u64); left.min(TILE)];
        while left > 0 {
            let now = left.min(TILE);
            writer.push(&zeros[..now])?;
            left -= now;
        }
        writer.push(tail)?;
        writer.finish()
    })
}
