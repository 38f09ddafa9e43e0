//! `spillproof-bench in-memory`: a Groth16 proof by another library, with the key in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{LegendreSymbol, PrimeField, UniformRand};
use ark_groth16::r1cs_to_qap::{R1CSToQAP, evaluate_constraint};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use ark_relations::gr1cs::{ConstraintSystemRef, Matrix};
use ark_relations::utils::error::SynthesisError;
use rayon::prelude::*;
use serde::Serialize;
use spillproof_cli::args::{Global, Pairing, name_of};
use spillproof_cli::failure::Failure;
use spillproof_cli::run::{Result, Run};
use spillproof_format::iden3::{ByteRange, FileKind, PointRange, SectionWalk, Sections, wtns, zkey};
use spillproof_format::native::{NativeField, read_point};
use spillproof_format::{Element, FormatError};
use spillproof_groth16::PairingCurve;
use spillproof_kernels::curve::Curve;
use taceo_groth16::{CircomReduction, ConstraintMatrices, Groth16, Proof, ProvingKey, VerifyingKey};

use crate::args::{InMemory, Peer};
use crate::stock::compute_on;

/// Elements that are decoded at a time.
const CHUNK_ELEMENTS: u64 = 1 << 14;

#[derive(Serialize)]
struct Outcome {
    verifies: bool,
}

/// Proves and verifies.
///
/// # Errors
/// Of the files; [`Failure::Demonstration`] for a proof that does not verify.
pub fn run(global: &Global, args: &InMemory) -> Result<()> {
    compute_on(global.threads);
    match args.curve {
        Pairing::Bn128 => run_over::<Bn254>(global, args),
        Pairing::Bls12381 => run_over::<Bls12_381>(global, args),
    }
}

fn run_over<E: PairingCurve>(global: &Global, args: &InMemory) -> Result<()> {
    let mut run = Run::start(global);
    let (key, matrices) = run
        .recorder
        .phase("key", |_| Source::open(&args.key, FileKind::Zkey)?.key::<E>())?;
    let witness = run.recorder.phase("witness", |_| {
        Source::open(&args.witness, FileKind::Wtns)?.witness::<E::Scalar>()
    })?;
    let mut rng = rand::rngs::OsRng;
    let [r, s] = [(); 2].map(|()| E::Scalar::rand(&mut rng));
    let peer = name_of(&args.peer);
    let failed = |said: String| Failure::Demonstration(format!("{peer}: {said}"));
    let prove = match args.peer {
        Peer::TaceoGroth16 => by_taceo::<E>,
        Peer::ArkGroth16 => by_arkworks::<E>,
    };
    run.recorder.phase("prove", |_| {
        let public = &witness[1..matrices.num_instance_variables];
        let proof = prove(&key, [r, s], matrices, &witness).map_err(failed)?;
        Groth16::<E>::verify(&key.vk, &proof, public).map_err(|error| failed(error.to_string()))
    })?;
    run.say(format_args!("a proof by {peer}, which verifies"));
    run.finish("in-memory", &Outcome { verifies: true })?;
    Ok(())
}

fn by_taceo<E: PairingCurve>(
    key: &ProvingKey<E>,
    [r, s]: [E::Scalar; 2],
    matrices: ConstraintMatrices<E::Scalar>,
    witness: &[E::Scalar],
) -> Result<Proof<E>, String> {
    Groth16::<E>::prove::<CircomReduction>(key, r, s, &matrices, witness).map_err(|error| error.to_string())
}

fn by_arkworks<E: PairingCurve>(
    key: &ProvingKey<E>,
    [r, s]: [E::Scalar; 2],
    matrices: ConstraintMatrices<E::Scalar>,
    witness: &[E::Scalar],
) -> Result<Proof<E>, String> {
    let proof = ark_groth16::Groth16::<E, OfCircom>::create_proof_with_reduction_and_matrices(
        key,
        r,
        s,
        &[matrices.a, matrices.b],
        matrices.num_instance_variables,
        matrices.num_constraints,
        witness,
    );
    proof.map_err(|error| error.to_string())
}

/// The reduction of circom's keys, for a prover only: the values of `a * b - c` on the coset of a root of
/// twice the domain's order, where the roots are powers of the smallest number that is not a square, as
/// snarkjs has them.
struct OfCircom;

