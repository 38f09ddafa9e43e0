//! A KZG structured reference string on disk.

use std::path::Path;

use ark_bn254::{Bn254, Fr, g1};
use ark_ec::short_weierstrass::Affine;
use ark_ff::FftField;
use spillproof_format::{Curve as CurveId, FormatError, GroupId, PointFault, native, srs as layout};

use super::compiled::KzgCurve;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, Element, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{Transform, group_ntt};
use spillproof_kernels::curve::Point;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::pairing::{G1Point, G2Point, PairingGroups};

/// Bytes of a point of BN254's G2 as halo2's `SerdeFormat::RawBytes` has them: x.c0, x.c1, y.c0, y.c1 in
/// Montgomery form, little-endian.
pub const RAW_G2_BYTES: usize = native::G2_BYTES;

/// A point of BN254's G1 as it lies on disk.
pub type G1 = Point<g1::Config>;
/// A scalar of BN254.
pub type Scalar = Fr;
/// The pairing of BN254.
pub type Engine = Bn254;

/// The curve of a pairing in files.
pub(super) fn curve_id<E: PairingGroups>() -> Result<CurveId> {
    match GroupId::of::<E::G1Config>() {
        Some(group) if group.degree == 1 => Ok(group.curve),
        _ => Err(Invalid::ProofSystem {
            what: "an SRS",
            reason: "the format does not know this curve".to_owned(),
        }
        .into()),
    }
}

/// Powers of a secret `s` in the exponent: `2^k` points in one or two bases, and the pair `(g2, s * g2)`.
#[derive(Clone, Debug)]
pub struct Srs<E: PairingGroups = Bn254> {
    k: u32,
    monomial: Option<Column<G1Point<E>>>,
    lagrange: Option<Column<G1Point<E>>>,
    pair: [E::G2Affine; 2],
    root: Option<[u8; 32]>,
    is_insecure: bool,
}

/// The SRS of an open container: [`Srs::of`].
pub(super) fn of_container<E: PairingGroups>(container: &Container) -> Result<Srs<E>> {
    let format = |source| Error::Format {
        file: container.path().to_path_buf(),
        source,
    };
    let header = container.header();
    let found = layout::Srs::of(header, curve_id::<E>()?).map_err(format)?;
    let monomial = found.monomial.and_then(|section| container.column(section));
    let lagrange = found.lagrange.and_then(|section| container.column(section));
    let mut pair = [Affine::<E::G2Config>::identity(); 2];
    if let Some(column) = container.column::<G2Point<E>>(found.pair) {
        let mut bytes = vec![0; G2Point::<E>::BYTES];
        for (index, (point, stored)) in pair.iter_mut().zip(column.to_vec()?).enumerate() {
            stored.encode(&mut bytes);
            *point = checked_g2::<E>(&bytes).map_err(|fault| {
                let index = index as u64;
                format(FormatError::Point {
                    what: layout::PAIR_LABEL,
                    index,
                    offset: header.geometry().element_offset(found.pair, index).unwrap_or(0),
                    value: spillproof_format::hex(&bytes),
                    fault,
                })
            })?;
        }
    }
    Ok(Srs {
        k: found.k,
        monomial,
        lagrange,
        pair,
        root: Some(container.root()),
        is_insecure: header.is_insecure,
    })
}

/// The same, for use: a known secret is warned of.
pub(super) fn opened<E: KzgCurve>(container: &Container) -> Result<Srs<E>> {
    let srs = Srs::of(container)?;
    if srs.is_insecure {
        tracing::warn!(
            "{}: INSECURE parameters, whose secret is known: proofs over them can be forged",
            container.path().display()
        );
    }
    Ok(srs)
}

/// A point of G2 in the native form.
fn checked_g2<E: PairingGroups>(bytes: &[u8]) -> Result<Affine<E::G2Config>, PointFault> {
    let point = native::read_point::<E::G2Config>(bytes)?;
    match point.is_in_correct_subgroup_assuming_on_curve() {
        true => Ok(point),
        false => Err(PointFault::NotInSubgroup),
    }
}

