//! Parameters in files: what a file is, its bytes say.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use spillproof_circuits::System;
use spillproof_commit::{KzgCurve, Srs, check_srs, import_params_kzg};
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::Workspace;
use spillproof_engine::plan::Rates;
use spillproof_engine::storage::{Backend, Storage};
use spillproof_format::header::{HEADER_BYTES, Header, MAGIC};
use spillproof_format::native::{NativeField, point_bytes};
use spillproof_format::params_kzg::points::{self, Check};
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat, Stated};
use spillproof_groth16::iden3::{import_ptau, open_ptau};

use crate::args::Parameters;
use crate::failure::Failure;
use crate::run::Result;

/// What a file of parameters is.
pub enum Kind {
    /// A container of ours.
    Container,
    /// The first phase of a ceremony, as snarkjs writes it.
    PowersOfTau,
    /// What halo2 writes, or something else that has no name at its beginning.
    Other,
}

/// The kind of a file.
///
/// # Errors
/// [`Failure::File`].
pub fn kind_of(path: &Path) -> Result<Kind> {
    let mut magic = [0; MAGIC.len()];
    let mut file = File::open(path).map_err(Failure::file(path))?;
    match file.read_exact(&mut magic) {
        Ok(()) if magic == MAGIC => Ok(Kind::Container),
        Ok(()) if magic.starts_with(b"ptau") => Ok(Kind::PowersOfTau),
        Ok(()) => Ok(Kind::Other),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Kind::Other),
        Err(error) => Err(Failure::file(path)(error)),
    }
}

/// Why proofs over parameters can be forged, if that is known of them: they are made from a seed, or their
/// container says that its secret is known.
///
/// # Errors
/// Those of [`file_for`] and [`kind_of`].
pub fn insecurity(parameters: &Parameters, k: u32, system: System) -> Result<Option<&'static str>> {
    match (&parameters.file, system) {
        (_, System::Zcash) => Ok(None),
        (None, System::Axiom | System::Midnight) => Ok(Some(
            "INSECURE: the parameters were made from a seed, which is enough to forge proofs over them; name those of a ceremony (--srs)",
        )),
        (Some(path), System::Axiom) => insecurity_of_file(path, k, Dialect::Halo2),
        (Some(path), System::Midnight) => insecurity_of_file(path, k, Dialect::Midnight),
    }
}

/// The same of a file, or of a folder of files.
///
/// # Errors
/// As [`insecurity`].
pub fn insecurity_of_file(path: &Path, k: u32, dialect: Dialect) -> Result<Option<&'static str>> {
    let path = &*file_for(path, k, dialect)?;
    if !matches!(kind_of(path)?, Kind::Container) {
        return Ok(None);
    }
    let mut bytes = [0; HEADER_BYTES];
    let mut file = File::open(path).map_err(Failure::file(path))?;
    // Who opens the container says what is wrong with it.
    let header = file.read_exact(&mut bytes).ok().map(|()| Header::decode(&bytes));
    let is_marked = matches!(header, Some(Ok(header)) if header.is_insecure);
    Ok(is_marked.then_some(INSECURE))
}

/// What is said of a container of parameters with a known secret.
pub const INSECURE: &str = "INSECURE: the secret of these parameters is known, which is enough to forge proofs over them; take those of a ceremony";

/// The file of parameters for `2^k` rows: the file itself, or of a folder, as halo2-base (`PARAMS_DIR`) and
/// Midnight's programs (`MIDNIGHT_PP`) keep them, the one for that k, or else the one for the next larger k.
///
/// # Errors
/// [`Failure::File`]; [`Failure::Content`] for a folder without such a file.
pub fn file_for(path: &Path, k: u32, dialect: Dialect) -> Result<Cow<'_, Path>> {
    if !path.is_dir() {
        return Ok(Cow::Borrowed(path));
    }
    let (prefix, suffix) = match dialect {
        Dialect::Halo2 => ("kzg_bn254_", ".srs"),
        Dialect::Midnight => ("bls_midnight_2p", ""),
    };
    let k_of = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        let digits = name.to_str()?.strip_prefix(prefix)?.strip_suffix(suffix)?;
        digits.parse::<u32>().ok().filter(|found| *found >= k)
    };
    let found = fs::read_dir(path).map_err(Failure::file(path))?.filter_map(k_of);
    match found.min() {
        Some(found) => Ok(Cow::Owned(path.join(format!("{prefix}{found}{suffix}")))),
        None => Err(Failure::Content {
            file: path.to_owned(),
            details: format!("a folder without {prefix}{k}{suffix}, or one for a larger k"),
        }),
    }
}

