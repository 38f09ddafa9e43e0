//! The curves that this crate is compiled for.

use std::io;
use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::CurveConfig;
use ark_ec::short_weierstrass::Affine;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, MappedColumn, Placement, Workspace};
use spillproof_engine::compiled;
use spillproof_engine::stream::Scalars;
use spillproof_format::params_kzg::SerdeFormat;
use spillproof_kernels::curve::{Curve, Jacobian, Point};
use spillproof_kernels::pairing::{G1Point, PairingGroups};

use crate::ipa::{Broken, Conversation, Params};
use crate::kzg::{self, Opening};
use crate::multiopen::{Combination, Keep, Opened, divide_and_commit};
use crate::srs::Srs;
use crate::srs_check::SrsProgress;
use crate::{generate, jacobian, srs, srs_check, srs_in_place, srs_stream};

/// The bases of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// For polynomials by their coefficients, the lowest first.
    Monomial,
    /// For polynomials by their values on the parameters' domain.
    Lagrange,
}

fn commit<P: Curve>(
    params: &Params<P>,
    basis: Basis,
    columns: &[Scalars<'_, P::ScalarField>],
    blinds: &[P::ScalarField],
) -> Result<Vec<Point<P>>> {
    let sums = match basis {
        Basis::Monomial => params.commit(columns, blinds)?,
        Basis::Lagrange => params.commit_lagrange(columns, blinds)?,
    };
    Ok(sums.iter().map(Point::<P>::from_affine::<P>).collect())
}

compiled! {
    /// A curve that this crate is compiled for: G1 of BN254 and BLS12-381, and with the feature `pasta` Pallas
    /// and Vesta. Its functions are those of [`Params`] and of the crate, which are compiled anew where others
    /// call them.
    pub trait CommitCurve: Curve;
    for {
        ark_bn254::g1::Config;
        ark_bls12_381::g1::Config;
        #[cfg(feature = "pasta")]
        ark_pallas::PallasConfig;
        #[cfg(feature = "pasta")]
        ark_vesta::VestaConfig;
    }
    {
        /// Hiding commitments, by one basis or the other: [`Params::commit`].
        fn commit(
            params: &Params<Self>,
            basis: Basis,
            columns: &[Scalars<'_, Self::ScalarField>],
            blinds: &[Self::ScalarField],
        ) -> Result<Vec<Point<Self>>>
            = commit;
        /// [`Params::open`].
        fn open(
            params: &Params<Self>,
            polynomial: &Column<Self::ScalarField>,
            blind: Self::ScalarField,
            point: Self::ScalarField,
            conversation: &mut dyn Conversation<Self, Error = Broken>,
        ) -> Result<(), Broken>
            = Params::open;
        /// [`divide_and_commit()`].
        fn divide_and_commit(
            workspace: &Workspace,
            bases: &Column<Point<Self>>,
            combinations: &[Combination<'_, Self::ScalarField>],
            keep: Keep,
        ) -> Result<Opened<Self>>
            = divide_and_commit;
        /// Opens a container of parameters: [`Params::open_container`].
        fn open_params(workspace: &Workspace, path: &Path) -> Result<Params<Self>>
            = Params::open_container;
        /// Writes a container of parameters: [`Params::save`].
        fn save_params(
            params: &Params<Self>,
            workspace: &Workspace,
            path: &Path,
            progress: &mut (dyn FnMut(SrsProgress) + Send),
        ) -> Result<()>
            = |params: &Params<Self>, workspace, path, progress| params.save(workspace, path, progress).map(|_| ());
        /// [`Params::check_generators`].
        fn check_generators(
            params: &Params<Self>,
            workspace: &Workspace,
            pair: [Affine<Self>; 2],
            make: &mut (dyn FnMut(u64, &mut [Point<Self>]) + Send),
            progress: &mut (dyn FnMut(SrsProgress) + Send),
        ) -> Result<()>
            = Params::check_generators;
        /// [`Params::check`].
        fn check_params(
            params: &Params<Self>,
            workspace: &Workspace,
            omega: Self::ScalarField,
            progress: &mut (dyn FnMut(SrsProgress) + Send),
        ) -> Result<()>
            = Params::check;
    }
}

/// A coordinate of a point of the first group.
pub type CoordinateOf<E> = <<E as PairingGroups>::G1Config as CurveConfig>::BaseField;

compiled! {
    /// A curve with a pairing that this crate is compiled for. Its functions are those of the crate, which say
    /// what they do.
    pub trait KzgCurve: PairingGroups;
    for {
        Bn254;
        Bls12_381;
    }
    {
        /// [`Srs::of`].
        fn of_container(container: &Container) -> Result<Srs<Self>>
            = srs::of_container;
        /// [`Srs::open_params_kzg`].
        fn open_params_kzg(workspace: &Workspace, path: &Path, format: Option<SerdeFormat>) -> Result<Srs<Self>>
            = srs_in_place::open;
        /// [`Srs::read_params_kzg`].
        fn read_params_kzg(workspace: &Workspace, reader: &mut dyn io::Read, format: SerdeFormat) -> Result<Srs<Self>>
            = srs_stream::read;
        /// [`Srs::write_params_kzg`].
        fn write_params_kzg(
            srs: &Srs<Self>,
            format: SerdeFormat,
            writer: &mut dyn io::Write,
            progress: &mut (dyn FnMut(SrsProgress) + Send),
        ) -> Result<()>
            = srs_stream::write;
        /// [`crate::generate()`].
        fn generate(
            workspace: &Workspace,
            path: &Path,
            k: u32,
            secret: Self::Scalar,
            progress: &mut (dyn FnMut(u64) + Send),
        ) -> Result<Srs<Self>>
            = generate::to_container;
        /// [`crate::generate_scratch`].
        fn generate_scratch(
            workspace: &Workspace,
            k: u32,
            secret: Self::Scalar,
            progress: &mut (dyn FnMut(u64) + Send),
        ) -> Result<Srs<Self>>
            = generate::to_scratch;
        /// [`crate::lagrange_from_monomial`].
        fn lagrange_from_monomial(
            monomial: &Column<G1Point<Self>>,
            omega: Self::Scalar,
            placement: Placement,
            progress: &mut (dyn FnMut(u64) + Send),
        ) -> Result<Column<G1Point<Self>>>
            = srs::lagrange_over::<Self>;
        /// [`crate::check_srs`].
        fn check_srs(
            workspace: &Workspace,
            srs: &Srs<Self>,
            progress: &mut (dyn FnMut(SrsProgress) + Send),
        ) -> Result<()>
            = srs_check::check_over;
        /// [`kzg::commit_over`].
        fn commit_over(
            bases: &Column<G1Point<Self>>,
            polynomials: &[Scalars<'_, Self::Scalar>],
        ) -> Result<Vec<Affine<Self::G1Config>>>
            = kzg::sums::<Self>;
        /// [`kzg::open`], over the monomial points.
        fn open_at(
            bases: &Column<G1Point<Self>>,
            polynomial: &Column<Self::Scalar>,
            point: Self::Scalar,
        ) -> Result<Opening<Self>>
            = kzg::open_over;
        /// [`kzg::holds`].
        fn holds(
            g: Affine<Self::G1Config>,
            pair: [Affine<Self::G2Config>; 2],
            commitment: &Affine<Self::G1Config>,
            point: Self::Scalar,
            opening: &Opening<Self>,
        ) -> bool
            = kzg::holds_over;
        /// [`crate::map_jacobian`].
        fn map_jacobian(points: &Column<G1Point<Self>>) -> Result<MappedColumn<Jacobian<CoordinateOf<Self>>>>
            = jacobian::map::<Self::G1Config>;
        /// [`crate::from_jacobian`].
        fn from_jacobian(
            workspace: &Workspace,
            what: &'static str,
            points: &[Jacobian<CoordinateOf<Self>>],
        ) -> Result<Column<G1Point<Self>>>
            = jacobian::normalized::<Self::G1Config>;
    }
}
