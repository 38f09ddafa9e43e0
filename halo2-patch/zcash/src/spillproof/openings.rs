//! Upstream's two public openings in a session: polynomials in memory are spilled, and opened by
//! `spillproof-plonk`.

use std::io;
use std::sync::Arc;

use pasta_curves::arithmetic::CurveAffine;
use rand_core::Rng;
use spillproof_engine::Session;
use spillproof_plonk::{Opening, ProverField, Query};

use super::bases::of_engine;
use super::convert::{scalar, with_engine, Engine, Foreign, Task};
use super::engine::session_over;
use super::protocol::{Draws, Written, BOOK};
use crate::poly::commitment::{Blind, Params};
use crate::poly::multiopen::ProverQuery;
use crate::poly::{Coeff, Polynomial};
use crate::transcript::{EncodedChallenge, TranscriptWrite};

/// [`multiopen::create_proof`](crate::poly::multiopen::create_proof) in the current session; `false`, with
/// nothing done, if that is for stock.
///
/// # Errors
/// For two queries of one polynomial at one point; where the disk or the budget has no room; the
/// transcript's.
pub(crate) fn create_multiopen_proof<'a, C, E, R, T>(
    params: &Params<C>,
    rng: &mut R,
    transcript: &mut T,
    queries: impl IntoIterator<Item = ProverQuery<'a, C>>,
) -> io::Result<bool>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
{
    let Some(session) = session_over::<C>()? else {
        return Ok(false);
    };
    let queries: Vec<_> = queries.into_iter().collect();
    let opened = with_engine::<C, _>(Opened {
        session: &session,
        params,
        rng,
        transcript: Written::<C, E, T>::new(transcript),
        opened: Polynomials::Many(&queries),
    });
    opened.transpose().map(|done| done.is_some())
}

/// [`commitment::create_proof`](crate::poly::commitment::create_proof) in the current session; `false`, with
/// nothing done, if that is for stock.
///
/// # Errors
/// Where the disk or the budget has no room; the transcript's.
pub(crate) fn create_proof<C, E, R, T>(
    params: &Params<C>,
    rng: &mut R,
    transcript: &mut T,
    polynomial: &Polynomial<C::Scalar, Coeff>,
    blind: Blind<C::Scalar>,
    point: C::Scalar,
) -> io::Result<bool>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
{
    let Some(session) = session_over::<C>()? else {
        return Ok(false);
    };
    let opened = with_engine::<C, _>(Opened {
        session: &session,
        params,
        rng,
        transcript: Written::<C, E, T>::new(transcript),
        opened: Polynomials::One(ProverQuery {
            point,
            poly: polynomial,
            blind,
        }),
    });
    opened.transpose().map(|done| done.is_some())
}

struct Opened<'o, 'a, C: CurveAffine, E, R, T> {
    session: &'o Arc<Session>,
    params: &'o Params<C>,
    rng: &'o mut R,
    transcript: Written<'o, C, E, T>,
    opened: Polynomials<'o, 'a, C>,
}

enum Polynomials<'o, 'a, C: CurveAffine> {
    One(ProverQuery<'a, C>),
    Many(&'o [ProverQuery<'a, C>]),
}

impl<C, E, R, T> Task<C> for Opened<'_, '_, C, E, R, T>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
{
    type Output = io::Result<()>;

    fn run<P: Engine>(mut self) -> Self::Output {
        let workspace = self.session.workspace();
        let Params {
            g, g_lagrange, w, u, ..
        } = self.params;
        let params = of_engine::<C, P>(workspace, [g, g_lagrange], [w, u])?;
        let mut draws = Draws::<C::Scalar, R>::new(self.rng);
        let spilled = |query: &ProverQuery<'_, C>| {
            let rows = params.g.len();
            assert_eq!(query.poly.len() as u64, rows, "coefficients of a polynomial");
            P::ScalarField::padded_column(workspace, rows, &Foreign(&query.poly[..]), &[])
                .map_err(io::Error::other)
        };
        let queries = match self.opened {
            Polynomials::One(query) => {
                let (column, blind) = (spilled(&query)?, scalar(&query.blind.0));
                let point = scalar(&query.point);
                P::open_one(&params, &column, blind, point, &mut self.transcript, &mut draws)?;
                return Ok(());
            }
            Polynomials::Many(queries) => queries,
        };
        let mut distinct: Vec<&ProverQuery<'_, C>> = Vec::new();
        let mut places = Vec::with_capacity(queries.len());
        for query in queries {
            let known = distinct
                .iter()
                .position(|other| std::ptr::eq(other.poly, query.poly));
            places.push(known.unwrap_or(distinct.len()));
            if known.is_none() {
                distinct.push(query);
            }
        }
        let columns = distinct
            .iter()
            .map(|query| spilled(query))
            .collect::<io::Result<Vec<_>>>()?;
        let opening = Opening {
            polynomials: columns
                .iter()
                .map(|column| vec![(P::ScalarField::from(1u64), column)])
                .collect(),
            queries: queries
                .iter()
                .zip(places)
                .map(|(query, polynomial)| Query {
                    polynomial,
                    point: scalar(&query.point),
                    // zcash's opening does not ask for it.
                    evaluation: P::ScalarField::from(0u64),
                    blind: scalar(&query.blind.0),
                })
                .collect(),
        };
        P::open_ipa(&params, BOOK, &opening, &mut self.transcript, &mut draws)?;
        Ok(())
    }
}
