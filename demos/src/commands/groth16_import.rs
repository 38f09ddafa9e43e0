//! `spillproof groth16 import`: a container of a key, or one that is dealt to ranks.

use std::path::Path;

use serde::Serialize;
use spillproof_circom::prove::{Summary, import as import_key, import_over_ranks};
use spillproof_engine::budget::ByteSize;

use super::groth16_key::{Key, follow};
use crate::args::{CutName, Global, OnRanks};
use crate::failure::Failure;
use crate::ranks::Job;
use crate::report::steps;
use crate::run::{Result, Run, hex};

#[derive(Serialize)]
struct Imported {
    key: Key,
    container: String,
    root: String,
    without_contribution: bool,
    /// How many ranks the key is dealt to, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<usize>,
}

/// Alone, or as one rank of several, each of which writes its own share.
///
/// # Errors
/// The engine's, and those of ranks.
pub fn import(global: &Global, file: &Path, out: &Path, on: &OnRanks) -> Result<()> {
    let Some(job) = Job::join(&on.messages, on.sharing.share.len())? else {
        return import_file(global, file, out, None);
    };
    let imported = job
        .global(global)
        .and_then(|global| import_file(&global, file, out, Some((&job, on))));
    job.end(imported)
}

fn import_file(global: &Global, file: &Path, out: &Path, job: Option<(&Job, &OnRanks)>) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let imported = run.recorder.phase("import", |progress| -> Result<_> {
        let mut followed = |now| follow(progress, now);
        let Some((job, on)) = job else {
            return Ok(import_key(&session, file, out, &mut followed)?);
        };
        if !matches!(on.sharing.cut, CutName::Auto | CutName::Layout) {
            let refused = "--cut: a key is dealt by the layout alone; without --share and --cut, a proof takes the key's";
            return Err(Failure::Usage(refused.into()));
        }
        let statement = format!("import by {:?}", on.sharing.share);
        let ranks = job.ranks(statement.as_bytes(), session.budget().limit_bytes())?;
        let dealt = import_over_ranks(&session, &ranks, &on.sharing.share, [file, out], &mut followed)?;
        Ok(dealt.key)
    })?;
    steps::forget();
    let ranks = job.map(|(job, _)| job.size());
    let outcome = Imported {
        key: Key::of(
            file,
            &Summary {
                curve: imported.curve,
                shape: imported.shape,
                are_values_counted: ranks.is_none(),
                is_without_contribution: imported.is_without_contribution,
            },
        ),
        container: out.display().to_string(),
        root: hex(&imported.root),
        without_contribution: imported.is_without_contribution,
        ranks,
    };
    outcome.key.tell(&run);
    run.say(format_args!("{}: root {}", outcome.container, outcome.root));
    if let Some(ranks) = ranks {
        run.say(format_args!(
            "dealt to {ranks} ranks, each with a share beside it"
        ));
    }
    run.finish("groth16 import", &outcome)?;
    Ok(())
}
