//! The JSON files of snarkjs and rapidsnark: proofs, public signals, verification keys. Numbers are decimal
//! texts; points have three projective coordinates, the last of which is one, or zero at infinity.
//!
//! rapidsnark ends its files with zero bytes, which are ignored.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use num_bigint::BigUint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spillproof_format::Curve;
use spillproof_groth16::{PairingCurve, Proof};

use crate::{Error, Result, content};

/// Longest file in bytes that is read: far above what any circuit's verification key has.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A proof's file.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProofFile {
    pi_a: Vec<String>,
    pi_b: Vec<Vec<String>>,
    pi_c: Vec<String>,
    protocol: String,
    curve: String,
}

/// A verification key's file. snarkjs also writes the pairing of alpha and beta, which no verifier reads.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeyFile {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    public: u64,
    vk_alpha_1: Vec<String>,
    vk_beta_2: Vec<Vec<String>>,
    vk_gamma_2: Vec<Vec<String>>,
    vk_delta_2: Vec<Vec<String>>,
    #[serde(rename = "IC")]
    ic: Vec<Vec<String>>,
}

/// The points of a verification key.
pub struct KeyPoints<E: PairingCurve> {
    /// alpha in G1.
    pub alpha: Affine<E::G1Config>,
    /// beta, gamma and delta in G2.
    pub others: [Affine<E::G2Config>; 3],
    /// One for the constant one and each public signal.
    pub ic: Vec<Affine<E::G1Config>>,
}

/// The name that snarkjs has for a curve.
pub fn curve_name(curve: Curve) -> &'static str {
    match curve {
        Curve::Bls12381 => "bls12381",
        _ => "bn128",
    }
}

/// The curve of a file with this name in it.
fn curve_named(name: &str, file: &Path) -> Result<Curve> {
    match name.to_ascii_lowercase().as_str() {
        "bn128" | "bn254" | "altbn128" => Ok(Curve::Bn254),
        "bls12381" | "bls12-381" => Ok(Curve::Bls12381),
        _ => Err(content(
            file,
            format!("curve \"{name}\": proofs over bn128 and bls12381 are verified"),
        )),
    }
}

fn parse<T: DeserializeOwned>((name, text): (&Path, &[u8]), kind: &str) -> Result<T> {
    let end = text
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    serde_json::from_slice(&text[..end])
        .map_err(|error| content(name, format!("it is not {kind} of snarkjs: {error}")))
}

/// The bytes of a file of at most 256 MiB, which is far above what any circuit's verification key has.
///
/// # Errors
/// [`Error::File`], [`Error::Content`].
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::File {
        file: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(failed)?;
    // A pipe or a device has no length, and may have no end.
    let read = opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        return Err(content(
            file,
            format!("more than {FILE_BYTES_MAX} bytes are too many for such a file"),
        ));
    }
    Ok(bytes)
}

/// A decimal number below the field's modulus.
fn number<F: PrimeField>(text: &str, file: &Path, name: &str) -> Result<F> {
    let digits_max = F::MODULUS_BIT_SIZE as usize;
    let value = Some(text)
        .filter(|text| text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| BigUint::from_str(text).ok());
    let value = value.ok_or_else(|| content(file, format!("{name}: \"{text}\" is not a decimal number")))?;
    F::from_bigint(F::BigInt::try_from(value).unwrap_or(F::MODULUS))
        .ok_or_else(|| content(file, format!("{name}: {text} is not below the modulus")))
}

/// The coordinates of a point, each with so many numbers as its field has over the prime field.
fn point<P>(coordinates: &[Vec<String>], file: &Path, name: &str) -> Result<Affine<P>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let degree = P::BaseField::extension_degree() as usize;
    let [x, y, z] = coordinates else {
        return Err(content(
            file,
            format!("{name}: {} coordinates, and a point has 3", coordinates.len()),
        ));
    };
    let coordinate = |numbers: &Vec<String>| -> Result<P::BaseField> {
        let elements = numbers
            .iter()
            .map(|text| number::<<P::BaseField as Field>::BasePrimeField>(text, file, name));
        let elements = elements.collect::<Result<Vec<_>>>()?;
        let count = elements.len();
        let value = P::BaseField::from_base_prime_field_elems(elements).filter(|_| count == degree);
        value.ok_or_else(|| {
            content(
                file,
                format!("{name}: {count} numbers in a coordinate, and it has {degree}"),
            )
        })
    };
    let (x, y, z) = (coordinate(x)?, coordinate(y)?, coordinate(z)?);
    if z == P::BaseField::ZERO {
        return Ok(Affine::identity());
    }
    if z != P::BaseField::ONE {
        return Err(content(
            file,
            format!("{name}: the last coordinate is neither 0 nor 1"),
        ));
    }
    let point = Affine::<P>::new_unchecked(x, y);
    if !point.is_on_curve() || !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(content(
            file,
            format!("{name}: not a point of the curve's group of prime order"),
        ));
    }
    Ok(point)
}

