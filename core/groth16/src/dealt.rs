//! Keys that are dealt to ranks: what all ranks read, and the share of each.
//!
//! A dealt key is a container that names one container for each rank ([`spillproof_format::groth16_dealt`]), in the
//! same folder. A rank opens the key and its own share, in place.

use std::path::{Path, PathBuf};

use ark_ec::short_weierstrass::Affine;
use spillproof_format::groth16_dealt::{self, Dealt};
use spillproof_format::{Content, Curve as CurveId, FormatError, Kind, frame_bytes_for, hex};

use super::file::{KeyFile, check_curve};
use super::{
    Constraints, Cut, Domain, G1Point, G2Point, KeyShare, OfRank, PairingCurve, ProvingKey, QuotientBasis,
    Shape, VerifyingKey,
};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Container, SCRATCH_FRAME_BYTES, Workspace};
use spillproof_engine::error::Invalid;

/// Offset of the root in a header, in bytes.
const ROOT_AT: u64 = 96;

/// A key that is dealt to ranks, without the share of any.
pub struct DealtKey<E: PairingCurve> {
    path: PathBuf,
    dealt: Dealt,
    /// The part that verifies.
    pub verifying: VerifyingKey<E>,
    beta_g1: Affine<E::G1Config>,
    delta_g1: Affine<E::G1Config>,
}

/// Bytes of a frame of a share: those of scratch files. A sum over `h` goes through columns of its matrix, and reads
/// whole frames.
pub(crate) fn share_frame_bytes(curve: CurveId) -> u32 {
    let point_bytes = Content::G1.element_bytes(curve) as usize;
    frame_bytes_for(point_bytes, SCRATCH_FRAME_BYTES) as u32
}

/// Whether a container is a dealt key.
pub fn is_dealt(container: &Container) -> bool {
    container.header().kind() == Kind::Groth16Dealt
}

/// How the key in a container is dealt.
///
/// # Errors
/// [`Error::Format`] for a container of another kind, or a damaged one.
pub(crate) fn dealt_of(container: &Container) -> Result<Dealt> {
    let refuse = |source| Error::Format {
        file: container.path().to_path_buf(),
        source,
    };
    let found = groth16_dealt::DealtKey::of(container.header()).map_err(refuse)?;
    let file = KeyFile { container };
    let bytes = file.column::<[u8; 1]>(found.dealt)?;
    // Not more than the format allows.
    let _text = bytes
        .workspace()
        .budget
        .lease(2 * bytes.len(), "names of shares")?;
    let offset = container
        .header()
        .geometry()
        .element_offset(found.dealt, 0)
        .unwrap_or(0);
    Dealt::decode(bytes.to_vec()?.as_flattened(), offset).map_err(refuse)
}

