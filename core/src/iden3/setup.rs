//! A `.zkey` file from a circuit and the first phase of a ceremony: snarkjs' `groth16 setup`, byte for byte.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::Field;
use blake2::{Blake2b512, Digest};
use rayon::prelude::*;
use spillproof_format::Element;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, write_prefix, write_section_prefix, zkey};

use super::powers::Phase1;
use super::source::{Progress, Source};
use super::terms::Circuit;
use crate::Result;
use crate::column::{Column, Placement, Region, SEQUENTIAL_BYTES, Scratch, Workspace};
use crate::groth16::{
    Coefficient, Constraints, Domain, G1Point, MATRICES, PairingCurve, Powers, Queries, Shape, check_curve,
    queries,
};
use crate::kernels::curve::{Coordinates, Curve, Point};
use crate::kernels::field::{CoordinateField, KernelField};
use crate::storage::Append;
use crate::stream::add_multiples;

/// Sections of a key.
const SECTIONS: u32 = 10;
/// From this log2 of the rows on, snarkjs hashes one difference of powers more.
const LOG_ROWS_OF_ONE_MORE: u32 = 15;
/// Elements that one thread encodes at a time.
const JOB_ELEMENTS: usize = 256;

/// A key that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Its sizes.
    pub shape: Shape,
    /// The hash of the circuit, which contributions are bound to.
    pub circuit_hash: [u8; 64],
    /// Whether the hash is computed from the powers that snarkjs takes. It is not for 2^15 rows or more from a file of the circuit's own power: snarkjs then hashes the bytes behind the
    /// last power as if they were a point.
    pub is_snarkjs_hash: bool,
}

