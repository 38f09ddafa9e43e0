//! A circuit of a program's own, from files: its key is rebuilt from its description over both crates, byte
//! for byte, and the proof from its witness is the one that the program makes itself.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use halo2_axiom::circuit::{Layouter, SimpleFloorPlanner, Value};
use halo2_axiom::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_axiom::plonk::{
    keygen_pk, keygen_vk_custom, Advice, Circuit, Column, ConstraintSystem, Error, Expression, ProvingKey,
    Selector,
};
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use halo2_axiom::poly::Rotation;
use halo2_axiom::spillproof::{
    create_proof_from_witness, save_described_key, save_proving_key, save_witness, KeyFile, SavedError,
    SavedWitness, Unverified,
};
use halo2_axiom::SerdeFormat;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::drop_in::described::{hash_of, OfProgram};
use crate::drop_in::erased::Listed;
use crate::drop_in::prove;
use crate::drop_in::rows::Builtin as _;
use crate::session::SHAPES;
use crate::{drop_in, in_session, stock, turn, Scheme, SCHEMES, SESSION_BYTES};

const RAW: SerdeFormat = SerdeFormat::RawBytes;

fn from_files(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    witness: &Path,
    scheme: Scheme,
) -> Result<Vec<u8>, Error> {
    let witness = SavedWitness::open(witness)?;
    let (mut rng, mut proof) = (ChaCha20Rng::seed_from_u64(prove::SEED), Vec::new());
    let rng: &mut dyn RngCore = &mut rng;
    let mut transcript = prove::transcript(&mut proof);
    match scheme {
        Scheme::Shplonk => create_proof_from_witness::<ProverSHPLONK<'_, Bn256>, _, _, _>(
            params,
            pk,
            &witness,
            rng,
            &mut transcript,
        )?,
        Scheme::Gwc => create_proof_from_witness::<ProverGWC<'_, Bn256>, _, _, _>(
            params,
            pk,
            &witness,
            rng,
            &mut transcript,
        )?,
    }
    Ok(proof)
}

fn keys<C: Listed>(params: &ParamsKZG<Bn256>, k: u32, compress: bool) -> ProvingKey<G1Affine> {
    let circuit = C::new(k, 0).without_witnesses().erased();
    let vk = keygen_vk_custom(params, &circuit, compress).unwrap();
    keygen_pk(params, vk, &circuit).unwrap()
}

/// The circuit's key and witness in files, and what comes of them.
fn round<C: Listed>(k: u32, compress: bool, schemes: &[Scheme]) {
    let dir = tempfile::tempdir().unwrap();
    let [key, witness] = ["key", "witness"].map(|name| dir.path().join(name));
    let circuit = || prove::circuit::<C>(k);
    let instances = circuit().instances();
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let (vk, pk, proofs) = in_session(SESSION_BYTES, || {
        let params = prove::params(k);
        let pk = keys::<C>(&params, k, compress);
        save_described_key(&pk, &C::new(k, 0).without_witnesses().erased(), &key).unwrap();
        save_witness(pk.get_vk(), &circuit().erased(), &columns, &witness).unwrap();
        let proof = |scheme: &Scheme| prove::prove(&params, &pk, &[circuit()], *scheme);
        let proofs: Vec<_> = schemes.iter().map(proof).collect();
        (pk.get_vk().to_bytes(RAW), pk.to_bytes(RAW), proofs)
    });
    in_session(SESSION_BYTES, || {
        let params = prove::params(k);
        let file = KeyFile::open(&key).unwrap();
        assert_eq!(file.k().unwrap(), k);
        let description = Arc::new(file.description().unwrap());
        drop_in::described::check(&description, k).unwrap();
        let opened = file
            .proving_key::<OfProgram>(Some(Arc::clone(&description)))
            .unwrap();
        assert_eq!(hash_of(opened.get_vk()), description.key, "{}", C::NAME);
        assert!(opened.to_bytes(RAW) == pk, "{}: the key differs", C::NAME);

        let bytes = file.verifying_key_bytes().unwrap();
        assert!(bytes == vk, "{}: the verifying key differs", C::NAME);
        let of_stock = stock::described::read_verifying_key(&bytes, &description).unwrap();
        assert_eq!(
            stock::described::hash_of(&of_stock),
            description.key,
            "{}",
            C::NAME
        );
        let stock_format = stock::halo2::SerdeFormat::RawBytes;
        assert!(
            of_stock.to_bytes(stock_format) == vk,
            "{}: stock's key differs",
            C::NAME
        );
        for len in [0, 9, bytes.len() - 1] {
            assert!(stock::described::read_verifying_key(&bytes[..len], &description).is_err());
        }

        let params_bytes = prove::params_bytes(&params, RAW);
        let params_of_stock = stock::prove::read_params(&params_bytes, stock_format).unwrap();
        for (scheme, expected) in schemes.iter().zip(&proofs) {
            let proof = from_files(&params, &opened, &witness, *scheme).unwrap();
            assert!(proof == *expected, "{}: {scheme:?}: the proof differs", C::NAME);
            let instances = [instances.clone()];
            assert!(
                stock::prove::verifies(&params_of_stock, &of_stock, &instances, &proof, *scheme),
                "{}: stock refuses the proof",
                C::NAME
            );
        }
    });
}

