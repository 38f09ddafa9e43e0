//! `spillproof srs`: structured reference strings on disk.

use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use spillproof::budget::ByteSize;
use spillproof::column::Container;
use spillproof::commit::{
    Scalar, SrsProgress, add_lagrange, export_params_kzg, generate, import_params_kzg, verify_srs,
};
use spillproof_format::Kind;
use spillproof_format::params_kzg::SerdeFormat;

use crate::args::{Global, Srs as Command};
use crate::report::progress::Progress;
use crate::report::table::bytes;
use crate::run::{Result, Run, hex};

/// Runs the command.
///
/// # Errors
/// The engine's.
pub fn run(global: &Global, command: &Command) -> Result<()> {
    match command {
        Command::Gen { k, seed, out } => make(global, *k, *seed, out),
        Command::Import { file, out, format } => import(global, file, out, format.map(Into::into)),
        Command::Export { file, out, format } => export(global, file, out, (*format).into()),
        Command::Lagrange { file, out, k, format } => lagrange(global, file, out, *k, format.map(Into::into)),
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
struct Contents {
    file: String,
    kind: String,
    curve: String,
    root: String,
    frame_bytes: u32,
    sections: Vec<Section>,
}

impl Contents {
    fn of(container: &Container) -> Self {
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
            root: hex(&container.root()),
            frame_bytes: header.frame_bytes(),
            sections: sections.collect(),
        }
    }

    fn tell(&self, run: &Run) {
        run.say(format_args!(
            "{}: {} over {}, frames of {}",
            self.file,
            self.kind,
            self.curve,
            bytes(self.frame_bytes.into())
        ));
        run.say(format_args!("root {}", self.root));
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

fn make(global: &Global, k: u32, seed: u64, out: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    run.say("INSECURE: the seed is enough to forge proofs over this SRS; for tests and demonstrations only");
    run.recorder.phase("generate", |progress| {
        progress.length(2 << k);
        session.run(|| {
            generate(session.workspace(), out, k, secret(seed), |points| {
                progress.at(points)
            })
        })
    })?;
    let contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.tell(&run);
    run.finish("srs gen", &contents)?;
    Ok(())
}

/// The secret of an insecure SRS: the first scalar of ChaCha20 from the seed, as stock's `setup` would draw it.
pub fn secret(seed: u64) -> Scalar {
    use halo2_axiom::halo2curves::bn256::Fr;
    use halo2_axiom::halo2curves::ff::{Field, PrimeField};
    let secret = Fr::random(ChaCha20Rng::seed_from_u64(seed));
    ark_ff::PrimeField::from_le_bytes_mod_order(secret.to_repr().as_ref())
}

fn import(global: &Global, file: &Path, out: &Path, format: Option<SerdeFormat>) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    run.recorder.phase("import and check", |progress| {
        session.run(|| {
            import_params_kzg(session.workspace(), file, out, format, &mut |now| {
                follow(progress, now)
            })
        })
    })?;
    let contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.tell(&run);
    run.finish("srs import", &contents)?;
    Ok(())
}

fn export(global: &Global, file: &Path, out: &Path, format: SerdeFormat) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let k = run.recorder.phase("export", |progress| {
        session.run(|| {
            export_params_kzg(session.workspace(), file, out, format, &mut |now| {
                follow(progress, now)
            })
        })
    })?;
    run.say(format_args!("{}: ParamsKZG, k = {k}, {format:?}", out.display()));
    run.finish(
        "srs export",
        &serde_json::json!({ "file": out, "k": k, "format": format!("{format:?}") }),
    )?;
    Ok(())
}

fn lagrange(
    global: &Global,
    file: &Path,
    out: &Path,
    k: Option<u32>,
    format: Option<SerdeFormat>,
) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    run.recorder.phase("Lagrange points and check", |progress| {
        session.run(|| {
            add_lagrange(session.workspace(), file, out, k, format, &mut |now| {
                follow(progress, now);
            })
        })
    })?;
    let contents = Contents::of(&Container::open(session.workspace(), out)?);
    contents.tell(&run);
    run.finish("srs lagrange", &contents)?;
    Ok(())
}

fn follow(progress: &Progress, now: SrsProgress) {
    progress.length(now.points_total);
    progress.at(now.points);
}

fn verify(global: &Global, file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let contents = run.recorder.phase("check digests", |progress| {
        let container = Container::open(session.workspace(), file)?;
        let contents = Contents::of(&container);
        progress.length(contents.sections.iter().map(|section| section.bytes).sum());
        session.run(|| container.verify(|checked| progress.at(checked)))?;
        Ok::<_, spillproof::Error>(contents)
    })?;
    contents.tell(&run);
    run.say("every frame matches its digest");
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
    let contents = Contents::of(&Container::open(session.workspace(), file)?);
    contents.tell(&run);
    run.finish("srs inspect", &contents)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillproof::budget::Budget;
    use spillproof::column::Workspace;
    use spillproof::commit::generate_scratch;
    use spillproof::storage::Storage;
    use spillproof_circuits::stock::proof::insecure_params;
    use stock_halo2_axiom::poly::commitment::ParamsProver;

    #[test]
    fn a_seed_gives_the_srs_that_stock_makes_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(64 << 20));
        let srs = generate_scratch(&workspace, 5, secret(9), |_| {}).unwrap();
        let stock = insecure_params(5, 9);
        let points = srs
            .monomial()
            .unwrap()
            .cast::<stock_halo2_axiom::halo2curves::bn256::G1Affine>()
            .unwrap();
        assert_eq!(points.to_vec().unwrap(), stock.get_g());
    }
}