/// About how long it takes to read the parameters for `2^k` rows and to check them, or to make them.
pub fn seconds(parameters: &Parameters, k: u32, system: System, rates: &Rates) -> f64 {
    // Per row, as so many additions of points: measured on two cores.
    const MADE: f64 = 270.0;
    const MADE_BY_MIDNIGHT: f64 = 520.0;
    const HASHED: f64 = 1250.0;
    const CHECKED: f64 = 70.0;
    let of_rows = |additions: f64| (1u64 << k) as f64 * additions / rates.additions;
    let of_file = |dialect, path: &Path| match file_for(path, k, dialect).and_then(|path| kind_of(&path)) {
        // It is used where it is.
        Ok(Kind::Container) => 0.0,
        _ => of_rows(CHECKED),
    };
    match (&parameters.file, system) {
        (None, System::Axiom) => of_rows(MADE),
        (None, System::Midnight) => of_rows(MADE_BY_MIDNIGHT),
        (None, System::Zcash) => of_rows(HASHED),
        (Some(path), System::Axiom | System::Zcash) => of_file(Dialect::Halo2, path),
        (Some(path), System::Midnight) => of_file(Dialect::Midnight, path),
    }
}

/// Which points of an SRS are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bases {
    /// The powers.
    Monomial,
    /// The Lagrange basis, too.
    Both,
}

/// The SRS in a file, of `2^k` points or more. A container and powers of tau stay where they are; what has no
/// Lagrange points gets them, and `ParamsKZG` is copied, in a container among the session's files. What is no
/// container is checked: its writer, or a disk since then, may have mixed up points.
///
/// # Errors
/// Those of [`file_for`] and [`kind_of`]; [`Failure::Content`] for fewer points; the engine's.
pub fn open_srs(session: &Session, path: &Path, k: u32, bases: Bases) -> Result<Srs> {
    let path = &*file_for(path, k, Dialect::Halo2)?;
    let workspace = session.workspace();
    let srs = match (kind_of(path)?, bases) {
        (Kind::Container, _) => Srs::open_container(workspace, path)?,
        (Kind::PowersOfTau, Bases::Monomial) => {
            let srs = open_ptau(workspace, path, Some(k))?;
            session.run(|| check_srs(workspace, &srs, &mut |_| ()))?;
            srs
        }
        (Kind::PowersOfTau | Kind::Other, _) => {
            let copied = Copied::of(session, path, k)?;
            Srs::open_container(workspace, copied.path())?
        }
    };
    is_enough(path, k, srs.k())?;
    Ok(srs)
}

/// A container in the session's folder, made of a file of another kind, and checked. Dropping this removes
/// the name; a container that is open stays open.
pub struct Copied(PathBuf);