impl R1CSToQAP for OfCircom {
    fn witness_map_from_matrices<F: PrimeField, D: EvaluationDomain<F>>(
        matrices: &[Matrix<F>],
        num_inputs: usize,
        num_constraints: usize,
        full_assignment: &[F],
    ) -> Result<Vec<F>, SynthesisError> {
        let [a, b] = matrices else {
            return Err(SynthesisError::MissingCS);
        };
        let (domain, coset) =
            of_snarkjs::<F>(num_constraints + num_inputs).ok_or(SynthesisError::PolynomialDegreeTooLarge)?;
        let values = |matrix: &Matrix<F>| {
            let rows = matrix.par_iter().take(num_constraints);
            rows.map(|row| evaluate_constraint(row, full_assignment))
                .collect::<Vec<F>>()
        };
        let (mut a, mut b) = (values(a), values(b));
        a.extend_from_slice(&full_assignment[..num_inputs]);
        a.resize(domain.size(), F::ZERO);
        b.resize(domain.size(), F::ZERO);
        let mut c = domain.mul_polynomials_in_evaluation_domain(&a, &b);
        for values in [&mut a, &mut b, &mut c] {
            domain.ifft_in_place(values);
            coset.fft_in_place(values);
        }
        (a.par_iter_mut().zip(b).zip(c)).for_each(|((a, b), c)| *a = *a * b - c);
        Ok(a)
    }

    fn instance_map_with_evaluation<F: PrimeField, D: EvaluationDomain<F>>(
        _: ConstraintSystemRef<F>,
        _: &F,
    ) -> Result<(Vec<F>, Vec<F>, Vec<F>, F, usize, usize), SynthesisError> {
        Err(SynthesisError::Unsatisfiable)
    }

    fn h_query_scalars<F: PrimeField, D: EvaluationDomain<F>>(
        _: usize,
        _: F,
        _: F,
        _: F,
    ) -> Result<Vec<F>, SynthesisError> {
        Err(SynthesisError::Unsatisfiable)
    }
}

/// The domain of snarkjs with room for `len` values, and its coset.
fn of_snarkjs<F: PrimeField>(len: usize) -> Option<(Radix2EvaluationDomain<F>, Radix2EvaluationDomain<F>)> {
    let domain = Radix2EvaluationDomain::<F>::new(len)?;
    let mut non_residue = F::ONE;
    while non_residue.legendre() != LegendreSymbol::QuadraticNonResidue {
        non_residue += F::ONE;
    }
    let mut shift = non_residue.pow(F::TRACE);
    for _ in domain.log_size_of_group + 1..F::TWO_ADICITY {
        shift.square_in_place();
    }
    let group_gen = shift.square();
    let domain = Radix2EvaluationDomain {
        group_gen,
        group_gen_inv: group_gen.inverse()?,
        ..domain
    };
    Some((domain, domain.get_coset(shift)?))
}

/// A file of sections.
struct Source<'a> {
    path: &'a Path,
    file: File,
    sections: Sections,
}

impl<'a> Source<'a> {
    fn open(path: &'a Path, kind: FileKind) -> Result<Self> {
        let file = File::open(path).map_err(Failure::file(path))?;
        let bytes = file.metadata().map_err(Failure::file(path))?.len();
        let mut walk = SectionWalk::new(kind, bytes);
        while let Some((offset, bytes)) = walk.next_read() {
            let mut read = vec![0; bytes];
            file.read_exact_at(&mut read, offset)
                .map_err(Failure::file(path))?;
            walk.give(&read).map_err(refuse(path))?;
        }
        let sections = walk.finish().map_err(refuse(path))?;
        Ok(Self { path, file, sections })
    }

    fn read(&self, range: ByteRange) -> Result<Vec<u8>> {
        let mut bytes = vec![0; range.bytes as usize];
        let read = self.file.read_exact_at(&mut bytes, range.offset);
        read.map_err(Failure::file(self.path))?;
        Ok(bytes)
    }

