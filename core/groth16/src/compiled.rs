//! The curves that this crate is compiled for.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::pairing::PairingOutput;
use ark_ec::short_weierstrass::Affine;
use spillproof_engine::Result;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::compiled;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::Session;

use crate::arkworks::{GivenConstraints, GivenKey, Parts, Reduction};
use crate::over_ranks::{Kept, OfRank, Place};
use crate::{
    DealtKey, PairingGroups, Proof, ProvingKey, Shape, VerifyingKey, arkworks, dealt, file, iden3, key,
    proof, task,
};

compiled! {
    /// A curve that this crate is compiled for. Its functions are those of the crate, which say what they do.
    pub trait PairingCurve: PairingGroups;
    for {
        Bn254;
        Bls12_381;
    }
    {
        /// [`crate::prove()`].
        fn prove(
            key: &ProvingKey<Self>,
            witness: &Column<Self::Scalar>,
            random: [Self::Scalar; 2],
        ) -> Result<Proof<Self>>
            = proof::prove_over;
        /// [`crate::prove_in`].
        fn prove_in(
            session: &Arc<Session>,
            key: &ProvingKey<Self>,
            witness: &Column<Self::Scalar>,
            random: [Self::Scalar; 2],
        ) -> Result<Proof<Self>>
            = task::prove_in_over;
        /// [`crate::prove_over_ranks`].
        fn prove_over_ranks(
            session: &Arc<Session>,
            place: &Place<'_>,
            key: &ProvingKey<Self>,
            witness: &Column<Self::Scalar>,
            random: [Self::Scalar; 2],
        ) -> Result<(Proof<Self>, Kept)>
            = task::prove_over_ranks_in;
        /// [`crate::plan_over_ranks`].
        fn plan_over_ranks(
            shape: &Shape,
            place: &Place<'_>,
            budget_bytes: u64,
            threads: usize,
            rates: &Rates,
        ) -> Result<Plan>
            = task::plan_of_rank::<Self>;
        /// [`crate::public_signals`].
        fn public_signals(witness: &Column<Self::Scalar>, public: u64) -> Result<Vec<Self::Scalar>>
            = proof::public_signals_of;
        /// [`crate::verify`].
        fn verify(key: &VerifyingKey<Self>, public: &[Self::Scalar], proof: &Proof<Self>) -> Result<bool>
            = proof::verify_over;
        /// [`crate::plan`].
        fn plan(shape: &Shape, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan>
            = task::plan_of_circom::<Self>;
        /// [`iden3::plan_of_files`].
        fn plan_of_files(
            shape: &Shape,
            key: iden3::KeyFile,
            size: (u64, usize),
            accelerator: Option<&Arc<dyn Accelerator>>,
        ) -> Result<Plan>
            = iden3::plan_of_files_over::<Self>;
        /// [`iden3::plan_of_files_over_ranks`].
        fn plan_of_files_over_ranks(
            shape: &Shape,
            key: iden3::KeyFile,
            place: &Place<'_>,
            size: (u64, usize),
            accelerator: Option<&Arc<dyn Accelerator>>,
        ) -> Result<Plan>
            = iden3::plan_of_files_of_rank::<Self>;
        /// [`ProvingKey::plan`].
        fn plan_with(key: &ProvingKey<Self>, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan>
            = task::plan_with;
        /// [`ProvingKey::shape`].
        fn shape(key: &ProvingKey<Self>) -> Result<Shape>
            = key::shape;
        /// [`ProvingKey::check_points`].
        fn check_points(key: &ProvingKey<Self>) -> Result<()>
            = key::check_points;
        /// [`ProvingKey::open_container`].
        fn open_container(workspace: &Workspace, path: &Path) -> Result<ProvingKey<Self>>
            = file::open_container;
        /// [`DealtKey::open`].
        fn open_dealt(workspace: &Workspace, path: &Path) -> Result<DealtKey<Self>>
            = dealt::open_dealt;
        /// [`DealtKey::share`].
        fn open_share(
            key: &DealtKey<Self>,
            workspace: &Workspace,
            of: &OfRank<'_>,
        ) -> Result<ProvingKey<Self>>
            = dealt::open_share;
        /// [`VerifyingKey::in_memory`].
        fn in_memory(
            workspace: &Workspace,
            alpha_g1: Affine<Self::G1Config>,
            others: [Affine<Self::G2Config>; 3],
            ic: &[Affine<Self::G1Config>],
        ) -> Result<VerifyingKey<Self>>
            = key::in_memory;
        /// [`VerifyingKey::ic_points`].
        fn ic_points(key: &VerifyingKey<Self>) -> Result<Vec<Affine<Self::G1Config>>>
            = key::ic_points;
        /// [`VerifyingKey::alpha_beta`].
        fn alpha_beta(key: &VerifyingKey<Self>) -> PairingOutput<Self>
            = key::alpha_beta;
        /// [`iden3::read_zkey`].
        fn read_zkey(
            workspace: &Workspace,
            path: &Path,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<ProvingKey<Self>>
            = iden3::read_zkey_over;
        /// [`iden3::read_zkey_of_rank`].
        fn read_zkey_of_rank(
            workspace: &Workspace,
            path: &Path,
            of: &OfRank<'_>,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<ProvingKey<Self>>
            = iden3::read_zkey_of_rank_over;
        /// [`iden3::read_verifying_key`].
        fn read_verifying_key(workspace: &Workspace, path: &Path) -> Result<(VerifyingKey<Self>, Shape)>
            = iden3::read_verifying_key_over;
        /// [`iden3::read_wtns`].
        fn read_wtns(
            workspace: &Workspace,
            path: &Path,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<Column<Self::Scalar>>
            = iden3::read_wtns_over::<Self>;
        /// [`iden3::read_wtns_from`].
        fn read_wtns_from(
            workspace: &Workspace,
            name: &Path,
            file: &mut dyn iden3::WitnessBytes,
        ) -> Result<Column<Self::Scalar>>
            = iden3::read_wtns_from_over::<Self>;
        /// [`iden3::read_wtns_stream`].
        fn read_wtns_stream(
            workspace: &Workspace,
            name: &Path,
            len_bytes: u64,
            source: &mut (dyn Read + Send),
        ) -> Result<Column<Self::Scalar>>
            = iden3::read_wtns_stream_over::<Self>;
        /// [`crate::arkworks::read_zkey`].
        fn read_arkworks_zkey(
            workspace: &Workspace,
            path: &Path,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<ProvingKey<Self>>
            = arkworks::read_zkey_over;
        /// [`crate::arkworks::import_zkey`].
        fn import_arkworks_zkey(
            workspace: &Workspace,
            path: &Path,
            target: &Path,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<iden3::ImportedKey>
            = arkworks::import_zkey_over::<Self>;
        /// A key in columns, in types of any version of arkworks.
        #[doc(hidden)]
        fn given_parts(workspace: &Workspace, key: &GivenKey<'_, Self>, reduction: Reduction) -> Result<Parts<Self>>
            = arkworks::given_parts;
        /// The columns of a key in a file.
        #[doc(hidden)]
        fn read_parts(
            workspace: &Workspace,
            path: &Path,
            reduction: Reduction,
            progress: &mut (dyn FnMut(Progress) + Send),
        ) -> Result<Parts<Self>>
            = arkworks::read_parts;
        /// A key for a circuit, whose columns these are.
        #[doc(hidden)]
        fn given_key(
            workspace: &Workspace,
            parts: Parts<Self>,
            constraints: &dyn GivenConstraints<Self::Scalar>,
            reduction: Reduction,
        ) -> Result<ProvingKey<Self>>
            = arkworks::proving_key;
        /// The proof of so many values, the constant one first.
        #[doc(hidden)]
        fn prove_values(
            session: &Arc<Session>,
            key: &ProvingKey<Self>,
            len: usize,
            value: &dyn Fn(usize) -> Self::Scalar,
            random: [Self::Scalar; 2],
        ) -> Result<Proof<Self>>
            = arkworks::prove_values;
    }
}

/// Runs `$body` with `$engine` as the pairing of a curve: BLS12-381, or BN254 for any other.
#[macro_export]
macro_rules! over_curve {
    ($curve:expr, $engine:ident => $body:expr) => {
        match $curve {
            $crate::CurveId::Bls12381 => {
                type $engine = $crate::Bls12_381;
                $body
            }
            _ => {
                type $engine = $crate::Bn254;
                $body
            }
        }
    };
}
