//! Plans of jobs: what an accelerator would do with the jobs that keys and a proof will offer, without doing
//! them.
//!
//! The functions that decide when a job comes decide here too. They find the budget as the engine's plan
//! expects it, since everything else that will be held then is leased meanwhile. Rates are measured now, and
//! the program of a quotient is compiled now and cached. The job's own memory on the host is leased and not
//! allocated.
//!
//! Not foreseen: jobs that come at one time (a busy device declines), devices that fail, how fast the data of a job is
//! read, and the buffers of readers of a transform in two steps, beside its tile.

use ark_bn254::Fr;
use ark_ff::FftField;
use spillproof_engine::accelerator::{Answer, COEFFICIENT_BYTES, ColumnId, Groups, Half, Input, Program};
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::{Job as Offered, Offer};

use super::deal::ALL_FAILED;
use super::device::{BasesKey, Device};
use super::quotient::{self, CosetRequest};
use super::rates::Seconds;
use super::report::{Book, JobKind, Jobs, Report};
use super::shared::{Sharing, SharingRequest};
use super::slots::{HostRoom, SlotCache};
use super::stop::Stop;
use super::sums::{BasesSize, VectorSize};
use super::worth::{JobSize, PanelSize};
use super::{GpuAccelerator, constraints, names, sums, transform};
use crate::constraints::ConstraintsShape;
use crate::msm::{BasesLocation, SCALAR_BYTES, SumsSize};
use crate::ntt::NttMethod;
use crate::program::ProgramMethod;

/// The numerator of a quotient, which the jobs on cosets evaluate.
#[derive(Debug, Clone, Copy)]
pub struct CosetProgram<'a> {
    /// The program.
    pub program: Program<'a>,
    /// The columns that it reads.
    pub inputs: &'a [Input],
}

/// The plan of an accelerator.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlans {
    /// The plan of each offer, in the same order.
    pub jobs: Vec<JobPlan>,
    /// The numbers of jobs by device, in the form of [`GpuAccelerator::report`].
    pub report: Report,
}

/// The plan of an offer.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// The offer.
    pub offer: Offer,
    /// Where it is done.
    pub by: Executor,
    /// The seconds of one such job: all its sums, one after the other, or the transform, or the coset. `None`
    /// for small jobs, and if rates cannot be measured.
    pub seconds: Option<Seconds>,
}

/// Where a job is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Executor {
    /// On devices.
    Devices {
        /// Their numbers in the accelerator; several of them share sums.
        devices: Vec<usize>,
        /// How the job is cut.
        cut: Cut,
        /// Bytes of device memory that the job leases on each device.
        vram_bytes: u64,
        /// Bytes of page-locked memory of the job on all devices, within the session's budget.
        pinned_bytes: u64,
    },
    /// On the processor.
    Processor {
        /// The reason.
        why: String,
    },
}

/// How a job is cut.
#[derive(Debug, Clone, PartialEq)]
pub enum Cut {
    /// Sums of the same number of terms.
    Sums {
        /// Columns of points of the first pass.
        bases: Groups<u64>,
        /// Vectors of scalars of the first pass.
        columns: u64,
        /// Passes that stream points, if none of them are resident: those after the first over points that stay do
        /// not. Points that stay count as leased.
        passes: u64,
        /// Points of a device at one time: all, or a share.
        share_points: u64,
        /// Points of a chunk.
        chunk_points: u64,
        /// Bits of a digit.
        window_bits: u32,
        /// Sums in G2 that are left to the processor, since device memory has room for those in G1 alone.
        left: u64,
    },
    /// Columns of a transform that ranks share.
    Panel {
        /// Elements of a chunk.
        chunk_elements: u64,
    },
    /// A transform.
    Transform {
        /// Whole, or in two steps.
        method: NttMethod,
        /// Elements of a chunk.
        chunk_elements: u64,
    },
    /// The quotient of a constraint system.
    Constraints {
        /// Coefficients of a chunk.
        chunk_coefficients: u64,
    },
    /// A quotient on a coset.
    Coset {
        /// Rows of a tile.
        tile_rows: u64,
        /// Rows of a chunk.
        chunk_rows: u64,
        /// Whether the program is compiled.
        method: ProgramMethod,
    },
}

