//! A KZG structured reference string on disk.

use std::path::Path;

use ark_bn254::{Bn254, Fr, G2Affine, g1, g2};
use ark_ff::FftField;
use spillproof_format::params_kzg::SerdeFormat;
use spillproof_format::params_kzg::points::read_checked;
use spillproof_format::{FormatError, PointFault, native, srs as layout};

use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{Transform, group_ntt};
use spillproof_kernels::curve::Point;
use spillproof_kernels::field::CoordinateField;

/// The largest k of an SRS: the scalar field has domains of at most `2^K_MAX` points.
pub(super) const K_MAX: u32 = Fr::TWO_ADICITY;

/// Bytes of a point of BN254's G2 as halo2's `SerdeFormat::RawBytes` has them: x.c0, x.c1, y.c0, y.c1 in
/// Montgomery form, little-endian.
pub const RAW_G2_BYTES: usize = native::G2_BYTES;

/// A point of BN254's G1 as it lies on disk.
pub type G1 = Point<g1::Config>;
/// A scalar of BN254.
pub type Scalar = Fr;
/// The pairing that the SRS is for.
pub type Engine = Bn254;

/// Powers of a secret `s` in the exponent: `2^k` points in one or two bases, and the pair `(g2, s * g2)`.
#[derive(Clone, Debug)]
pub struct Srs {
    k: u32,
    monomial: Option<Column<G1>>,
    lagrange: Option<Column<G1>>,
    pair: [G2Affine; 2],
    root: Option<[u8; 32]>,
    is_insecure: bool,
}

impl Srs {
    /// Opens a container. Nothing is copied; each frame is checked when it is read. Its points were checked
    /// when it was made.
    ///
    /// # Errors
    /// Those of [`Container::open`]; [`Error::Format`] if the container holds no SRS over BN254.
    pub fn open_container(workspace: &Workspace, path: &Path) -> Result<Self> {
        let srs = Self::of(&Container::open(workspace, path)?)?;
        if srs.is_insecure {
            tracing::warn!(
                "{}: INSECURE parameters, whose secret is known: proofs over them can be forged",
                path.display()
            );
        }
        Ok(srs)
    }

    /// The SRS of an open container.
    ///
    /// # Errors
    /// As [`Self::open_container`].
    pub fn of(container: &Container) -> Result<Self> {
        let format = |source| Error::Format {
            file: container.path().to_path_buf(),
            source,
        };
        let header = container.header();
        let found = layout::Srs::of(header).map_err(format)?;
        let monomial = found.monomial.and_then(|section| container.column(section));
        let lagrange = found.lagrange.and_then(|section| container.column(section));
        let mut pair = [G2Affine::default(); 2];
        if let Some(column) = container.column::<[u8; native::G2_BYTES]>(found.pair) {
            for (index, (point, bytes)) in pair.iter_mut().zip(column.to_vec()?).enumerate() {
                let refuse = |fault| FormatError::Point {
                    what: layout::PAIR_LABEL,
                    index: index as u64,
                    offset: header
                        .geometry()
                        .element_offset(found.pair, index as u64)
                        .unwrap_or(0),
                    value: spillproof_format::hex(&bytes),
                    fault,
                };
                *point = native::read_point::<g2::Config>(&bytes).map_err(|fault| format(refuse(fault)))?;
                if !point.is_in_correct_subgroup_assuming_on_curve() {
                    return Err(format(refuse(PointFault::NotInSubgroup)));
                }
            }
        }
        Ok(Self {
            k: found.k,
            monomial,
            lagrange,
            pair,
            root: Some(container.root()),
            is_insecure: header.is_insecure,
        })
    }

