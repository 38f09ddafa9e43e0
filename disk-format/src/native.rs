//! Field elements and points as bytes, exactly as arkworks and halo2curves hold them in memory.
//!
//! - An element of a prime field of N limbs is 8 N bytes: N u64 limbs, least significant first, each
//!   little-endian, in Montgomery form with R = 2^(64 N) (the stored integer is x·R mod p), below the
//!   modulus. N is 4 for the scalars and coordinates of BN254, Pallas and Vesta and for the scalars of
//!   BLS12-381, and 6 for the coordinates of BLS12-381.
//! - An element c0 + c1·u of a quadratic extension is c0, then c1.
//! - An affine point is x, then y; **the point at infinity is all zero bytes**. That is unambiguous on curves
//!   y² = x³ + ax + b with b != 0: (0, 0) is not on them. (For BN254, arkworks and halo2curves agree on it.)
//!
//! Decoding checks ranges always and the curve equation unless the function is named `trusted`. No
//! allocation, except for the text of an error.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig, PrimeField, QuadExtConfig, QuadExtField};

use crate::element::{Element, limbs_from_bytes, limbs_to_bytes};
use crate::error::{FormatError, PointFault, hex};

/// Length of an affine point of BN254's G1 in bytes.
pub const G1_BYTES: usize = 64;
/// Length of an affine point of BN254's G2 in bytes.
pub const G2_BYTES: usize = 128;

/// A field whose elements have the native form. Not meant to be implemented elsewhere.
pub trait NativeField: Field + Element {
    /// Reads the native form: `None` unless there are exactly [`Element::BYTES`] bytes and every coordinate
    /// is below the modulus.
    fn read_native(bytes: &[u8]) -> Option<Self>;

    /// Writes the standard form (not Montgomery, little-endian, c0 then c1), as in compressed points.
    fn write_standard(&self, out: &mut [u8]);

    /// Reads the standard form: `None` as in [`NativeField::read_native`].
    fn read_standard(bytes: &[u8]) -> Option<Self>;

    /// Whether the standard form, of c0 in an extension, is an odd integer.
    fn is_odd(&self) -> bool;
}

impl<P: MontConfig<N>, const N: usize> NativeField for Fp<MontBackend<P, N>, N> {
    #[inline]
    fn read_native(bytes: &[u8]) -> Option<Self> {
        let montgomery = BigInt(exact_limbs(bytes)?);
        (montgomery < P::MODULUS).then(|| Self::new_unchecked(montgomery))
    }

    #[inline]
    fn write_standard(&self, out: &mut [u8]) {
        limbs_to_bytes(&self.into_bigint().0, out);
    }

    #[inline]
    fn read_standard(bytes: &[u8]) -> Option<Self> {
        Self::from_bigint(BigInt(exact_limbs(bytes)?))
    }

    #[inline]
    fn is_odd(&self) -> bool {
        self.into_bigint().0[0] & 1 == 1
    }
}

fn exact_limbs<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    (bytes.len() == 8 * N).then(|| limbs_from_bytes(bytes))
}

impl<P: QuadExtConfig<BaseField: NativeField>> NativeField for QuadExtField<P> {
    fn read_native(bytes: &[u8]) -> Option<Self> {
        let (c0, c1) = bytes.split_at_checked(P::BaseField::BYTES)?;
        Some(Self::new(
            P::BaseField::read_native(c0)?,
            P::BaseField::read_native(c1)?,
        ))
    }

    fn write_standard(&self, out: &mut [u8]) {
        let (c0, c1) = out.split_at_mut(P::BaseField::BYTES);
        self.c0.write_standard(c0);
        self.c1.write_standard(c1);
    }

    fn read_standard(bytes: &[u8]) -> Option<Self> {
        let (c0, c1) = bytes.split_at_checked(P::BaseField::BYTES)?;
        Some(Self::new(
            P::BaseField::read_standard(c0)?,
            P::BaseField::read_standard(c1)?,
        ))
    }

    fn is_odd(&self) -> bool {
        self.c0.is_odd()
    }
}

/// Length of an affine point in bytes.
pub const fn point_bytes<P: SWCurveConfig>() -> usize
where
    P::BaseField: NativeField,
{
    2 * P::BaseField::BYTES
}

