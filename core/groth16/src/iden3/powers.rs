//! The first phase of a ceremony (`.ptau`) as the points that a setup takes.
//!
//! A file that was prepared for the second phase has the Lagrange bases. Of one that was not, they are made
//! by transforms of points.

use ark_ec::short_weierstrass::Affine;
use spillproof_format::iden3::{ByteRange, PointRange, ptau};
use spillproof_format::{Curve as CurveId, FormatError};

use super::key::{Checked, points_in_place};
use super::overrun::difference;
use super::source::Source;
use super::subgroup;
use crate::{Domain, G1Point, PairingCurve, Powers, coset_lagrange, lagrange};
use spillproof_engine::Result;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Draft, Element, Placement, Region, Writer};
use spillproof_engine::step;
use spillproof_kernels::curve::{Curve, Point};

/// A first phase.
pub(super) struct Ptau {
    pub source: Source,
    pub header: ptau::Header,
    pub layout: ptau::Layout,
}

impl Ptau {
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for a file that is damaged.
    pub fn open(source: Source) -> Result<Self> {
        let refuse = |error| source.refuse(error);
        let range = ptau::Header::range(&source.sections).map_err(refuse)?;
        let header = ptau::Header::parse(&source.sections, &source.small(range)?).map_err(refuse)?;
        let layout = ptau::Layout::new(&source.sections, &header).map_err(refuse)?;
        Ok(Self {
            source,
            header,
            layout,
        })
    }

    /// The section of contributions.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for a file without it.
    pub fn contributions(&self) -> Result<ByteRange> {
        let range = self.source.sections.range(ptau::CONTRIBUTIONS);
        range.map_err(|error| self.source.refuse(error))
    }

    /// Points of an array, from `start` on. Those behind its last one are infinity.
    pub fn part<P: Curve>(&self, range: &PointRange, start: u64, len: u64) -> Column<Point<P>> {
        let there = len.min(range.count.saturating_sub(start));
        let part = PointRange {
            offset: range.point_offset(start),
            count: there,
            ..*range
        };
        points_in_place::<P>(&self.source, &part, [0, len - there], Checked::Curve)
    }

    /// The first point of an array.
    pub fn first<P: Curve>(&self, range: &PointRange) -> Result<Affine<P>> {
        let mut out = [Point::<P>::INFINITY];
        let first = Region::Span { start: 0, len: 1 };
        self.part::<P>(range, 0, 1).read(first, &mut out)?;
        Ok(out[0].to_affine::<P>())
    }

    /// The last point of an array.
    pub fn last<P: Curve>(&self, range: &PointRange) -> Result<Affine<P>> {
        let start = range.count.saturating_sub(1);
        self.first::<P>(&PointRange {
            offset: range.point_offset(start),
            count: range.count - start,
            ..*range
        })
    }

    /// That the points of an array are in the subgroup of prime order.
    pub fn check_subgroup<P: Curve>(&self, range: &PointRange) -> Result<()> {
        let points = self.part::<P>(range, 0, range.count);
        subgroup::check::<P>(&self.source, &points, (range, 0))
    }

    /// The Lagrange basis of `2^log_n` points, from the first powers of an array.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for points that are none; those of the transform.
    pub fn lagrange<P: Curve<BaseField: Element>>(
        &self,
        powers: &PointRange,
        log_n: u32,
        domain: &Domain<P::ScalarField>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Column<Point<P>>> {
        let _step = step!(self.source.workspace, "Lagrange points");
        let what = powers.what;
        let total = 1 << log_n;
        let powers = self.part::<P>(powers, 0, total);
        lagrange::<P>(&powers, log_n, domain, &mut |done| {
            progress(Progress { what, done, total });
        })
    }
}

/// A first phase for circuits of `2^log_n` rows.
pub(super) struct Phase1 {
    ptau: Ptau,
    log_n: u32,
}

impl Phase1 {
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for a file that is damaged, or has too few powers.
    pub fn open(source: Source, log_n: u32) -> Result<Self> {
        let ptau = Ptau::open(source)?;
        if ptau.header.power < log_n {
            let range = ptau::Header::range(&ptau.source.sections);
            return Err(ptau.source.refuse(FormatError::TooFewPowers {
                offset: range.map_or(0, |range| range.offset),
                power: ptau.header.power,
                needed: log_n,
            }));
        }
        Ok(Self { ptau, log_n })
    }

    pub fn curve(&self) -> CurveId {
        self.ptau.header.curve
    }

    /// tau^i for `start <= i < start + len`. A file of the circuit's own power has one less than twice the
    /// rows, and the one that is missing is infinity.
    pub fn powers<P: Curve>(&self, start: u64, len: u64) -> Column<Point<P>> {
        self.ptau.part::<P>(&self.ptau.layout.tau_g1, start, len)
    }