impl<E: PairingCurve> DealtKey<E> {
    /// Opens a dealt key; no share is read.
    ///
    /// # Errors
    /// As [`ProvingKey::open_container`].
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        E::open_dealt(workspace, path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The weights that it is dealt by, one for each rank.
    pub fn weights(&self) -> Vec<u64> {
        self.dealt.shares.iter().map(|share| share.weight).collect()
    }

    /// Its file, and those of the shares.
    pub fn files(&self) -> Vec<PathBuf> {
        let shares = self.dealt.shares.iter();
        let shares = shares.map(|share| self.path.with_file_name(&share.name));
        std::iter::once(self.path.clone()).chain(shares).collect()
    }

    /// The whole key's sizes. Values of coefficients are those of the share with the most.
    pub fn shape(&self) -> Shape {
        self.dealt.shape(self.verifying.ic.len().saturating_sub(1))
    }

    /// A rank's share, for [`crate::prove_over_ranks`].
    ///
    /// # Errors
    /// [`Invalid::OtherRanks`] and [`Invalid::OtherShares`] for ranks, weights or a cut that it is not dealt by;
    /// [`Error::File`] for a share that is missing; [`Error::Format`] with [`FormatError::OtherShare`] for one of
    /// another key, or of another import, and for a damaged one; [`Error::OverBudget`].
    pub fn share(&self, workspace: &Workspace, of: &OfRank<'_>) -> Result<ProvingKey<E>> {
        E::open_share(self, workspace, of)
    }
}

pub(crate) fn open_dealt<E: PairingCurve>(workspace: &Workspace, path: &Path) -> Result<DealtKey<E>> {
    let container = Container::open(workspace, path)?;
    let file = KeyFile {
        container: &container,
    };
    let dealt = dealt_of(&container)?;
    let found = groth16_dealt::DealtKey::of(container.header()).map_err(|source| file.refuse(source))?;
    check_curve::<E>(path, found.curve)?;
    let [alpha_g1, beta_g1, delta_g1] = file.three::<E::G1Config>("g1", found.g1)?;
    let [beta_g2, gamma_g2, delta_g2] = file.three::<E::G2Config>("g2", found.g2)?;
    let key = DealtKey {
        path: path.to_path_buf(),
        dealt,
        verifying: VerifyingKey {
            alpha_g1,
            beta_g2,
            gamma_g2,
            delta_g2,
            ic: file.column::<G1Point<E>>(found.ic)?,
        },
        beta_g1,
        delta_g1,
    };
    key.shape().check().map_err(|source| file.refuse(source))?;
    Ok(key)
}

pub(crate) fn open_share<E: PairingCurve>(
    key: &DealtKey<E>,
    workspace: &Workspace,
    of: &OfRank<'_>,
) -> Result<ProvingKey<E>> {
    let (dealt, whole) = (&key.dealt, key.shape());
    if of.weights.len() != dealt.shares.len() {
        return Err(Invalid::OtherRanks {
            file: key.path.display().to_string(),
            dealt: dealt.shares.len(),
            given: of.weights.len(),
        }
        .into());
    }
    let other = |what, dealt, given| {
        Err(Invalid::OtherShares {
            what,
            dealt,
            given,
            remedy: "leave it to the key, or import the key again",
        }
        .into())
    };
    if of.cut != Cut::Layout {
        return other(
            "the cut of a dealt key",
            format!("{:?}", Cut::Layout),
            format!("{:?}", of.cut),
        );
    }
    let shares = of.shares(&whole)?;
    if !shares.are_those_of(dealt) {
        return other(
            "the shares of a dealt key",
            format!("{:?}", key.weights()),
            format!("{:?}", of.weights),
        );
    }
    let (Some(share), Some(shape)) = (dealt.shares.get(of.rank), dealt.share_shape(of.rank)) else {
        unreachable!("shares were made for this rank");
    };
    let path = key.path.with_file_name(&share.name);
    let container = Container::open(workspace, &path)?;
    let file = KeyFile {
        container: &container,
    };
    if container.root() != share.root {
        return Err(file.refuse(FormatError::OtherShare {
            offset: ROOT_AT,
            value: hex(&container.root()),
            expected: hex(&share.root),
        }));
    }
    let found =
        groth16_dealt::KeyShare::of(container.header(), &shape).map_err(|source| file.refuse(source))?;
    check_curve::<E>(&path, found.curve)?;
    let g1 = |section| file.column::<G1Point<E>>(section);
    let verifying = &key.verifying;
    Ok(ProvingKey {
        verifying: VerifyingKey {
            alpha_g1: verifying.alpha_g1,
            beta_g2: verifying.beta_g2,
            gamma_g2: verifying.gamma_g2,
            delta_g2: verifying.delta_g2,
            ic: verifying.ic.clone(),
        },
        beta_g1: key.beta_g1,
        delta_g1: key.delta_g1,
        a: g1(found.a)?,
        b_g1: g1(found.b_g1)?,
        b_g2: file.column::<G2Point<E>>(found.b_g2)?,
        c: g1(found.c)?,
        h: g1(found.h)?,
        constraints: Constraints::new(file.column(found.values)?, file.column(found.coefficients)?),
        domain: Domain::of_smallest_non_residue(whole.log_domain)?,
        quotient: QuotientBasis::Coset,
        share: Some(KeyShare::of_points(shares, of.rank, whole)),
    })
}

/// Whether the dealt key at `path` names a share of this root for a rank.
pub(crate) fn names_share(workspace: &Workspace, path: &Path, rank: usize, root: &[u8; 32]) -> bool {
    shares_named(workspace, path)
        .get(rank)
        .is_some_and(|(_, named)| named == root)
}

/// Files and roots of the shares that the dealt key at `path` names; none if there is no such key.
pub(crate) fn shares_named(workspace: &Workspace, path: &Path) -> Vec<(PathBuf, [u8; 32])> {
    let dealt = Container::open(workspace, path).and_then(|container| dealt_of(&container));
    let Ok(dealt) = dealt else {
        return Vec::new();
    };
    let shares = dealt.shares.iter();
    shares
        .map(|share| (path.with_file_name(&share.name), share.root))
        .collect()
}
