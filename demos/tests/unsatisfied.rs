//! What a program over the drop-in is told when its proof cannot hold: a witness that does not satisfy the
//! circuit, a circuit of a degree that upstream cuts, an error where a signature has no place for one. The
//! programs are children of this test.

use std::path::Path;
use std::process::{Command, Output};

use halo2_axiom::circuit::{Layouter, SimpleFloorPlanner, Value};
use halo2_axiom::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_axiom::plonk::{Advice, Circuit, Column, ConstraintSystem, Error, Selector, keygen_pk, keygen_vk};
use halo2_axiom::poly::Rotation;
use halo2_axiom::poly::kzg::commitment::KZGCommitmentScheme;
use halo2_axiom::poly::kzg::multiopen::ProverSHPLONK;
use halo2_axiom::spillproof::{Unverified, create_proof_half};
use halo2_axiom::transcript::{Blake2bWrite, Challenge255, TranscriptWriterBuffer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_circuits::axiom::dropin::any::Any;
use spillproof_circuits::axiom::dropin::{proof, prover};
use spillproof_circuits::{Kind, Scheme};

/// Set for children.
const CHILD: &str = "SPILLPROOF_TEST_CHILD";
const K: u32 = 7;

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Not a test of its own: public inputs of another witness, and a program that unwraps.
#[test]
fn unsatisfied_program() {
    if !is_child() {
        return;
    }
    let kind = Kind::Chain;
    let params = proof::insecure_params(K, 1);
    let vk = proof::verifying_key(&params, kind, K).unwrap();
    let pk = prover::proving_key(&params, vk, kind, K).unwrap();
    let others = Any::new(kind, K, 2).instances();
    let instances: Vec<&[Fr]> = others.iter().map(Vec::as_slice).collect();
    let circuit = Any::new(kind, K, 1);
    prover::prove_circuit(&params, &pk, (circuit, &instances), 1, Scheme::Shplonk).unwrap();
}

/// The sixth power of a value is the value: a constraint of degree 7 with its selector.
struct Power;

impl Circuit<Fr> for Power {
    type Config = (Column<Advice>, Selector);
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self
    }

    fn configure(meta: &mut ConstraintSystem<Fr>) -> Self::Config {
        let (x, on) = (meta.advice_column(), meta.selector());
        meta.create_gate("x^6 = x", |cells| {
            let x = cells.query_advice(x, Rotation::cur());
            let power = (1..6).fold(x.clone(), |power, _| power * x.clone());
            [cells.query_selector(on) * (power - x)]
        });
        (x, on)
    }

    fn synthesize(&self, (x, on): Self::Config, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        layouter.assign_region(
            || "one",
            |mut region| {
                on.enable(&mut region, 0)?;
                region.assign_advice(x, 0, Value::known(Fr::one()));
                Ok(())
            },
        )
    }
}

/// Not a test of its own.
#[test]
fn degree_program() {
    if !is_child() {
        return;
    }
    let params = proof::insecure_params(K, 1);
    let vk = keygen_vk(&params, &Power).unwrap();
    let pk = keygen_pk(&params, vk, &Power).unwrap();
    let mut transcript = Blake2bWrite::<_, G1Affine, Challenge255<_>>::init(Vec::new());
    let rng = ChaCha20Rng::seed_from_u64(1);
    let made = create_proof_half::<
        true,
        KZGCommitmentScheme<Bn256>,
        ProverSHPLONK<'_, Bn256>,
        Challenge255<G1Affine>,
        _,
        _,
        _,
    >(&params, &pk, &[Power], &[&[]], rng, &mut transcript);
    if let Err(error) = made {
        let unverified = Unverified::of(&error).expect("a proof that does not verify");
        eprintln!("refused: {unverified}");
    }
}

/// Not a test of its own: parameters have no place for an error of the disk or the budget.
#[test]
fn panicking_program() {
    if is_child() {
        let _ = proof::insecure_params(K, 1);
    }
}

fn run(dir: &Path, program: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SPILLPROOF_")) {
        command.env_remove(name);
    }
    command
        .args([&format!("unsatisfied::{program}"), "--exact", "--nocapture"])
        .current_dir(dir)
        .envs([(CHILD, "1"), ("SPILLPROOF_DIR", ".")])
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_unsatisfied_witness_is_named() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let memory = ("SPILLPROOF_MEMORY", "16MiB");
    let output = run(
        dir.path(),
        "unsatisfied_program",
        &[memory, ("SPILLPROOF_REPORT", "run.html")],
    );
    let words = said(&output);
    assert!(!output.status.success(), "{words}");
    for word in [
        "the witness does not satisfy the circuit",
        "MockProver shows where",
        // The table of what was done.
        "\nphase ",
        "\nprove (failed) ",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    for word in ["jobs:", "dyn Any"] {
        assert!(!words.contains(word), "{word}: {words}");
    }
    let page = std::fs::read_to_string(dir.path().join("run.html")).unwrap();
    for word in [
        "<td>verdict</td><td>prove failed: ",
        "the witness does not satisfy the circuit",
        "<td>rows</td><td>2^7</td>",
        "prove (failed)",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn a_degree_that_upstream_cuts_is_said_with_the_keys() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let memory = ("SPILLPROOF_MEMORY", "16MiB");
    let words = said(&run(dir.path(), "degree_program", &[memory]));
    let warning = "warning: the circuit has constraints of degree 7, and halo2-axiom makes keys for degree 5";
    assert_eq!(
        words.matches(warning).count(),
        1,
        "once, with the verifying key: {words}"
    );
    let refused = words.split_once("refused: ").expect(&words).1;
    assert!(
        refused.contains("MAX_DEGREE=7") && !refused.contains("MockProver"),
        "{words}"
    );
    let words = said(&run(dir.path(), "degree_program", &[memory, ("MAX_DEGREE", "7")]));
    assert!(
        !words.contains("MAX_DEGREE") && !words.contains("refused"),
        "{words}"
    );
}

#[test]
fn an_error_without_a_place_is_said_in_words() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(dir.path(), "panicking_program", &[("SPILLPROOF_MEMORY", "4KiB")]);
    let words = said(&output);
    assert!(!output.status.success(), "{words}");
    assert!(words.contains("raise the memory budget"), "{words}");
    assert!(!words.contains("dyn Any"), "{words}");
}
