//! Ring jobs with known results: data, the two test kernels with typed parameters, setups.

use spillproof_gpu::kernels::{Argument, Grid, Kernel, Kernels};
use spillproof_gpu::ring::{Chunk, Chunking, Download, Ring, RingJob, Upload};
use spillproof_gpu::{BoxedError, Caching, DeviceBuffer, Gpu, Pinned, Result, Stream, Vram};

/// Bytes of the tests' elements.
pub const WORD: u64 = 8;
pub const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The two test kernels for a real device; their host build is in the fake driver's `test_kernels.cpp`.
pub const DEVICE_TEXT: &str = r#"
typedef unsigned long long u64;
extern "C" __global__ void spk_test_scale(u64* values, u64 count, u64 factor, u64 first) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) values[i] = values[i] * factor + i + first;
}
extern "C" __global__ void spk_test_accumulate(u64* total, const u64* values, u64 count, u64 first) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(total, values[i] * (first + i + 1));
}
"#;

/// Random-looking words, by seed.
pub fn words(count: u64, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(FACTOR);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    };
    (0..count).map(|_| next()).collect()
}

pub fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// The result of `spk_test_scale` on the whole job.
pub fn scaled(words: &[u64]) -> Vec<u64> {
    let scale = |(i, word): (usize, &u64)| word.wrapping_mul(FACTOR).wrapping_add(i as u64);
    words.iter().enumerate().map(scale).collect()
}

/// The result of `spk_test_accumulate` on the whole job.
pub fn accumulated(words: &[u64]) -> u64 {
    let weigh = |(i, word): (usize, &u64)| word.wrapping_mul(i as u64 + 1);
    words.iter().enumerate().map(weigh).fold(0, u64::wrapping_add)
}

pub struct TestKernels {
    scale: Kernel,
    accumulate: Kernel,
}

impl TestKernels {
    pub fn load(gpu: &Gpu) -> Result<Self> {
        Self::from_image(gpu, &spillproof_fake_driver::test_kernels_image())
    }

    pub fn from_image(gpu: &Gpu, image: &[u8]) -> Result<Self> {
        let kernels = Kernels::load(gpu, image)?;
        Ok(Self {
            scale: kernels.kernel("spk_test_scale")?,
            accumulate: kernels.kernel("spk_test_accumulate")?,
        })
    }

    pub fn scale(&self, chunk: &Chunk<'_>) -> Result<()> {
        let count = chunk.piece.bytes / WORD;
        let arguments = [
            Argument::Buffer(chunk.buffer),
            Argument::Word64(count),
            Argument::Word64(FACTOR),
            Argument::Word64(chunk.piece.offset / WORD),
        ];
        // SAFETY: `spk_test_scale(u64*, u64, u64, u64)` touches `count` words of the buffer, which the ring
        // keeps.
        unsafe {
            self.scale
                .launch(chunk.stream, Grid::for_threads(count, 64)?, &arguments)
        }
    }

    pub fn accumulate(&self, chunk: &Chunk<'_>, total: &DeviceBuffer) -> Result<()> {
        let count = chunk.piece.bytes / WORD;
        let arguments = [
            Argument::BufferAt(total, 0),
            Argument::Buffer(chunk.buffer),
            Argument::Word64(count),
            Argument::Word64(chunk.piece.offset / WORD),
        ];
        // SAFETY: `spk_test_accumulate(u64*, const u64*, u64, u64)` touches one word of `total`, which the
        // callers keep until they have read it or the ring has settled, and `count` words of the buffer.
        unsafe {
            self.accumulate
                .launch(chunk.stream, Grid::for_threads(count, 64)?, &arguments)
        }
    }
}

/// A source over words, which checks that it is asked in order.
pub fn source_of(words: &[u64]) -> impl FnMut(u64, &mut [u8]) -> Result<(), BoxedError> {
    let bytes = bytes_of(words);
    let mut expected = 0;
    move |offset, into| {
        assert_eq!(offset, expected, "asked out of order");
        expected += into.len() as u64;
        into.copy_from_slice(&bytes[offset as usize..][..into.len()]);
        Ok(())
    }
}

/// The sizes of a job.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub words: u64,
    pub chunk_words: u64,
    pub first_words: u64,
    pub up_slots: usize,
    pub back_slots: usize,
    pub buffers: usize,
}

impl Sizes {
    /// Equal chunks, two slots at each end, two buffers.
    pub fn new(words: u64, chunk_words: u64) -> Self {
        Self {
            words,
            chunk_words,
            first_words: chunk_words,
            up_slots: 2,
            back_slots: 2,
            buffers: 2,
        }
    }

