//! Verifies a proof that the drop-in has written, with unmodified halo2-axiom, from files alone.
//!
//! ```text
//! verifier DIRECTORY chain|wide|lookups shplonk|gwc
//! ```
//!
//! The directory holds `params.bin` and `vk.bin` (`SerdeFormat::RawBytes`, which checks every point),
//! `proof.bin`, and `instances.bin`: for each instance column its length (u32, little-endian) and its values
//! (32 bytes each, canonical, little-endian).

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use halo2_axiom::SerdeFormat;
use halo2_axiom::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_axiom::halo2curves::ff::PrimeField;
use halo2_axiom::plonk::{VerifyingKey, verify_proof};
use halo2_axiom::poly::commitment::Verifier;
use halo2_axiom::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use halo2_axiom::poly::kzg::msm::DualMSM;
use halo2_axiom::poly::kzg::multiopen::{VerifierGWC, VerifierSHPLONK};
use halo2_axiom::poly::kzg::strategy::{GuardKZG, SingleStrategy};
use halo2_axiom::transcript::{Blake2bRead, Challenge255, TranscriptReadBuffer};

#[allow(dead_code)]
mod circuits;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, circuit, scheme] = arguments.as_slice() else {
        eprintln!("usage: verifier DIRECTORY chain|wide|lookups shplonk|gwc");
        return ExitCode::from(2);
    };
    match verify(Path::new(directory), circuit, scheme) {
        Ok(()) => {
            println!("unmodified halo2-axiom accepts the proof in {directory}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("unmodified halo2-axiom rejects the proof in {directory}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn verify(directory: &Path, circuit: &str, scheme: &str) -> Result<()> {
    let params = fs::read(directory.join("params.bin"))?;
    let params = ParamsKZG::<Bn256>::read_custom(&mut params.as_slice(), SerdeFormat::RawBytes)?;
    let vk = fs::read(directory.join("vk.bin"))?;
    let vk = match circuit {
        "chain" => VerifyingKey::from_bytes::<circuits::chain::Chain>(&vk, SerdeFormat::RawBytes, ())?,
        "wide" => VerifyingKey::from_bytes::<circuits::wide::Wide>(&vk, SerdeFormat::RawBytes, ())?,
        "lookups" => VerifyingKey::from_bytes::<circuits::lookups::Lookups>(&vk, SerdeFormat::RawBytes, ())?,
        other => return Err(format!("there is no circuit `{other}`").into()),
    };
    let proof = fs::read(directory.join("proof.bin"))?;
    let instances = instances(&fs::read(directory.join("instances.bin"))?)?;
    match scheme {
        "shplonk" => verify_with::<VerifierSHPLONK<'_, Bn256>>(&params, &vk, &instances, &proof),
        "gwc" => verify_with::<VerifierGWC<'_, Bn256>>(&params, &vk, &instances, &proof),
        other => Err(format!("there is no scheme `{other}`").into()),
    }
}

fn verify_with<'p, V>(
    params: &'p ParamsKZG<Bn256>,
    vk: &VerifyingKey<G1Affine>,
    instances: &[Vec<Fr>],
    proof: &[u8],
) -> Result<()>
where
    V: Verifier<
            'p,
            KZGCommitmentScheme<Bn256>,
            MSMAccumulator = DualMSM<'p, Bn256>,
            Guard = GuardKZG<'p, Bn256>,
        >,
{
    let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = Blake2bRead::<_, G1Affine, Challenge255<_>>::init(proof);
    let strategy = SingleStrategy::new(params);
    verify_proof::<KZGCommitmentScheme<Bn256>, V, _, _, _>(params, vk, strategy, &[&columns], &mut transcript)
        .map_err(|error| format!("{error:?}").into())
}

fn instances(mut bytes: &[u8]) -> Result<Vec<Vec<Fr>>> {
    let mut columns = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (values, rest) = rest
            .split_at_checked(length * 32)
            .ok_or("instances.bin is truncated")?;
        let value = |bytes: &[u8]| -> Result<Fr> {
            let repr: [u8; 32] = bytes.try_into()?;
            Option::from(Fr::from_repr(repr)).ok_or_else(|| "an instance is no field element".into())
        };
        columns.push(values.chunks_exact(32).map(value).collect::<Result<_>>()?);
        bytes = rest;
    }
    if bytes.is_empty() {
        Ok(columns)
    } else {
        Err("instances.bin is truncated".into())
    }
}
