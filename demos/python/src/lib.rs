//! The native half of the Python package `spillproof`: what `python/spillproof` wraps in arrays, integers and
//! dataclasses.
//!
//! Work is done without the interpreter's lock. A signal that came meanwhile (Ctrl-C) is raised when the
//! call's stage is done.

mod buffers;

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spillproof_bindings::bytes::{self, POINT_BYTES, SCALAR_BYTES, Scalars};
use spillproof_bindings::column::{self, CallerColumn};
use spillproof_bindings::error::{Error, Result, explain};
use spillproof_bindings::plan::Job;
use spillproof_bindings::pointers::caught;
use spillproof_bindings::work::{self, Basis, Domain, Opening, Roots, Settings, Values};
use spillproof_commit::{G1, Scalar};
use spillproof_engine::budget::ByteSize;

use buffers::Buffer;

type ScalarBuffer = Buffer<SCALAR_BYTES>;
type PointBuffer = Buffer<POINT_BYTES>;

/// Works without the interpreter's lock, then looks for signals.
fn without_lock<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let done = py.detach(|| caught(work).unwrap_or(Err(Error::Internal)));
    py.check_signals()?;
    done.map_err(|error| exception(py, &error))
}

/// The exception of `spillproof._errors` for an error.
fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let arguments = (error.kind() as i32, explain(error), error.needed_bytes());
    let made = py
        .import("spillproof._errors")
        .and_then(|errors| errors.getattr("of")?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The same for work that needs no time.
fn at_once<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}

fn unknown(what: &'static str, given: &str, known: &'static str) -> Error {
    Error::Unknown {
        what,
        given: given.to_owned(),
        known,
    }
}

/// A number of bytes, a text such as `2GiB`, or nothing: `auto`.
fn memory(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<ByteSize> {
    let Some(given) = given else {
        return Ok(ByteSize::Auto);
    };
    if let Ok(bytes) = given.extract::<u64>() {
        return Ok(ByteSize::Bytes(bytes));
    }
    let text: String = given.extract().map_err(|_| {
        PyTypeError::new_err("memory is a number of bytes, or a text such as \"2GiB\" or \"auto\"")
    })?;
    let size = text
        .parse()
        .map_err(|error: spillproof_engine::budget::ParseSizeError| {
            Error::from(spillproof_engine::Error::from(
                spillproof_engine::error::Invalid::Setting {
                    name: "memory budget",
                    reason: error.to_string(),
                },
            ))
        });
    at_once(py, size)
}

fn scalar(py: Python<'_>, what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let buffer = ScalarBuffer::new(value)?;
    at_once(py, bytes::scalar(what, buffer.bytes()))
}

fn point_bytes(py: Python<'_>, what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<[u8; POINT_BYTES]> {
    let buffer = PointBuffer::new(value)?;
    let bytes = buffer.bytes();
    let expected = 1;
    let count = Error::Count {
        what,
        given: (bytes.len() / POINT_BYTES) as u64,
        expected,
    };
    at_once(py, bytes.try_into().map_err(|_| count))
}

/// A domain: log2 of its length, whose root, whether the transform is the inverse, the shift.
fn domain(py: Python<'_>, given: &(u32, String, bool, Bound<'_, PyAny>)) -> PyResult<Domain> {
    let (log_n, roots, is_inverse, shift) = given;
    let roots = match roots.as_str() {
        "halo2" => Ok(Roots::Halo2),
        "arkworks" => Ok(Roots::Arkworks),
        other => Err(unknown("the root of unity", other, "halo2, arkworks")),
    };
    Ok(Domain {
        log_n: *log_n,
        roots: at_once(py, roots)?,
        shift: scalar(py, "the shift of a coset", shift)?,
        is_inverse: *is_inverse,
    })
}

/// Scalars on disk, or in an array.
enum Given<'py> {
    Column(PyRef<'py, Column>),
    Buffer(ScalarBuffer),
}