impl<E: KzgCurve> Srs<E> {
    /// Opens a container. Nothing is copied; each frame is checked when it is read. Its points were checked
    /// when it was made.
    ///
    /// # Errors
    /// Those of [`Container::open`]; [`Error::Format`] if the container holds no SRS over this curve.
    pub fn open_container(workspace: &Workspace, path: &Path) -> Result<Self> {
        opened(&Container::open(workspace, path)?)
    }

    /// The SRS of an open container.
    ///
    /// # Errors
    /// As [`Self::open_container`].
    pub fn of(container: &Container) -> Result<Self> {
        E::of_container(container)
    }

    /// The SRS for `2^k` points: a prefix of the monomial form, and its Lagrange form at the powers of
    /// `omega`, computed out of core into a scratch column.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a larger `k` or without the monomial form; those of [`lagrange_from_monomial`].
    pub fn downsize(&self, k: u32, omega: E::Scalar) -> Result<Self> {
        if k > self.k {
            return Err(Invalid::SrsSize {
                srs: "the SRS".into(),
                k,
                limit: self.k,
            }
            .into());
        }
        if k == self.k {
            return Ok(self.clone());
        }
        let monomial = self.monomial()?.prefix(1 << k)?;
        let lagrange = lagrange_from_monomial::<E>(&monomial, omega, Placement::Auto, &mut |_| ())?;
        Ok(Self {
            k,
            monomial: Some(monomial),
            lagrange: Some(lagrange),
            pair: self.pair,
            root: None,
            is_insecure: self.is_insecure,
        })
    }
}

impl<E: PairingGroups> Srs<E> {
    /// An SRS of loose columns.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless each column has `2^k` points and there is one.
    pub fn from_columns(
        k: u32,
        monomial: Option<Column<G1Point<E>>>,
        lagrange: Option<Column<G1Point<E>>>,
        pair: [Affine<E::G2Config>; 2],
    ) -> Result<Self> {
        check_k::<E::Scalar>(k)?;
        if monomial.is_none() && lagrange.is_none() {
            return Err(Self::missing("monomial or Lagrange"));
        }
        let expected = 1 << k;
        let mut lens = monomial.iter().chain(&lagrange).map(Column::len);
        if let Some(given) = lens.find(|&len| len != expected) {
            let what = "points of an SRS".into();
            return Err(Invalid::Length {
                what,
                given,
                expected,
            }
            .into());
        }
        Ok(Self {
            k,
            monomial,
            lagrange,
            pair,
            root: None,
            is_insecure: false,
        })
    }

    /// Whether the secret is known, as far as the container or the generator says: proofs can be forged then.
    pub fn is_insecure(&self) -> bool {
        self.is_insecure
    }

    pub(super) fn marked_insecure(self, is_insecure: bool) -> Self {
        Self { is_insecure, ..self }
    }

    /// log2 of the number of points.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Number of points.
    pub fn n(&self) -> u64 {
        1 << self.k
    }

    /// `s^i * g`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file has the Lagrange form only.
    pub fn monomial(&self) -> Result<&Column<G1Point<E>>> {
        self.monomial.as_ref().ok_or_else(|| Self::missing("monomial"))
    }

    /// `L_i(s) * g`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file has the monomial form only.
    pub fn lagrange(&self) -> Result<&Column<G1Point<E>>> {
        self.lagrange.as_ref().ok_or_else(|| Self::missing("Lagrange"))
    }

    fn missing(basis: &'static str) -> Error {
        Invalid::MissingBasis { basis }.into()
    }

    /// `(g2, s * g2)`.
    pub fn pair(&self) -> [Affine<E::G2Config>; 2] {
        self.pair
    }

