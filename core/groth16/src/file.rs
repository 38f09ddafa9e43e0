//! Keys as containers: opened in place.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use spillproof_format::groth16::Groth16Key;
use spillproof_format::native::read_point;
use spillproof_format::{Curve as CurveId, Element, FormatError, GroupId, PointFault, Section, hex};

use super::{Constraints, Domain, G1Point, G2Point, PairingCurve, ProvingKey, QuotientBasis, VerifyingKey};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};

/// A smaller budget keeps no copies in memory.
const COPIES_BUDGET_BYTES_MIN: u64 = 8 << 20;

/// Where copies of files and of a caller's values are put, which are made before the proof that reads them.
pub(crate) fn placement_of_copies(workspace: &Workspace) -> Placement {
    match workspace.budget.limit_bytes() < COPIES_BUDGET_BYTES_MIN {
        true => Placement::Disk,
        false => Placement::Small,
    }
}

impl<E: PairingCurve> ProvingKey<E> {
    /// Opens a container, whose roots of unity are those of circom's tools. Nothing is copied; each frame is
    /// checked when it is read.
    ///
    /// # Errors
    /// Those of [`Container::open`]; [`Error::Format`] if the container holds no key, or a point of its
    /// verifying key is none; [`Invalid::OtherCurve`].
    pub fn open_container(workspace: &Workspace, path: &Path) -> Result<Self> {
        E::open_container(workspace, path)
    }
}

pub(crate) fn open_container<E: PairingCurve>(workspace: &Workspace, path: &Path) -> Result<ProvingKey<E>> {
    let container = Container::open(workspace, path)?;
    let file = KeyFile {
        container: &container,
    };
    let found = Groth16Key::of(container.header()).map_err(|source| file.refuse(source))?;
    check_curve::<E>(path, found.curve)?;
    let g1 = |section| file.column::<G1Point<E>>(section);
    let [alpha_g1, beta_g1, delta_g1] = file.three::<E::G1Config>("g1", found.g1)?;
    let [beta_g2, gamma_g2, delta_g2] = file.three::<E::G2Config>("g2", found.g2)?;
    Ok(ProvingKey {
        verifying: VerifyingKey {
            alpha_g1,
            beta_g2,
            gamma_g2,
            delta_g2,
            ic: g1(found.ic)?,
        },
        beta_g1,
        delta_g1,
        a: g1(found.a)?,
        b_g1: g1(found.b_g1)?,
        b_g2: file.column::<G2Point<E>>(found.b_g2)?,
        c: g1(found.c)?,
        h: g1(found.h)?,
        constraints: Constraints::new(file.column(found.values)?, file.column(found.coefficients)?),
        domain: Domain::of_smallest_non_residue(found.shape.log_domain)?,
        quotient: QuotientBasis::Coset,
        share: None,
    })
}

/// Refuses a file over another curve than that of `E`.
pub(crate) fn check_curve<E: PairingCurve>(path: &Path, curve: CurveId) -> Result<()> {
    match GroupId::of::<E::G1Config>() {
        Some(group) if group.curve == curve => Ok(()),
        expected => Err(Invalid::OtherCurve {
            file: path.display().to_string(),
            curve: format!("{curve:?}"),
            expected: expected.map_or_else(
                || "another curve".to_owned(),
                |group| format!("{:?}", group.curve),
            ),
        }
        .into()),
    }
}

/// A container that is being opened.
pub(crate) struct KeyFile<'a> {
    pub container: &'a Container,
}

impl KeyFile<'_> {
    pub fn refuse(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.container.path().to_path_buf(),
            source,
        }
    }

    pub fn column<T: Element>(&self, section: &Section) -> Result<Column<T>> {
        self.container.column(section).ok_or_else(|| {
            Invalid::ElementBytes {
                what: self.container.path().display().to_string(),
                given: T::BYTES,
                expected: section.element_bytes() as usize,
            }
            .into()
        })
    }

    /// Three checked points.
    pub fn three<P: Curve>(&self, what: &'static str, section: &Section) -> Result<[Affine<P>; 3]> {
        let mut points = [Affine::identity(); 3];
        let stored = self.column::<Point<P>>(section)?.to_vec()?;
        for ((index, point), stored) in (0..).zip(&mut points).zip(stored) {
            let mut bytes = vec![0; Point::<P>::BYTES];
            stored.encode(&mut bytes);
            let checked = read_point::<P>(&bytes).and_then(|point| match point.is_zero() {
                false if point.is_in_correct_subgroup_assuming_on_curve() => Ok(point),
                false => Err(PointFault::NotInSubgroup),
                true => Err(PointFault::Infinity),
            });
            *point = checked.map_err(|fault| {
                let geometry = self.container.header().geometry();
                self.refuse(FormatError::Point {
                    what,
                    index,
                    offset: geometry.element_offset(section, index).unwrap_or(0),
                    value: hex(&bytes),
                    fault,
                })
            })?;
        }
        Ok(points)
    }
}
