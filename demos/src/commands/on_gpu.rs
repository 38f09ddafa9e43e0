//! A sum on a device: points and scalars pass from disk through pinned slots into its memory, within budgets in bytes.
//!
//! Pinned slots are host memory, and are leased from the session's budget as everything else.

use std::env;
use std::ops::Range;
use std::path::PathBuf;

use ark_bn254::{Fr, G1Affine};
use ark_ec::CurveGroup;
use spillproof::Session;
use spillproof::budget::{ByteSize, Lease, LeasedVec};
use spillproof::column::{Column, Element, Reader};
use spillproof::commit::G1;
use spillproof_gpu::kernels::{Cache, Kernels};
use spillproof_gpu::msm::{ELEMENT_BYTES, Msm, MsmPlan, columns};
use spillproof_gpu::ring::{Source, Upload};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{BoxedError, Caching, Choice, Chosen, DoneBy, Error, Gpu, Pinned, Vram, with_fallback};

use super::msm::msm_from_disk;
use crate::run::Result;

/// One is being filled, one is on its way, one is ready.
const SLOTS: usize = 3;
/// The most of a slot.
const SLOT_BYTES_MAX: u64 = 64 << 20;

/// The sum by the device that `choice` says, or by the processor: where there is none, or where it fails.
///
/// # Errors
/// Of a device that was named and can't be had; the engine's.
pub fn sum(
    session: &Session,
    (choice, vram): (Choice, ByteSize),
    bases: &Column<G1>,
    scalars: &Column<Fr>,
) -> Result<(G1Affine, DoneBy)> {
    let gpu = match choice.open(Detail::Counts)? {
        Chosen::Gpu(gpu) => gpu,
        Chosen::Processor(reason) => {
            let done_by = DoneBy::Processor {
                why: reason.to_string(),
                device_is_lost: false,
            };
            return Ok((msm_from_disk(session, bases, scalars)?, done_by));
        }
    };
    let host = Host::lease(session, bases, scalars)?;
    with_fallback(
        "MSM",
        || on_device(&gpu, vram, host),
        || msm_from_disk(session, bases, scalars),
    )
}

/// What the host holds while a device sums: all of it goes before the processor would begin.
struct Host {
    points: Bytes<G1>,
    scalars: Bytes<Fr>,
    terms: u64,
    /// The most that a slot may have.
    slot_bytes: u64,
    _slots: Lease,
}

impl Host {
    fn lease(session: &Session, bases: &Column<G1>, scalars: &Column<Fr>) -> spillproof::Result<Self> {
        let budget = session.budget();
        let terms = scalars.len();
        let slot_bytes = (budget.available_bytes() / 8).min(SLOT_BYTES_MAX);
        Ok(Self {
            points: Bytes::new(session, &bases.prefix(terms)?)?,
            scalars: Bytes::new(session, scalars)?,
            terms,
            slot_bytes,
            _slots: budget.lease(SLOTS as u64 * slot_bytes, "pinned slots")?,
        })
    }
}

fn on_device(gpu: &Gpu, vram: ByteSize, host: Host) -> Result<G1Affine, Error> {
    let vram = match vram {
        ByteSize::Bytes(bytes) => Vram::new(gpu, bytes),
        ByteSize::Auto => Vram::auto(gpu)?,
    };
    let plan = MsmPlan::new(host.terms, vram.ledger().limit_bytes(), host.slot_bytes)?;
    tracing::debug!(?plan, "MSM on the device");
    let kernels = Kernels::of_the_tier(gpu, cache_folder().map(Cache::new).as_ref())?;
    let pool = Pinned::new(SLOTS as u64 * host.slot_bytes).pool(
        gpu,
        SLOTS,
        plan.slot_bytes() as usize,
        Caching::WriteCombined,
        "MSM chunks",
    )?;
    let mut upload = Upload::new(pool.take(SLOTS)?, gpu.trace())?;
    let mut source = columns(host.points, host.scalars);
    upload.stage(&plan.chunking()?, host.terms * ELEMENT_BYTES, &mut source)?;

    let _turn = gpu.take_turn();
    let mut msm = Msm::new(&vram, &kernels, plan)?;
    let sum = msm.run(&mut upload, &mut source)?;
    tracing::debug!("device:\n{}", gpu.trace().table());
    Ok(sum.into_affine())
}

/// Where compiled kernels are kept.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("spillproof").join("kernels"))
}

/// The bytes of a column, in order, each read once.
struct Bytes<E: Copy> {
    reader: Reader<E>,
    tile: LeasedVec<E>,
    /// Of the tile, what has been read and not given.
    held: Range<usize>,
}

impl<E: Element> Bytes<E> {
    fn new(session: &Session, column: &Column<E>) -> spillproof::Result<Self> {
        let chunk = column.sequential_chunk();
        let nothing = E::decode(&vec![0; E::BYTES]);
        Ok(Self {
            reader: column.read_ascending(chunk)?,
            tile: session
                .budget()
                .vec(chunk.min(column.len()) as usize, nothing, "bytes for the device")?,
            held: 0..0,
        })
    }
}

impl<E: Element> Source for Bytes<E> {
    fn fill(&mut self, offset: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let mut into = into;
        while !into.is_empty() {
            if self.held.is_empty() {
                let Some(region) = self.reader.next_into(&mut self.tile)? else {
                    return Err(format!("the column ends before byte {}", offset + into.len() as u64).into());
                };
                self.held = 0..region.len() as usize;
            }
            let count = self.held.len().min(into.len() / E::BYTES);
            let (now, rest) = into.split_at_mut(count * E::BYTES);
            let values = &self.tile[self.held.start..][..count];
            for (value, out) in values.iter().zip(now.chunks_exact_mut(E::BYTES)) {
                value.encode(out);
            }
            self.held.start += count;
            into = rest;
        }
        Ok(())
    }
}