    /// An SRS of loose columns.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless each column has `2^k` points and there is one.
    pub fn from_columns(
        k: u32,
        monomial: Option<Column<G1>>,
        lagrange: Option<Column<G1>>,
        pair: [G2Affine; 2],
    ) -> Result<Self> {
        if k > K_MAX {
            return Err(Invalid::DomainSize {
                log_n: k,
                log_limit: K_MAX,
            }
            .into());
        }
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
    pub fn monomial(&self) -> Result<&Column<G1>> {
        self.monomial.as_ref().ok_or_else(|| Self::missing("monomial"))
    }

    /// `L_i(s) * g`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file has the monomial form only.
    pub fn lagrange(&self) -> Result<&Column<G1>> {
        self.lagrange.as_ref().ok_or_else(|| Self::missing("Lagrange"))
    }

    fn missing(basis: &'static str) -> Error {
        Invalid::MissingBasis { basis }.into()
    }

    /// `(g2, s * g2)`.
    pub fn pair(&self) -> [G2Affine; 2] {
        self.pair
    }

    /// [`Self::pair`] as halo2's `SerdeFormat::RawBytes` has it.
    pub fn raw_pair(&self) -> [[u8; RAW_G2_BYTES]; 2] {
        self.pair.map(|point| {
            let mut bytes = [0; RAW_G2_BYTES];
            native::write_point(&point, &mut bytes);
            bytes
        })
    }

    /// The pair from such bytes, which a file called `name` had.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are no point of the group.
    pub fn pair_of_raw(name: &str, pair: &[[u8; RAW_G2_BYTES]; 2]) -> Result<[G2Affine; 2]> {
        let mut points = [G2Affine::default(); 2];
        for (index, (point, bytes)) in points.iter_mut().zip(pair).enumerate() {
            let checked = read_checked::<g2::Config>(SerdeFormat::RawBytes, bytes);
            *point = checked.map_err(|fault| Error::Format {
                file: name.into(),
                source: FormatError::Point {
                    what: layout::PAIR_LABEL,
                    index: index as u64,
                    offset: (index * RAW_G2_BYTES) as u64,
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

    /// The SRS for `2^k` points: a prefix of the monomial form, and its Lagrange form at the powers of
    /// `omega`, computed out of core into a scratch column.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a larger `k` or without the monomial form; those of [`lagrange_from_monomial`].
    pub fn downsize(&self, k: u32, omega: Scalar) -> Result<Self> {
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
        let lagrange = lagrange_from_monomial(&monomial, omega, Placement::Auto, &mut |_| ())?;
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

/// `L_i(s) * g` from `s^i * g`, with `L_i` 1 at `omega^i`, a primitive n-th root of unity: an inverse group
/// transform, out of core. Some `n * log2(n) / 2` multiplications in G1. `progress` gets the points done, of
/// n, from any thread.
///
/// # Errors
/// [`Error::Invalid`] unless the column has `2^k` points with `k` at most 28 and `omega` has that order;
/// those of [`group_ntt`].
pub fn lagrange_from_monomial(
    monomial: &Column<G1>,
    omega: Scalar,
    placement: Placement,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<G1>> {
    let n = monomial.len();
    if !n.is_power_of_two() || n > 1 << K_MAX {
        return Err(Invalid::PowerOfTwo {
            what: "points of an SRS",
            given: n,
            log_limit: K_MAX,
        }
        .into());
    }
    let transform = Transform::inverse(n.ilog2(), omega)?;
    group_ntt::<g1::Config>(monomial, &transform, placement, progress)
}

/// The primitive `2^log_n`-th root of unity that is a power of `root_of_unity`, a library's root of order
/// 2^28. Libraries differ: [`HALO2_ROOT_OF_UNITY`](super::HALO2_ROOT_OF_UNITY) is halo2's,
/// `Fr::TWO_ADIC_ROOT_OF_UNITY` arkworks'. From `log_n` = 6 on they give different domains.
///
/// # Errors
/// [`Error::Invalid`] for `log_n` above 28.
pub fn omega(root_of_unity: Scalar, log_n: u32) -> Result<Scalar> {
    if log_n > K_MAX {
        return Err(Invalid::DomainSize {
            log_n,
            log_limit: K_MAX,
        }
        .into());
    }
    Ok((log_n..K_MAX).fold(root_of_unity, |root, _| root.squared()))
}
