//! The JSON files of snarkjs and rapidsnark: proofs, public signals, verification keys.
//!
//! Written are: numbers as decimal texts, points as three projective coordinates, the last of which is one,
//! or zero at infinity. Read is in all files what snarkjs takes and what has one meaning:
//!
//! - A number is a text, in decimal or (after `0x`) in hexadecimal digits, or an integer of JSON. It is below
//!   the modulus.
//! - A point has three coordinates, the last of which is one or zero, or two.
//! - `protocol` is groth16, or missing. `curve` is a name of the curve in any spelling of snarkjs, or missing
//!   (rapidsnark writes none): a proof is then over its key's curve, and a key over that on which its alpha
//!   is. `nPublic` is the number of signals, or missing.
//! - Zero bytes at the end, which rapidsnark leaves there, are ignored; so are fields of other names.

use std::io::Read;
use std::path::Path;
use std::{fmt, fs};

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveConfig};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use num_bigint::BigUint;
use serde::de::{self, DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spillproof_format::Curve;
use spillproof_format::header::MAGIC;
use spillproof_groth16::{PairingCurve, PairingGroups, Proof, VerifyingKey, over_curve};

use crate::{Error, Result, content};

/// Longest file in bytes that is read: far above what any circuit's verification key has.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The protocol of all files.
const PROTOCOL: &str = "groth16";
/// Longest text of a number that is read: hexadecimal digits of twice the largest field.
const NUMBER_DIGITS_MAX: usize = 256;

/// A proof's file.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProofFile {
    pi_a: Vec<Number>,
    pi_b: Vec<Vec<Number>>,
    pi_c: Vec<Number>,
    protocol: Option<String>,
    curve: Option<String>,
}

/// A verification key's file.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeyFile {
    protocol: Option<String>,
    curve: Option<String>,
    #[serde(rename = "nPublic")]
    public: Option<u64>,
    vk_alpha_1: Vec<Number>,
    vk_beta_2: Vec<Vec<Number>>,
    vk_gamma_2: Vec<Vec<Number>>,
    vk_delta_2: Vec<Vec<Number>>,
    /// The pairing of alpha and beta. Programs in other languages take it; here it is written, and not read.
    #[serde(skip_deserializing)]
    vk_alphabeta_12: Vec<Vec<Vec<Number>>>,
    #[serde(rename = "IC")]
    ic: Vec<Vec<Number>>,
}

/// A number of a file, of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number(BigUint);

impl Number {
    /// As snarkjs reads a text.
    fn of_text(text: &str) -> Option<Self> {
        let (digits, radix) = match text.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (text, 10),
        };
        // The parser of integers takes signs and underscores, too.
        let is_number = (1..=NUMBER_DIGITS_MAX).contains(&digits.len())
            && digits.chars().all(|digit| digit.is_digit(radix));
        // Looked at first: the time of parsing grows with the square of the digits.
        let value = is_number.then(|| BigUint::parse_bytes(digits.as_bytes(), radix));
        value.flatten().map(Self)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number: a text of decimal or, after 0x, hexadecimal digits")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Number, E> {
        Number::of_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<Number, E> {
        Ok(Number(value.into()))
    }
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

/// An element of a field that is a tower of degree 2 over degree 3 over degree 2, as the pairings' is.
fn tower<F: Field<BasePrimeField: PrimeField>>(element: &F) -> Vec<Vec<Vec<Number>>> {
    let elements: Vec<_> = element.to_base_prime_field_elements().collect();
    let pair = |pair: &[F::BasePrimeField]| pair.iter().map(|element| Number((*element).into())).collect();
    let thirds = |half: &[F::BasePrimeField]| half.chunks(2).map(pair).collect();
    elements.chunks(6).map(thirds).collect()
}

/// The name that snarkjs has for a curve.
pub fn curve_name(curve: Curve) -> &'static str {
    match curve {
        Curve::Bls12381 => "bls12381",
        _ => "bn128",
    }
}

