//! The curves that this crate is compiled for.

use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::compiled;
use spillproof_engine::stream::Scalars;
use spillproof_kernels::curve::{Curve, Point};

use crate::ipa::{Broken, Conversation, Params};
use crate::multiopen::{Combination, Keep, Opened, divide_and_commit};
use crate::srs_check::SrsProgress;

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
