//! A folder with files of parameters, and a workspace with its scratch files beside them.

use std::path::{Path, PathBuf};

use spillproof_commit::export_params_kzg;
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::Workspace;
use spillproof_engine::storage::{FaultPlan, Storage};
use spillproof_format::params_kzg::SerdeFormat;

pub struct Place {
    pub dir: tempfile::TempDir,
    pub workspace: Workspace,
}

impl Place {
    pub fn new() -> Self {
        Self::with(FaultPlan::none())
    }

    pub fn with(faults: FaultPlan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let storage = Storage::builder().dir(scratch).faults(faults).build().unwrap();
        Self {
            dir,
            workspace: Workspace::new(storage, Budget::new(32 << 20)),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn export(&self, source: &Path, format: SerdeFormat) -> Result<Vec<u8>, Error> {
        let target = self.path("exported");
        export_params_kzg(&self.workspace, source, &target, format, &mut |_| {})?;
        Ok(std::fs::read(target).unwrap())
    }
}