/// The curve that a file names, in any spelling that snarkjs takes: it compares letters and digits only.
fn curve_named(name: &str, file: &Path) -> Result<Curve> {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    match letters.as_str() {
        "bn128" | "bn254" | "altbn128" => Ok(Curve::Bn254),
        "bls12381" => Ok(Curve::Bls12381),
        _ => Err(content(
            file,
            format!("curve \"{name}\": proofs over bn128 and bls12381 are verified"),
        )),
    }
}

fn parse<T: DeserializeOwned>(text: (&Path, &[u8]), kind: &str) -> Result<T> {
    let (file, text) = text;
    let end = text
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    serde_json::from_slice(&text[..end])
        .map_err(|error| content(file, format!("it is not {kind} of snarkjs: {error}")))
}

/// Reads a file of one protocol: that of another one has other fields, and is refused by its name.
fn parse_groth16<T: DeserializeOwned>(text: (&Path, &[u8]), kind: &str) -> Result<T> {
    #[derive(Deserialize)]
    struct Named {
        protocol: Option<String>,
    }
    // The derived parsers take lists for objects, by the order of fields.
    if text.1.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(content(
            text.0,
            format!("it is not {kind} of snarkjs, but a list, as public signals are"),
        ));
    }
    match parse::<Named>(text, kind)?.protocol {
        Some(other) if !other.eq_ignore_ascii_case(PROTOCOL) => Err(content(
            text.0,
            format!("it is {kind} of the protocol \"{other}\": those of {PROTOCOL} are taken"),
        )),
        _ => parse(text, kind),
    }
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

/// A number below the field's modulus.
fn element<F: PrimeField>(number: &Number, file: &Path, name: &str) -> Result<F> {
    F::from_bigint(F::BigInt::try_from(number.0.clone()).unwrap_or(F::MODULUS))
        .ok_or_else(|| content(file, format!("{name}: {} is not below the modulus", number.0)))
}

/// The coordinates of a point, each with so many numbers as its field has over the prime field.
fn point<P>(coordinates: &[Vec<Number>], file: &Path, name: &str) -> Result<Affine<P>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let degree = P::BaseField::extension_degree() as usize;
    let (x, y, z) = match coordinates {
        [x, y] => (x, y, None),
        [x, y, z] => (x, y, Some(z)),
        _ => {
            let count = coordinates.len();
            return Err(content(
                file,
                format!("{name}: {count} coordinates, and a point has 3, or 2"),
            ));
        }
    };
    let coordinate = |numbers: &Vec<Number>| -> Result<P::BaseField> {
        let elements = numbers
            .iter()
            .map(|number| element::<<P::BaseField as Field>::BasePrimeField>(number, file, name));
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
    let (x, y, z) = (coordinate(x)?, coordinate(y)?, z.map(coordinate));
    let z = z.unwrap_or(Ok(P::BaseField::ONE))?;
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

fn point_of_g1<P>(coordinates: &[Number], file: &Path, name: &str) -> Result<Affine<P>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let coordinates: Vec<_> = coordinates.iter().map(|number| vec![number.clone()]).collect();
    point(&coordinates, file, name)
}

fn coordinates<P>(point: &Affine<P>) -> Vec<Vec<Number>>
where
    P: SWCurveConfig<BaseField: Field<BasePrimeField: PrimeField>>,
{
    let (zero, one) = (P::BaseField::ZERO, P::BaseField::ONE);
    let (x, y, z) = point.xy().map_or((zero, one, zero), |(x, y)| (x, y, one));
    let coordinates = [x, y, z].map(|value| {
        let elements = value.to_base_prime_field_elements();
        elements.map(|element| Number(element.into())).collect()
    });
    coordinates.to_vec()
}

fn coordinates_of_g1<P>(point: &Affine<P>) -> Vec<Number>
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
            protocol: Some(PROTOCOL.into()),
            curve: Some(curve_name(curve).into()),
        })
    }

    /// Reads a proof. The name is for errors.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn parse(text: (&Path, &[u8])) -> Result<Self> {
        parse_groth16(text, "a proof")
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

    /// The curve that it names, if it names one.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn curve(&self, file: &Path) -> Result<Option<Curve>> {
        let name = self.curve.as_deref();
        name.map(|name| curve_named(name, file)).transpose()
    }
}

