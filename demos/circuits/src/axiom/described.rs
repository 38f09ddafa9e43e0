//! A circuit of a program's own, by the description that it saved beside its key.
//!
//! Nothing is synthesised: the key is in one file, the witness in another.

use std::io;
use std::sync::Arc;

use super::dialect::Fr;
use super::dialect::description::{CircuitDescription, Element};
use super::halo2::SerdeFormat;
use super::halo2::circuit::{Layouter, Region, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::G1Affine;
use super::halo2::halo2curves::ff::PrimeField;
use super::halo2::plonk::{Advice, Circuit, Column, ConstraintSystem, Error, Expression, VerifyingKey};
use super::rebuilt::{check_degree, configure};

/// Bytes of a point of a key.
const POINT_BYTES: usize = 64;

/// A circuit that a description stands for, with a witness if it is to be proved.
#[derive(Clone, Debug)]
pub struct OfProgram {
    of: Arc<CircuitDescription>,
    advice: Vec<Vec<Fr>>,
}

impl OfProgram {
    /// The circuit with the values of its advice columns from the first row on, as far as they are not
    /// blinding.
    pub fn new(of: Arc<CircuitDescription>, advice: Vec<Vec<Fr>>) -> Self {
        Self { of, advice }
    }
}

impl Circuit<Fr> for OfProgram {
    type Config = Vec<Column<Advice>>;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = Option<Arc<CircuitDescription>>;

    fn params(&self) -> Self::Params {
        Some(Arc::clone(&self.of))
    }

    fn without_witnesses(&self) -> Self {
        Self::new(Arc::clone(&self.of), Vec::new())
    }

    fn configure_with_params(cs: &mut ConstraintSystem<Fr>, description: Self::Params) -> Self::Config {
        description.map_or_else(Vec::new, |description| configure(cs, &description))
    }

    fn configure(_: &mut ConstraintSystem<Fr>) -> Self::Config {
        Vec::new()
    }

    fn synthesize(&self, columns: Self::Config, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let assign = |mut region: Region<'_, Fr>| {
            for (column, values) in columns.iter().zip(&self.advice) {
                for (row, value) in values.iter().enumerate() {
                    region.assign_advice(*column, row, Value::known(*value));
                }
            }
            Ok(())
        };
        layouter.assign_region(|| "witness", assign)
    }
}

/// Whether halo2 takes the circuit with `2^k` rows as the program's halo2 did.
///
/// # Errors
/// In words, for a circuit that it would not take.
pub fn check(of: &CircuitDescription, k: u32) -> Result<(), String> {
    let mut cs = ConstraintSystem::default();
    configure(&mut cs, of);
    check_degree(&cs, of, k)?;
    let degree = cs.degree();
    let too_high =
        |constraint: &&Expression<Fr>| has_simple_selector(constraint) && constraint.degree() > degree;
    match cs
        .gates()
        .iter()
        .flat_map(|gate| gate.polynomials())
        .find(too_high)
    {
        Some(constraint) => Err(format!(
            "a constraint with a selector has the degree {}, and the circuit has {degree}: no key is of this circuit",
            constraint.degree()
        )),
        None => Ok(()),
    }
}

fn has_simple_selector(constraint: &Expression<Fr>) -> bool {
    constraint.evaluate(
        &|_| false,
        &|selector| selector.is_simple(),
        &|_| false,
        &|_| false,
        &|_| false,
        &|_| false,
        &|a| a,
        &|a, b| a | b,
        &|a, b| a | b,
        &|a, _| a,
    )
}

/// The verifying key of a described circuit, from its bytes.
///
/// # Errors
/// For bytes that are no key of that circuit, and for a circuit that [`check`] refuses.
pub fn read_verifying_key(
    mut bytes: &[u8],
    of: &Arc<CircuitDescription>,
) -> io::Result<VerifyingKey<G1Affine>> {
    let refused = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let found = bytes.len();
    let expected = Head::of(bytes).and_then(|head| Some((head.k, head.key_bytes(of)?)));
    let k = match expected {
        Some((k, expected)) if expected == found => k,
        _ => {
            return Err(refused(format!(
                "{found} bytes are no verifying key of the circuit of the description"
            )));
        }
    };
    check(of, k).map_err(refused)?;
    VerifyingKey::read::<_, OfProgram>(&mut bytes, SerdeFormat::RawBytes, Some(Arc::clone(of)))
}

/// The hash of a key in hexadecimal digits, as in its description: the same as there, unless the description
/// is of another circuit.
pub fn hash_of(key: &VerifyingKey<G1Affine>) -> Element {
    key.transcript_repr().to_repr()
}

/// The beginning of a verifying key.
struct Head {
    k: u32,
    has_compressed_selectors: bool,
    fixed_columns: usize,
}

impl Head {
    const BYTES: usize = 10;

    fn of(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let k = number(1)?;
        (k <= Fr::S).then_some(())?;
        Some(Self {
            k,
            has_compressed_selectors: *bytes.get(5)? == 1,
            fixed_columns: number(6)? as usize,
        })
    }

    /// The length of the key.
    fn key_bytes(&self, of: &CircuitDescription) -> Option<usize> {
        let points = self.fixed_columns.checked_add(of.permuted.len())?;
        let selectors = match self.has_compressed_selectors {
            true => of
                .simple_selectors
                .len()
                .checked_mul((1usize << self.k).div_ceil(8))?,
            false => 0,
        };
        points
            .checked_mul(POINT_BYTES)?
            .checked_add(selectors)?
            .checked_add(Self::BYTES)
    }
}