/// Writes a point to the first [`point_bytes`] bytes of `out`, which has room for it.
#[inline]
pub fn write_point<P: SWCurveConfig>(point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    match point.xy() {
        None => out[..point_bytes::<P>()].fill(0),
        Some((x, y)) => {
            let (x_out, y_out) = out.split_at_mut(P::BaseField::BYTES);
            x.encode(x_out);
            y.encode(y_out);
        }
    }
}

/// Reads a point whose curve equation was checked before: only ranges are checked, so that memory holds no
/// element that arithmetic is not defined for.
///
/// # Errors
/// [`PointFault::NotReduced`], also for a wrong number of bytes.
#[inline]
pub fn read_point_trusted<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    let (x, y) = bytes
        .split_at_checked(P::BaseField::BYTES)
        .ok_or(PointFault::NotReduced)?;
    let x = P::BaseField::read_native(x).ok_or(PointFault::NotReduced)?;
    let y = P::BaseField::read_native(y).ok_or(PointFault::NotReduced)?;
    if ark_ff::Zero::is_zero(&x) && ark_ff::Zero::is_zero(&y) {
        return Ok(Affine::identity());
    }
    Ok(Affine::new_unchecked(x, y))
}

/// Reads a point and checks that it is on the curve (infinity is). Not the subgroup, which on curves with a
/// cofactor is [`Affine::is_in_correct_subgroup_assuming_on_curve`].
///
/// # Errors
/// [`PointFault::NotReduced`], also for a wrong number of bytes; [`PointFault::NotOnCurve`].
#[inline]
pub fn read_point<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    let point = read_point_trusted::<P>(bytes)?;
    if point.is_on_curve() {
        Ok(point)
    } else {
        Err(PointFault::NotOnCurve)
    }
}

/// Writes field elements to `out`, which must have room for exactly these.
///
/// # Errors
/// [`FormatError::Length`].
pub fn write_elements<F: NativeField>(elements: &[F], out: &mut [u8]) -> Result<(), FormatError> {
    check_length(
        "the buffer for field elements",
        elements.len(),
        F::BYTES,
        out.len(),
    )?;
    for (element, bytes) in elements.iter().zip(out.chunks_exact_mut(F::BYTES)) {
        element.encode(bytes);
    }
    Ok(())
}

/// Reads field elements. `what`, `first_index` and `file_offset` (of the first byte) are for errors.
///
/// # Errors
/// [`FormatError::Length`]; [`FormatError::Element`] for one that is not below the modulus.
pub fn read_elements<F: NativeField>(
    what: &'static str,
    first_index: u64,
    file_offset: u64,
    bytes: &[u8],
    out: &mut [F],
) -> Result<(), FormatError> {
    check_length("the run of field elements", out.len(), F::BYTES, bytes.len())?;
    for (i, (place, chunk)) in out.iter_mut().zip(bytes.chunks_exact(F::BYTES)).enumerate() {
        *place = F::read_native(chunk).ok_or_else(|| FormatError::Element {
            what,
            index: first_index.saturating_add(i as u64),
            offset: file_offset.saturating_add((i * F::BYTES) as u64),
            value: hex(chunk),
        })?;
    }
    Ok(())
}

/// Writes points to `out`, which must have room for exactly these.
///
/// # Errors
/// [`FormatError::Length`].
pub fn write_points<P: SWCurveConfig>(points: &[Affine<P>], out: &mut [u8]) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    check_length(
        "the buffer for points",
        points.len(),
        point_bytes::<P>(),
        out.len(),
    )?;
    for (point, bytes) in points.iter().zip(out.chunks_exact_mut(point_bytes::<P>())) {
        write_point(point, bytes);
    }
    Ok(())
}

/// `count` items of `item_bytes` each must be `actual_bytes` long.
pub(crate) fn check_length(
    what: &'static str,
    count: usize,
    item_bytes: usize,
    actual_bytes: usize,
) -> Result<(), FormatError> {
    if count.checked_mul(item_bytes) == Some(actual_bytes) {
        return Ok(());
    }
    Err(FormatError::Length {
        what,
        expected_bytes: (count as u64).saturating_mul(item_bytes as u64),
        actual_bytes: actual_bytes as u64,
        remedy: "give as many bytes as elements need",
    })
}