impl KeyFile {
    /// The text of a verification key.
    ///
    /// # Errors
    /// What reading the key's columns may give.
    pub fn text<E: PairingCurve>(key: &VerifyingKey<E>, curve: Curve) -> Result<Vec<u8>> {
        let ic = key.ic_points()?;
        pretty(&Self {
            protocol: Some(PROTOCOL.into()),
            curve: Some(curve_name(curve).into()),
            public: Some(ic.len().saturating_sub(1) as u64),
            vk_alpha_1: coordinates_of_g1(&key.alpha_g1),
            vk_beta_2: coordinates(&key.beta_g2),
            vk_gamma_2: coordinates(&key.gamma_g2),
            vk_delta_2: coordinates(&key.delta_g2),
            vk_alphabeta_12: tower(&key.alpha_beta().0),
            ic: ic.iter().map(coordinates_of_g1).collect(),
        })
    }

    /// Reads a verification key. The name is for errors.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn parse(text: (&Path, &[u8])) -> Result<Self> {
        let file = text.0;
        if text.1.starts_with(b"zkey") || text.1.starts_with(&MAGIC) {
            return Err(content(
                file,
                "it is no verification key, which is JSON: `spillproof groth16 vkey` writes that of a proving key",
            ));
        }
        let found: Self = parse_groth16(text, "a verification key")?;
        let points = found.ic.len() as u64;
        match found.public {
            Some(public) if public.checked_add(1) != Some(points) => Err(content(
                file,
                format!("{points} points of IC for {public} public signals: there is one more than signals"),
            )),
            None if points == 0 => Err(content(file, "no points of IC: there is one at least")),
            _ => Ok(found),
        }
    }

    /// The curve that it names, if it names one.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn curve(&self, file: &Path) -> Result<Option<Curve>> {
        let name = self.curve.as_deref();
        name.map(|name| curve_named(name, file)).transpose()
    }

    /// The curve that its alpha is on.
    ///
    /// # Errors
    /// [`Error::Content`] if there is none.
    pub fn curve_of_points(&self, file: &Path) -> Result<Curve> {
        let is_point = |alpha: Result<bool>| alpha.unwrap_or(false);
        let alpha = &self.vk_alpha_1;
        let bn254 = point_of_g1::<ark_bn254::g1::Config>(alpha, file, "vk_alpha_1").map(|it| !it.is_zero());
        let bls12_381 =
            point_of_g1::<ark_bls12_381::g1::Config>(alpha, file, "vk_alpha_1").map(|it| !it.is_zero());
        match (is_point(bn254), is_point(bls12_381)) {
            (true, false) => Ok(Curve::Bn254),
            (false, true) => Ok(Curve::Bls12381),
            _ => Err(content(
                file,
                "it names no curve, and vk_alpha_1 is no point of bn128 or bls12381",
            )),
        }
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

/// The text of a proof over a curve whose numbers have the most digits.
///
/// # Errors
/// None that a curve can cause.
pub fn longest_proof(curve: Curve) -> Result<Vec<u8>> {
    over_curve!(curve, E => {
        type Coordinate = <<E as PairingGroups>::G1Config as CurveConfig>::BaseField;
        let largest = || Number((-Coordinate::ONE).into());
        let [zero, one] = [0u32, 1].map(|value| Number(value.into()));
        let in_g1 = || vec![largest(), largest(), one.clone()];
        let in_g2 = || vec![largest(), largest()];
        pretty(&ProofFile {
            pi_a: in_g1(),
            pi_b: vec![in_g2(), in_g2(), vec![one.clone(), zero.clone()]],
            pi_c: in_g1(),
            protocol: Some(PROTOCOL.into()),
            curve: Some(curve_name(curve).into()),
        })
    })
}

/// The most digits of a public signal over a curve.
pub fn signal_digits(curve: Curve) -> u64 {
    over_curve!(curve, E => {
        let largest: BigUint = (-<E as PairingGroups>::Scalar::ONE).into();
        largest.to_string().len() as u64
    })
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
    let numbers: Vec<Number> = parse(text, "a list of public signals")?;
    numbers
        .iter()
        .map(|number| element(number, file, "a public signal"))
        .collect()
}
