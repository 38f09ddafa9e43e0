//! Proves a built-in circuit and writes what a verifier needs, for `consumers/verifier`.
//!
//! ```text
//! cargo run --release --example prove_to_files -- DIRECTORY chain|wide|lookups shplonk|gwc K
//! ```
//!
//! Within a session if `SPILLPROOF_MEMORY` says so. See the verifier for the files.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use halo2_axiom::halo2curves::bn256::Fr;
use halo2_axiom::halo2curves::ff::PrimeField;

/// Which multi-opening.
#[derive(Clone, Copy)]
enum Scheme {
    Shplonk,
    Gwc,
}

/// What a verifier needs.
struct Bytes<'a> {
    params: &'a [u8],
    vk: &'a [u8],
    proof: &'a [u8],
    instances: &'a [Vec<Vec<Fr>>],
}

#[allow(dead_code)]
#[path = "../tests/identity/drop_in.rs"]
mod drop_in;

use drop_in::prove::run;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, circuit, scheme, k] = arguments.as_slice() else {
        panic!("usage: prove_to_files DIRECTORY chain|wide|lookups shplonk|gwc K");
    };
    let scheme = if scheme == "gwc" {
        Scheme::Gwc
    } else {
        Scheme::Shplonk
    };
    let k = k.parse().unwrap();
    println!("spillproof session: {}", halo2_axiom::spillproof::active());
    let run = match circuit.as_str() {
        "wide" => run::<drop_in::wide::Wide>(k, scheme),
        "lookups" => run::<drop_in::lookups::Lookups>(k, scheme),
        _ => run::<drop_in::chain::Chain>(k, scheme),
    };
    let mut instances = Vec::new();
    for column in run.instances.iter().flatten() {
        instances.extend((column.len() as u32).to_le_bytes());
        column.iter().for_each(|value| instances.extend(value.to_repr()));
    }
    let directory = Path::new(directory);
    fs::create_dir_all(directory).unwrap();
    for (name, bytes) in [
        ("params", &run.params),
        ("vk", &run.vk),
        ("proof", &run.proof),
        ("instances", &instances),
    ] {
        fs::write(directory.join(format!("{name}.bin")), bytes).unwrap();
    }
    println!(
        "wrote a proof of {} bytes to {}",
        run.proof.len(),
        directory.display()
    );
}
