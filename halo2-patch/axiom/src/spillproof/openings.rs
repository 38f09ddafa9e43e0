//! SHPLONK and GWC over columns, for queries whose polynomials are on disk.

use std::fmt::Debug;
use std::io;

use halo2curves::CurveAffine;
use pairing::Engine;
use spillproof_engine::column::{Column, Workspace};
use spillproof_plonk::curve::Config;
use spillproof_plonk::{Opening, Point, ProverCurve, Query, Scalar, Transcript};

use super::bases::Bases;
use super::convert::scalar;
use super::engine::{prover_session, session_for};
use super::protocol::Written;
use super::values::{column, evaluate, evaluate_all};
use crate::poly::kzg::commitment::ParamsKZG;
use crate::poly::{Coeff, Polynomial, ProverQuery};
use crate::transcript::{EncodedChallenge, TranscriptWrite};

/// A multi-opening over columns.
pub(crate) type Open =
    fn(&Workspace, &Column<Point>, &Opening<'_>, &mut dyn Transcript) -> spillproof_plonk::Result<()>;

/// By SHPLONK.
pub(crate) const SHPLONK: Open = Config::open_shplonk;
/// By GWC.
pub(crate) const GWC: Open = Config::open_gwc;

/// SHPLONK of columns, in the current session.
///
/// # Errors
/// As [`create_proof`]; without a session.
pub(crate) fn shplonk<E: Engine + Debug>(
    params: &ParamsKZG<E>,
    opening: &Opening<'_>,
    transcript: &mut dyn Transcript,
) -> io::Result<()>
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr>,
{
    open_columns(&params.g, opening, transcript, SHPLONK)
}

/// GWC of columns, in the current session.
///
/// # Errors
/// As [`shplonk`].
pub(crate) fn gwc<E: Engine + Debug>(
    params: &ParamsKZG<E>,
    opening: &Opening<'_>,
    transcript: &mut dyn Transcript,
) -> io::Result<()>
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr>,
{
    open_columns(&params.g, opening, transcript, GWC)
}

fn open_columns<C: CurveAffine>(
    bases: &Bases<C>,
    opening: &Opening<'_>,
    transcript: &mut dyn Transcript,
    open: Open,
) -> io::Result<()> {
    let session = session_for("an opening of columns")?;
    Ok(open(session.workspace(), &bases.column()?, opening, transcript)?)
}

/// Makes the proof if the first polynomial is on disk, in a session for the curve; `false`, with nothing
/// done, if that is for stock.
///
/// # Errors
/// For two queries of one polynomial at one point; if a column can't be read or made; the transcript's.
pub(crate) fn create_proof<'com, C, E, T>(
    bases: &Bases<C>,
    transcript: &mut T,
    queries: impl IntoIterator<Item = ProverQuery<'com, C>>,
    open: Open,
) -> io::Result<bool>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    T: TranscriptWrite<C, E>,
{
    let queries: Vec<_> = queries.into_iter().collect();
    let streams = queries
        .first()
        .is_some_and(|query| query.poly.backing().on_disk().is_some());
    let (true, Some(session)) = (streams, prover_session::<C>()?) else {
        return Ok(false);
    };
    // In one pass over each polynomial; then each value is known.
    let points: Vec<_> = queries.iter().map(|query| (query.poly, query.point)).collect();
    evaluate_all(&points)?;
    let mut polynomials: Vec<&Polynomial<C::Scalar, Coeff>> = Vec::new();
    let mut place = |poly: &'com Polynomial<C::Scalar, Coeff>| match polynomials
        .iter()
        .position(|other| std::ptr::eq(*other, poly))
    {
        Some(place) => place,
        None => {
            polynomials.push(poly);
            polynomials.len() - 1
        }
    };
    let query = |query: &ProverQuery<'com, C>| Query {
        polynomial: place(query.poly),
        point: scalar(&query.point),
        evaluation: scalar(&evaluate(query.poly, query.point)),
        blind: scalar(&query.blind.0),
    };
    let queries: Vec<_> = queries.iter().map(query).collect();
    let columns = polynomials.iter().map(|poly| match poly.backing().is_zero() {
        true => Ok(None),
        false => column(poly).map(Some),
    });
    let columns: Vec<Option<Column<Scalar>>> = columns.collect::<io::Result<_>>()?;
    let one = Scalar::from(1u64);
    let opening = Opening {
        polynomials: columns
            .iter()
            .map(|column| column.iter().map(|column| (one, column)).collect())
            .collect(),
        queries,
    };
    open(
        session.workspace(),
        &bases.column()?,
        &opening,
        &mut Written::new(transcript),
    )?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use halo2curves::bn256::{Bn256, Fr};
    use proptest::prelude::*;
    use rand_core::{RngCore, SeedableRng};

    use ff::Field;
    use halo2curves::bn256::G1Affine;

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
