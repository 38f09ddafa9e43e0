//! Keys of circom's circuits as `ark-zkey` writes them (`.arkzkey`): a key of arkworks, then the constraints.
//!
//! ```text
//! key                a proving key, compressed or not: file.rs
//! public, private    how many variables there are of each kind, the constant one among the public ones
//! constraints
//! terms              how many there are of A, of B, of C
//! A, B, C            each: its rows; each row: its terms; each term: its value (32 bytes, standard form), its signal
//! ```
//!
//! All numbers have eight bytes, the least significant first. There is no mark of the format in the file: what tells
//! it are the lengths, which end where the file does. A and B stand one behind the other, and a proof takes the terms
//! of both row by row: they are read side by side. C is not needed ([`crate::Constraints`]).
//!
//! Memory: two windows of the file, a tile of terms, their distinct values, two buffers of a writer.

use std::path::Path;

use spillproof_commit::{PointsOf, check_subgroup};
use spillproof_format::groth16::sections;
use spillproof_format::native::NativeField;
use spillproof_format::srs::frame_bytes;
use spillproof_format::{Curve as CurveId, FormatError, Kind, hex};

use super::file::{Found, Layout};
use super::{CHUNK, Parts, Progress, Reduction};
use crate::dictionary::{Dictionary, Form, UNKNOWN};
use crate::iden3::{ImportedKey, ToContainer};
use crate::{Bn254, Coefficient, Constraints, Domain, G1Point, G2Point, PairingCurve, ProvingKey};
use ark_ec::short_weierstrass::Affine;
use spillproof_engine::Result;
use spillproof_engine::budget::Buffer;
use spillproof_engine::column::runs::ForeignFile;
use spillproof_engine::column::{Column, ContainerWriter, Placement, Scratch, Workspace, Writer};
use spillproof_engine::step;
use spillproof_engine::storage::Segment;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// Bytes of a number.
const NUMBER_BYTES: u64 = 8;
/// Bytes of a term.
const TERM_BYTES: u64 = 32 + NUMBER_BYTES;
/// Bytes that are read at a time.
const WINDOW_BYTES: usize = 128 << 10;
/// Names of leases, columns and arrays.
const TERMS: &str = "coefficients";
const VALUES: &str = "values of coefficients";

/// Whether a file is such a key, over BN254.
///
/// # Errors
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`].
pub fn is_zkey(workspace: &Workspace, path: &Path) -> Result<bool> {
    let file = ForeignFile::open(workspace, path)?;
    Ok(Zkey::find::<Bn254>(&file)?.is_some())
}

/// A `.arkzkey` file: points and coefficients are copied to scratch, and checked: points for the curve, not for the
/// subgroup.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for a file that is no such key, or is damaged;
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`],
/// [`spillproof_engine::Error::OverBudget`].
pub fn read_zkey<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    E::read_arkworks_zkey(workspace, path, progress)
}

/// A `.arkzkey` file over BN254 as a container, which appears under its name when it is whole. Subgroups are checked,
/// too.
///
/// # Errors
/// As [`read_zkey`].
pub fn import_zkey(
    workspace: &Workspace,
    path: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedKey> {
    Bn254::import_arkworks_zkey(workspace, path, target, progress)
}

pub(crate) fn read_zkey_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    // Keys are public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let file = ForeignFile::open(&workspace, path)?;
        let Some(zkey) = Zkey::find::<E>(&file)? else {
            return Err(file.refuse(FormatError::Field {
                what: "the length of an array",
                offset: 0,
                value: format!("not one of a key and its constraints in a file of {} bytes", file.len_bytes()),
                remedy: "the file is none that ark-zkey has written over this curve, or is cut off: get it again",
            }));
        };
        zkey.read(&workspace, &file, progress)
    })
}

