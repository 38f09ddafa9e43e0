//! What SHPLONK and GWC have in common when polynomials are on disk: columns for the queries, and the engine's pass.
//!
//! A proof's polynomials are read in two passes and evaluated in one, and none is copied: what stock does step by step with
//! clones (subtract, scale, add, divide, commit) is one [`Combination`], of which `commit::multiopen` makes as many as
//! there are while it reads. Memory: what that pass leases.

use std::any::Any;
use std::io;
use std::sync::Arc;

use ::ark_bn254::g1::Config;
use ::ark_bn254::G1Affine as EngineAffine;
use ::spillproof::column::{Column, Element};
use ::spillproof::commit::multiopen::{self, Combination};
use ::spillproof::commit::{Scalar, G1};
use ::spillproof::kernels::curve::Point;
use ::spillproof::Session;
use ff::Field;
use halo2curves::bn256::G1Affine;
use halo2curves::CurveAffine;

use super::bases::Bases;
use super::scalars::prover_session;
use super::values::{column, evaluate_all};
use crate::poly::{Coeff, Polynomial, ProverQuery};

/// An opening of polynomials that are on disk.
pub(crate) struct Opening<'a, F> {
    session: Arc<Session>,
    bases: Column<G1>,
    /// Each polynomial once.
    columns: Vec<Located<'a, F>>,
}

/// A polynomial and its column; none if it is zero.
type Located<'a, F> = (&'a Polynomial<F, Coeff>, Option<Column<Scalar>>);