#[test]
fn keys_and_proofs_from_files_are_the_programs() {
    let _turn = turn(true);
    round::<drop_in::chain::Chain>(10, true, &SCHEMES);
    round::<drop_in::lookups::Lookups>(8, true, &SCHEMES);
    round::<drop_in::wide::Wide>(6, false, &SCHEMES[..1]);
    round::<drop_in::publics::Publics>(6, true, &SCHEMES[..1]);
    for compress in [true, false] {
        round::<drop_in::selected::Selected>(7, compress, &SCHEMES);
    }
}

#[test]
fn keys_of_random_circuits_are_rebuilt() {
    let _turn = turn(true);
    let _shape = SHAPES.lock().unwrap_or_else(PoisonError::into_inner);
    for shape in 0..6 {
        drop_in::random::set_shape(shape);
        round::<drop_in::random::Random>(6, shape % 2 == 0, &SCHEMES[..1]);
    }
}

/// One column of bits, one gate; no witness, or one that fails, if it is asked for.
#[derive(Clone, Copy)]
struct Bits {
    bit: Value<u64>,
    row: usize,
    fails: bool,
}

impl Circuit<Fr> for Bits {
    type Config = (Column<Advice>, Selector);
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        let bit = Value::unknown();
        Self { bit, ..*self }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> Self::Config {
        let (column, selector) = (cs.advice_column(), cs.selector());
        cs.create_gate("a bit", |cells| {
            let (bit, is_on) = (
                cells.query_advice(column, Rotation::cur()),
                cells.query_selector(selector),
            );
            [is_on * (bit.clone() * (Expression::Constant(Fr::one()) - bit))]
        });
        (column, selector)
    }

    fn synthesize(
        &self,
        (column, selector): Self::Config,
        mut layouter: impl Layouter<Fr>,
    ) -> Result<(), Error> {
        layouter.assign_region(
            || "a bit",
            |mut region| {
                selector.enable(&mut region, self.row)?;
                region.assign_advice(column, self.row, self.bit.map(Fr::from));
                if self.fails {
                    return Err(Error::Synthesis);
                }
                Ok(())
            },
        )
    }
}

fn saved(error: &io::Error) -> &SavedError {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap()
}