/// Sums that will be offered.
#[derive(Debug, Clone, Copy)]
struct SumsOffer<'a> {
    bases: BasesSize,
    /// The vectors of one job, the longest first.
    sizes: &'a [VectorSize],
    /// Sums of all jobs.
    count: u64,
}

/// A cut, with its bytes of device memory and of page-locked memory.
struct SizedCut {
    cut: Cut,
    vram_bytes: u64,
    pinned_bytes: u64,
}

impl GpuAccelerator {
    /// Plans these jobs, whose cosets, if there are any, evaluate `numerator`, within the session's `budget`, from
    /// which nothing else is leased now. Rates are measured at the first job of each kind: call it on the session's
    /// threads.
    ///
    /// # Errors
    /// Errors of the budget, if it is not the one that the offers were planned with.
    pub fn plan(
        &self,
        offers: &[Offer],
        numerator: Option<CosetProgram<'_>>,
        budget: &Budget,
    ) -> spillproof_engine::Result<JobPlans> {
        let book = Book::of_a_plan(names(&self.gpus));
        let mut jobs = Vec::with_capacity(offers.len());
        let mut has_quotient = false;
        for offer in offers {
            // A dry run offers a quotient whole, then in transforms: they are for a quotient that is left.
            if has_quotient && matches!(offer.job, Offered::Transform { .. }) {
                continue;
            }
            let held_bytes = budget.available_bytes().saturating_sub(offer.available_bytes);
            let _held = budget.lease(held_bytes, "memory that other stages hold")?;
            let (by, seconds) = self.planned(&book, offer, numerator, budget)?;
            has_quotient |=
                matches!(offer.job, Offered::Constraints { .. }) && matches!(by, Executor::Devices { .. });
            jobs.push(JobPlan {
                offer: *offer,
                by,
                seconds,
            });
        }
        Ok(JobPlans {
            jobs,
            report: book.report(),
        })
    }