impl<'py> Given<'py> {
    fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Column>() {
            Ok(column) => Ok(Self::Column(column.borrow())),
            Err(_) => ScalarBuffer::new(object).map(Self::Buffer),
        }
    }

    /// What of it may leave the lock.
    fn source(&self) -> Source<'_> {
        match self {
            Self::Column(column) => Source::Column(&column.0),
            Self::Buffer(buffer) => Source::Bytes(buffer.bytes()),
        }
    }
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Column(&'a CallerColumn<Scalar>),
    Bytes(&'a [u8]),
}

impl<'a> Source<'a> {
    fn values(self) -> Result<Values<'a>> {
        Ok(match self {
            Self::Column(column) => Values::Column(column.full()?),
            Self::Bytes(bytes) => Values::Bytes(Scalars::new("scalars", bytes)?),
        })
    }
}

#[pyclass(frozen, module = "spillproof._native")]
struct Session(spillproof_engine::Session);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (memory, dir, threads))]
    fn new(
        py: Python<'_>,
        memory: Option<&Bound<'_, PyAny>>,
        dir: Option<PathBuf>,
        threads: usize,
    ) -> PyResult<Self> {
        let memory = self::memory(py, memory)?;
        let settings = Settings { memory, dir, threads };
        without_lock(py, || settings.session().map(Self))
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.budget().limit_bytes()
    }

    #[getter]
    fn held_bytes(&self) -> u64 {
        self.0.budget().held_bytes()
    }

    #[getter]
    fn dir(&self) -> PathBuf {
        self.0.dir().to_owned()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn generate_srs(&self, py: Python<'_>, path: PathBuf, k: u32, secret: &Bound<'_, PyAny>) -> PyResult<()> {
        let secret = scalar(py, "the secret", secret)?;
        without_lock(py, || work::generate_srs(&self.0, &path, k, secret))
    }

    fn import_srs(&self, py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<()> {
        without_lock(py, || work::import_srs(&self.0, &source, &target).map(|_| ()))
    }

    fn verify_srs(&self, py: Python<'_>, path: PathBuf) -> PyResult<u32> {
        without_lock(py, || work::check_srs(&self.0, &path))
    }

    fn open_srs(&self, py: Python<'_>, path: PathBuf) -> PyResult<Srs> {
        without_lock(py, || {
            Ok(Srs(spillproof_commit::Srs::open_container(
                self.0.workspace(),
                &path,
            )?))
        })
    }

    fn begin_column(&self, py: Python<'_>, count: u64) -> PyResult<Column> {
        without_lock(py, || {
            CallerColumn::of_scalars(self.0.workspace(), count).map(Column)
        })
    }

    fn begin_points(&self, py: Python<'_>, count: u64) -> PyResult<Points> {
        without_lock(py, || {
            CallerColumn::of_points(self.0.workspace(), count).map(Points)
        })
    }

    fn msm<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        scalars: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (points, scalars) = (PointBuffer::new(points)?, Given::new(scalars)?);
        let (points, source) = (points.bytes(), scalars.source());
        let sum = without_lock(py, || work::msm(&self.0, points, &source.values()?))?;
        Ok(PyBytes::new(py, &sum))
    }

    /// Transforms an array into another, which may be the same.
    fn ntt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        domain: (u32, String, bool, Bound<'_, PyAny>),
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let domain = self::domain(py, &domain)?;
        let transformed = {
            let values = ScalarBuffer::new(values)?;
            let values = values.bytes();
            without_lock(py, || {
                work::ntt_of(&self.0, &Scalars::new("scalars", values)?, &domain)
            })?
        };
        let mut out = ScalarBuffer::new(out)?;
        let out = out.bytes_mut()?;
        without_lock(py, || column::read_all(&transformed, out))
    }
}

#[pyclass(frozen, module = "spillproof._native")]
struct Srs(spillproof_commit::Srs);

/// k, whether it has each form, its root, the pair in G2.
type Inspected<'py> = (
    u32,
    bool,
    bool,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pymethods]