#[test]
fn what_is_no_witness_of_the_key_is_refused() {
    let _turn = turn(true);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (good, k) = (
        Bits {
            bit: Value::known(1),
            row: 1,
            fails: false,
        },
        5,
    );
    let [key, witness] = ["key", "witness"].map(at);
    in_session(SESSION_BYTES, || {
        let params = prove::params(k);
        let keys = |circuit: &Bits, compress| {
            let vk = keygen_vk_custom(&params, circuit, compress).unwrap();
            keygen_pk(&params, vk, circuit).unwrap()
        };
        let pk = keys(&good.without_witnesses(), true);
        let vk = pk.get_vk();
        let prove = |pk, path: &Path| from_files(&params, pk, path, Scheme::Shplonk);
        save_witness(vk, &good, &[], &witness).unwrap();
        prove(&pk, &witness).unwrap();

        // What cannot be saved, and leaves no file.
        let refused = |circuit: &Bits, instances: &[&[Fr]]| {
            let error = save_witness(vk, circuit, instances, at("refused")).unwrap_err();
            assert!(!at("refused").exists());
            saved(&error).to_string()
        };
        let unknown = refused(&good.without_witnesses(), &[]);
        assert!(
            unknown.contains("advice column 0 has no value in row 1"),
            "{unknown}"
        );
        let late = refused(&Bits { row: 30, ..good }, &[]);
        assert!(late.contains("in row 30"), "{late}");
        let failing = refused(&Bits { fails: true, ..good }, &[]);
        assert!(failing.contains("can't be synthesised"), "{failing}");
        let more = refused(&good, &[&[Fr::one()]]);
        assert!(
            more.contains("1 instance columns") && more.contains("has 0"),
            "{more}"
        );

        // A witness that does not satisfy the circuit: there is no proof of it.
        save_witness(
            vk,
            &Bits {
                bit: Value::known(2),
                ..good
            },
            &[],
            at("wrong"),
        )
        .unwrap();
        let wrong = prove(&pk, &at("wrong")).unwrap_err();
        assert!(Unverified::of(&wrong).is_some(), "{wrong:?}");

        // Keys of other circuits.
        let of_program = || {
            let file = KeyFile::open(&key)?;
            let description = Arc::new(file.description()?);
            file.proving_key::<OfProgram>(Some(description))
        };
        save_proving_key(&pk, &key).unwrap();
        let without = of_program().unwrap_err();
        assert!(matches!(saved(&without), SavedError::NoDescription { .. }));
        let other = drop_in::lookups::Lookups::new(8, 0).erased();
        let error = save_described_key(&pk, &other, &key).unwrap_err();
        assert!(matches!(saved(&error), SavedError::NotOfThisCircuit));
        save_described_key(&pk, &good, &key).unwrap();
        let opened = of_program().unwrap();
        prove(&opened, &witness).unwrap();
        let other = prove::keys::<drop_in::chain::Chain>(&prove::params(k + 1), k + 1);
        let Error::Transcript(error) = prove(&other, &witness).unwrap_err() else {
            panic!("another error");
        };
        assert!(matches!(saved(&error), SavedError::AnotherKey { .. }));
        assert!(error.to_string().contains("witness"), "{error}");

        // Files that are none, or are damaged.
        let engines = |error: io::Error| error.downcast::<spillproof_engine::Error>().unwrap().to_string();
        assert!(engines(SavedWitness::open(&key).unwrap_err()).contains("a Witness over Bn254 is expected"));
        assert!(engines(KeyFile::open(&witness).unwrap_err()).contains("a ProvingKeyBundle over"));
        let bytes = fs::read(&witness).unwrap();
        let changed = at("changed");
        for len in [0, 100, 4096, bytes.len() - 1] {
            fs::write(&changed, &bytes[..len]).unwrap();
            let error = engines(SavedWitness::open(&changed).unwrap_err());
            assert!(error.contains("changed"), "{error}");
        }
        // The header, the statement, the advice, the digests.
        for at in [100, 4096 + 40, 4096 + (16 << 10) + 5, bytes.len() - 4096 + 5] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            fs::write(&changed, bytes).unwrap();
            let error = prove(&pk, &changed).unwrap_err();
            assert!(error.to_string().contains("changed"), "{at}: {error}");
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&witness).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    });
    let pk = prove::keys::<drop_in::chain::Chain>(&prove::params(6), 6);
    let error = save_witness(pk.get_vk(), &good, &[], at("none"));
    assert!(error.is_err(), "there is no session");
}

#[test]
fn circuits_with_challenges_are_refused() {
    type Phases = drop_in::phases::Phases<2, false>;
    let _turn = turn(true);
    let dir = tempfile::tempdir().unwrap();
    in_session(SESSION_BYTES, || {
        let (params, circuit) = (prove::params(6), prove::circuit::<Phases>(6));
        let pk = prove::keys::<Phases>(&params, 6);
        let instances = circuit.instances();
        let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
        let path = dir.path().join("file");
        let circuit = circuit.erased();
        let key = save_described_key(&pk, &circuit, &path).unwrap_err();
        let witness = save_witness(pk.get_vk(), &circuit, &columns, &path).unwrap_err();
        for error in [key, witness] {
            assert!(
                matches!(saved(&error), SavedError::Challenges { phases: 2, .. }),
                "{error}"
            );
            assert!(error.to_string().contains("create_proof"), "{error}");
        }
        assert!(!path.exists());
    });
}
