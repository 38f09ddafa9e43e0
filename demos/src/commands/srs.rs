//! `spillproof srs`: structured reference strings on disk, for halo2 and for midnight-proofs, and the
//! parameters of zcash's halo2, which are of no secret.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use spillproof_circuits::zcash::params::{Pasta, PastaParams};
use spillproof_commit::{
    Engine, KzgCurve, Scalar, Srs, SrsProgress, add_lagrange, check_srs, export_params_kzg, generate,
    generate_scratch, import_params_kzg, verify_srs,
};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Container;
use spillproof_engine::storage::Packed;
use spillproof_format::params_kzg::{Dialect, Layout, Region, SerdeFormat, Stated};
use spillproof_format::{Basis, Content, Curve, Kind};

use super::temporary::{Removed, scratch_file};
use crate::args::{FormatName, Global, ParamsKind, ParamsOf, Srs as Command};
use crate::failure::Failure;
use crate::output::STANDARD;
use crate::read_once::ReadOnce;
use crate::report::progress::Progress;
use crate::report::table::bytes;
use crate::run::{Result, Run, hex};
use crate::systems::params::{self, INSECURE, kzg_file};

/// Runs the command.
///
/// # Errors
/// The engine's.
pub fn run(global: &Global, command: &Command) -> Result<()> {
    match command {
        Command::Gen { k, seed, of, out } => make(global, *k, *seed, of, out),
        Command::Import {
            file,
            of,
            out,
            format,
        } => import(global, file, of, out, *format),
        Command::Export { file, out, format } => export(global, file, out, *format),
        Command::Lagrange { file, out, k, format } => {
            let stated = Stated {
                format: format.map(Into::into),
                ..Stated::default()
            };
            lagrange(global, file, out, *k, stated)
        }
        Command::Verify { file } => verify(global, file),
        Command::Inspect { file } => inspect(global, file),
    }
}

#[derive(Serialize)]
struct Section {
    label: String,
    content: String,
    basis: String,
    elements: u64,
    bytes: u64,
}

#[derive(Serialize)]
pub(super) struct Contents {
    file: String,
    kind: String,
    curve: String,
    /// What the file is, or was made of, if that is no container.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Of the content, where all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_digest: Option<String>,
    /// Whether its secret is known.
    insecure: bool,
    /// Of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame_bytes: Option<u32>,
    sections: Vec<Section>,
}

impl Contents {
    pub(super) fn of(container: &Container) -> Self {
        let header = container.header();
        let sections = header.sections().iter().map(|section| Section {
            label: section.label.as_str().to_owned(),
            content: format!("{:?}", section.content),
            basis: format!("{:?}", section.basis),
            elements: section.elements,
            bytes: section.elements * u64::from(section.element_bytes()),
        });
        Self {
            file: container.path().display().to_string(),
            kind: format!("{:?}", header.kind()),
            curve: format!("{:?}", header.curve()),
            source: None,
            root: Some(hex(&container.root())),
            content_digest: None,
            insecure: header.is_insecure,
            frame_bytes: Some(header.frame_bytes()),
            sections: sections.collect(),
        }
    }

    /// Those of a `ParamsKZG` file.
    fn of_params_kzg(file: &Path, layout: &Layout) -> Self {
        let sections = Region::ALL.into_iter().map(|region| {
            let (content, basis) = match region {
                Region::G => (Content::G1, Basis::Monomial),
                Region::GLagrange => (Content::G1, Basis::Lagrange),
                Region::G2 | Region::SG2 => (Content::G2, Basis::None),
            };
            Section {
                label: region.name().to_owned(),
                content: format!("{content:?}"),
                basis: format!("{basis:?}"),
                elements: layout.points(region),
                bytes: layout.region_bytes(region),
            }
        });
        Self {
            file: file.display().to_string(),
            kind: "ParamsKZG".to_owned(),
            curve: format!("{:?}", layout.encoding().dialect.curve()),
            source: Some(layout.encoding().to_string()),
            root: None,
            content_digest: None,
            insecure: false,
            frame_bytes: None,
            sections: sections.collect(),
        }
    }