#[cfg(test)]
mod tests {
    use ark_bn254::{Fq, Fr, G1Affine, G2Affine};
    use ark_ec::AffineRepr;
    use ark_ff::{BigInteger, UniformRand};
    use stock_halo2_axiom::halo2curves::bn256;
    use stock_halo2_axiom::halo2curves::serde::SerdeObject;

    use super::*;

    #[test]
    fn scalars_are_what_halo2curves_holds() {
        let mut rng = ark_std_rng();
        for _ in 0..50 {
            let x = Fr::rand(&mut rng);
            let mut bytes = [0u8; 32];
            x.encode(&mut bytes);
            assert_eq!(Fr::read_native(&bytes), Some(x));
            let theirs = bn256::Fr::from_raw_bytes(&bytes).expect("reduced");
            let mut standard = [0u8; 32];
            x.write_standard(&mut standard);
            assert_eq!(theirs.to_bytes(), standard);
            assert_eq!(Fr::read_standard(&standard), Some(x));
            assert_eq!(x.is_odd(), standard[0] & 1 == 1);
        }
    }

    #[test]
    fn the_modulus_is_refused() {
        for (bytes, allowed) in [
            (Fr::MODULUS.to_bytes_le(), false),
            (vec![0xff; 32], false),
            (vec![0; 32], true),
        ] {
            assert_eq!(Fr::read_native(&bytes).is_some(), allowed);
            assert_eq!(Fr::read_standard(&bytes).is_some(), allowed);
        }
        let mut below = Fq::MODULUS;
        below.sub_with_borrow(&BigInt::from(1u64));
        assert!(Fq::read_native(&below.to_bytes_le()).is_some());
        assert_eq!(Fq::read_native(&[0; 31]), None);
        assert_eq!(Fq::read_native(&[0; 33]), None);
    }

    #[test]
    fn points_are_what_halo2curves_holds() {
        let mut rng = ark_std_rng();
        for i in 0..20 {
            let g1 = if i == 0 {
                G1Affine::identity()
            } else {
                G1Affine::rand(&mut rng)
            };
            let g2 = if i == 0 {
                G2Affine::identity()
            } else {
                G2Affine::rand(&mut rng)
            };
            let mut bytes = [0xaa; 128];
            write_point(&g1, &mut bytes[..64]);
            assert_eq!(read_point(&bytes[..64]), Ok(g1));
            let theirs = bn256::G1Affine::from_raw_bytes(&bytes[..64]).expect("on the curve");
            assert_eq!(theirs.to_raw_bytes(), bytes[..64]);
            write_point(&g2, &mut bytes);
            assert_eq!(read_point(&bytes), Ok(g2));
            let theirs = bn256::G2Affine::from_raw_bytes(&bytes).expect("on the curve");
            assert_eq!(theirs.to_raw_bytes(), bytes);
        }
        let generator = bn256::G2Affine::generator().to_raw_bytes();
        assert_eq!(read_point(&generator), Ok(G2Affine::generator()));
    }

    #[test]
    fn points_off_the_curve_are_refused() {
        let mut bytes = [0u8; 64];
        write_point(&G1Affine::generator(), &mut bytes);
        bytes[33] ^= 1;
        assert_eq!(
            read_point::<ark_bn254::g1::Config>(&bytes),
            Err(PointFault::NotOnCurve)
        );
        assert!(read_point_trusted::<ark_bn254::g1::Config>(&bytes).is_ok());
        bytes[63] = 0xff;
        assert_eq!(
            read_point_trusted::<ark_bn254::g1::Config>(&bytes),
            Err(PointFault::NotReduced)
        );
        assert_eq!(
            read_point::<ark_bn254::g1::Config>(&bytes[..63]),
            Err(PointFault::NotReduced)
        );
    }

    #[test]
    fn runs_name_the_bad_element() {
        let mut bytes = [0u8; 96];
        bytes[64..].fill(0xff);
        let mut out = [Fr::from(7u64); 3];
        let error = read_elements("a column", 10, 5000, &bytes, &mut out).expect_err("not reduced");
        assert!(
            matches!(
                error,
                FormatError::Element {
                    index: 12,
                    offset: 5064,
                    ..
                }
            ),
            "{error}"
        );
        assert!(read_elements("a column", 0, 0, &bytes[..95], &mut out).is_err());
    }

    fn ark_std_rng() -> rand::rngs::StdRng {
        rand::SeedableRng::seed_from_u64(1)
    }
}
