//! Proofs that are cut off and go on from their checkpoints: with the switch on they are the very proofs that
//! memory makes; with it off they begin as the one that was cut off, and the unmodified crate accepts them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use halo2_axiom::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_axiom::plonk::{self, ProvingKey};
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::kzg::multiopen::ProverSHPLONK;
use halo2_axiom::spillproof::{ByteSize, CheckpointKey, Checkpoints, Session};
use halo2_axiom::transcript::Transcript;
use halo2_axiom::SerdeFormat;
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use spillproof_engine::error::Checkpoint;

use crate::drop_in::erased::{erased, Listed};
use crate::drop_in::phases::Phases;
use crate::drop_in::prove::{self, circuit, SEED};
use crate::drop_in::random::{set_shape, Random};
use crate::drop_in::rows::Builtin as _;
use crate::session::SHAPES;
use crate::{drop_in, in_session_of, stock, turn, Bytes, Scheme};

const MEMORY_BYTES: u64 = 4 << 20;
/// Bytes of a point and of a scalar in a proof.
const ENTRY_BYTES: usize = 32;

/// Takes so many points and scalars of a proof.
struct Cut<'b> {
    bytes: &'b RefCell<Vec<u8>>,
    entries: usize,
}

impl Write for Cut<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut proof = self.bytes.borrow_mut();
        if proof.len() >= self.entries.saturating_mul(ENTRY_BYTES) {
            return Err(io::Error::other("cut off"));
        }
        proof.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A proof to be made, in sessions that keep checkpoints.
struct Statement<C> {
    k: u32,
    circuits: Vec<C>,
    params: Vec<u8>,
    keys: ProvingKey<G1Affine>,
}

impl<C: Listed> Statement<C> {
    fn new(k: u32, circuits: usize) -> Self {
        let params = prove::params(k);
        Self {
            k,
            circuits: (0..circuits).map(|_| circuit(k)).collect(),
            keys: prove::keys::<C>(&params, k),
            params: prove::params_bytes(&params, SerdeFormat::RawBytes),
        }
    }

    fn instances(&self) -> Vec<Vec<Vec<Fr>>> {
        self.circuits.iter().map(C::instances).collect()
    }

    /// The proof, of which `entries` points and scalars are taken, after `absorbed` in the transcript.
    fn prove(
        &self,
        params: &ParamsKZG<Bn256>,
        (entries, absorbed): (usize, u64),
        mut rng: impl RngCore,
    ) -> (Vec<u8>, Result<(), plonk::Error>) {
        let (circuits, instances) = (erased(&self.circuits), self.instances());
        let bytes = RefCell::new(Vec::new());
        let mut writer = Cut {
            bytes: &bytes,
            entries,
        };
        let mut transcript = prove::transcript(&mut writer);
        if absorbed > 0 {
            transcript.common_scalar(Fr::from(absorbed)).unwrap();
        }
        let statement = prove::Statement {
            params,
            pk: &self.keys,
            circuits: &circuits,
            instances: &instances,
        };
        let make = || prove::create::<ProverSHPLONK<'_, Bn256>>(&statement, &mut rng, &mut transcript);
        // The end of a phase that the circuit itself ends has no other way to fail.
        let made =
            catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|_| Err(io::Error::other("a panic").into()));
        (bytes.into_inner(), made)
    }

    /// [`Self::prove`], in a session with checkpoints in `dir`.
    fn keep(&self, dir: &Path, cut: (usize, u64), rng: impl RngCore) -> (Vec<u8>, Result<(), plonk::Error>) {
        self.keep_in(checkpoints(dir), cut, rng)
    }

    fn keep_in(
        &self,
        checkpoints: Checkpoints,
        cut: (usize, u64),
        rng: impl RngCore,
    ) -> (Vec<u8>, Result<(), plonk::Error>) {
        let builder = Session::builder()
            .memory(ByteSize::Bytes(MEMORY_BYTES))
            .threads(2)
            .checkpoints(checkpoints);
        in_session_of(builder, || {
            let params = prove::read_params(&self.params, SerdeFormat::RawBytes).unwrap();
            self.prove(&params, cut, rng)
        })
    }

    fn accepted_by<S: stock::erased::Listed>(&self, proof: &[u8]) -> bool {
        let bytes = Bytes {
            params: &self.params,
            vk: &self.keys.get_vk().to_bytes(SerdeFormat::RawBytes),
            proof,
            instances: &self.instances(),
        };
        stock::prove::accepts::<S>(&bytes, Scheme::Shplonk)
    }
}