    pub(super) fn tell(&self, run: &Run) {
        match (self.frame_bytes, &self.source) {
            (Some(frame_bytes), _) => run.say(format_args!(
                "{}: {} over {}, frames of {}",
                self.file,
                self.kind,
                self.curve,
                bytes(frame_bytes.into())
            )),
            (None, source) => run.say(format_args!(
                "{}: {}",
                self.file,
                source.as_ref().unwrap_or(&self.kind)
            )),
        }
        if self.insecure {
            run.say(INSECURE);
        }
        if let Some(root) = &self.root {
            run.say(format_args!("root {root}"));
        }
        if let Some(digest) = &self.content_digest {
            run.say(format_args!("content {digest}"));
        }
        for section in &self.sections {
            let Section {
                label,
                content,
                basis,
                elements,
                ..
            } = section;
            run.say(format_args!(
                "  {label}: {elements} {content} ({basis}), {}",
                bytes(section.bytes)
            ));
        }
    }
}

fn make(global: &Global, k: u32, seed: Option<u64>, of: &ParamsOf, out: &Path) -> Result<()> {
    let kind = of.kind()?;
    if matches!(kind, ParamsKind::Zcash(_)) && seed.is_some() {
        let reason = "--seed is for KZG: leave it out, zcash's parameters are of no secret";
        return Err(Failure::Usage(reason.into()));
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let seed = seed.unwrap_or(1);
    match kind {
        ParamsKind::Kzg(None | Some(Dialect::Halo2)) => {
            make_kzg::<Engine>(&mut run, &session, (k, secret(seed)), out)?;
        }
        ParamsKind::Kzg(Some(Dialect::Midnight)) => {
            make_kzg::<Bls12_381>(&mut run, &session, (k, secret_of_midnight(seed)), out)?;
        }
        ParamsKind::Zcash(pasta) => compute(&mut run, &session, (pasta, k), out)?,
    }
    let contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.tell(&run);
    run.finish("srs gen", &contents)?;
    Ok(())
}

/// Makes an SRS of `2^k` points from a secret.
fn make_kzg<E: KzgCurve>(
    run: &mut Run,
    session: &Arc<Session>,
    (k, secret): (u32, E::Scalar),
    out: &Path,
) -> Result<()> {
    run.recorder.phase("generate", |progress| {
        progress.length(2 << k);
        session.run(|| generate::<E>(session.workspace(), out, k, secret, |points| progress.at(points)))
    })?;
    Ok(())
}

/// The secret of an insecure SRS for midnight-proofs, which its `unsafe_setup` draws.
pub fn secret_of_midnight(seed: u64) -> ark_bls12_381::Fr {
    use halo2_axiom::halo2curves::ff::PrimeField;
    use spillproof_circuits::midnight::dropin::dialect::{Field, Fr};
    let secret = Fr::random(ChaCha20Rng::seed_from_u64(seed));
    ark_ff::PrimeField::from_le_bytes_mod_order(secret.to_repr().as_ref())
}

/// The secret of an insecure SRS: the first scalar of ChaCha20 from the seed, as stock's `setup` would draw
/// it.
pub fn secret(seed: u64) -> Scalar {
    use halo2_axiom::halo2curves::bn256::Fr;
    use halo2_axiom::halo2curves::ff::{Field, PrimeField};
    let secret = Fr::random(ChaCha20Rng::seed_from_u64(seed));
    ark_ff::PrimeField::from_le_bytes_mod_order(secret.to_repr().as_ref())
}

/// Computes zcash's parameters into a container.
fn compute(run: &mut Run, session: &Arc<Session>, (pasta, k): (Pasta, u32), out: &Path) -> Result<()> {
    let _current = session.install();
    let params = run
        .recorder
        .phase("generate", |_| Ok::<_, Failure>(pasta.compute(k)))?;
    save(run, &*params, out)
}

fn save(run: &mut Run, params: &dyn PastaParams, out: &Path) -> Result<()> {
    run.recorder.phase("save", |progress| {
        params
            .save(out, &mut |now| follow(progress, now))
            .map_err(|error| Failure::of_file(out, error))
    })
}

/// Reads zcash's parameters, as the unmodified crate writes them, checks them, and makes a container of them.
fn take(run: &mut Run, session: &Arc<Session>, pasta: Pasta, [file, out]: [&Path; 2]) -> Result<()> {
    let _current = session.install();
    let params = run.recorder.phase("import", |_| {
        let opened = File::open(file).map_err(Failure::file(file))?;
        let mut reader = ReadOnce::new(opened);
        let params = pasta
            .read(&mut reader)
            .map_err(|error| Failure::of_file(file, error))?;
        match reader.read(&mut [0]).map_err(Failure::file(file))? {
            0 => Ok(params),
            _ => Err(Failure::Content {
                file: file.to_owned(),
                details: format!("bytes after parameters for k = {}", params.k()),
            }),
        }
    })?;
    check(run, &*params, file)?;
    save(run, &*params, out)
}

/// Checks zcash's parameters, which came from `file`.
fn check(run: &mut Run, params: &dyn PastaParams, file: &Path) -> Result<()> {
    run.recorder.phase("check the points", |progress| {
        params
            .verify(&mut |now| follow(progress, now))
            .map_err(|error| Failure::of_file(file, error))
    })
}

/// Checks a container of zcash's parameters.
fn check_container(run: &mut Run, pasta: Pasta, file: &Path) -> Result<()> {
    let params = pasta.open(file).map_err(|error| Failure::of_file(file, error))?;
    check(run, &*params, file)
}

/// Writes zcash's parameters over Vesta, as the unmodified crate reads them.
///
/// # Errors
/// [`Failure::File`]; the engine's.
pub fn write_params(session: &Arc<Session>, k: u32, file: &Path) -> Result<()> {
    let _current = session.install();
    write_to(session, &*Pasta::Vesta.compute(k), file)
}

/// Writes an insecure SRS for midnight-proofs, as the unmodified crate reads it in raw bytes.
///
/// # Errors
/// [`Failure::File`]; the engine's.
pub fn write_params_of_midnight(session: &Session, (k, seed): (u32, u64), file: &Path) -> Result<()> {
    let workspace = session.workspace();
    let srs = session.run(|| {
        let secret = secret_of_midnight(seed);
        generate_scratch::<Bls12_381>(workspace, k, secret, |_| ())
    })?;
    let publish = session.storage().publish(file)?;
    let mut writer = Packed::new(session.budget(), publish.file().clone())?;
    srs.write_params_kzg(SerdeFormat::RawBytes, &mut writer)?;
    writer.finish()?;
    publish.commit()?;
    Ok(())
}

fn write_to(session: &Session, params: &dyn PastaParams, file: &Path) -> Result<()> {
    let publish = session.storage().publish(file)?;
    let mut writer = Packed::new(session.budget(), publish.file().clone())?;
    params
        .write(&mut writer)
        .map_err(|error| Failure::of_file(file, error))?;
    writer.finish()?;
    publish.commit()?;
    Ok(())
}

fn import(global: &Global, file: &Path, of: &ParamsOf, out: &Path, format: Option<FormatName>) -> Result<()> {
    let kind = of.kind()?;
    if matches!(kind, ParamsKind::Zcash(_)) && format.is_some() {
        return Err(no_format());
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let mut source = None;
    match kind {
        ParamsKind::Kzg(dialect) => {
            let stated = Stated {
                dialect,
                format: format.map(Into::into),
            };
            let imported = run.recorder.phase("import and check", |progress| {
                session.run(|| {
                    import_params_kzg(session.workspace(), file, out, stated, &mut |now| {
                        follow(progress, now)
                    })
                })
            })?;
            run.say(format_args!(
                "{}: {}, k = {}",
                file.display(),
                imported.encoding,
                imported.k
            ));
            source = Some(imported.encoding.to_string());
        }
        ParamsKind::Zcash(pasta) => take(&mut run, &session, pasta, [file, out])?,
    }
    let mut contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.source = source;
    contents.tell(&run);
    run.finish("srs import", &contents)?;
    Ok(())
}

/// A format of points, for parameters that have one only.
fn no_format() -> Failure {
    Failure::Usage("--format is for ParamsKZG: leave it out, zcash's parameters have one format".into())
}

/// The curve of a container of zcash's parameters; `None` for other containers.
fn pasta_of(container: &Container) -> Option<Pasta> {
    match (container.header().kind(), container.header().curve()) {
        (Kind::IpaParams, Curve::Vesta) => Some(Pasta::Vesta),
        (Kind::IpaParams, Curve::Pallas) => Some(Pasta::Pallas),
        _ => None,
    }
}

fn export(global: &Global, file: &Path, out: &Path, format: Option<FormatName>) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let container = Container::open(session.workspace(), file)?;
    let (pasta, insecure) = (pasta_of(&container), container.header().is_insecure);
    let layout = match container.header().curve() {
        Curve::Bls12381 => "ParamsKZG of midnight-proofs over BLS12-381",
        _ => "ParamsKZG",
    };
    drop(container);
    if pasta.is_some() && format.is_some() {
        return Err(no_format());
    }
    let copied = (out == Path::new(STANDARD)).then(|| scratch_file(global, "export"));
    let removed = copied.as_deref().map(Removed);
    let (out, shown) = (copied.as_deref().unwrap_or(out), out);
    let format = SerdeFormat::from(format.unwrap_or(FormatName::Raw));
    let (k, layout, format) = match pasta {
        None => {
            let k = export_kzg(&mut run, &session, file, out, format)?;
            (k, layout, format!("{format:?}"))
        }
        Some(pasta) => {
            let k = give(&mut run, &session, pasta, [file, out])?;
            let layout = match pasta {
                Pasta::Vesta => "Params over Vesta",
                Pasta::Pallas => "Params over Pallas",
            };
            (k, layout, "compressed".to_owned())
        }
    };
    if copied.is_some() {
        let mut file = File::open(out).map_err(Failure::file(out))?;
        // The name goes before the bytes: a reader that stops early leaves none.
        drop(removed);
        std::io::copy(&mut file, &mut std::io::stdout()).map_err(Failure::file("standard output"))?;
    }
    run.say(format_args!("{}: {layout}, k = {k}, {format}", shown.display()));
    if insecure {
        run.say(INSECURE);
        run.say("a file of halo2 has no place for that mark: an import of this one does not know it");
    }
    run.finish(
        "srs export",
        &serde_json::json!({ "file": shown, "k": k, "format": format, "insecure": insecure }),
    )?;
    Ok(())
}

fn export_kzg(
    run: &mut Run,
    session: &Arc<Session>,
    file: &Path,
    out: &Path,
    format: SerdeFormat,
) -> Result<u32> {
    run.recorder.phase("export", |progress| {
        Ok(session.run(|| {
            export_params_kzg(session.workspace(), file, out, format, &mut |now| {
                follow(progress, now)
            })
        })?)
    })
}

/// Writes a container of zcash's parameters as the unmodified crate reads them.
fn give(run: &mut Run, session: &Arc<Session>, pasta: Pasta, [file, out]: [&Path; 2]) -> Result<u32> {
    let _current = session.install();
    run.recorder.phase("export", |_| {
        let params = pasta.open(file).map_err(|error| Failure::of_file(file, error))?;
        write_to(session, &*params, out)?;
        Ok(params.k())
    })
}

fn lagrange(global: &Global, file: &Path, out: &Path, k: Option<u32>, stated: Stated) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    run.recorder.phase("Lagrange points and check", |progress| {
        session.run(|| {
            add_lagrange(session.workspace(), file, out, k, stated, &mut |now| {
                follow(progress, now);
            })
        })
    })?;
    let contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.tell(&run);
    run.finish("srs lagrange", &contents)?;
    Ok(())
}