/// Makes the key of the circuit in a `.r1cs` file from a `.ptau` file, prepared for the second phase or not. gamma and delta are one: proofs can be
/// forged with the key until someone contributes.
///
/// # Errors
/// [`crate::Error::Format`] for files that are damaged, over another curve, or of too few powers; [`crate::Error::File`], [`crate::Error::Io`];
/// [`crate::Error::BudgetTooSmall`], [`crate::Error::OverBudget`]. A file that has the target's name keeps it then.
pub fn setup<E: PairingCurve>(
    workspace: &Workspace,
    [r1cs, ptau]: [&Path; 2],
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<NewKey> {
    // All of it is public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let publish = workspace.storage.publish(target)?;
    workspace.run(|| {
        let circuit_file = Source::open(&workspace, r1cs, FileKind::R1cs)?;
        let circuit = Circuit::<E::Scalar>::read(&circuit_file, progress)?;
        check_curve::<E>(r1cs, circuit.header.curve)?;
        let log_n = circuit.header.log_domain();
        let domain = Domain::of_smallest_non_residue(log_n)?;
        let ptau_file = Source::open(&workspace, ptau, FileKind::Ptau)?;
        let phase1 = Phase1::open(&ptau_file, log_n)?;
        check_curve::<E>(ptau, phase1.curve)?;
        let points = phase1.points::<E>(&domain, progress)?;
        let quotient = phase1.quotient_points::<E>(&domain, progress)?;
        let signals = u64::from(circuit.header.wires);
        let queries = queries(&circuit.terms, &points, signals)?;
        let buffer_bytes = SEQUENTIAL_BYTES.min((workspace.budget.available_bytes() / 16) as usize);
        let file = KeyFile {
            file: Append::new(publish, &workspace.budget, buffer_bytes)?,
            hash: Blake2b512::new(),
        };
        file.write::<E>(&circuit, &phase1, &points, (&queries, &quotient))
    })
}

/// A key's file, and the hash of its circuit.
struct KeyFile {
    file: Append,
    hash: Blake2b512,
}

impl KeyFile {
    /// All sections, in snarkjs' order.
    fn write<E: PairingCurve>(
        mut self,
        circuit: &Circuit<E::Scalar>,
        phase1: &Phase1<'_>,
        powers: &Powers<E>,
        (queries, quotient): (&Queries<E>, &Column<G1Point<E>>),
    ) -> Result<NewKey> {
        let header = &circuit.header;
        let (signals, public, log_domain) = (u64::from(header.wires), header.public(), header.log_domain());
        let [coefficients, ic, rows] = [circuit.counts[0] + circuit.counts[1], public + 1, 1 << log_domain];
        let (g1, g2) = (
            Affine::<E::G1Config>::generator(),
            Affine::<E::G2Config>::generator(),
        );
        let verifying = zkey::VerifyingPoints::<E::G1Config, E::G2Config> {
            alpha1: powers.alpha_g1,
            beta1: powers.beta_g1,
            beta2: powers.beta_g2,
            gamma2: g2,
            delta1: g1,
            delta2: g2,
        };
        let key_header = zkey::Header::new(signals, public, log_domain, &verifying);
        let key_header = key_header.map_err(|error| circuit.refuse(error))?;
        let mut bytes = Vec::new();
        write_prefix(FileKind::Zkey, SECTIONS, &mut bytes);
        self.file.push(&bytes)?;
        self.section(zkey::PROTOCOL, &zkey::GROTH16.to_le_bytes())?;
        bytes.clear();
        key_header.encode(&mut bytes);
        self.section(zkey::HEADER, &bytes)?;
        for point in [verifying.alpha1, verifying.beta1] {
            self.hash_one::<E::G1Config>(&point);
        }
        for point in [verifying.beta2, verifying.gamma2] {
            self.hash_one::<E::G2Config>(&point);
        }
        self.hash_one::<E::G1Config>(&verifying.delta1);
        self.hash_one::<E::G2Config>(&verifying.delta2);

        self.coefficients(&circuit.terms, coefficients)?;
        self.points::<E::G1Config>(zkey::IC, (&queries.c, 0, ic), Hashed::Yes)?;
        self.points::<E::G1Config>(zkey::H, (quotient, 0, rows), Hashed::No)?;
        self.hash_differences::<E::G1Config>(phase1, log_domain)?;
        self.points::<E::G1Config>(zkey::C, (&queries.c, ic, signals - ic), Hashed::Yes)?;
        self.points::<E::G1Config>(zkey::A, (&queries.a, 0, signals), Hashed::Yes)?;
        self.points::<E::G1Config>(zkey::B1, (&queries.b_g1, 0, signals), Hashed::Yes)?;
        self.points::<E::G2Config>(zkey::B2, (&queries.b_g2, 0, signals), Hashed::Yes)?;
        let circuit_hash: [u8; 64] = self.hash.finalize_reset().into();
        // The hash, and the number of contributions.
        self.section(zkey::CONTRIBUTIONS, &[&circuit_hash[..], &[0; 4]].concat())?;
        self.file.finish()?;
        Ok(NewKey {
            shape: Shape {
                signals,
                public,
                log_domain,
                values: circuit.terms.values().len(),
                coefficients,
            },
            circuit_hash,
            is_snarkjs_hash: log_domain < LOG_ROWS_OF_ONE_MORE || phase1.is_larger(),
        })
    }

    fn section(&mut self, id: u32, content: &[u8]) -> Result<()> {
        self.section_prefix(id, content.len() as u64)?;
        self.file.push(content)
    }

    fn section_prefix(&mut self, id: u32, section_bytes: u64) -> Result<()> {
        let mut prefix = Vec::new();
        write_section_prefix(id, section_bytes, &mut prefix);
        self.file.push(&prefix)
    }

    fn hash_one<P: Curve>(&mut self, point: &Affine<P>) {
        let mut bytes = vec![0; Point::<P>::BYTES];
        encode_for_hash(&Point::<P>::from_affine::<P>(point), &mut bytes);
        self.hash.update(&bytes);
    }

    /// A section of `len` points of a column, from `start` on.
    fn points<P: Curve>(
        &mut self,
        id: u32,
        (column, start, len): (&Column<Point<P>>, u64, u64),
        hashed: Hashed,
    ) -> Result<()> {
        self.section_prefix(id, len * Point::<P>::BYTES as u64)?;
        if hashed == Hashed::Yes {
            self.hash.update(count_for_hash(len));
        }
        let Self { file, hash } = self;
        each_tile(column, (start, len), |points, bytes| {
            encode_all(points, bytes, Point::<P>::encode);
            file.push(bytes)?;
            if hashed == Hashed::Yes {
                encode_all(points, bytes, encode_for_hash);
                hash.update(&*bytes);
            }
            Ok(())
        })
    }

    /// The entries of A and B.
    fn coefficients<F: KernelField>(&mut self, terms: &Constraints<F>, count: u64) -> Result<()> {
        let budget = &terms.values().workspace().budget;
        let mut values = budget.vec(
            terms.values().len() as usize,
            [0; SCALAR_BYTES],
            "values of coefficients",
        )?;
        let radix = F::from(2u64).pow([8 * F::BYTES as u64]);
        let mut places = values.iter_mut();
        each_tile(terms.values(), (0, terms.values().len()), |tile, _| {
            for (value, bytes) in tile.iter().zip(&mut places) {
                // In Montgomery form that is the value times R^2.
                (*value * radix).encode(bytes);
            }
            Ok(())
        })?;
        drop(places);
        self.section_prefix(zkey::COEFFICIENTS, 4 + count * zkey::COEFFICIENT_BYTES as u64)?;
        // Below 2^32: a term has at least 36 bytes in a file whose constraints have fewer than 2^32 rows.
        self.file.push(&(count as u32).to_le_bytes())?;
        let coefficients = terms.coefficients();
        let file = &mut self.file;
        each_tile(
            coefficients,
            (0, coefficients.len()),
            |tile: &[Coefficient], _| {
                let mut record = [0; zkey::COEFFICIENT_BYTES];
                for term in tile.iter().filter(|term| term.matrix != MATRICES[2]) {
                    let entry = zkey::Coefficient {
                        matrix: term.matrix,
                        constraint: term.row,
                        signal: term.signal,
                        value: values[term.value as usize],
                    };
                    entry.encode(&mut record);
                    file.push(&record)?;
                }
                Ok(())
            },
        )
    }

    /// The differences `tau^(i+n) - tau^i`, which stand for the points of the quotient. There are n - 1, but snarkjs hashes n from 2^15 rows on; the
    /// last one then takes a power that a file of the circuit's own power does not have.
    fn hash_differences<P: Curve>(&mut self, phase1: &Phase1<'_>, log_domain: u32) -> Result<()> {
        let rows = 1u64 << log_domain;
        let count = rows - u64::from(log_domain < LOG_ROWS_OF_ONE_MORE);
        self.hash.update(count_for_hash(count));
        let [low, high] = [0, rows].map(|start| phase1.powers::<P>(start, count));
        let minus_one = -P::ScalarField::ONE;
        let differences = add_multiples::<P>(&high, &[(minus_one, &low)], Placement::Disk)?;
        let hash = &mut self.hash;
        each_tile(&differences, (0, count), |points, bytes| {
            encode_all(points, bytes, encode_for_hash);
            hash.update(&*bytes);
            Ok(())
        })
    }
}

/// Whether points are part of the circuit's hash as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hashed {
    Yes,
    No,
}