impl<'a, F: Field> Opening<'a, F> {
    /// Finds the columns of all queries, and evaluates each of them at its points in one pass, so that nobody else reads
    /// it for that. `None` if this is for stock: there is no session for the curve, or the first polynomial is not on disk.
    ///
    /// # Errors
    /// If a column can't be read or made.
    pub(crate) fn of<C: CurveAffine<ScalarExt = F>>(
        bases: &Bases<C>,
        queries: &[ProverQuery<'a, C>],
    ) -> io::Result<Option<Self>> {
        let streams = queries
            .first()
            .is_some_and(|query| query.poly.backing().on_disk().is_some());
        let (true, Some(session)) = (streams, prover_session::<C>()?) else {
            return Ok(None);
        };
        let points: Vec<_> = queries.iter().map(|query| (query.poly, query.point)).collect();
        evaluate_all(&points)?;
        let mut columns: Vec<Located<'a, F>> = Vec::new();
        for query in queries {
            if !columns.iter().any(|(poly, _)| std::ptr::eq(*poly, query.poly)) {
                let is_zero = query
                    .poly
                    .backing()
                    .constant()
                    .is_some_and(|value| *value == F::ZERO);
                let column = if is_zero { None } else { Some(column(query.poly)?) };
                columns.push((query.poly, column));
            }
        }
        let bases = bases.column()?;
        Ok(Some(Self {
            session,
            bases,
            columns,
        }))
    }

    /// `factor` times a polynomial of the queries, as a term of a [`Combination`]; none if it is zero.
    pub(crate) fn term(
        &self,
        factor: Scalar,
        poly: &Polynomial<F, Coeff>,
    ) -> Option<(Scalar, &Column<Scalar>)> {
        let (_, column) = self
            .columns
            .iter()
            .find(|(other, _)| std::ptr::eq(*other, poly))?;
        column.as_ref().map(|column| (factor, column))
    }

    /// Commits to the sum of all combinations, and keeps it on disk if `keep`.
    ///
    /// # Errors
    /// If a column can't be read, or disk or budget have no room.
    pub(crate) fn commit<C: CurveAffine<ScalarExt = F>>(
        &self,
        combinations: &[Combination<'_, Scalar>],
        keep: bool,
    ) -> io::Result<(C, Option<Column<Scalar>>)> {
        let workspace = self.session.workspace();
        let opened = multiopen::divide_and_commit(workspace, &self.bases, combinations, keep);
        let (sum, kept) = opened.map_err(io::Error::other)?;
        Ok((point(&sum), kept))
    }
}

/// The engine's point as one of bn256's G1.
///
/// Panics for another curve: there are no columns of its points.
fn point<C: CurveAffine>(sum: &EngineAffine) -> C {
    let mut bytes = [0u8; <G1Affine as Element>::BYTES];
    Point::<Config>::from_affine::<Config>(sum).encode(&mut bytes);
    let point = G1Affine::decode(&bytes);
    match (&point as &dyn Any).downcast_ref::<C>() {
        Some(point) => *point,
        None => panic!("spillproof: the engine computes with points of bn256's G1 only"),
    }
}

/// The error that stock has for two queries of one polynomial at one point.
pub(crate) fn mismatch() -> io::Error {
    let message = "queries iterator contains mismatching evaluations";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use halo2curves::bn256::{Bn256, Fr};
    use proptest::prelude::*;
    use rand_core::{RngCore, SeedableRng};

    use super::*;
    use crate::poly::commitment::{Blind, Prover};
    use crate::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
    use crate::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
    use crate::spillproof::values::from_column;
    use crate::transcript::{Blake2bWrite, Challenge255, TranscriptWriterBuffer};

    type Poly = Polynomial<Fr, Coeff>;

    fn proof<'a, P: Prover<'a, KZGCommitmentScheme<Bn256>>>(
        params: &'a ParamsKZG<Bn256>,
        polys: &[Poly],
        queries: &[(usize, Fr)],
    ) -> Result<Vec<u8>, io::ErrorKind> {
        let queries: Vec<_> = queries
            .iter()
            .map(|(poly, point)| ProverQuery {
                point: *point,
                poly: &polys[*poly],
                blind: Blind::default(),
            })
            .collect();
        let mut transcript = Blake2bWrite::<_, G1Affine, Challenge255<_>>::init(Vec::new());
        let rng = rand_chacha::ChaCha20Rng::seed_from_u64(0);
        let made = P::new(params).create_proof(rng, &mut transcript, queries.iter().cloned());
        made.map(|()| transcript.finalize()).map_err(|error| error.kind())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Says something in a session only, which unit tests have in their second run.
        #[test]
        fn openings_over_columns_are_stocks(
            seed in any::<u64>(),
            k in 4..11u32,
            // Where each polynomial is, and at which of the points it is opened.
            kinds in prop::collection::vec((0..4u8, 1..16u8), 1..9),
        ) {
            if prover_session::<G1Affine>().unwrap().is_none() {
                return Ok(());
            }
            let n = 1 << k;
            let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(seed);
            let params = ParamsKZG::<Bn256>::setup(k, &mut rng);
            let points: Vec<Fr> = (0..4).map(|_| Fr::random(&mut rng)).collect();
            let zero = |kind| kind == 3;
            let memory: Vec<Poly> = kinds
                .iter()
                .map(|(kind, _)| {
                    let value = |rng: &mut _| if zero(*kind) { Fr::zero() } else { Fr::random(rng) };
                    Polynomial::new((0..n).map(|_| value(&mut rng)).collect())
                })
                .collect();
            let mut disk: Vec<Poly> = kinds
                .iter()
                .zip(&memory)
                .map(|((kind, _), poly)| match kind {
                    0 => poly.clone(),
                    3 => crate::spillproof::values::constant(Fr::zero(), n),
                    _ => from_column(column(poly).unwrap()),
                })
                .collect();
            // The first one decides who does it.
            disk[0] = from_column(column(&memory[0]).unwrap());
            prop_assert!(disk[0].backing().on_disk().is_some());
            let mut queries: Vec<(usize, Fr)> = Vec::new();
            for (poly, (_, at)) in kinds.iter().enumerate() {
                let at = points.iter().enumerate().filter(|(point, _)| at >> point & 1 == 1);
                queries.extend(at.map(|(_, point)| (poly, *point)));
            }
            // Any order, but for the first.
            for index in (2..queries.len()).rev() {
                queries.swap(index, 1 + rng.next_u32() as usize % index);
            }
            let expected = proof::<ProverSHPLONK<'_, _>>(&params, &memory, &queries);
            prop_assert!(expected.is_ok());
            prop_assert_eq!(proof::<ProverSHPLONK<'_, _>>(&params, &disk, &queries), expected);
            let expected = proof::<ProverGWC<'_, _>>(&params, &memory, &queries);
            prop_assert!(expected.is_ok());
            prop_assert_eq!(proof::<ProverGWC<'_, _>>(&params, &disk, &queries), expected.clone());
            // Parameters from before the session.
            let g = Bases::from(params.g.to_vec());
            let before = ParamsKZG { g, ..params.clone() };
            prop_assert_eq!(proof::<ProverGWC<'_, _>>(&before, &disk, &queries), expected);

            queries.push(queries[0]);
            let expected = proof::<ProverSHPLONK<'_, _>>(&params, &memory, &queries);
            prop_assert!(expected.is_err());
            prop_assert_eq!(proof::<ProverSHPLONK<'_, _>>(&params, &disk, &queries), expected.clone());
            prop_assert_eq!(proof::<ProverGWC<'_, _>>(&params, &disk, &queries), expected);
        }
    }
}