fn point_of_g1<P>(coordinates: &[String], file: &Path, name: &str) -> Result<Affine<P>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let coordinates: Vec<_> = coordinates.iter().map(|text| vec![text.clone()]).collect();
    point(&coordinates, file, name)
}

fn coordinates<P>(point: &Affine<P>) -> Vec<Vec<String>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let (zero, one) = (P::BaseField::ZERO, P::BaseField::ONE);
    let (x, y, z) = point.xy().map_or((zero, one, zero), |(x, y)| (x, y, one));
    let coordinates = [x, y, z].map(|value| {
        let elements = value.to_base_prime_field_elements();
        elements.map(|element| element.to_string()).collect()
    });
    coordinates.to_vec()
}

fn coordinates_of_g1<P>(point: &Affine<P>) -> Vec<String>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    coordinates(point).into_iter().flatten().collect()
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

impl ProofFile {
    /// The text of a proof.
    ///
    /// # Errors
    /// None that a proof can cause.
    pub fn text<E: PairingCurve>(proof: &Proof<E>, curve: Curve) -> Result<Vec<u8>> {
        pretty(&Self {
            pi_a: coordinates_of_g1(&proof.a),
            pi_b: coordinates(&proof.b),
            pi_c: coordinates_of_g1(&proof.c),
            protocol: "groth16".into(),
            curve: curve_name(curve).into(),
        })
    }

    /// Reads a proof. The name is for errors.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn parse(text: (&Path, &[u8])) -> Result<Self> {
        let found: Self = parse(text, "a proof")?;
        check_protocol(text.0, &found.protocol)?;
        Ok(found)
    }

    /// The proof.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn proof<E: PairingCurve>(&self, file: &Path) -> Result<Proof<E>> {
        Ok(Proof {
            a: point_of_g1(&self.pi_a, file, "pi_a")?,
            b: point(&self.pi_b, file, "pi_b")?,
            c: point_of_g1(&self.pi_c, file, "pi_c")?,
        })
    }

    /// Its curve.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn curve(&self, file: &Path) -> Result<Curve> {
        curve_named(&self.curve, file)
    }
}

fn check_protocol(file: &Path, protocol: &str) -> Result<()> {
    match protocol {
        "groth16" => Ok(()),
        other => Err(content(
            file,
            format!("protocol \"{other}\": proofs of groth16 are verified"),
        )),
    }
}

impl KeyFile {
    /// The text of a verification key.
    ///
    /// # Errors
    /// None that a key can cause.
    pub fn text<E: PairingCurve>(key: &KeyPoints<E>, curve: Curve) -> Result<Vec<u8>> {
        let [beta, gamma, delta] = &key.others;
        pretty(&Self {
            protocol: "groth16".into(),
            curve: curve_name(curve).into(),
            public: key.ic.len().saturating_sub(1) as u64,
            vk_alpha_1: coordinates_of_g1(&key.alpha),
            vk_beta_2: coordinates(beta),
            vk_gamma_2: coordinates(gamma),
            vk_delta_2: coordinates(delta),
            ic: key.ic.iter().map(coordinates_of_g1).collect(),
        })
    }

    /// Reads a verification key. The name is for errors.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn parse(text: (&Path, &[u8])) -> Result<Self> {
        let file = text.0;
        let found: Self = parse(text, "a verification key")?;
        check_protocol(file, &found.protocol)?;
        if found.public.checked_add(1) != Some(found.ic.len() as u64) {
            let details = format!(
                "{} points of IC for {} public signals: there is one more than signals",
                found.ic.len(),
                found.public
            );
            return Err(content(file, details));
        }
        Ok(found)
    }

    /// Its curve.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn curve(&self, file: &Path) -> Result<Curve> {
        curve_named(&self.curve, file)
    }

    /// The key's points.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn points<E: PairingCurve>(&self, file: &Path) -> Result<KeyPoints<E>> {
        let ic = self.ic.iter().map(|point| point_of_g1(point, file, "IC"));
        Ok(KeyPoints {
            alpha: point_of_g1(&self.vk_alpha_1, file, "vk_alpha_1")?,
            others: [
                point(&self.vk_beta_2, file, "vk_beta_2")?,
                point(&self.vk_gamma_2, file, "vk_gamma_2")?,
                point(&self.vk_delta_2, file, "vk_delta_2")?,
            ],
            ic: ic.collect::<Result<_>>()?,
        })
    }
}

/// The text of public signals.
///
/// # Errors
/// None that signals can cause.
pub fn public_text<F: PrimeField>(signals: &[F]) -> Result<Vec<u8>> {
    let texts: Vec<String> = signals.iter().map(ToString::to_string).collect();
    pretty(&texts)
}

/// Reads public signals. The name is for errors.
///
/// # Errors
/// [`Error::Content`].
pub fn read_public<F: PrimeField>(text: (&Path, &[u8])) -> Result<Vec<F>> {
    let file = text.0;
    let texts: Vec<String> = parse(text, "a list of public signals")?;
    texts
        .iter()
        .map(|text| number(text, file, "a public signal"))
        .collect()
}
