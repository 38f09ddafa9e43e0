//! Keys by what their files are: a `.zkey`, a `.arkzkey`, a container, or a container that is dealt to ranks.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use spillproof_engine::column::{Container, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_format::Curve;
use spillproof_format::iden3::FileKind;
use spillproof_groth16::iden3::{KeyFile as KeyForm, Progress, curve_of, read_zkey, read_zkey_of_rank};
use spillproof_groth16::{
    Cut, DealtKey, OfRank, PairingCurve, ProvingKey, Shape, Shares, VerifyingKey, arkworks, is_dealt,
};

use crate::{Error, Result};

/// How far the reading of a file is.
pub type Follow<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// What a key's file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A file of snarkjs.
    Zkey,
    /// A file of ark-zkey.
    Arkzkey,
    /// A container of ours.
    Container,
    /// A container that names a share for each rank.
    Dealt,
}

impl Form {
    /// By the file's first bytes, and by the kind of a container; and the curve.
    pub fn of(workspace: &Workspace, file: &Path) -> Result<(Self, Curve)> {
        let mut magic = [0; 4];
        let mut opened = File::open(file).map_err(|source| Error::File {
            file: file.to_owned(),
            source,
        })?;
        // A file that is too short is no container either; opening it says so.
        let _too_short = opened.read_exact(&mut magic);
        if FileKind::detect(magic).is_some() {
            return Ok((Self::Zkey, curve_of(workspace, file, FileKind::Zkey)?));
        }
        // What says so in its name is told what is wrong with it in these words.
        if file.extension().is_some_and(|ending| ending == "arkzkey") {
            return Ok((Self::Arkzkey, Curve::Bn254));
        }
        let container = match Container::open(workspace, file) {
            // No mark tells such a file: lengths do, which are looked at last.
            Err(spillproof_engine::Error::Format { .. }) if arkworks::is_zkey(workspace, file)? => {
                return Ok((Self::Arkzkey, Curve::Bn254));
            }
            container => container?,
        };
        let form = if is_dealt(&container) {
            Self::Dealt
        } else {
            Self::Container
        };
        Ok((form, container.header().curve()))
    }

    pub fn plan(self) -> KeyForm {
        match self {
            Self::Zkey => KeyForm::Zkey,
            // Its columns are in scratch, as in a container.
            Self::Container | Self::Arkzkey => KeyForm::Container,
            Self::Dealt => KeyForm::Dealt,
        }
    }
}

/// A key of one curve.
pub enum Held<E: PairingCurve> {
    /// One that proves.
    Proving(Box<ProvingKey<E>>),
    /// One that is dealt to ranks, without the share of any.
    Dealt(Box<DealtKey<E>>),
}

impl<E: PairingCurve> Held<E> {
    /// The key, for one rank alone.
    pub fn open(workspace: &Workspace, form: Form, file: &Path, follow: Follow<'_>) -> Result<Self> {
        Ok(match form {
            Form::Zkey => Self::proving(read_zkey(workspace, file, follow)?),
            Form::Arkzkey => Self::proving(arkworks::read_zkey(workspace, file, follow)?),
            Form::Container => Self::proving(ProvingKey::open_container(workspace, file)?),
            Form::Dealt => Self::Dealt(Box::new(DealtKey::open(workspace, file)?)),
        })
    }

    /// What a rank needs of the key, and the shares of all.
    pub fn open_of_rank(
        workspace: &Workspace,
        form: Form,
        file: &Path,
        of: &AsRank<'_>,
        follow: Follow<'_>,
    ) -> Result<(Self, Shares)> {
        let (rank, cut) = (of.rank, of.cut);
        let equal = vec![1; of.ranks];
        let weights = if of.weights.is_empty() {
            &equal[..]
        } else {
            of.weights
        };
        let of_rank = OfRank { rank, weights, cut };
        let key = match form {
            Form::Zkey => read_zkey_of_rank(workspace, file, &of_rank, follow)?,
            Form::Arkzkey => arkworks::read_zkey(workspace, file, follow)?,
            Form::Container => ProvingKey::open_container(workspace, file)?,
            Form::Dealt => {
                let key = DealtKey::<E>::open(workspace, file)?;
                let dealt_by = key.weights();
                // Its own weights, unless others are asked for.
                let weights = match of.weights.is_empty() && dealt_by.len() == of.ranks {
                    true => &dealt_by[..],
                    false => weights,
                };
                let of_rank = OfRank { rank, weights, cut };
                let share = key.share(workspace, &of_rank)?;
                let shares = of_rank.shares(&key.shape())?;
                return Ok((Self::proving(share), shares));
            }
        };
        let shares = of_rank.shares(&key.shape()?)?;
        Ok((Self::proving(key), shares))
    }

    fn proving(key: ProvingKey<E>) -> Self {
        Self::Proving(Box::new(key))
    }

    pub fn shape(&self) -> Result<Shape> {
        Ok(match self {
            Self::Proving(key) => match &key.share {
                Some(share) => *share.whole(),
                None => key.shape()?,
            },
            Self::Dealt(key) => key.shape(),
        })
    }

    pub fn verifying(&self) -> &VerifyingKey<E> {
        match self {
            Self::Proving(key) => &key.verifying,
            Self::Dealt(key) => &key.verifying,
        }
    }

    /// The key that proves, for so many ranks.
    pub fn prover(&self, ranks: usize) -> Result<&ProvingKey<E>> {
        match self {
            Self::Proving(key) => Ok(key),
            Self::Dealt(key) => Err(spillproof_engine::Error::from(Invalid::OtherRanks {
                file: key.path().display().to_string(),
                dealt: key.weights().len(),
                given: ranks,
            })
            .into()),
        }
    }

    /// Whether the distinct values of all coefficients were counted.
    pub fn has_counted_values(&self) -> bool {
        matches!(self, Self::Proving(key) if key.share.is_none())
    }

    /// Of a dealt key, all points were checked when it was made.
    pub fn check_points(&self) -> Result<()> {
        match self {
            Self::Proving(key) => Ok(key.check_points()?),
            Self::Dealt(_) => Ok(()),
        }
    }
}

/// One rank of several that prove together, or import a key.
#[derive(Clone, Copy, Debug)]
pub struct AsRank<'a> {
    /// The rank.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// The weight of each rank. An empty list takes the weights of a dealt key; for another key, equal ones.
    pub weights: &'a [u64],
    /// The cut.
    pub cut: Cut,
}
