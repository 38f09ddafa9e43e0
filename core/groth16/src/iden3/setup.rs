//! A `.zkey` file from a circuit and the first phase of a ceremony: snarkjs' `groth16 setup`, byte for byte.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::Field;
use spillproof_format::Element;
use spillproof_format::iden3::contributions::HASH_BYTES;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, zkey};

use super::new_file::{NewFile, each_tile};
use super::powers::Phase1;
use super::source::{Source, curve_of};
use super::terms::Circuit;
use super::transcript::Transcript;
use crate::{
    Coefficient, Constraints, CurveId, Domain, G1Point, MATRICES, PairingCurve, Powers, Queries, Shape,
    check_curve, over_curve, queries,
};
use spillproof_engine::Result;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Placement, Scratch, Workspace};
use spillproof_engine::storage::Publish;
use spillproof_engine::stream::add_multiples;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// From this log2 of the rows on, snarkjs hashes one difference of powers more.
const LOG_ROWS_OF_ONE_MORE: u32 = 15;
/// A key that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Its curve.
    pub curve: CurveId,
    /// Its sizes.
    pub shape: Shape,
    /// The hash of the circuit, which contributions are bound to.
    pub circuit_hash: [u8; HASH_BYTES],
}

/// Makes the key of the circuit in a `.r1cs` file from a `.ptau` file, prepared for the second phase or not.
/// gamma and delta are one: proofs can be forged with the key until someone contributes.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for files that are damaged, over another curve, or of too few powers;
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`];
/// [`spillproof_engine::Error::BudgetTooSmall`], [`spillproof_engine::Error::OverBudget`]. A file that has
/// the target's name keeps it then.
pub fn setup(
    workspace: &Workspace,
    [r1cs, ptau]: [&Path; 2],
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<NewKey> {
    let curve = curve_of(workspace, r1cs, FileKind::R1cs)?;
    over_curve!(curve, E => setup_over::<E>(workspace, [r1cs, ptau], target, progress))
}

fn setup_over<E: PairingCurve>(
    workspace: &Workspace,
    [r1cs, ptau]: [&Path; 2],
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<NewKey> {
    // All of it is public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let publish = workspace.storage.publish(target)?;
    workspace.run(|| {
        let key = InitialKey::<E>::new(&workspace, [r1cs, ptau], progress)?;
        let circuit_hash = key.circuit_hash()?;
        key.write(publish, &circuit_hash, progress)?;
        Ok(NewKey {
            curve: key.phase1.curve(),
            shape: key.shape(),
            circuit_hash,
        })
    })
}

/// The key of a circuit before the first contribution, in columns.
pub(super) struct InitialKey<E: PairingCurve> {
    pub circuit: Circuit<E::Scalar>,
    pub verifying: zkey::VerifyingPoints<E::G1Config, E::G2Config>,
    pub queries: Queries<E>,
    /// The points of the quotient.
    pub h: Column<G1Point<E>>,
    phase1: Phase1,
}

impl<E: PairingCurve> InitialKey<E> {
    /// # Errors
    /// As [`setup`].
    pub fn new(
        workspace: &Workspace,
        [r1cs, ptau]: [&Path; 2],
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Self> {
        let circuit_file = Source::open(workspace, r1cs, FileKind::R1cs)?;
        let circuit = Circuit::<E::Scalar>::read(&circuit_file, progress)?;
        check_curve::<E>(r1cs, circuit.header.curve)?;
        let log_n = circuit.header.log_domain();
        let domain = Domain::of_smallest_non_residue(log_n)?;
        let phase1 = Phase1::open(Source::open(workspace, ptau, FileKind::Ptau)?, log_n)?;
        check_curve::<E>(ptau, phase1.curve())?;
        let powers: Powers<E> = phase1.points(&domain, progress)?;
        let h = phase1.quotient_points::<E>(&domain, progress)?;
        let (g1, g2) = (Affine::generator(), Affine::generator());
        Ok(Self {
            queries: queries(&circuit.terms, &powers, circuit.header.wires.into())?,
            verifying: zkey::VerifyingPoints {
                alpha1: powers.alpha_g1,
                beta1: powers.beta_g1,
                beta2: powers.beta_g2,
                gamma2: g2,
                delta1: g1,
                delta2: g2,
            },
            circuit,
            h,
            phase1,
        })
    }

    pub fn shape(&self) -> Shape {
        let (header, counts) = (&self.circuit.header, self.circuit.counts);
        Shape {
            signals: header.wires.into(),
            public: header.public(),
            log_domain: header.log_domain(),
            values: self.circuit.terms.values().len(),
            coefficients: counts[0] + counts[1],
        }
    }

    /// The hash of the circuit and the powers of tau: of all points, and in the place of H of the differences
    /// `tau^(i+n) - tau^i`.
    ///
    /// # Errors
    /// Those of [`add_multiples`].
    pub fn circuit_hash(&self) -> Result<[u8; HASH_BYTES]> {
        let Shape { signals, public, .. } = self.shape();
        let Queries { a, b_g1, b_g2, c } = &self.queries;
        let mut hash = Transcript::new();
        for point in [&self.verifying.alpha1, &self.verifying.beta1] {
            hash.point(point);
        }
        for point in [&self.verifying.beta2, &self.verifying.gamma2] {
            hash.point(point);
        }
        hash.point(&self.verifying.delta1);
        hash.point(&self.verifying.delta2);
        let ic = public + 1;
        hash.counted_points::<E::G1Config>(c, (0, ic))?;
        self.hash_differences::<E::G1Config>(&mut hash)?;
        hash.counted_points::<E::G1Config>(c, (ic, signals - ic))?;
        hash.counted_points::<E::G1Config>(a, (0, signals))?;
        hash.counted_points::<E::G1Config>(b_g1, (0, signals))?;
        hash.counted_points::<E::G2Config>(b_g2, (0, signals))?;
        Ok(hash.finish())
    }

    /// The differences `tau^(i+n) - tau^i`. There are n - 1, but snarkjs hashes one more from 2^15 rows on,
    /// behind the same number.
    fn hash_differences<P: Curve<ScalarField = E::Scalar>>(&self, hash: &mut Transcript) -> Result<()> {
        let log_domain = self.shape().log_domain;
        let rows = 1u64 << log_domain;
        let is_one_more = log_domain >= LOG_ROWS_OF_ONE_MORE;
        let count = rows - 1 + u64::from(is_one_more && self.phase1.is_larger());
        let [low, high] = [0, rows].map(|start| self.phase1.powers::<P>(start, count));
        let differences = add_multiples::<P>(&high, &[(-E::Scalar::ONE, &low)], Placement::Disk)?;
        hash.count(rows - 1);
        hash.points::<P>(&differences, (0, count))?;
        if is_one_more && count < rows {
            hash.bytes(&self.phase1.last_difference::<P>()?);
        }
        Ok(())
    }

    /// All sections, in snarkjs' order.
    fn write(
        &self,
        publish: Publish,
        circuit_hash: &[u8; HASH_BYTES],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let Shape {
            signals,
            public,
            log_domain,
            coefficients,
            ..
        } = self.shape();
        let Queries { a, b_g1, b_g2, c } = &self.queries;
        let header = zkey::Header::new(signals, public, log_domain, &self.verifying);
        let header = header.map_err(|error| self.circuit.refuse(error))?;
        let workspace = self.h.workspace();
        let mut file = NewFile::new(workspace, publish, FileKind::Zkey, zkey::SECTIONS)?;
        file.section(zkey::PROTOCOL, &zkey::GROTH16.to_le_bytes())?;
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        file.section(zkey::HEADER, &bytes)?;
        write_coefficients(&mut file, &self.circuit.terms, coefficients)?;
        let ic = public + 1;
        let g1 = [
            (zkey::IC, c, 0, ic),
            (zkey::H, &self.h, 0, 1 << log_domain),
            (zkey::C, c, ic, signals - ic),
            (zkey::A, a, 0, signals),
            (zkey::B1, b_g1, 0, signals),
        ];
        for (id, points, start, len) in g1 {
            write_points::<E::G1Config>(&mut file, id, points, (start, len), progress)?;
        }
        write_points::<E::G2Config>(&mut file, zkey::B2, b_g2, (0, signals), progress)?;
        // The hash, and the number of contributions.
        file.section(zkey::CONTRIBUTIONS, &[&circuit_hash[..], &[0; 4]].concat())?;
        file.finish()
    }
}

/// A section of `len` points of a column, from `start` on.
fn write_points<P: Curve>(
    file: &mut NewFile,
    id: u32,
    column: &Column<Point<P>>,
    (start, len): (u64, u64),
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    file.begin(id, len * Point::<P>::BYTES as u64)?;
    file.push_elements(column, (start, len), &mut |done| {
        progress(Progress {
            what: "points written",
            done,
            total: len,
        });
    })
}

/// The entries of A and B.
fn write_coefficients<F: KernelField>(file: &mut NewFile, terms: &Constraints<F>, count: u64) -> Result<()> {
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
    file.begin(zkey::COEFFICIENTS, 4 + count * zkey::COEFFICIENT_BYTES as u64)?;
    // Below 2^32: a term has at least 36 bytes in a file whose constraints have fewer than 2^32 rows.
    file.push(&(count as u32).to_le_bytes())?;
    let coefficients = terms.coefficients();
    each_tile(
        coefficients,
        (0, coefficients.len()),
        |tile: &mut [Coefficient], _| {
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