    /// An array's elements, a chunk of bytes at a time.
    fn each<T>(
        &self,
        all: ByteRange,
        element_bytes: u64,
        mut decode: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut elements = Vec::with_capacity((all.bytes / element_bytes) as usize);
        let chunk_bytes = CHUNK_ELEMENTS * element_bytes;
        let mut offset = 0;
        while offset < all.bytes {
            let chunk = self.read(ByteRange {
                offset: all.offset + offset,
                bytes: chunk_bytes.min(all.bytes - offset),
            })?;
            for bytes in chunk.chunks_exact(element_bytes as usize) {
                elements.push(decode(bytes).ok_or_else(|| Failure::Content {
                    file: self.path.to_owned(),
                    details: format!("an element behind byte {offset} of its array is none"),
                })?);
            }
            offset += chunk_bytes;
        }
        Ok(elements)
    }

    fn points<P: Curve>(&self, range: &PointRange) -> Result<Vec<Affine<P>>> {
        let all = range.byte_range();
        self.each(all, range.point_bytes, |bytes| read_point::<P>(bytes).ok())
    }

    fn key<E: PairingCurve>(&self) -> Result<(ProvingKey<E>, ConstraintMatrices<E::Scalar>)> {
        let refuse = |error| refuse(self.path)(error);
        let ranges = zkey::HeaderRanges::of(&self.sections).map_err(refuse)?;
        let (protocol, header) = (self.read(ranges.protocol)?, self.read(ranges.header)?);
        let header = zkey::Header::parse(&self.sections, &protocol, &header).map_err(refuse)?;
        let count = self.read(ranges.coefficient_count)?;
        let count = count.first_chunk().copied().unwrap_or_default();
        let layout = zkey::Layout::new(&self.sections, &header, count).map_err(refuse)?;
        let points = header
            .verifying_points::<E::G1Config, E::G2Config>()
            .map_err(refuse)?;
        let key = ProvingKey {
            vk: VerifyingKey {
                alpha_g1: points.alpha1,
                beta_g2: points.beta2,
                gamma_g2: points.gamma2,
                delta_g2: points.delta2,
                gamma_abc_g1: self.points(&layout.ic)?,
            },
            beta_g1: points.beta1,
            delta_g1: points.delta1,
            a_query: self.points(&layout.a)?,
            b_g1_query: self.points(&layout.b1)?,
            b_g2_query: self.points(&layout.b2)?,
            h_query: self.points(&layout.h)?,
            l_query: self.points(&layout.c)?,
        };
        Ok((key, self.matrices(&header, &layout)?))
    }

    /// The two matrices, without the rows that bind the public signals: the library adds these itself.
    fn matrices<F: NativeField>(
        &self,
        header: &zkey::Header,
        layout: &zkey::Layout,
    ) -> Result<ConstraintMatrices<F>> {
        let over = F::from(2u64).pow([512]).inverse().unwrap_or_default();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut entries = [0, 0];
        self.each(
            layout.coefficients.byte_range(),
            zkey::COEFFICIENT_BYTES as u64,
            |bytes| {
                let found = zkey::Coefficient::decode(bytes);
                let row = found.constraint as usize;
                if a.len() <= row {
                    a.resize(row + 1, Vec::new());
                    b.resize(row + 1, Vec::new());
                }
                let value = F::read_standard(&found.value)? * over;
                let matrix = if found.matrix == 0 { &mut a } else { &mut b };
                entries[usize::from(found.matrix != 0)] += 1;
                matrix[row].push((value, found.signal as usize));
                Some(())
            },
        )?;
        let inputs = header.public() as usize + 1;
        let constraints = a.len().saturating_sub(inputs);
        a.truncate(constraints);
        b.truncate(constraints);
        Ok(ConstraintMatrices {
            num_instance_variables: inputs,
            num_witness_variables: header.signals() as usize - inputs,
            num_constraints: constraints,
            a_num_non_zero: entries[0] - inputs,
            b_num_non_zero: entries[1],
            c_num_non_zero: 0,
            a,
            b,
            c: Vec::new(),
        })
    }

    fn witness<F: NativeField>(&self) -> Result<Vec<F>> {
        let refuse = |error| refuse(self.path)(error);
        let bytes = self.read(wtns::Header::range(&self.sections).map_err(refuse)?)?;
        let header = wtns::Header::parse(&self.sections, &bytes).map_err(refuse)?;
        let values = header.values(&self.sections).map_err(refuse)?;
        self.each(values, 32, F::read_standard)
    }
}

fn refuse(path: &Path) -> impl Fn(FormatError) -> Failure {
    let file = path.to_owned();
    move |source| {
        spillproof_engine::Error::Format {
            file: file.clone(),
            source,
        }
        .into()
    }
}