    fn planned(
        &self,
        book: &Book,
        offer: &Offer,
        numerator: Option<CosetProgram<'_>>,
        budget: &Budget,
    ) -> spillproof_engine::Result<(Executor, Option<Seconds>)> {
        match offer.job {
            Offered::Sums {
                points,
                bases,
                columns,
                step,
                bases_bytes,
                scalars_bytes,
            } => {
                let all = SumsSize {
                    bases,
                    columns,
                    ..SumsSize::one(points)
                };
                let count = all.sums().saturating_mul(offer.count);
                let size = VectorSize {
                    len: points,
                    lease_bytes: scalars_bytes,
                };
                let sizes = vec![size; columns as usize];
                let sums = SumsOffer {
                    bases: BasesSize {
                        columns: bases,
                        lease_bytes: bases_bytes,
                    },
                    sizes: &sizes,
                    count,
                };
                let weight = all.weight();
                let of_all = |one: Seconds| one.times(weight, weight);
                let of_g1 = SumsSize {
                    bases: Groups { g2: 0, ..bases },
                    ..all
                };
                let request = SharingRequest { points, step, count };
                match self.sharing(book, request, budget)? {
                    Some(Answer::Done(sharing)) => {
                        return self.plan_of_shares(book, sharing, sums, budget);
                    }
                    Some(Answer::Declined(why)) => {
                        let one = self.known_seconds(JobSize::Sum(points), budget);
                        return Ok((Executor::Processor { why }, one.map(of_all)));
                    }
                    None => {}
                }
                let asked = JobSize::Sum(points);
                let jobs = Jobs {
                    kind: JobKind::Sum,
                    count,
                };
                let (by, one) = self.attempt_to_plan(book, jobs, asked, budget, |device, done| {
                    let fit = |device: &mut Device, sums| {
                        sums_that_fit(device, sums, step.is_some(), HostRoom::all_of(budget))
                    };
                    match fit(device, sums) {
                        // The buckets of G1 alone may fit.
                        Err(Stop::Device(error))
                            if error.is_memory_short() && of_g1.sums() > 0 && bases.g2 > 0 =>
                        {
                            let mut sums = sums;
                            sums.bases.columns = of_g1.bases;
                            let mut fits = fit(device, sums)?;
                            let left_of_all = (all.sums() - of_g1.sums()) * offer.count;
                            *done -= left_of_all;
                            book.declined(&device.failed(&error), left_of_all);
                            if let Cut::Sums { left, .. } = &mut fits.cut {
                                *left = all.sums() - of_g1.sums();
                            }
                            Ok(fits)
                        }
                        fits => fits,
                    }
                })?;
                let seconds = match by {
                    // What is left takes as long as without a device.
                    Executor::Devices {
                        cut: Cut::Sums { left: 1.., .. },
                        ..
                    } => one.map(|one| Seconds {
                        device: one.device * of_g1.weight() + one.processor * (weight - of_g1.weight()),
                        processor: one.processor * weight,
                    }),
                    _ => one.map(of_all),
                };
                Ok((by, seconds))
            }
            Offered::Panel {
                log_n,
                log_rows,
                log_columns,
                halves,
            } => {
                let size = PanelSize {
                    log_n,
                    log_lengths: [log_rows, log_columns],
                    halves,
                };
                let jobs = Jobs {
                    kind: JobKind::Panel,
                    count: offer.count,
                };
                self.attempt_to_plan(book, jobs, JobSize::Panel(size), budget, |device, _| {
                    panel_that_fits(device, size, budget)
                })
            }
            Offered::Transform { log_n } => {
                let asked = JobSize::Transform(log_n);
                let jobs = Jobs {
                    kind: JobKind::Transform,
                    count: offer.count,
                };
                self.attempt_to_plan(book, jobs, asked, budget, |device, _| {
                    transform_that_fits(device, log_n, budget)
                })
            }
            Offered::Constraints {
                log_n,
                signals,
                coefficients,
                values,
                ends_bytes,
            } => {
                let shape = ConstraintsShape {
                    log_n,
                    values,
                    signals,
                    coefficients,
                };
                let jobs = Jobs {
                    kind: JobKind::Constraints,
                    count: offer.count,
                };
                self.attempt_to_plan(book, jobs, JobSize::Constraints(shape), budget, |device, _| {
                    constraints_that_fit(device, shape, ends_bytes, budget)
                })
            }
            Offered::Coset {
                log_rows,
                log_columns,
                ends_bytes,
                ..
            } => {
                let Some(numerator) = numerator else {
                    let why = "the plan has cosets, and no program for them".into();
                    return Ok((Executor::Processor { why }, None));
                };
                let coset = CosetRequest {
                    log_rows,
                    log_columns,
                    program: numerator.program,
                    inputs: numerator.inputs,
                    ends_bytes,
                    of_coefficients: false,
                };
                let asked = JobSize::Quotient(&coset);
                let jobs = Jobs {
                    kind: JobKind::Quotient,
                    count: offer.count,
                };
                self.attempt_to_plan(book, jobs, asked, budget, |device, _| {
                    coset_that_fits(device, &coset, budget)
                })
            }
        }
    }