fn count_for_hash(count: u64) -> [u8; 4] {
    // Below 2^32: an array of a key.
    (count as u32).to_be_bytes()
}

/// Coordinates as integers, big-endian; of an extension c1 before c0; infinity is all zero.
fn encode_for_hash<F: CoordinateField>(point: &Coordinates<F>, out: &mut [u8]) {
    let (x, y) = out.split_at_mut(F::BYTES);
    for (coordinate, out) in [(&point.x, x), (&point.y, y)] {
        coordinate.write_standard(out);
        out.reverse();
    }
}

fn encode_all<T: Element>(values: &[T], bytes: &mut [u8], encode: impl Fn(&T, &mut [u8]) + Sync) {
    (values.par_chunks(JOB_ELEMENTS))
        .zip(bytes.par_chunks_mut(JOB_ELEMENTS * T::BYTES))
        .for_each(|(values, bytes)| {
            for (value, out) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
                encode(value, out);
            }
        });
}

/// Hands `len` elements from `start` on to `each`, in tiles, with room for their bytes.
fn each_tile<T: Element>(
    column: &Column<T>,
    (start, len): (u64, u64),
    mut each: impl FnMut(&[T], &mut [u8]) -> Result<()>,
) -> Result<()> {
    let budget = &column.workspace().budget;
    let chunk = column.sequential_chunk();
    let elements = chunk.min(len).max(1) as usize;
    let mut tile = budget.vec(elements, T::decode(&vec![0; T::BYTES]), "elements to write")?;
    let mut bytes = budget.vec(elements * T::BYTES, 0u8, "bytes to write")?;
    let spans = (0..len).step_by(chunk as usize).map(move |first| Region::Span {
        start: start + first,
        len: chunk.min(len - first),
    });
    let mut reader = column.reader(spans, 2)?;
    while let Some(region) = reader.next_into(&mut tile)? {
        let here = region.len() as usize;
        each(&tile[..here], &mut bytes[..here * T::BYTES])?;
    }
    Ok(())
}