pub(crate) fn import_zkey_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedKey> {
    let key = read_zkey_over::<E>(workspace, path, progress)?;
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let (shape, curve) = (key.shape()?, CurveId::Bn254);
        let refuse = |source| spillproof_engine::Error::Format {
            file: path.to_owned(),
            source,
        };
        check_subgroups(&key, path)?;
        let sections = sections(&shape).map_err(refuse)?;
        let mut writer = ToContainer(ContainerWriter::create(
            &workspace,
            target,
            Kind::Groth16Key,
            curve,
            frame_bytes(curve),
            [0; 32],
            &sections,
        )?);
        writer.key(&key)?;
        Ok(ImportedKey {
            shape,
            curve,
            is_without_contribution: key.verifying.is_without_contribution(),
            root: writer.0.publish()?,
        })
    })
}

/// That all points are in the subgroup of prime order.
fn check_subgroups<E: PairingCurve>(key: &ProvingKey<E>, path: &Path) -> Result<()> {
    let of = |what| PointsOf {
        file: path,
        what,
        // Points that are compressed are not where their columns have them.
        place: &|index| (index, 0),
    };
    let g1: [(_, &Column<G1Point<E>>); 5] = [
        ("gamma_abc_g1", &key.verifying.ic),
        ("a_query", &key.a),
        ("b_g1_query", &key.b_g1),
        ("l_query", &key.c),
        ("h_query", &key.h),
    ];
    for (what, points) in g1 {
        check_subgroup::<E::G1Config>(points, &of(what))?;
    }
    check_subgroup::<E::G2Config>(&key.b_g2, &of("b_g2_query"))
}

/// A file of this form, whose lengths belong together.
struct Zkey {
    points: Found,
    head: Head,
}

/// The numbers behind the points.
struct Head {
    signals: u64,
    public: u64,
    constraints: u64,
    /// Of A and B.
    terms: [u64; 2],
    /// Where A and B begin.
    matrices: [u64; 2],
}

impl Zkey {
    fn find<E: PairingCurve>(file: &ForeignFile) -> Result<Option<Self>> {
        let found = Found::find::<E, Head>(file, |layout, end| Head::find(file, layout, end))?;
        Ok(found.map(|(points, head)| Self { points, head }))
    }

    fn read<E: PairingCurve>(
        self,
        workspace: &Workspace,
        file: &ForeignFile,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ProvingKey<E>> {
        let Self { points, head } = self;
        let log_domain = points.layout.h.count.ilog2();
        let constraints = head.constraints::<E::Scalar>(workspace, file, progress)?;
        let parts: Parts<E> = points.read(workspace, file, Reduction::Circom, progress)?;
        let domain = Domain::of_smallest_non_residue(log_domain)?;
        Ok(parts.into_key(constraints, domain, Reduction::Circom))
    }
}

impl Head {
    /// `None` where the numbers do not belong to a key with these points, or do not end where the file does.
    fn find(file: &ForeignFile, layout: &Layout, end: u64) -> Result<Option<Self>> {
        let mut stream = Stream::new(file, end);
        if stream.left() < 6 * NUMBER_BYTES {
            return Ok(None);
        }
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = stream.number()?;
        }
        let [public, _, constraints, of_a, of_b, of_c] = numbers;
        let signals = layout.a.count;
        let rows = constraints.saturating_add(public).checked_next_power_of_two();
        let belongs = public == layout.ic.count
            && [layout.b_g1.count, layout.b_g2.count] == [signals; 2]
            && layout.l.count.checked_add(public) == Some(signals)
            && rows == Some(layout.h.count)
            && constraints > 0
            && u32::try_from(constraints).is_ok();
        if !belongs {
            return Ok(None);
        }
        let mut matrices = [0; 2];
        for (at, terms) in [of_a, of_b, of_c].into_iter().enumerate() {
            if let Some(start) = matrices.get_mut(at) {
                *start = stream.at;
            }
            // C is left out by some writers, whatever they say of its terms.
            let rows = if at < 2 {
                [constraints; 2]
            } else {
                [0, constraints]
            };
            if !stream.skip_matrix(rows, terms)? {
                return Ok(None);
            }
        }
        Ok((stream.left() == 0).then_some(Self {
            signals,
            public,
            constraints,
            terms: [of_a, of_b],
            matrices,
        }))
    }