/// Checkpoints of these tests.
pub fn checkpoints(dir: &Path) -> Checkpoints {
    Checkpoints::new(dir, CheckpointKey::from_hex(&"0f".repeat(32)).unwrap())
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(SEED)
}

const ALL: (usize, u64) = (usize::MAX, 0);

/// The folders of checkpoints; beside them is the list of used ones.
pub fn folders(dir: &Path) -> Vec<PathBuf> {
    // It is made with the first checkpoint.
    let entries = std::fs::read_dir(dir).into_iter().flatten().map(Result::unwrap);
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.is_dir()).collect()
}

/// Cut off at every `stride`-th point or scalar, and once more on the way to the end; what comes out is
/// memory's proof.
fn go_on<C: Listed>(k: u32, circuits: usize, stride: usize) {
    go_on_to(k, circuits, stride, |statement: &Statement<C>| {
        let params = prove::read_params(&statement.params, SerdeFormat::RawBytes).unwrap();
        statement.prove(&params, ALL, rng())
    });
}

fn go_on_to<C: Listed>(
    k: u32,
    circuits: usize,
    stride: usize,
    oracle: impl FnOnce(&Statement<C>) -> (Vec<u8>, Result<(), plonk::Error>),
) {
    let _turn = turn(true);
    let statement = Statement::<C>::new(k, circuits);
    let (expected, made) = oracle(&statement);
    made.unwrap();
    let entries = expected.len() / ENTRY_BYTES;
    for cut in (0..entries).step_by(stride) {
        let dir = tempfile::tempdir().unwrap();
        let (begun, made) = statement.keep(dir.path(), (cut, 0), rng());
        assert!(made.is_err(), "{}: not cut off", C::NAME);
        assert!(begun == expected[..begun.len()] && begun.len() == cut * ENTRY_BYTES);
        assert_eq!(folders(dir.path()).len(), 1);
        // Cut off a second time, further on.
        let (_, made) = statement.keep(dir.path(), ((cut + entries) / 2, 0), rng());
        assert!(made.is_err(), "{}: not cut off twice", C::NAME);
        let (whole, made) = statement.keep(dir.path(), ALL, rng());
        made.unwrap();
        assert!(
            whole == expected,
            "{}: another proof after {cut} of {entries}",
            C::NAME
        );
        assert_eq!(folders(dir.path()).len(), 0, "{}: something is left", C::NAME);
    }
}

#[test]
fn chains_go_on() {
    go_on::<drop_in::chain::Chain>(7, 1, 1);
    go_on::<drop_in::chain::Chain>(7, 2, 5);
}

#[test]
fn lookups_go_on() {
    go_on::<drop_in::lookups::Lookups>(7, 1, 3);
    go_on::<drop_in::lookups::Lookups>(7, 2, 11);
}

#[test]
fn phases_go_on() {
    go_on::<Phases<2, false>>(7, 1, 1);
    go_on::<Phases<2, true>>(7, 1, 1);
    // Stock's prover stops at the end of a third phase: a session without a cut is the oracle.
    go_on_to::<Phases<3, true>>(7, 1, 2, |statement| {
        statement.keep(tempfile::tempdir().unwrap().path(), ALL, rng())
    });
}

#[test]
fn random_circuits_go_on() {
    let _shape = SHAPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let seed = crate::faults::seed();
    for shape in 0..3u64 {
        set_shape(seed.wrapping_add(shape));
        go_on::<Random>(7, 1 + (shape == 2) as usize, 7);
    }
}