    /// The plan of a job for one device.
    fn attempt_to_plan(
        &self,
        book: &Book,
        jobs: Jobs,
        asked: JobSize<'_>,
        budget: &Budget,
        mut fits: impl FnMut(&mut Device, &mut u64) -> Result<SizedCut, Stop>,
    ) -> spillproof_engine::Result<(Executor, Option<Seconds>)> {
        let mut seconds = None;
        let answer = self.attempt(book, jobs, |number, device, done| {
            let worth = asked.worth(self.offload, device, budget);
            seconds = asked.known_seconds(device, budget).ok().flatten();
            worth?;
            let fits = fits(device, done)?;
            if seconds.is_none() {
                seconds = self.seconds_for_the_plan(asked, device, budget);
            }
            Ok((number, fits))
        })?;
        let by = match answer {
            Answer::Done((number, fits)) => fits.on(vec![number]),
            Answer::Declined(why) => Executor::Processor { why },
        };
        Ok((by, seconds))
    }

    /// The plan of sums that several devices share.
    fn plan_of_shares(
        &self,
        book: &Book,
        sharing: Sharing<'_>,
        offer: SumsOffer<'_>,
        budget: &Budget,
    ) -> spillproof_engine::Result<(Executor, Option<Seconds>)> {
        let Sharing {
            mut idle,
            share_points,
            ..
        } = sharing;
        let count = offer.count;
        let points = offer.sizes.first().map_or(0, |size| size.len);
        let sizes = offer.sizes.iter().map(|size| VectorSize {
            len: share_points,
            ..*size
        });
        let sizes: Vec<VectorSize> = sizes.collect();
        let share = SumsOffer {
            sizes: &sizes,
            ..offer
        };
        let room = HostRoom {
            budget,
            given_bytes: budget.available_bytes() / idle.len() as u64,
        };
        let (mut devices, mut all): (Vec<usize>, Option<SizedCut>) = (Vec::new(), None);
        let mut seconds = None;
        for idle in &mut idle {
            let (number, device) = (idle.number, &mut *idle.device);
            // The points of shares do not stay.
            let fits = sums_that_fit(device, share, false, room);
            match fits.map_err(Stop::sorted) {
                Ok(fits) => {
                    devices.push(number);
                    all = Some(match all.take() {
                        None => fits,
                        Some(all) => SizedCut {
                            vram_bytes: all.vram_bytes.max(fits.vram_bytes),
                            pinned_bytes: all.pinned_bytes + fits.pinned_bytes,
                            ..all
                        },
                    });
                    let asked = JobSize::Sum(share_points);
                    seconds = seconds.or_else(|| self.seconds_for_the_plan(asked, device, budget));
                }
                Err(Stop::Host(error)) => return Err(error),
                Err(Stop::Declined(why)) => book.left(number, &why, count),
                Err(Stop::Device(error)) => {
                    let why = device.failed(&error);
                    book.left(number, &why, count);
                }
            }
        }
        let Some(fits) = all else {
            book.declined(ALL_FAILED, count);
            return Ok((
                Executor::Processor {
                    why: ALL_FAILED.into(),
                },
                None,
            ));
        };
        // Devices take shares as they become idle, so each has about as many; the job comes `often` times.
        let (part, rest) = (points / devices.len() as u64, points % devices.len() as u64);
        let all = SumsSize {
            bases: offer.bases.columns,
            columns: sizes.len() as u64,
            ..SumsSize::one(share_points)
        };
        let often = count / all.sums().max(1);
        let parts = devices.iter().enumerate();
        let parts = parts.map(|(at, number)| (*number, often * (part + u64::from((at as u64) < rest))));
        book.shared(parts, count);
        let weight = all.weight();
        let shares = points.div_ceil(share_points);
        let in_turn = shares.div_ceil(devices.len() as u64) as f64;
        let on_processor = points as f64 / share_points as f64;
        let seconds = seconds.map(|share| share.times(weight * in_turn, weight * on_processor));
        Ok((fits.on(devices), seconds))
    }

    /// The seconds of a job, by rates that are measured already.
    fn known_seconds(&self, asked: JobSize<'_>, budget: &Budget) -> Option<Seconds> {
        (0..self.devices.len()).find_map(|number| {
            let mut device = self.idle(number).ok()?.device;
            asked.known_seconds(&mut device, budget).ok().flatten()
        })
    }

