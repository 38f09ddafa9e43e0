//! Parameters, keys and a proof while the disk fails: at one operation of the storage, in every way. Either
//! all bytes are memory's, whose proof the unmodified crate accepts, or an error of the engine says why; and
//! the same session proves right afterwards. Nothing is held and nothing is on the disk at the end
//! (`in_session_of`).

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use halo2_axiom::halo2curves::bn256::Bn256;
use halo2_axiom::plonk::{self, keygen_pk, keygen_vk};
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use halo2_axiom::spillproof::{ByteSize, Session};
use halo2_axiom::SerdeFormat;
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use spillproof_engine::storage::{Backend, Fault, FaultPlan};

use crate::drop_in::prove::{circuit, params_bytes, try_prove_with, Run};
use crate::drop_in::{erased::Listed, prove};
use crate::watchdog::within;
use crate::{in_session_of, stock, turn, Bytes, Scheme};

/// Little more than the smallest budget of these circuits, so that columns and cells are in files.
const MEMORY_BYTES: u64 = 2 << 20;

/// A sweep that takes longer hangs.
const PATIENCE_SECONDS: u64 = 900;

const FAULTS: [Fault; 10] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::Unsupported,
    Fault::Interrupted,
    Fault::Short(4096),
    Fault::FlipByte(1234),
    Fault::Torn,
    Fault::Lost,
    Fault::SwapFrames(4096),
    Fault::Truncate,
];

/// The verifying key and a proof of `circuits` circuits, or the error in words; anything but the engine's own
/// errors is a failure of the test.
pub fn attempt<C: Listed>(
    params: &[u8],
    (k, circuits): (u32, usize),
    scheme: Scheme,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let work = || -> Result<_, plonk::Error> {
        let params = ParamsKZG::<Bn256>::read_custom(&mut &*params, SerdeFormat::RawBytes)?;
        let empty = C::new(k, 0).without_witnesses().erased();
        let vk = keygen_vk(&params, &empty)?;
        let pk = keygen_pk(&params, vk, &empty)?;
        let circuits: Vec<C> = (0..circuits).map(|_| circuit(k)).collect();
        let instances: Vec<_> = circuits.iter().map(C::instances).collect();
        let proof = match scheme {
            Scheme::Shplonk => {
                try_prove_with::<C, ProverSHPLONK<'_, Bn256>>(&params, &pk, &circuits, &instances)
            }
            Scheme::Gwc => try_prove_with::<C, ProverGWC<'_, Bn256>>(&params, &pk, &circuits, &instances),
        };
        Ok((pk.get_vk().to_bytes(SerdeFormat::RawBytes), proof?))
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(plonk::Error::Transcript(error))) => match error.get_ref() {
            Some(cause) if is_engines(cause) => Err(error.to_string()),
            _ => panic!("an error without the engine's inside: {error:?}"),
        },
        Ok(Err(other)) => panic!("an error that does not say what the disk did: {other:?}"),
        Err(panic) => panic!(
            "a panic, where stock's signatures have an error: {}",
            engines(panic)
        ),
    }
}