    /// The coefficients of A and B, with the rows that bind the public signals, in scratch columns.
    fn constraints<F: KernelField>(
        &self,
        workspace: &Workspace,
        file: &ForeignFile,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Constraints<F>> {
        let _step = step!(workspace, "copy of coefficients");
        let mut dictionary = Dictionary::<F>::new(&workspace.budget, Form::Canonical)?;
        let total = self.terms[0] + self.terms[1];
        let count = total + self.public;
        let mut writer = Writer::<Coefficient>::scratch(workspace, TERMS, count, Placement::Disk)?;
        let mut tile = Vec::with_capacity(CHUNK);
        let _tile = workspace
            .budget
            .lease((CHUNK * size_of::<Coefficient>()) as u64, TERMS)?;
        let mut done = 0;
        let mut put = |tile: &mut Vec<Coefficient>, coefficient| -> Result<()> {
            tile.push(coefficient);
            if tile.len() < CHUNK {
                return Ok(());
            }
            writer.push(tile)?;
            done += tile.len() as u64;
            progress(Progress {
                what: TERMS,
                done: done.min(total),
                total,
            });
            tile.clear();
            Ok(())
        };
        let mut streams = self.matrices.map(|start| Stream::new(file, start));
        for stream in &mut streams {
            stream.number()?;
        }
        let mut index = 0;
        for row in 0..self.constraints {
            for (matrix, stream) in (0..).zip(&mut streams) {
                for _ in 0..stream.number()? {
                    let offset = stream.at;
                    let term = Term::of::<F>(stream.take(TERM_BYTES as usize)?, &dictionary);
                    let Term { value, place, signal } = term.map_err(|value| {
                        file.refuse(FormatError::Element {
                            what: VALUES,
                            index,
                            offset,
                            value: hex(&value),
                        })
                    })?;
                    if signal >= self.signals {
                        return Err(file.refuse(FormatError::Coefficient {
                            what: "signal",
                            index,
                            offset: offset + 32,
                            value: signal,
                            limit: self.signals,
                        }));
                    }
                    let value = match place {
                        UNKNOWN => dictionary.enter(&value)?,
                        place => place,
                    };
                    let (row, signal) = (row as u32, signal as u32);
                    let coefficient = Coefficient {
                        row,
                        signal,
                        value,
                        matrix,
                    };
                    put(&mut tile, coefficient)?;
                    index += 1;
                }
            }
        }
        let one = {
            let mut one = [0; 32];
            one[0] = 1;
            dictionary.enter(&one)?
        };
        for signal in 0..self.public {
            let coefficient = Coefficient {
                row: (self.constraints + signal) as u32,
                signal: signal as u32,
                value: one,
                matrix: 0,
            };
            put(&mut tile, coefficient)?;
        }
        writer.push(&tile)?;
        let coefficients = writer.finish()?;
        let len = dictionary.values.len() as u64;
        let mut values = Writer::scratch(workspace, VALUES, len, Placement::Disk)?;
        values.push(&dictionary.values)?;
        Ok(Constraints::new(values.finish()?, coefficients))
    }
}

/// A term of a row.
struct Term {
    value: [u8; 32],
    /// Of the value, if it is known.
    place: u32,
    signal: u64,
}

impl Term {
    /// The bytes of the value, if it is not below the modulus.
    fn of<F: KernelField>(bytes: &[u8], dictionary: &Dictionary<F>) -> Result<Self, [u8; 32]> {
        let (value, signal) = bytes.split_at(32);
        let value = value.first_chunk().copied().unwrap_or_default();
        let place = dictionary.place(&value);
        // What is known was checked.
        if place == UNKNOWN && <F as NativeField>::read_native(&value).is_none() {
            return Err(value);
        }
        let signal = signal.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok(Self { value, place, signal })
    }
}

/// A file that is read from an offset on.
struct Stream<'a> {
    file: &'a ForeignFile,
    /// The offset of what comes next.
    at: u64,
    window: Option<Window>,
}