    /// The seconds of a job that is not small, by rates that no decision needs. Errors do not fail the plan.
    fn seconds_for_the_plan(
        &self,
        asked: JobSize<'_>,
        device: &mut Device,
        budget: &Budget,
    ) -> Option<Seconds> {
        if asked.is_small() {
            return None;
        }
        match asked.seconds(device, budget).map_err(Stop::sorted) {
            Ok(seconds) => Some(seconds),
            Err(Stop::Device(error)) => {
                device.failed(&error);
                tracing::debug!(%error, "rates are not measured");
                None
            }
            Err(why) => {
                tracing::debug!(?why, "rates are not measured");
                None
            }
        }
    }
}

impl SizedCut {
    fn on(self, devices: Vec<usize>) -> Executor {
        Executor::Devices {
            devices,
            cut: self.cut,
            vram_bytes: self.vram_bytes,
            pinned_bytes: self.pinned_bytes,
        }
    }
}

/// Points that are only planned.
const PLANNED: ColumnId = ColumnId {
    frames: u64::MAX,
    first_frame: 0,
};

/// The plan of sums on one device; points with an id are streamed once, and stay if they fit.
fn sums_that_fit(
    device: &mut Device,
    offer: SumsOffer<'_>,
    with_id: bool,
    room: HostRoom<'_>,
) -> Result<SizedCut, Stop> {
    let SumsOffer { bases, sizes, .. } = offer;
    let longest = sizes.first().map_or(0, |size| size.len);
    let mut resident = match with_id {
        true => {
            let key = BasesKey {
                columns: bases.columns,
                ids: vec![PLANNED; bases.columns.count() as usize],
            };
            device.entry_for_bases(key, longest)?
        }
        false => None,
    };
    let passes = match sums::plans(device, bases, sizes, room.given_bytes, resident.as_ref()) {
        Err(Stop::Device(error)) if error.is_memory_short() && resident.take().is_some() => {
            sums::plans(device, bases, sizes, room.given_bytes, None)?
        }
        passes => passes?,
    };
    let plans = || passes.iter().map(|pass| &pass.plan);
    let Some(first) = plans().next() else {
        return Err(Stop::Declined("the job has no sums".into()));
    };
    let slot_bytes = plans().map(|plan| plan.slot_bytes()).max().unwrap_or(0);
    let vram_bytes = resident.map_or(0, |resident| resident.vram_bytes())
        + plans().map(|plan| plan.vram_bytes()).max().unwrap_or(0);
    // Columns of scalars stay where there is room beside the sums.
    let room_bytes = device.vram_bytes()?.saturating_sub(vram_bytes);
    let columns = sizes.iter().filter(|size| with_id && size.lease_bytes > 0);
    let kept_bytes = columns
        .map(|size| size.len * SCALAR_BYTES)
        .fold(0, |kept, bytes| {
            let all_bytes = kept + bytes;
            if all_bytes <= room_bytes { all_bytes } else { kept }
        });
    let pinned_bytes = SlotCache::bytes_of(slot_bytes, false);
    let _slots = room.budget.lease_map(pinned_bytes, "pinned slots")?;
    Ok(SizedCut {
        cut: Cut::Sums {
            bases: first.size().bases,
            columns: first.columns(),
            passes: plans()
                .filter(|plan| plan.size().location == BasesLocation::Streamed)
                .count() as u64,
            share_points: first.points(),
            chunk_points: first.shape().chunk_points,
            window_bits: first.shape().window_bits,
            left: 0,
        },
        vram_bytes: vram_bytes + kept_bytes,
        pinned_bytes,
    })
}