impl Srs {
    fn inspect<'py>(&self, py: Python<'py>) -> Inspected<'py> {
        let info = work::inspect(&self.0);
        let [g2, s_g2] = info.pair;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        (
            info.k,
            info.has_monomial,
            info.has_lagrange,
            bytes(&info.root),
            bytes(&g2),
            bytes(&s_g2),
        )
    }

    fn commit<'py>(
        &self,
        py: Python<'py>,
        polynomials: Vec<Bound<'py, PyAny>>,
        basis: &str,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let basis = match basis {
            "monomial" => Ok(Basis::Monomial),
            "lagrange" => Ok(Basis::Lagrange),
            other => Err(unknown("the basis", other, "monomial, lagrange")),
        };
        let basis = at_once(py, basis)?;
        let given = polynomials.iter().map(Given::new).collect::<PyResult<Vec<_>>>()?;
        let sources: Vec<_> = given.iter().map(Given::source).collect();
        let commitments = without_lock(py, || {
            let values = sources.iter().map(|source| source.values());
            work::commit(&self.0, basis, &values.collect::<Result<Vec<_>>>()?)
        })?;
        Ok(commitments.iter().map(|point| PyBytes::new(py, point)).collect())
    }

    fn open<'py>(
        &self,
        py: Python<'py>,
        coefficients: &Bound<'py, PyAny>,
        point: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (given, point) = (Given::new(coefficients)?, scalar(py, "the point", point)?);
        let source = given.source();
        let opening = without_lock(py, || work::open(&self.0, &source.values()?, point))?;
        Ok((PyBytes::new(py, &opening.value), PyBytes::new(py, &opening.proof)))
    }

    fn check(
        &self,
        py: Python<'_>,
        commitment: &Bound<'_, PyAny>,
        point: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        proof: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let commitment = point_bytes(py, "the commitment", commitment)?;
        let point = scalar(py, "the point", point)?;
        let opening = Opening {
            value: bytes::of_scalar(&scalar(py, "the value", value)?),
            proof: point_bytes(py, "the proof", proof)?,
        };
        without_lock(py, || work::check_opening(&self.0, &commitment, point, &opening))
    }
}

#[pyclass(frozen, module = "spillproof._native")]
struct Column(CallerColumn<Scalar>);

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    fn push(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = ScalarBuffer::new(values)?;
        let values = values.bytes();
        without_lock(py, || self.0.push(values))
    }

    fn read(&self, py: Python<'_>, start: u64, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut out = ScalarBuffer::new(out)?;
        let out = out.bytes_mut()?;
        without_lock(py, || column::read(self.0.full()?, start, out))
    }

    fn ntt(&self, py: Python<'_>, domain: (u32, String, bool, Bound<'_, PyAny>)) -> PyResult<Self> {
        let domain = self::domain(py, &domain)?;
        without_lock(py, || Ok(Self(work::ntt(self.0.full()?, &domain)?.into())))
    }
}

#[pyclass(frozen, module = "spillproof._native")]
struct Points(CallerColumn<G1>);

#[pymethods]
impl Points {
    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    fn push(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = PointBuffer::new(points)?;
        let points = points.bytes();
        without_lock(py, || self.0.push(points))
    }

    fn msm<'py>(&self, py: Python<'py>, scalars: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let given = Given::new(scalars)?;
        let source = given.source();
        let sum = without_lock(py, || work::msm_over(self.0.full()?, &source.values()?))?;
        Ok(PyBytes::new(py, &sum))
    }
}

/// Numbers of a plan: budget, smallest budget, peak, disk, threads; then for each step its name, peak,
/// passes, bytes read, bytes written, seconds.
type Planned = (u64, u64, u64, u64, usize, Vec<PlannedStep>);
type PlannedStep = (&'static str, u64, u64, u64, u64, f64);

#[pyfunction]
fn plan(
    py: Python<'_>,
    job: &str,
    count: u64,
    memory: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<Planned> {
    let memory = self::memory(py, memory)?;
    let job = at_once(py, Job::named(job))?;
    let plan = without_lock(py, || job.plan(count, memory, threads))?;
    let steps = plan.steps.iter().map(|step| {
        let bytes = (step.bytes_read, step.bytes_written);
        (
            step.name,
            step.peak_bytes,
            step.passes,
            bytes.0,
            bytes.1,
            step.seconds,
        )
    });
    Ok((
        plan.budget_bytes,
        plan.smallest_budget_bytes,
        plan.peak_bytes(),
        plan.disk_bytes,
        plan.threads,
        steps.collect(),
    ))
}

/// Registers what there is.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Column, Points, Session, Srs, plan};
}
