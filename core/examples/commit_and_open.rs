//! Commits to a polynomial whose coefficients are on disk, opens the commitment at a point, and lets arkworks
//! check the opening. Arguments: `K [MEMORY]`, for 2^K coefficients and a budget (`64MiB`).

use std::error::Error;

use ark_bn254::{Bn254, Fr, G1Affine};
use ark_ec::AffineRepr;
use ark_ff::UniformRand;
use ark_poly::univariate::DensePolynomial;
use ark_poly_commit::kzg10::{Commitment, KZG10, Proof, VerifierKey};
use rand::rngs::OsRng;
use spillproof::{Session, Srs};
use spillproof_commit::generate_scratch;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let k: u32 = arguments.next().as_deref().unwrap_or("16").parse()?;
    let memory = arguments.next().unwrap_or("64MiB".into());
    let session = Session::builder().memory(&*memory).build()?;

    // For trials. Real parameters are the result of a ceremony: `session.open_srs("ceremony.srs")?`.
    let secret = Fr::rand(&mut OsRng);
    let srs = Srs::from(generate_scratch::<Bn254>(session.workspace(), k, secret, |_| ())?);

    // Any iterator will do; the coefficients are never in memory together.
    let p = session.column((0..1u64 << k).map(Fr::from))?;
    let point = Fr::rand(&mut OsRng);
    let commitment = srs.commit(&p)?;
    let opening = srs.open(&p, point)?;

    let [h, beta_h] = srs.pair();
    let verifier = VerifierKey::<Bn254> {
        g: G1Affine::generator(),
        gamma_g: G1Affine::generator(),
        h,
        beta_h,
        prepared_h: h.into(),
        prepared_beta_h: beta_h.into(),
    };
    let proof = Proof {
        w: opening.proof,
        random_v: None,
    };
    let accepts = KZG10::<Bn254, DensePolynomial<Fr>>::check(
        &verifier,
        &Commitment(commitment),
        point,
        opening.value,
        &proof,
    )?;
    if !accepts {
        return Err("arkworks refuses the opening".into());
    }
    println!(
        "a polynomial with 2^{k} coefficients: committed to and opened within {memory}, and arkworks accepts"
    );
    Ok(())
}