pub(super) fn follow(progress: &Progress, now: SrsProgress) {
    progress.length(now.points_total);
    progress.at(now.points);
}

/// Where everything is in a `ParamsKZG` file; `None` for any other.
fn params_kzg(file: &Path) -> Result<Option<Layout>> {
    Ok(match params::kind_of(file)? {
        params::Kind::Other => kzg_file(file).ok().map(|(_, layout)| layout),
        params::Kind::Container | params::Kind::PowersOfTau => None,
    })
}

/// Checks a `ParamsKZG` file where it is.
fn verify_params_kzg(global: &Global, file: &Path, layout: &Layout) -> Result<()> {
    fn check<E: KzgCurve>(session: &Session, file: &Path, progress: &Progress) -> Result<()> {
        let workspace = session.workspace();
        session.run(|| {
            let srs = Srs::<E>::open_params_kzg(workspace, file, None)?;
            Ok(check_srs(workspace, &srs, &mut |now| follow(progress, now))?)
        })
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let contents = Contents::of_params_kzg(file, layout);
    contents.tell(&run);
    run.recorder
        .phase("check the parts", |progress| match layout.encoding().dialect {
            Dialect::Halo2 => check::<Engine>(&session, file, progress),
            Dialect::Midnight => check::<Bls12_381>(&session, file, progress),
        })?;
    run.say("the parts belong together (random combination, pairing)");
    run.finish("srs verify", &contents)?;
    Ok(())
}

fn verify(global: &Global, file: &Path) -> Result<()> {
    if let Some(layout) = params_kzg(file)? {
        return verify_params_kzg(global, file, &layout);
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let contents = run.recorder.phase("check digests", |progress| {
        let container = Container::open(session.workspace(), file)?;
        let mut contents = Contents::of(&container);
        progress.length(contents.sections.iter().map(|section| section.bytes).sum());
        let digest = session.run(|| container.content_digest(|checked| progress.at(checked)))?;
        contents.content_digest = Some(hex(&digest));
        Ok::<_, spillproof_engine::Error>(contents)
    })?;
    contents.tell(&run);
    run.say("every frame matches its digest");
    let pasta = pasta_of(&Container::open(session.workspace(), file)?);
    if let Some(pasta) = pasta {
        let _current = session.install();
        check_container(&mut run, pasta, file)?;
        run.say("its points are halo2_proofs' generators (hashed again), and their Lagrange form (random combination)");
    }
    if contents.kind == format!("{:?}", Kind::Srs) {
        run.recorder.phase("check the parts", |progress| {
            session.run(|| verify_srs(session.workspace(), file, &mut |now| follow(progress, now)))
        })?;
        run.say("the parts belong together (random combination, pairing)");
    }
    run.finish("srs verify", &contents)?;
    Ok(())
}

fn inspect(global: &Global, file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let contents = match params_kzg(file)? {
        Some(layout) => Contents::of_params_kzg(file, &layout),
        None => Contents::of(&Container::open(session.workspace(), file)?),
    };
    contents.tell(&run);
    run.finish("srs inspect", &contents)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillproof_circuits::axiom::stock::proof::insecure_params;
    use spillproof_engine::budget::Budget;
    use spillproof_engine::column::Workspace;
    use spillproof_engine::storage::Storage;
    use stock_halo2_axiom::poly::commitment::ParamsProver;

    #[test]
    fn a_seed_gives_the_parameters_that_midnight_proofs_makes_of_it() {
        use spillproof_circuits::midnight::stock::proof::insecure_params;
        use stock_midnight_proofs::utils::SerdeFormat as StockFormat;
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder()
            .memory("16MiB")
            .dir(dir.path())
            .build()
            .unwrap();
        let file = dir.path().join("made.params");
        for seed in 0..20 {
            write_params_of_midnight(&session, (2, seed), &file).unwrap();
            let mut theirs = Vec::new();
            insecure_params(2, seed)
                .write_custom(&mut theirs, StockFormat::RawBytes)
                .unwrap();
            assert!(std::fs::read(&file).unwrap() == theirs, "seed {seed}");
        }
    }

    #[test]
    fn a_seed_gives_the_srs_that_stock_makes_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(64 << 20));
        let srs = generate_scratch::<Engine>(&workspace, 5, secret(9), |_| {}).unwrap();
        let stock = insecure_params(5, 9);
        let points = srs
            .monomial()
            .unwrap()
            .cast::<stock_halo2_axiom::halo2curves::bn256::G1Affine>()
            .unwrap();
        assert_eq!(points.to_vec().unwrap(), stock.get_g());
    }
}