impl Copied {
    /// # Errors
    /// Those of [`import_ptau`] and [`import_params_kzg`]; [`Failure::Content`] for fewer powers than `2^k`.
    pub fn of(session: &Session, path: &Path, k: u32) -> Result<Self> {
        let name = format!("spillproof-srs-{}-{k}.srs", std::process::id());
        let copied = Self(session.dir().join(name));
        let workspace = session.workspace();
        let files = [path, copied.path()];
        match kind_of(path)? {
            Kind::PowersOfTau => {
                session.run(|| import_ptau(workspace, files, Some(k), &mut |_| ()))?;
            }
            Kind::Container | Kind::Other => {
                open_kzg(path, k, Dialect::Halo2)?;
                let stated = Stated::of(Dialect::Halo2);
                session.run(|| import_params_kzg(workspace, files[0], files[1], stated, &mut |_| ()))?;
            }
        }
        Ok(copied)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // If it was never made, there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// A `ParamsKZG` file of a library for `2^k` rows or more, and where everything in it is.
///
/// # Errors
/// Those of [`kzg_file`]; [`Failure::Content`] for another curve, or a smaller k.
pub fn open_kzg(path: &Path, k: u32, dialect: Dialect) -> Result<(File, Layout)> {
    let (file, layout) = kzg_file(path)?;
    let curve = match dialect {
        Dialect::Halo2 => "BN254",
        Dialect::Midnight => "BLS12-381",
    };
    if layout.encoding().dialect != dialect {
        return Err(Failure::Content {
            file: path.to_owned(),
            details: format!(
                "{}, and parameters over {curve} are needed",
                layout.encoding().dialect
            ),
        });
    }
    is_enough(path, k, layout.k())?;
    Ok((file, layout))
}

/// A `ParamsKZG` file, and where everything in it is.
///
/// # Errors
/// [`Failure::File`]; [`Failure::Content`] for another length than such a file has.
pub fn kzg_file(path: &Path) -> Result<(File, Layout)> {
    let content = |details: String| Failure::Content {
        file: path.to_owned(),
        details,
    };
    let mut file = File::open(path).map_err(Failure::file(path))?;
    let bytes = file.metadata().map_err(Failure::file(path))?.len();
    let mut k_bytes = [0; 4];
    let head = file.read(&mut k_bytes).map_err(Failure::file(path))?;
    let layout = match head {
        4 => Layout::detect(Stated::default(), bytes, k_bytes).map_err(|error| content(error.to_string()))?,
        _ => return Err(content(format!("{bytes} bytes: a ParamsKZG file has more"))),
    };
    file.rewind().map_err(Failure::file(path))?;
    Ok((file, layout))
}

/// Refuses parameters for fewer than `2^k` rows.
///
/// # Errors
/// [`Failure::Content`].
pub fn is_enough(path: &Path, k: u32, found: u32) -> Result<()> {
    match found >= k {
        true => Ok(()),
        false => Err(Failure::Content {
            file: path.to_owned(),
            details: format!(
                "parameters for 2^{found} rows, and 2^{k} are needed: name some of k = {k} or more, or ask for 2^{found} rows at most"
            ),
        }),
    }
}

/// A curve of KZG's parameters, and the files that have them.
pub trait Files: KzgCurve {
    /// What the curve's library writes.
    const DIALECT: Dialect;

    /// Powers of tau, in place.
    ///
    /// # Errors
    /// Those of [`open_ptau`]; [`Failure::Content`] for a curve of which none are read.
    fn open_ptau(workspace: &Workspace, path: &Path, k: u32) -> Result<Srs<Self>>;

    /// Powers of tau with their Lagrange points, as a container.
    ///
    /// # Errors
    /// Those of [`Copied::of`]; [`Failure::Content`] as for [`Self::open_ptau`].
    fn copy_ptau(session: &Session, path: &Path, k: u32) -> Result<Copied>;
}

impl Files for Bn254 {
    const DIALECT: Dialect = Dialect::Halo2;

    fn open_ptau(workspace: &Workspace, path: &Path, k: u32) -> Result<Srs> {
        Ok(open_ptau(workspace, path, Some(k))?)
    }

    fn copy_ptau(session: &Session, path: &Path, k: u32) -> Result<Copied> {
        Copied::of(session, path, k)
    }
}

impl Files for Bls12_381 {
    const DIALECT: Dialect = Dialect::Midnight;

    fn open_ptau(_: &Workspace, path: &Path, _: u32) -> Result<Srs<Self>> {
        Err(no_powers(path))
    }

    fn copy_ptau(_: &Session, path: &Path, _: u32) -> Result<Copied> {
        Err(no_powers(path))
    }
}

fn no_powers(path: &Path) -> Failure {
    Failure::Content {
        file: path.to_owned(),
        details: "powers of tau, which are taken over BN254 only: --system midnight takes a container or bls_midnight_2p{k}".into(),
    }
}

/// The points of KZG that a verifier takes.
pub struct VerifierPoints<E: Files = Bn254> {
    /// `g[0]`.
    pub g: E::G1Affine,
    /// `g2` and `s_g2`.
    pub pair: [E::G2Affine; 2],
}

impl<E: Files> VerifierPoints<E> {
    /// Those of a container, powers of tau or a `ParamsKZG` file for `2^k` rows or more; nothing else of it
    /// is read.
    ///
    /// # Errors
    /// Those of [`file_for`], [`kind_of`] and [`open_kzg`]; the engine's; [`Failure::Content`] for what is no
    /// point.
    pub fn of(path: &Path, k: u32) -> Result<Self> {
        const BUDGET_BYTES: u64 = 4 << 20;
        let path = &*file_for(path, k, E::DIALECT)?;
        // Nothing is written.
        let workspace = || {
            let storage = Storage::builder().dir(".").backend(Backend::Inline).build()?;
            Ok::<_, spillproof_engine::Error>(Workspace::new(storage, Budget::new(BUDGET_BYTES)))
        };
        let srs = match kind_of(path)? {
            Kind::Container => Srs::<E>::open_container(&workspace()?, path)?,
            Kind::PowersOfTau => E::open_ptau(&workspace()?, path, k)?,
            Kind::Other => {
                let (mut file, layout) = open_kzg(path, k, E::DIALECT)?;
                return Ok(Self {
                    g: point::<E::G1Config>(path, &mut file, &layout, Region::G)?,
                    pair: [
                        point::<E::G2Config>(path, &mut file, &layout, Region::G2)?,
                        point::<E::G2Config>(path, &mut file, &layout, Region::SG2)?,
                    ],
                });
            }
        };
        is_enough(path, k, srs.k())?;
        let first = srs.monomial()?.prefix(1)?.to_vec()?;
        let first = first.first().ok_or_else(|| Failure::Content {
            file: path.to_owned(),
            details: "an SRS without points".into(),
        })?;
        Ok(Self {
            g: first.to_affine(),
            pair: srs.pair(),
        })
    }

    /// `g[0]`, and `g2` and `s_g2`, as [`SerdeFormat::RawBytes`].
    pub fn raw(&self) -> (Vec<u8>, [Vec<u8>; 2]) {
        let raw_of_pair = |point| raw::<E::G2Config>(E::DIALECT, point);
        (
            raw::<E::G1Config>(E::DIALECT, &self.g),
            self.pair.each_ref().map(raw_of_pair),
        )
    }
}

/// The first point of a region.
fn point<P: SWCurveConfig<BaseField: NativeField>>(
    path: &Path,
    file: &mut File,
    layout: &Layout,
    region: Region,
) -> Result<Affine<P>> {
    let offset = layout.offset(region);
    let mut bytes = vec![0; layout.point_bytes(region) as usize];
    file.seek(SeekFrom::Start(offset)).map_err(Failure::file(path))?;
    file.read_exact(&mut bytes).map_err(Failure::file(path))?;
    points::read::<P>(layout.encoding(), Check::Subgroup, &bytes).map_err(|fault| Failure::Content {
        file: path.to_owned(),
        details: format!("the first point of {} at offset {offset} {fault}", region.name()),
    })
}

fn raw<P: SWCurveConfig<BaseField: NativeField>>(dialect: Dialect, point: &Affine<P>) -> Vec<u8> {
    let mut bytes = vec![0; point_bytes::<P>()];
    points::write(Encoding::new(dialect, SerdeFormat::RawBytes), point, &mut bytes);
    bytes
}
