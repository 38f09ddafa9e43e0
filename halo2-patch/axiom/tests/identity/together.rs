//! Several proofs at once in one session, and sessions that change while a proof is made.

use std::sync::{Arc, Mutex};

use halo2_axiom::halo2curves::bn256::{Bn256, G1Affine};
use halo2_axiom::plonk::{Error, ProvingKey};
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::kzg::multiopen::ProverGWC;
use halo2_axiom::spillproof::accelerator::Accelerator;
use halo2_axiom::spillproof::{ByteSize, Session, SessionGuard};
use halo2_axiom::SerdeFormat;
use rand_chacha::rand_core::{self, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use spillproof_testing::watchdog;

use crate::accelerator::arkworks::Arkworks;
use crate::drop_in::erased::Listed;
use crate::drop_in::prove;
use crate::drop_in::rows::Builtin as _;
use crate::{drop_in, in_session_of, turn, Scheme};

type Ours = drop_in::lookups::Lookups;

/// A proof's rng that does something at a draw.
struct Hook<F> {
    rng: ChaCha20Rng,
    draws_left: u64,
    hook: Option<F>,
}

impl<F: FnOnce()> Hook<F> {
    fn draw(&mut self) -> &mut ChaCha20Rng {
        match self.draws_left.checked_sub(1) {
            Some(left) => self.draws_left = left,
            None => {
                if let Some(hook) = self.hook.take() {
                    hook();
                }
            }
        }
        &mut self.rng
    }
}

impl<F: FnOnce()> RngCore for Hook<F> {
    fn next_u32(&mut self) -> u32 {
        self.draw().next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.draw().next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.draw().fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.draw().try_fill_bytes(bytes)
    }
}

fn prove_with_rng(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    mut rng: impl RngCore,
) -> Result<Vec<u8>, Error> {
    let circuit = prove::circuit::<Ours>(6);
    let instances = vec![circuit.instances()];
    let mut proof = Vec::new();
    let mut transcript = prove::transcript(&mut proof);
    let statement = prove::Statement {
        params,
        pk,
        circuits: &[circuit.erased()],
        instances: &instances,
    };
    prove::create::<ProverGWC<'_, Bn256>>(&statement, &mut rng, &mut transcript)?;
    Ok(proof)
}

/// A proof begins in a session without a device; then another thread makes and installs one whose device
/// lies. The proof stays in its own.
#[test]
fn a_proof_has_the_session_in_which_it_began() {
    let _turn = turn(true);
    // Of no session: what is made of them belongs to the session in which it is made.
    let params = prove::params(6);
    let pk = prove::keys::<Ours>(&params, 6);
    let plain = || ChaCha20Rng::seed_from_u64(prove::SEED);
    let expected = prove_with_rng(&params, &pk, plain()).unwrap();
    for draws_left in [0, 1, 20, 60, 100, 140] {
        for lie in 0..4 {
            let (dir, accelerator) = (tempfile::tempdir().unwrap(), Arkworks::new());
            let session = |accelerator: Option<&Arc<Arkworks>>| {
                let builder = Session::builder()
                    .memory(ByteSize::Bytes(16 << 20))
                    .dir(dir.path());
                let builder = match accelerator {
                    Some(accelerator) => builder.accelerator(Arc::clone(accelerator) as Arc<dyn Accelerator>),
                    None => builder,
                };
                Arc::new(builder.build().unwrap())
            };
            let own = session(None);
            accelerator.lie_after(lie);
            let installed: Mutex<Option<SessionGuard>> = Mutex::default();
            let own_is_current = own.install();
            let install = || {
                let guard = std::thread::scope(|scope| {
                    scope
                        .spawn(|| session(Some(&accelerator)).install())
                        .join()
                        .unwrap()
                });
                *installed.lock().unwrap() = Some(guard);
            };
            let rng = Hook {
                rng: plain(),
                draws_left,
                hook: Some(install),
            };
            let made = prove_with_rng(&params, &pk, rng).unwrap();
            assert!(
                installed.lock().unwrap().take().is_some(),
                "{draws_left}: too few draws"
            );
            drop(own_is_current);
            assert!(
                made == expected,
                "{draws_left} draws, lie {lie}: another session took part"
            );
            assert_eq!(
                accelerator.jobs(),
                0,
                "{draws_left} draws: another session's device took part"
            );
        }
    }
}

/// From threads, and from pools of 1 to 4, with less room than all want together: each waits, and none is
/// refused.
#[test]
fn proofs_at_the_same_time_wait_for_room() {
    watchdog::within(400, "proofs at the same time", || {
        let _turn = turn(true);
        let k = 7;
        let params = prove::params(k);
        let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
        let instances = vec![prove::circuit::<Ours>(k).instances()];
        let expected = {
            let pk = prove::keys::<Ours>(&params, k);
            prove::prove(&params, &pk, &[prove::circuit::<Ours>(k)], Scheme::Shplonk)
        };
        for (threads, memory_bytes) in [(1, 5 << 20), (2, 5 << 20), (2, 24 << 20)] {
            let builder = Session::builder()
                .memory(ByteSize::Bytes(memory_bytes))
                .threads(threads);
            in_session_of(builder, || {
                let params = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
                let pk = prove::keys::<Ours>(&params, k);
                let check = |(params, pk): (&ParamsKZG<Bn256>, &ProvingKey<G1Affine>)| {
                    let proof = prove::prove(params, pk, &[prove::circuit::<Ours>(k)], Scheme::Shplonk);
                    assert!(proof == expected, "a proof differs");
                };
                for callers in 1..=4 {
                    let pool = rayon::ThreadPoolBuilder::new()
                        .num_threads(callers)
                        .build()
                        .unwrap();
                    pool.install(|| (0..6).into_par_iter().for_each(|_| check((&params, &pk))));
                }
                std::thread::scope(|scope| {
                    for _ in 0..8 {
                        scope.spawn(|| check((&params, &pk)));
                    }
                    // And keys besides.
                    for _ in 0..2 {
                        scope.spawn(|| check((&params, &prove::keys::<Ours>(&params, k))));
                    }
                });
                assert!(prove::verifies(
                    &params,
                    pk.get_vk(),
                    &instances,
                    &expected,
                    Scheme::Shplonk
                ));
            });
        }
    });
}

/// Keys and parameters belong to a session whose budget another holds: the proof takes its memory from its
/// own session, as its admission counted it.
#[test]
fn keys_of_another_session_take_memory_of_the_proofs_own() {
    let _turn = turn(true);
    let k = 7;
    let params = prove::params(k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    let expected = {
        let pk = prove::keys::<Ours>(&params, k);
        prove::prove(&params, &pk, &[prove::circuit::<Ours>(k)], Scheme::Shplonk)
    };
    let dir = tempfile::tempdir().unwrap();
    let session = || {
        let builder = Session::builder()
            .memory(ByteSize::Bytes(4 << 20))
            .dir(dir.path());
        Arc::new(builder.threads(1).build().unwrap())
    };
    let (other, own) = (session(), session());
    let (params, pk) = {
        let _installed = other.install();
        let params = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
        let pk = prove::keys::<Ours>(&params, k);
        (params, pk)
    };
    let left_bytes = other.budget().available_bytes();
    let _held = other
        .budget()
        .lease(left_bytes - (64 << 10), "a proof that waits")
        .unwrap();
    other.budget().restart_peak();
    let held_bytes = other.budget().held_bytes();
    let _installed = own.install();
    let proof = prove::prove(&params, &pk, &[prove::circuit::<Ours>(k)], Scheme::Shplonk);
    assert!(proof == expected, "a proof differs");
    assert_eq!(other.budget().peak_bytes(), held_bytes);
}

/// A proof inside of [`Session::run`] is made there, whichever thread calls.
#[test]
fn a_proof_inside_of_run_is_made() {
    watchdog::within(200, "a proof inside of run", || {
        let _turn = turn(true);
        let k = 6;
        let params = prove::params(k);
        let pk = prove::keys::<Ours>(&params, k);
        let make = || prove::prove(&params, &pk, &[prove::circuit::<Ours>(k)], Scheme::Gwc);
        let expected = make();
        for threads in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let builder = Session::builder()
                .memory(ByteSize::Bytes(16 << 20))
                .dir(dir.path());
            let session = Arc::new(builder.threads(threads).build().unwrap());
            let _installed = session.install();
            assert!(
                session.run(make) == expected,
                "{threads} threads: a proof differs"
            );
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            assert!(
                pool.install(|| session.run(make)) == expected,
                "called from a pool"
            );
        }
    });
}