fn transform_that_fits(device: &mut Device, log_n: u32, budget: &Budget) -> Result<SizedCut, Stop> {
    let plan = transform::plan(device, log_n, budget)?;
    let pinned_bytes = SlotCache::bytes_of(plan.slot_bytes(), true);
    let _slots = budget.lease_map(pinned_bytes, "pinned slots")?;
    let _tile = match transform::matrix(&plan) {
        None => None,
        Some(matrix) => {
            let bytes = matrix.tile_bytes(budget.available_bytes());
            Some(budget.lease(bytes, "tile for an accelerator")?)
        }
    };
    // The output stays where there is room beside the job.
    let is_whole = plan.method() == NttMethod::InDeviceMemory;
    let stays = is_whole && plan.vram_bytes() + plan.total_bytes() <= device.vram_bytes()?;
    let kept_bytes = if stays { plan.total_bytes() } else { 0 };
    Ok(SizedCut {
        cut: Cut::Transform {
            method: plan.method(),
            chunk_elements: plan.chunk_elements(),
        },
        vram_bytes: plan.vram_bytes() + kept_bytes,
        pinned_bytes,
    })
}

fn constraints_that_fit(
    device: &mut Device,
    shape: ConstraintsShape,
    ends_bytes: u64,
    budget: &Budget,
) -> Result<SizedCut, Stop> {
    let plan = constraints::plan(device, shape, budget)?;
    let pinned_bytes = SlotCache::bytes_of(plan.slot_bytes(), true);
    let _slots = budget.lease_map(pinned_bytes, "pinned slots")?;
    let _ends = budget.lease(ends_bytes, "the ends of constraints")?;
    Ok(SizedCut {
        cut: Cut::Constraints {
            chunk_coefficients: plan.slot_bytes() / COEFFICIENT_BYTES,
        },
        vram_bytes: plan.vram_bytes(),
        pinned_bytes,
    })
}

fn panel_that_fits(device: &mut Device, size: PanelSize, budget: &Budget) -> Result<SizedCut, Stop> {
    // Halves whose tables are as long as any.
    let two = Fr::from(2u64);
    let half = |is_second| Half {
        log_n: size.log_n,
        omega: Fr::get_root_of_unity(1 << size.log_n).unwrap_or(two),
        before: two,
        after: two,
        scale: two,
        is_second,
    };
    let halves = [half(true), half(false)];
    let halves = &halves[halves.len() - (size.halves as usize).min(2)..];
    let plan = transform::plan_of_panel(device, size.log_lengths, halves, budget)?;
    let pinned_bytes = SlotCache::bytes_of(plan.slot_bytes(), true);
    let _slots = budget.lease_map(pinned_bytes, "pinned slots")?;
    Ok(SizedCut {
        cut: Cut::Panel {
            chunk_elements: plan.chunk_elements(),
        },
        vram_bytes: plan.vram_bytes(),
        pinned_bytes,
    })
}

fn coset_that_fits(device: &mut Device, coset: &CosetRequest<'_>, budget: &Budget) -> Result<SizedCut, Stop> {
    let of_coefficients = CosetRequest {
        of_coefficients: true,
        ..*coset
    };
    let (kernels, plan) = match quotient::plan(device, &of_coefficients, budget) {
        Err(Stop::Device(error)) if error.is_memory_short() => quotient::plan(device, coset, budget)?,
        planned => planned?,
    };
    // Columns stay where there is room beside the job.
    let room_bytes = device.vram_bytes()?.saturating_sub(plan.vram_bytes());
    let column_bytes = plan.column_bytes();
    let kept_bytes = plan
        .shape()
        .columns_bytes()
        .min(room_bytes / column_bytes * column_bytes);
    let pinned_bytes = SlotCache::bytes_of(plan.slot_bytes(), true);
    let _slots = budget.lease_map(pinned_bytes, "pinned slots")?;
    let _ends = budget.lease(coset.ends_bytes, "a coset's ends")?;
    Ok(SizedCut {
        cut: Cut::Coset {
            tile_rows: 1 << plan.log_tile_rows(),
            chunk_rows: plan.chunk_rows(),
            method: kernels.method().clone(),
        },
        vram_bytes: plan.vram_bytes() + kept_bytes,
        pinned_bytes,
    })
}
