//! Circuits, their keys and preimages, made by Midnight's own crates in memory: this process has no session.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::executor::block_on;
use midnight_ledger::structure::ProofPreimageVersioned;
use midnight_proofs::utils::SerdeFormat;
use midnight_serialize::tagged_serialize;
use midnight_transient_crypto::curve::Fr;
use midnight_transient_crypto::hash::transient_hash;
use midnight_transient_crypto::proofs::{
    KeyLocation, ParamsProver, ParamsProverProvider, Proof, ProofPreimage, ProvingKeyMaterial, VerifierKey,
    Zkir as _, PARAMS_VERIFIER,
};
use midnight_zkir::IrSource;

/// The k of the parameters that midnight-transient-crypto ships.
const SHIPPED_K: u8 = 14;

/// A circuit that hashes its input so many times, and makes the result public.
pub struct Circuit {
    pub ir: IrSource,
    pub k: u8,
    pub material: ProvingKeyMaterial,
    verifier: VerifierKey,
    hashes: usize,
}

impl Circuit {
    fn new(hashes: usize) -> Self {
        let mut instructions: Vec<String> = (0..hashes)
            .map(|index| format!(r#"{{ "op": "transient_hash", "inputs": [{index}] }}"#))
            .collect();
        instructions.push(format!(r#"{{ "op": "declare_pub_input", "var": {hashes} }}"#));
        instructions.push(r#"{ "op": "pi_skip", "guard": null, "count": 1 }"#.to_owned());
        let json = format!(
            r#"{{ "version": {{ "major": 2, "minor": 0 }}, "num_inputs": 1,
                 "do_communications_commitment": false, "instructions": [{}] }}"#,
            instructions.join(",")
        );
        let ir = IrSource::load(json.as_bytes()).unwrap();
        let (prover, verifier) = block_on(ir.keygen(&Shipped)).unwrap();
        let tagged = ProvingKeyMaterial {
            prover_key: tagged(&prover),
            verifier_key: tagged(&verifier),
            ir_source: tagged(&ir),
        };
        Self {
            k: ir.k(),
            ir,
            material: tagged,
            verifier,
            hashes,
        }
    }

    /// What is public of a proof for this input.
    pub fn result(&self, input: Fr) -> Fr {
        (0..self.hashes).fold(input, |value, _| transient_hash(&[value]))
    }

    /// A preimage whose key is known by `location`.
    pub fn preimage(&self, input: Fr, binding_input: Fr, location: &str) -> ProofPreimage {
        ProofPreimage {
            inputs: vec![input],
            private_transcript: vec![],
            public_transcript_inputs: vec![self.result(input)],
            public_transcript_outputs: vec![],
            binding_input,
            communications_commitment: None,
            key_location: KeyLocation(location.to_owned().into()),
        }
    }

    /// The body of a request for a proof.
    pub fn request(&self, input: Fr) -> Vec<u8> {
        self.request_of(self.preimage(input, 7.into(), "mine"))
    }

    /// The body of a request for a proof of a preimage.
    pub fn request_of(&self, preimage: ProofPreimage) -> Vec<u8> {
        request(preimage, Some(self.material.clone()))
    }

    /// Whether a verifier with the crate's own parameters takes the proof.
    pub fn verifies(&self, proof: &Proof, input: Fr, binding_input: Fr) -> bool {
        let statement = [binding_input, self.result(input)];
        self.verifier
            .verify(&PARAMS_VERIFIER, proof, statement.into_iter())
            .is_ok()
    }
}

/// The body of a request for a proof.
pub fn request(preimage: ProofPreimage, material: Option<ProvingKeyMaterial>) -> Vec<u8> {
    tagged(&(
        ProofPreimageVersioned::V2(Arc::new(preimage)),
        material,
        None::<Fr>,
    ))
}

/// Tagged bytes.
pub fn tagged<T: midnight_serialize::Serializable + midnight_serialize::Tagged>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    tagged_serialize(value, &mut bytes).unwrap();
    bytes
}

/// Of a few rows.
pub fn small() -> &'static Circuit {
    static CIRCUIT: OnceLock<Circuit> = OnceLock::new();
    CIRCUIT.get_or_init(|| Circuit::new(3))
}

/// In between.
pub fn middle() -> &'static Circuit {
    static CIRCUIT: OnceLock<Circuit> = OnceLock::new();
    CIRCUIT.get_or_init(|| Circuit::new(60))
}

/// Of 2^14 rows, whose proof takes seconds.
pub fn large() -> &'static Circuit {
    static CIRCUIT: OnceLock<Circuit> = OnceLock::new();
    CIRCUIT.get_or_init(|| Circuit::new(500))
}

/// A folder with the shipped parameters, and smaller ones made of them.
pub fn params() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("params");
        fs::create_dir_all(&folder).unwrap();
        let shipped = shipped();
        for k in 6..=SHIPPED_K {
            let path = folder.join(format!("bls_midnight_2p{k}"));
            if path.exists() {
                continue;
            }
            let whole = folder.join(format!("{k}.{}", std::process::id()));
            if k == SHIPPED_K {
                fs::copy(&shipped, &whole).unwrap();
            } else {
                let mut params = ParamsProver::read(BufReader::new(File::open(&shipped).unwrap())).unwrap();
                Arc::get_mut(&mut params.0).unwrap().downsize(u32::from(k));
                let mut file = BufWriter::new(File::create(&whole).unwrap());
                params
                    .0
                    .write_custom(&mut file, SerdeFormat::RawBytesUnchecked)
                    .unwrap();
                file.flush().unwrap();
            }
            fs::rename(whole, path).unwrap();
        }
        folder
    })
}

/// The file that midnight-transient-crypto ships, in cargo's cache.
fn shipped() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"));
    let registries = fs::read_dir(home.join("registry/src")).unwrap();
    let file = "midnight-transient-crypto-2.1.1/static/bls_midnight_2p14";
    let mut files = registries.map(|registry| registry.unwrap().path().join(file));
    files
        .find(|file| file.exists())
        .expect("cargo's cache has midnight-transient-crypto")
}

struct Shipped;

impl ParamsProverProvider for Shipped {
    async fn get_params(&self, k: u8) -> io::Result<ParamsProver> {
        ParamsProver::read(BufReader::new(File::open(
            params().join(format!("bls_midnight_2p{k}")),
        )?))
    }
}
