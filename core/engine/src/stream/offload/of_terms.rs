//! Sums over some terms of columns, such as those of a rank. An accelerator is offered a run of both columns as
//! parts of them; other terms are gathered while they are read.

use super::super::terms::{Chunk, Terms};
use super::walk::Walk;
use super::{Bytes, Points, SumsOver, asked, of_group, points_of, sums_over};
use crate::Result;
use crate::accelerator::{self, Groups, ReadElements, SCALAR_BYTES};
use crate::column::{Column, Element};
use crate::dry::Job;
use spillproof_kernels::curve::{Curve, Point};

/// The sums of some terms of one column of scalars and several columns of points of two groups, by the accelerator in
/// one job; `None` if the processor has to make them, or there is no term.
///
/// # Errors
/// As [`sums_over`]; [`Invalid::Region`](crate::error::Invalid::Region) for terms outside of the columns.
pub fn sums_of_terms<P, Q>(
    scalars: &Column<P::ScalarField>,
    terms: Terms,
    first: &[&Column<Point<P>>],
    second: &[&Column<Point<Q>>],
) -> Result<Option<SumsOver<P, Q>>>
where
    P: Curve<ScalarField: Element>,
    Q: Curve<ScalarField = P::ScalarField>,
    Point<P>: Element,
    Point<Q>: Element,
{
    if terms.is_empty() {
        return Ok(None);
    }
    let mut frames = (first.iter().map(|bases| bases.frame_elements()))
        .chain(second.iter().map(|bases| bases.frame_elements()));
    if let Some([base, scalar]) = terms.run()
        && frames.all(|elements| base.is_multiple_of(elements))
        && scalar.is_multiple_of(scalars.frame_elements())
    {
        let first = parts(first, base, terms.len())?;
        let second = parts(second, base, terms.len())?;
        let (first, second): (Vec<_>, Vec<_>) = (first.iter().collect(), second.iter().collect());
        return sums_over(&scalars.part(scalar, terms.len())?, &first, &second);
    }
    let Some(points) = points_of::<P, Q>(first, second, |all| all)? else {
        return Ok(None);
    };
    let totals = gathered(&points, &scalars.cast()?, terms)?;
    Ok(totals.map(|totals| (of_group::<P>(&totals), of_group::<Q>(&totals))))
}

/// The same elements of each column.
fn parts<E: Element>(columns: &[&Column<E>], start: u64, len: u64) -> Result<Vec<Column<E>>> {
    columns.iter().map(|column| column.part(start, len)).collect()
}

/// Offers sums whose terms are read from wherever they are.
fn gathered(
    points: &Points,
    scalars: &Bytes<SCALAR_BYTES>,
    terms: Terms,
) -> Result<Option<accelerator::Totals>> {
    let workspace = scalars.workspace();
    let of_scalars = Walk::of_terms(scalars.clone(), terms, |chunk| chunk.scalars);
    let bases = Groups {
        g1: points
            .g1
            .iter()
            .map(|column| bases_of(column, terms))
            .collect::<Vec<_>>(),
        g2: points
            .g2
            .iter()
            .map(|column| bases_of(column, terms))
            .collect::<Vec<_>>(),
    };
    if let Some(dry_run) = workspace.dry_run() {
        let of_bases = bases.g1.iter().chain(&bases.g2);
        let job = Job::Sums {
            points: terms.len(),
            bases: points.counts(),
            columns: 1,
            step: None,
            bases_bytes: of_bases.map(|bases| bases.source.lease_bytes()).sum(),
            scalars_bytes: of_scalars.lease_bytes(),
        };
        dry_run.offered(job, 0);
        return Ok(None);
    }
    let Some(accelerator) = workspace.accelerator.as_deref() else {
        return Ok(None);
    };
    let job = accelerator::Sums {
        bases,
        scalars: vec![accelerator::Scalars {
            len: terms.len(),
            source: Box::new(of_scalars),
        }],
        // Devices that share a sum cut it at frames.
        parts: None,
    };
    asked(accelerator, job, workspace)
}

/// The points of some terms.
fn bases_of<const N: usize>(column: &Bytes<N>, terms: Terms) -> accelerator::Bases<'static> {
    let side = |chunk: Chunk| chunk.bases;
    accelerator::Bases {
        source: Box::new(Walk::of_terms(column.clone(), terms, side)),
        id: None,
    }
}