/// Bytes of the file.
struct Window {
    buffer: Buffer,
    start: u64,
    len: usize,
}

impl<'a> Stream<'a> {
    fn new(file: &'a ForeignFile, at: u64) -> Self {
        Self {
            file,
            at,
            window: None,
        }
    }

    fn left(&self) -> u64 {
        self.file.len_bytes().saturating_sub(self.at)
    }

    /// The next bytes, of which a window has as many.
    fn take(&mut self, bytes: usize) -> Result<&[u8]> {
        let (file, at) = (self.file, self.at);
        if self.left() < bytes as u64 {
            return Err(file.refuse(FormatError::Field {
                what: "the end of the constraints",
                offset: at,
                value: format!("{bytes} bytes behind it are missing"),
                remedy: "the file is cut off: get it again",
            }));
        }
        let window = match self.window.take() {
            Some(window) if at >= window.start && at + bytes as u64 <= window.start + window.len as u64 => {
                window
            }
            other => {
                let buffer = match other {
                    Some(window) => window.buffer,
                    None => file.buffer(WINDOW_BYTES)?,
                };
                let len = self.left().min(WINDOW_BYTES as u64) as usize;
                let read = file.file().read(buffer, [Segment::new(at, 0, len)]);
                Window {
                    buffer: read.wait()?,
                    start: at,
                    len,
                }
            }
        };
        self.at += bytes as u64;
        let first = (at - window.start) as usize;
        let window = self.window.insert(window);
        Ok(&window.buffer[first..first + bytes])
    }

    fn number(&mut self) -> Result<u64> {
        let bytes = self.take(NUMBER_BYTES as usize)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// Goes past a matrix with one of these numbers of rows; `false` if it has another one, or not so many terms. One
    /// without rows has none, whatever is said of it.
    fn skip_matrix(&mut self, rows: [u64; 2], terms: u64) -> Result<bool> {
        if self.left() < NUMBER_BYTES {
            return Ok(false);
        }
        let count = self.number()?;
        if !rows.contains(&count) {
            return Ok(false);
        }
        let mut found = 0u64;
        for _ in 0..count {
            if self.left() < NUMBER_BYTES {
                return Ok(false);
            }
            let of_row = self.number()?;
            if of_row > self.left() / TERM_BYTES {
                return Ok(false);
            }
            self.at += of_row * TERM_BYTES;
            found += of_row;
        }
        Ok(found == terms || count == 0)
    }
}

/// The affine points, in the form of a container.
fn few<P: Curve>(points: [Affine<P>; 3]) -> [Point<P>; 3] {
    points.map(|point| Point::<P>::from_affine::<P>(&point))
}

impl ToContainer {
    /// All of a key that is in columns.
    fn key<E: PairingCurve>(&mut self, key: &ProvingKey<E>) -> Result<()> {
        let verifying = &key.verifying;
        let g1 = few::<E::G1Config>([verifying.alpha_g1, key.beta_g1, key.delta_g1]);
        let g2 = few::<E::G2Config>([verifying.beta_g2, verifying.gamma_g2, verifying.delta_g2]);
        self.write_points::<G1Point<E>>(0, &g1)?;
        self.write_points::<G2Point<E>>(1, &g2)?;
        let of_g1 = [
            (2, &verifying.ic),
            (3, &key.a),
            (4, &key.b_g1),
            (6, &key.c),
            (7, &key.h),
        ];
        for (section, points) in of_g1 {
            self.write_column(section, points)?;
        }
        self.write_column(5, &key.b_g2)?;
        self.write_column(8, key.constraints.values())?;
        self.write_column(9, key.constraints.coefficients())
    }
}