    pub fn chunking(&self) -> Chunking {
        Chunking::new(self.chunk_words * WORD, WORD)
            .unwrap()
            .growing_from(self.first_words * WORD)
            .unwrap()
    }

    /// Device memory of a job: its buffers, and one for the sum.
    pub fn vram_bytes(&self) -> u64 {
        let chunk = (self.chunk_words * WORD).next_multiple_of(spillproof_gpu::GRANULE_BYTES);
        self.buffers as u64 * chunk + spillproof_gpu::GRANULE_BYTES
    }

    pub fn pinned_bytes(&self) -> u64 {
        (self.up_slots + self.back_slots) as u64 * self.chunk_words * WORD
    }
}

/// All objects of a job.
pub struct Setup {
    pub gpu: Gpu,
    pub kernels: TestKernels,
    pub ring: Ring,
    pub upload: Upload,
    pub download: Download,
    pub vram: Vram,
    pub pinned: Pinned,
}

impl Setup {
    /// Objects for a device, with budgets that are just enough.
    pub fn new(gpu: &Gpu, sizes: &Sizes) -> Result<Self> {
        Self::with_kernels(gpu, sizes, TestKernels::load(gpu)?)
    }

    pub fn with_kernels(gpu: &Gpu, sizes: &Sizes, kernels: TestKernels) -> Result<Self> {
        let vram = Vram::new(gpu, sizes.vram_bytes());
        let pinned = Pinned::new(sizes.pinned_bytes());
        let slot_bytes = (sizes.chunk_words * WORD) as usize;
        let up = pinned.pool(gpu, sizes.up_slots, slot_bytes, Caching::WriteCombined, "up")?;
        let back = pinned.pool(gpu, sizes.back_slots, slot_bytes, Caching::Cached, "back")?;
        Ok(Self {
            gpu: gpu.clone(),
            kernels,
            ring: Ring::new(&vram, sizes.chunking(), sizes.buffers)?,
            upload: Upload::new(up.take(sizes.up_slots)?, gpu.trace())?,
            download: Download::new(back.take(sizes.back_slots)?, gpu.trace())?,
            vram,
            pinned,
        })
    }

    /// Uploads words, runs `spk_test_scale` over them, and downloads the result.
    pub fn transform(&mut self, words: &[u64]) -> Result<Vec<u64>> {
        let mut out = Vec::new();
        let mut source = source_of(words);
        let mut sink = collect(&mut out);
        let kernels = &self.kernels;
        self.ring.run_job(
            RingJob {
                arrays: &[],
                total_bytes: words.len() as u64 * WORD,
                upload: Some((&mut self.upload, &mut source)),
                download: Some((&mut self.download, &mut sink)),
            },
            &mut |chunk| kernels.scale(&chunk),
        )?;
        drop(sink);
        Ok(words_of(&out))
    }

    /// Uploads words, which `spk_test_accumulate` sums, and reads the sum.
    pub fn sum(&mut self, words: &[u64]) -> Result<u64> {
        let total = self.vram.buffer(WORD, "sum")?;
        let done = self.sum_into(&total, words);
        if done.is_err() {
            // The buffer must not be freed while a kernel uses it.
            let _ = self.ring.finish();
        }
        done
    }

    fn sum_into(&mut self, total: &DeviceBuffer, words: &[u64]) -> Result<u64> {
        self.ring.stream().fill(total, 0)?;
        let mut source = source_of(words);
        let kernels = &self.kernels;
        self.ring.run_job(
            RingJob {
                arrays: &[],
                total_bytes: words.len() as u64 * WORD,
                upload: Some((&mut self.upload, &mut source)),
                download: None,
            },
            &mut |chunk| kernels.accumulate(&chunk, total),
        )?;
        self.ring.finish()?;
        let mut word = [0; 8];
        self.ring.stream().read((total, 0), &mut word)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// A sink into a vector, which checks that it gets bytes in order.
pub fn collect(out: &mut Vec<u8>) -> impl FnMut(u64, &[u8]) -> Result<(), BoxedError> {
    |offset, bytes| {
        assert_eq!(offset, out.len() as u64, "given out of order");
        out.extend_from_slice(bytes);
        Ok(())
    }
}

/// A new stream of a device.
pub fn stream(gpu: &Gpu) -> Stream {
    gpu.stream().unwrap()
}