    /// A pair from its native bytes ([`native`]), which a file called `name` had, or a program: 128 of each
    /// point over BN254, 192 over BLS12-381.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are no point of the group.
    pub fn pair_of_native<const BYTES: usize>(
        name: &str,
        pair: &[[u8; BYTES]; 2],
    ) -> Result<[Affine<E::G2Config>; 2]> {
        let mut points = [Affine::identity(); 2];
        for (index, (point, bytes)) in points.iter_mut().zip(pair).enumerate() {
            *point = checked_g2::<E>(bytes).map_err(|fault| Error::Format {
                file: name.into(),
                source: FormatError::Point {
                    what: layout::PAIR_LABEL,
                    index: index as u64,
                    offset: (index * BYTES) as u64,
                    value: spillproof_format::hex(bytes),
                    fault,
                },
            })?;
        }
        Ok(points)
    }

    /// The root of the container it came from.
    pub fn root(&self) -> Option<[u8; 32]> {
        self.root
    }
}

impl Srs {
    /// [`Self::pair`] as halo2's `SerdeFormat::RawBytes` has it.
    pub fn raw_pair(&self) -> [[u8; RAW_G2_BYTES]; 2] {
        self.pair.map(|point| {
            let mut bytes = [0; RAW_G2_BYTES];
            native::write_point(&point, &mut bytes);
            bytes
        })
    }
}

/// `L_i(s) * g` from `s^i * g`, with `L_i` 1 at `omega^i`, a primitive n-th root of unity: an inverse group
/// transform, out of core. Some `n * log2(n) / 2` multiplications in G1. `progress` gets the points done, of
/// n, from any thread.
///
/// # Errors
/// [`Error::Invalid`] unless the column has `2^k` points, a domain of the scalars, and `omega` has that order;
/// those of [`group_ntt`].
pub fn lagrange_from_monomial<E: KzgCurve>(
    monomial: &Column<G1Point<E>>,
    omega: E::Scalar,
    placement: Placement,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<G1Point<E>>> {
    E::lagrange_from_monomial(monomial, omega, placement, progress)
}

pub(super) fn lagrange_over<E: PairingGroups>(
    monomial: &Column<G1Point<E>>,
    omega: E::Scalar,
    placement: Placement,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<G1Point<E>>> {
    let (n, log_limit) = (monomial.len(), E::Scalar::TWO_ADICITY);
    if !n.is_power_of_two() || n.ilog2() > log_limit {
        return Err(Invalid::PowerOfTwo {
            what: "points of an SRS",
            given: n,
            log_limit,
        }
        .into());
    }
    let transform = Transform::inverse(n.ilog2(), omega)?;
    group_ntt::<E::G1Config>(monomial, &transform, placement, progress)
}

/// Refuses a k for which the scalars have no domain of `2^k` points.
pub(super) fn check_k<F: FftField>(k: u32) -> Result<()> {
    let log_limit = F::TWO_ADICITY;
    match k <= log_limit {
        true => Ok(()),
        false => Err(Invalid::DomainSize { log_n: k, log_limit }.into()),
    }
}

/// The primitive `2^log_n`-th root of unity that is a power of `root_of_unity`, a library's root of the
/// largest order. Libraries differ: [`HALO2_ROOT_OF_UNITY`](super::HALO2_ROOT_OF_UNITY) is halo2's over BN254,
/// `Fr::TWO_ADIC_ROOT_OF_UNITY` arkworks'. From `log_n` = 6 on they give different domains. Over BLS12-381
/// arkworks' is the one of midnight-proofs, too.
///
/// # Errors
/// [`Error::Invalid`] for `log_n` above that order.
pub fn omega<F: KernelField>(root_of_unity: F, log_n: u32) -> Result<F> {
    check_k::<F>(log_n)?;
    Ok((log_n..F::TWO_ADICITY).fold(root_of_unity, |root, _| root.squared()))
}