/// With the switch off all that is drawn follows from the checkpoint: whatever generators the two runs have,
/// there is one transcript.
#[test]
fn one_transcript_comes_of_a_checkpoint() {
    let _turn = turn(false);
    type Ours = drop_in::lookups::Lookups;
    let statement = Statement::<Ours>::new(7, 1);
    let (whole, _) = statement.keep(tempfile::tempdir().unwrap().path(), ALL, OsRng);
    let entries = whole.len() / ENTRY_BYTES;
    for cut in (0..entries).step_by(5) {
        let dir = tempfile::tempdir().unwrap();
        let (begun, made) = statement.keep(dir.path(), (cut, 0), OsRng);
        assert!(made.is_err(), "not cut off");
        // A copy goes on too, before the original does.
        let copy = tempfile::tempdir().unwrap();
        for folder in folders(dir.path()) {
            let to = copy.path().join(folder.file_name().unwrap());
            std::fs::create_dir(&to).unwrap();
            for file in std::fs::read_dir(&folder).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        let [one, other] = [copy.path(), dir.path()].map(|dir| {
            let (whole, made) = statement.keep(dir, ALL, OsRng);
            made.unwrap();
            whole
        });
        assert!(one == other, "two proofs of one checkpoint, after {cut}");
        assert!(one.starts_with(&begun), "another proof after {cut}");
        assert!(one != whole, "two checkpoints with the same values");
        assert!(statement.accepted_by::<stock::lookups::Lookups>(&one));
    }
}

fn refused(made: Result<(), plonk::Error>) -> Option<spillproof_engine::Error> {
    let Err(plonk::Error::Transcript(error)) = made else {
        return None;
    };
    let error = error.into_inner()?.downcast::<spillproof_engine::Error>().ok()?;
    Some(*error)
}

/// What a refused call says that the other input is.
fn differs(made: Result<(), plonk::Error>) -> &'static str {
    match refused(made) {
        Some(spillproof_engine::Error::Checkpoint(Checkpoint::Differs { what, .. })) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_differs_is_refused() {
    let _turn = turn(true);
    type Ours = drop_in::chain::Chain;
    let statement = Statement::<Ours>::new(7, 1);
    let dir = tempfile::tempdir().unwrap();
    let (expected, made) = statement.keep(dir.path(), ALL, rng());
    made.unwrap();
    let (_, made) = statement.keep(dir.path(), (20, 0), rng());
    assert!(made.is_err());

    let (_, made) = statement.keep(dir.path(), (usize::MAX, 5), rng());
    assert_eq!(differs(made), "transcript");
    let (_, made) = statement.keep(dir.path(), ALL, ChaCha20Rng::seed_from_u64(1));
    assert_eq!(differs(made), "random number generator");
    halo2_axiom::spillproof::set_reproducible(false);
    let (_, made) = statement.keep(dir.path(), ALL, rng());
    assert_eq!(differs(made), "setting of the switch for reproducible proofs");
    halo2_axiom::spillproof::set_reproducible(true);

    let key = CheckpointKey::from_hex(&"f0".repeat(32)).unwrap();
    let (_, made) = statement.keep_in(Checkpoints::new(dir.path(), key), ALL, rng());
    assert!(matches!(
        refused(made),
        Some(spillproof_engine::Error::Checkpoint(
            Checkpoint::AnotherKey { .. }
        ))
    ));

    // A column that was changed, or is missing.
    let column = folders(dir.path())[0].join("0.columns");
    let right = std::fs::read(&column).unwrap();
    let mut wrong = right.clone();
    wrong[1000] ^= 1;
    for content in [&wrong[..], &right[..right.len() - 4096], &[]] {
        std::fs::write(&column, content).unwrap();
        let (_, made) = statement.keep(dir.path(), ALL, rng());
        match refused(made) {
            Some(spillproof_engine::Error::Damaged { file, .. }) => {
                assert!(file.ends_with("0.columns"), "{file}")
            }
            other => panic!("{other:?}"),
        }
    }
    std::fs::remove_file(&column).unwrap();
    let (_, made) = statement.keep(dir.path(), ALL, rng());
    assert!(matches!(
        refused(made),
        Some(spillproof_engine::Error::File { .. })
    ));
    std::fs::write(&column, right).unwrap();

    // Another statement has a checkpoint of its own.
    let other = Statement::<Ours> {
        circuits: vec![Ours::new(7, 8)],
        ..Statement::new(7, 1)
    };
    let (_, made) = other.keep(dir.path(), (20, 0), rng());
    assert!(made.is_err());
    assert_eq!(folders(dir.path()).len(), 2);
    // None of this has changed the checkpoint.
    let (whole, made) = statement.keep(dir.path(), ALL, rng());
    made.unwrap();
    assert!(whole == expected);
    assert_eq!((folders(dir.path()).len(), statement.k), (1, 7));
}
