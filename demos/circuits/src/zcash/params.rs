//! Parameters of the drop-in for zcash's halo2_proofs, over either curve, as one type. The code that makes
//! and reads them is compiled here.

use std::io::{self, Read, Write};
use std::path::Path;

use halo2_proofs::arithmetic::CurveAffine;
use halo2_proofs::pasta::{EpAffine, EqAffine};
use halo2_proofs::poly::commitment::Params;
use halo2_proofs::spillproof::{SrsProgress, open_params, save_params, verify_params};

/// The curves of zcash's halo2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pasta {
    /// The curve of orchard's commitments: `EqAffine`.
    Vesta,
    /// `EpAffine`.
    Pallas,
}

/// Is told how far a pass over parameters is.
pub type Follow<'f> = dyn FnMut(SrsProgress) + Send + 'f;

/// Parameters over one of the curves.
pub trait PastaParams {
    /// For `2^k` rows.
    fn k(&self) -> u32;

    /// Writes them as a container.
    ///
    /// # Errors
    /// The drop-in's.
    fn save(&self, path: &Path, follow: &mut Follow<'_>) -> io::Result<()>;

    /// Checks their points.
    ///
    /// # Errors
    /// The drop-in's.
    fn verify(&self, follow: &mut Follow<'_>) -> io::Result<()>;

    /// Writes them in halo2's own bytes.
    ///
    /// # Errors
    /// Of the writer.
    fn write(&self, writer: &mut dyn Write) -> io::Result<()>;
}

impl<C: CurveAffine> PastaParams for Params<C> {
    fn k(&self) -> u32 {
        self.k()
    }

    fn save(&self, path: &Path, follow: &mut Follow<'_>) -> io::Result<()> {
        save_params(self, path, follow)
    }

    fn verify(&self, follow: &mut Follow<'_>) -> io::Result<()> {
        verify_params(self, follow)
    }

    fn write(&self, mut writer: &mut dyn Write) -> io::Result<()> {
        self.write(&mut writer)
    }
}

impl Pasta {
    /// Computes parameters for `2^k` rows.
    pub fn compute(self, k: u32) -> Box<dyn PastaParams> {
        match self {
            Self::Pallas => Box::new(Params::<EpAffine>::new(k)),
            Self::Vesta => Box::new(Params::<EqAffine>::new(k)),
        }
    }

    /// Parameters from halo2's own bytes.
    ///
    /// # Errors
    /// Of the reader.
    pub fn read(self, mut reader: &mut dyn Read) -> io::Result<Box<dyn PastaParams>> {
        Ok(match self {
            Self::Pallas => Box::new(Params::<EpAffine>::read(&mut reader)?),
            Self::Vesta => Box::new(Params::<EqAffine>::read(&mut reader)?),
        })
    }

    /// Opens a container of parameters.
    ///
    /// # Errors
    /// The drop-in's.
    pub fn open(self, path: &Path) -> io::Result<Box<dyn PastaParams>> {
        Ok(match self {
            Self::Pallas => Box::new(open_params::<EpAffine>(path)?),
            Self::Vesta => Box::new(open_params::<EqAffine>(path)?),
        })
    }
}