fn is_engines(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(cause);
    while let Some(error) = cause {
        if error.is::<spillproof_engine::Error>() {
            return true;
        }
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

fn engines(panic: Box<dyn Any + Send>) -> spillproof_engine::Error {
    match panic.downcast() {
        Ok(error) => *error,
        Err(other) => std::panic::resume_unwind(other),
    }
}

/// Every `stride`-th operation, from a random one on, meets each fault.
fn sweep<D: Listed, S: stock::erased::Listed>(k: u32, stride: u64, seed: u64) {
    let _turn = turn(true);
    let expected: Run = prove::run::<D>(k, Scheme::Shplonk);
    let params = params_bytes(&prove::params(k), SerdeFormat::RawBytes);
    let oracle = Bytes {
        params: &expected.params,
        vk: &expected.vk,
        proof: &expected.proof,
        instances: &expected.instances,
    };
    assert!(
        stock::prove::accepts::<S>(&oracle, Scheme::Shplonk),
        "stock refuses the oracle"
    );
    let right = (expected.vk, expected.proof);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut outcomes = BTreeMap::<String, u64>::new();
    for backend in [Backend::Pread, Backend::Auto] {
        let in_session = |plan: &FaultPlan, work: &dyn Fn()| {
            let builder = Session::builder()
                .memory(ByteSize::Bytes(MEMORY_BYTES))
                .threads(2)
                .backend(backend)
                .faults(plan.clone());
            in_session_of(builder, work);
        };
        let counting = FaultPlan::none();
        // The session's own making is not what fails here.
        let first = std::cell::Cell::new(0);
        in_session(&counting, &|| {
            first.set(counting.operations());
            assert!(
                attempt::<D>(&params, (k, 1), Scheme::Shplonk).as_ref() == Ok(&right),
                "without a fault"
            )
        });
        for fault in FAULTS {
            let first = first.get() + rng.next_u64() % stride;
            for index in (first..counting.operations()).step_by(stride as usize) {
                let plan = FaultPlan::at(index, fault);
                let label = format!("{backend:?}, operation {index}, {fault:?}, seed {seed}");
                let outcome = std::cell::RefCell::new(String::new());
                in_session(&plan, &|| {
                    outcome.replace(match attempt::<D>(&params, (k, 1), Scheme::Shplonk) {
                        Ok(made) => {
                            assert!(made == right, "{label}: a wrong key or proof");
                            format!("{fault:?}: the same bytes")
                        }
                        Err(_) => format!("{fault:?}: an error"),
                    });
                    match attempt::<D>(&params, (k, 1), Scheme::Shplonk) {
                        Ok(made) => assert!(made == right, "{label}: a wrong key or proof afterwards"),
                        Err(error) => panic!("{label}: no proof afterwards: {error}"),
                    }
                });
                *outcomes.entry(outcome.into_inner()).or_default() += 1;
            }
        }
    }
    println!("{outcomes:#?}");
    assert!(
        outcomes.keys().any(|outcome| outcome.ends_with("an error")),
        "{outcomes:?}"
    );
}

/// A seed for this run, printed.
pub fn seed() -> u64 {
    let seed = std::env::var("SPILLPROOF_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| OsRng.next_u64());
    println!("SPILLPROOF_TEST_SEED={seed}");
    seed
}

#[test]
fn a_disk_that_fails_in_a_chain_makes_no_wrong_proof() {
    let sweep = sweep::<crate::drop_in::chain::Chain, stock::chain::Chain>;
    within(PATIENCE_SECONDS, "faults in a chain", move || {
        sweep(8, 193, seed())
    });
}

#[test]
fn a_disk_that_fails_in_lookups_makes_no_wrong_proof() {
    let sweep = sweep::<crate::drop_in::lookups::Lookups, stock::lookups::Lookups>;
    within(PATIENCE_SECONDS, "faults in lookups", move || {
        sweep(8, 907, seed())
    });
}

/// Every `stride`-th lease is refused, as if the budget had no room.
fn sweep_leases<D: Listed>(k: u32, stride: u64, seed: u64) {
    let _turn = turn(true);
    let params = params_bytes(&prove::params(k), SerdeFormat::RawBytes);
    let made = || attempt::<D>(&params, (k, 1), Scheme::Shplonk);
    let expected = made();
    let builder = || {
        Session::builder()
            .memory(ByteSize::Bytes(MEMORY_BYTES))
            .threads(2)
    };
    let budget = || Session::current().unwrap().unwrap().budget().clone();
    let leases = in_session_of(builder(), || {
        assert!(made() == expected);
        budget().leases()
    });
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut refused = 0;
    for index in (rng.next_u64() % stride..leases).step_by(stride as usize) {
        in_session_of(builder(), || {
            budget().refuse_lease(index);
            let first = made();
            assert!(first.is_err() || first == expected, "lease {index}, seed {seed}");
            refused += u64::from(first.is_err());
            assert!(made() == expected, "after lease {index} was refused, seed {seed}");
        });
    }
    println!("{refused} refused, of {leases} leases every {stride}th");
    assert!(refused > 0);
}

#[test]
fn a_lease_that_is_refused_makes_no_wrong_proof() {
    let sweep = sweep_leases::<crate::drop_in::lookups::Lookups>;
    within(PATIENCE_SECONDS, "refused leases", move || sweep(8, 181, seed()));
}

#[test]
#[ignore = "hours: tens of thousands of keys and proofs"]
fn every_fault_at_every_operation() {
    sweep::<crate::drop_in::chain::Chain, stock::chain::Chain>(8, 1, seed());
    sweep::<crate::drop_in::lookups::Lookups, stock::lookups::Lookups>(9, 1, seed());
    sweep_leases::<crate::drop_in::lookups::Lookups>(8, 1, seed());
}
