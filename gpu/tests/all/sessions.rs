//! Shared by the tests of `GpuAccelerator`: sessions with an accelerator, their jobs, and the results by
//! arkworks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::{AdditiveGroup, FftField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use spillproof_commit::G1;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Element, Placement, Writer};
use spillproof_engine::stream::{Scalars, Transform, msm, ntt};
use spillproof_fake_driver::FakeDriver;
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request};
use spillproof_gpu::msm::BasesLocation;

/// Points and scalars on disk, and their sums by arkworks.
pub struct TestJob {
    pub bases: Column<G1>,
    pub scalars: Vec<Column<Fr>>,
    pub slice: Vec<Fr>,
    pub expected: Vec<G1Projective>,
    pub input: Vec<Fr>,
}

pub fn column<E: Element>(session: &Session, values: &[E]) -> Column<E> {
    let mut writer = Writer::scratch(
        session.workspace(),
        "of a test",
        values.len() as u64,
        Placement::Disk,
    )
    .unwrap();
    writer.push(values).unwrap();
    writer.finish().unwrap()
}

/// Points, vectors of scalars, and their sums by arkworks.
struct Data {
    bases: Vec<G1>,
    vectors: [Vec<Fr>; 3],
    expected: Vec<G1Projective>,
}

impl Data {
    fn new(n: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let points: Vec<G1Affine> = (0..n).map(|_| G1Affine::rand(&mut rng)).collect();
        let mut random = |n: usize| -> Vec<Fr> { (0..n).map(|_| Fr::rand(&mut rng)).collect() };
        let vectors = [random(n), random(n), random(n / 2 + 1)];
        let sum = |values: &Vec<Fr>| G1Projective::msm(&points[..values.len()], values).unwrap();
        Self {
            bases: points.iter().map(G1::from_affine::<g1::Config>).collect(),
            expected: vectors.iter().map(sum).collect(),
            vectors,
        }
    }
}

impl TestJob {
    /// Two columns of `n` scalars and a slice that is shorter. Jobs of one length in a process have the same
    /// data.
    pub fn new(session: &Session, n: usize) -> Self {
        static ALL: Mutex<BTreeMap<usize, Arc<Data>>> = Mutex::new(BTreeMap::new());
        let data = ALL
            .lock()
            .unwrap()
            .entry(n)
            .or_insert_with(|| Arc::new(Data::new(n)))
            .clone();
        Self {
            bases: column(session, &data.bases),
            scalars: data.vectors[..2]
                .iter()
                .map(|values| column(session, values))
                .collect(),
            expected: data.expected.clone(),
            input: data.vectors[0].clone(),
            slice: data.vectors[2].clone(),
        }
    }

    pub fn check_sums(&self, session: &Session, what: &str) {
        let sums = session.run(|| {
            let slice: &[Fr] = &self.slice;
            let vectors = [
                Scalars::Column(&self.scalars[0]),
                Scalars::Slice(&[]),
                Scalars::Column(&self.scalars[1]),
                Scalars::Slice(slice),
                Scalars::Foreign(&slice),
            ];
            msm::<g1::Config>(&self.bases, &vectors)
        });
        let [a, b, c] = [0, 1, 2].map(|i| self.expected[i]);
        assert_eq!(
            sums.unwrap_or_else(|e| panic!("{what}: {e}")),
            [a, G1Projective::ZERO, b, c, c],
            "{what}"
        );
    }

    /// Ten sums and five transforms, after which the session holds as much memory as before.
    pub fn check_in_turn(&self, session: &Session, what: &str) {
        let held = session.budget().held_bytes();
        self.check_sums(session, what);
        self.check_transforms(session, what);
        self.check_sums(session, what);
        assert_eq!(session.budget().held_bytes(), held, "{what}");
    }

    /// Five transforms: forward and inverse, plain and on a coset, and of a column that is padded with zeros.
    pub fn check_transforms(&self, session: &Session, what: &str) {
        let domain = Radix2EvaluationDomain::<Fr>::new(self.input.len()).unwrap();
        let shift = Fr::GENERATOR;
        let coset = domain.get_coset(shift).unwrap();
        let (log_n, omega) = (self.input.len().ilog2(), domain.group_gen);
        let mut padded = self.slice.clone();
        padded.resize(self.input.len(), Fr::ZERO);
        let short = column(session, &self.slice);
        let whole = &self.scalars[0];
        let cases = [
            (whole, Transform::forward(log_n, omega), domain.fft(&self.input)),
            (
                whole,
                Transform::inverse(log_n, omega).unwrap(),
                domain.ifft(&self.input),
            ),
            (
                whole,
                Transform::coset_forward(log_n, omega, shift),
                coset.fft(&self.input),
            ),
            (
                whole,
                Transform::coset_inverse(log_n, omega, shift).unwrap(),
                coset.ifft(&self.input),
            ),
            (&short, Transform::forward(log_n, omega), domain.fft(&padded)),
        ];
        for (input, transform, expected) in cases {
            let output = session.run(|| ntt(input, &transform, Placement::Auto));
            let output = output.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(output.to_vec().unwrap() == expected, "{what}, {transform:?}");
        }
    }
}

/// Writes the image of the kernels to a file, and names it where the accelerator looks.
pub fn name_the_image(image: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, image).unwrap();
    // SAFETY: a child with a single test, before it starts any thread that looks at the environment.
    unsafe { std::env::set_var("SPILLPROOF_KERNELS_IMAGE", file.path()) };
    file
}

pub fn accelerator(vram: ByteSize, offload: Offload) -> Arc<GpuAccelerator> {
    open(&Request {
        choice: Choice::Device(0),
        vram,
        offload,
        ..Request::default()
    })
}

/// The same, with bases that stay or are streamed.
pub fn accelerator_with(vram: ByteSize, offload: Offload, bases: BasesLocation) -> Arc<GpuAccelerator> {
    let accelerator = Arc::into_inner(accelerator(vram, offload)).unwrap();
    Arc::new(accelerator.with_bases(bases))
}

pub fn open(request: &Request) -> Arc<GpuAccelerator> {
    GpuAccelerator::open(request).unwrap().unwrap()
}

pub fn session(accelerator: Option<&Arc<GpuAccelerator>>, memory_bytes: u64) -> Session {
    let accelerator = accelerator
        .cloned()
        .map(|accelerator| accelerator as Arc<dyn Accelerator>);
    session_of_threads(accelerator, memory_bytes, 2)
}

/// A session of so many threads.
pub fn session_of_threads(
    accelerator: Option<Arc<dyn Accelerator>>,
    memory_bytes: u64,
    threads: usize,
) -> Session {
    let mut builder = Session::builder()
        .memory(ByteSize::Bytes(memory_bytes))
        .dir(env!("CARGO_TARGET_TMPDIR"))
        .threads(threads);
    if let Some(accelerator) = accelerator {
        builder = builder.accelerator(accelerator);
    }
    builder.build().unwrap()
}

/// Drops the session and the accelerator, and checks that the device holds nothing.
pub fn all_is_given_back(
    session: Session,
    accelerator: Arc<GpuAccelerator>,
    driver: &FakeDriver,
    what: &str,
) {
    assert!(
        session.budget().peak_bytes() <= session.budget().limit_bytes(),
        "{what}"
    );
    drop(session);
    drop(Arc::into_inner(accelerator).unwrap());
    driver.assert_clean(what);
}