    /// Everything but the points of the quotient.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for points that are none; those of the transforms.
    pub fn points<E: PairingCurve>(
        &self,
        domain: &Domain<E::Scalar>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Powers<E>> {
        let layout = &self.ptau.layout;
        let prepared = layout.prepared;
        let mut g1 =
            |raw, basis: Option<PointRange>| self.lagrange::<E::G1Config>(raw, basis, domain, progress);
        let lagrange_g1 = g1(&layout.tau_g1, prepared.map(|bases| bases.lagrange_g1))?;
        let alpha_lagrange_g1 = g1(
            &layout.alpha_tau_g1,
            prepared.map(|bases| bases.alpha_lagrange_g1),
        )?;
        let beta_lagrange_g1 = g1(&layout.beta_tau_g1, prepared.map(|bases| bases.beta_lagrange_g1))?;
        let bases = prepared.map(|bases| bases.lagrange_g2);
        let lagrange_g2 = self.lagrange::<E::G2Config>(&layout.tau_g2, bases, domain, progress)?;
        Ok(Powers {
            alpha_g1: self.ptau.first::<E::G1Config>(&layout.alpha_tau_g1)?,
            beta_g1: self.ptau.first::<E::G1Config>(&layout.beta_tau_g1)?,
            beta_g2: self.ptau.first::<E::G2Config>(&layout.beta_g2)?,
            lagrange_g1,
            lagrange_g2,
            alpha_lagrange_g1,
            beta_lagrange_g1,
        })
    }

    fn lagrange<P: Curve<BaseField: Element>>(
        &self,
        raw: &PointRange,
        bases: Option<PointRange>,
        domain: &Domain<P::ScalarField>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Column<Point<P>>> {
        match bases {
            Some(bases) => self.basis::<P>(&bases, self.log_n),
            None => self.ptau.lagrange::<P>(raw, self.log_n, domain, progress),
        }
    }

    /// The basis of `2^log_n` points of a prepared file.
    fn basis<P: Curve>(&self, bases: &PointRange, log_n: u32) -> Result<Column<Point<P>>> {
        let source = &self.ptau.source;
        let basis = ptau::basis(bases, log_n).map_err(|error| source.refuse(error))?;
        Ok(points_in_place::<P>(source, &basis, [0, 0], Checked::Curve))
    }

    /// The points of the quotient: of the basis of twice the rows, those at odd places.
    ///
    /// # Errors
    /// As [`Self::points`].
    pub fn quotient_points<E: PairingCurve>(
        &self,
        domain: &Domain<E::Scalar>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Column<G1Point<E>>> {
        let rows = 1u64 << self.log_n;
        let _step = step!(self.ptau.source.workspace, "points of H");
        let Some(prepared) = &self.ptau.layout.prepared else {
            let [low, high] = [0, rows].map(|start| self.powers::<E::G1Config>(start, rows));
            let mut progress = |done| {
                progress(Progress {
                    what: "points of H",
                    done,
                    total: rows,
                });
            };
            return coset_lagrange::<E::G1Config>([&low, &high], self.log_n, domain, &mut progress);
        };
        odd(&self.basis::<E::G1Config>(&prepared.lagrange_g1, self.log_n + 1)?)
    }

    /// In a file of the circuit's own power: the bytes that snarkjs hashes for the difference of the power
    /// behind the last one, which is none, and the last one of the first n. Bytes that are not there count as
    /// zero.
    pub fn last_difference<P: Curve>(&self) -> Result<Vec<u8>> {
        let (ptau, rows) = (&self.ptau, 1u64 << self.log_n);
        let offset = ptau.layout.tau_g1.byte_range().end();
        let mut behind = ptau.source.up_to(offset, Point::<P>::BYTES)?;
        behind.resize(Point::<P>::BYTES, 0);
        let mut last = [Point::<P>::INFINITY];
        let first = Region::Span { start: 0, len: 1 };
        self.powers::<P>(rows - 1, 1).read(first, &mut last)?;
        Ok(difference::<P>(&behind, &last[0]))
    }

    /// Whether the file has as many powers as twice the rows are.
    pub fn is_larger(&self) -> bool {
        self.ptau.header.power > self.log_n
    }
}

/// The elements at odd places.
fn odd<T: Element>(all: &Column<T>) -> Result<Column<T>> {
    let workspace = all.workspace();
    let draft = Draft::scratch(workspace, "points of H", all.len() / 2, Placement::Disk)?;
    let mut writer = Writer::new(draft);
    let chunk = all.sequential_chunk();
    let zero = T::decode(&vec![0; T::BYTES]);
    let mut tile = workspace.budget.vec(chunk as usize, zero, "points of H")?;
    let mut reader = all.read_ascending(chunk)?;
    while let Some(region) = reader.next_into(&mut tile)? {
        let half = region.len() as usize / 2;
        for at in 0..half {
            tile[at] = tile[2 * at + 1];
        }
        writer.push(&tile[..half])?;
    }
    writer.finish()
}
