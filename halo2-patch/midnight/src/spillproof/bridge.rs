//! What upstream's types are to the engine, if it is asked for what it knows: KZG over BLS12-381.
//!
//! Upstream's prover is generic over commitment schemes, of which nothing says that their types can be told
//! apart. So the trait of schemes has a hidden function, which gives none, and KZG's gives a [`Bridge`] for
//! one pairing.

use std::any::TypeId;
use std::fmt::Debug;

use ff::PrimeField;
use midnight_curves::pairing::{Engine, MultiMillerLoop};
use midnight_curves::{Bls12, CurveAffine, CurveExt, G1Projective};

use super::convert::{same, same_owned};
use crate::poly::commitment::PolynomialCommitmentScheme;
use crate::poly::kzg::params::ParamsKZG;
use crate::poly::kzg::KZGCommitmentScheme;
use crate::utils::helpers::ProcessedSerdeObject;

/// Whether the engine has this pairing.
pub(crate) fn is_known<E: Engine>() -> bool {
    TypeId::of::<E>() == TypeId::of::<Bls12>()
}

/// The types of a scheme that is KZG over BLS12-381, whatever names they have.
#[derive(Debug)]
pub struct Bridge<F: PrimeField, CS: PolynomialCommitmentScheme<F>> {
    pub(crate) params: fn(&CS::Parameters) -> &ParamsKZG<Bls12>,
    pub(crate) commitment: fn(G1Projective) -> CS::Commitment,
}

impl<F: PrimeField, CS: PolynomialCommitmentScheme<F>> Clone for Bridge<F, CS> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: PrimeField, CS: PolynomialCommitmentScheme<F>> Copy for Bridge<F, CS> {}

/// Of KZG over this pairing; none if the engine has it not.
pub(crate) fn kzg<E>() -> Option<Bridge<E::Fr, KZGCommitmentScheme<E>>>
where
    E: MultiMillerLoop + Debug,
    E::G1: Default + CurveExt<ScalarExt = E::Fr> + ProcessedSerdeObject,
    E::G1Affine: Default + CurveAffine<ScalarExt = E::Fr, CurveExt = E::G1>,
{
    is_known::<E>().then_some(Bridge {
        params: same::<ParamsKZG<E>, ParamsKZG<Bls12>>,
        commitment: same_owned::<G1Projective, E::G1>,
    })
}
