//! A proving key in a file of the engine's, which is opened in place.
//!
//! `ProvingKey::read` copies: from any reader, in stock's bytes, into scratch. A file of
//! [`spillproof_plonk::saved`] is opened without a copy. It has the verifying key as
//! [`SerdeFormat::RawBytes`], and five groups of polynomials.

use std::io::{self, Read};
use std::path::Path;

use halo2curves::bn256::{Fr, G1Affine};
use spillproof_commit::Scalar;
use spillproof_engine::column::{Column, Group};
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_plonk::saved::{
    self, of_outside, KeyGroup, NewKeyFile, FIXED_POLYS, FIXED_VALUES, SIGMA_POLYS, SIGMA_VALUES,
};
use spillproof_plonk::{CircuitDescription, SavedError};

use super::describe::{element, has_one_phase, of_system};
use super::engine::session_for;
use super::names::CURVE;
use super::selectors::replaced;
use super::values::{column, from_column};
use crate::plonk::spillproof_prover::selectors_of;
use crate::plonk::{permutation, Circuit, ConstraintSystem, ProvingKey, VerifyingKey};
use crate::poly::Polynomial;
use crate::SerdeFormat;

/// How the verifying key is written.
const FORMAT: SerdeFormat = SerdeFormat::RawBytes;
/// `l_0`, `l_last`, `l_active_row`.
const ROWS: &str = "rows";
pub(super) const ROW_POLYNOMIALS: usize = 3;

/// Writes a proving key to a file that [`open_proving_key`] opens in place. Returns the root, 32 bytes that
/// name the file. The file appears under its name only when it is whole.
///
/// # Errors
/// Without a session; if the key's columns can't be read, or the file can't be written.
pub fn save_proving_key(pk: &ProvingKey<G1Affine>, path: impl AsRef<Path>) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    save(&session, pk, None, path.as_ref())
}

/// [`save_proving_key`] with a description of the key's circuit in the file, so that another program can
/// prove and verify with it: the binary `spillproof`, with a witness of
/// [`save_witness`](super::save_witness). The circuit is the one that keygen had; its witness has no part in
/// it.
///
/// # Errors
/// As there; [`SavedError`] within the error for a key of another circuit, for one with challenges, and for
/// one too large to be described.
pub fn save_described_key<ConcreteCircuit: Circuit<Fr>>(
    pk: &ProvingKey<G1Affine>,
    circuit: &ConcreteCircuit,
    path: impl AsRef<Path>,
) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    let description = described(&session, pk.get_vk(), circuit)?;
    save(&session, pk, Some(&description), path.as_ref())
}

/// The description of the circuit that a key is of.
fn described<ConcreteCircuit: Circuit<Fr>>(
    session: &Session,
    vk: &VerifyingKey<G1Affine>,
    circuit: &ConcreteCircuit,
) -> io::Result<CircuitDescription> {
    let mut cs = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    ConcreteCircuit::configure_with_params(&mut cs, circuit.params());
    #[cfg(not(feature = "circuit-params"))]
    {
        let _its_type_counts = circuit;
        ConcreteCircuit::configure(&mut cs);
    }
    has_one_phase(&cs)?;
    let description = of_system(&cs, element(&vk.transcript_repr()))?;
    let (selectors, workspace) = (selectors_of(vk), session.workspace());
    let of_key = replaced(workspace, selectors, vk.compress_selectors(), cs).map_err(io::Error::other)?;
    let pinned = |cs: &ConstraintSystem<Fr>| format!("{:?}", cs.pinned());
    match of_key {
        Some(of_key) if pinned(&of_key) == pinned(vk.cs()) => Ok(description),
        _ => Err(SavedError::NotOfThisCircuit.into()),
    }
}

fn save(
    session: &Session,
    pk: &ProvingKey<G1Affine>,
    circuit: Option<&CircuitDescription>,
    path: &Path,
) -> io::Result<[u8; 32]> {
    let of_rows = [pk.l0(), pk.l_last(), pk.l_active_row()].into_iter();
    let groups = vec![
        group(ROWS, false, of_rows),
        group(FIXED_VALUES, true, pk.fixed_values().iter()),
        group(FIXED_POLYS, false, pk.fixed_polys().iter()),
        group(SIGMA_VALUES, true, pk.permutation().permutations().iter()),
        group(SIGMA_POLYS, false, pk.permutation().polys().iter()),
    ];
    let file = NewKeyFile {
        curve: CURVE,
        rows: pk.get_vk().get_domain().get_n(),
        key: &|mut writer| pk.get_vk().write(&mut writer, FORMAT),
        circuit,
        groups,
    };
    file.save(session.workspace(), path)
}

fn group<'k, B: Sync + 'k>(
    label: &'static str,
    lagrange: bool,
    polynomials: impl ExactSizeIterator<Item = &'k Polynomial<Fr, B>> + Send + 'k,
) -> KeyGroup<'k, Scalar> {
    KeyGroup {
        group: Group {
            label,
            lagrange,
            polynomials: polynomials.len(),
        },
        columns: Box::new(polynomials.map(on_disk)),
    }
}

/// Opens a proving key that [`save_proving_key`] or [`save_described_key`] wrote. Its polynomials stay in the
/// file, which must not change as long as the key lives.
///
/// # Errors
/// Without a session; if the file is not a proving key, not one of this circuit, or damaged. What is damaged
/// in its polynomials is found when they are read.
pub fn open_proving_key<ConcreteCircuit: Circuit<Fr>>(
    path: impl AsRef<Path>,
    #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
) -> io::Result<ProvingKey<G1Affine>> {
    KeyFile::open(path)?.proving_key::<ConcreteCircuit>(
        #[cfg(feature = "circuit-params")]
        params,
    )
}

/// The file of a proving key, opened.
#[derive(Debug)]
pub struct KeyFile(saved::KeyFile);

impl KeyFile {
    /// Opens a file of [`save_proving_key`] or [`save_described_key`].
    ///
    /// # Errors
    /// Without a session; if the file is not a proving key, or damaged.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let session = session_for("a proving key's own file")?;
        let file = saved::KeyFile::open(session.workspace(), path.as_ref(), CURVE);
        file.map(Self)
    }

    /// `2^k` rows.
    ///
    /// # Errors
    /// If the key's bytes are damaged, or are none.
    pub fn k(&self) -> io::Result<u32> {
        /// halo2's version of a key, then k.
        const HEAD_BYTES: usize = 5;
        let mut head = [0; HEAD_BYTES];
        self.0.key_bytes()?.read_exact(&mut head)?;
        let [_version, k @ ..] = head;
        self.0.checked_k(u32::from_le_bytes(k), 1)
    }

    /// The verifying key's bytes, as [`SerdeFormat::RawBytes`].
    ///
    /// # Errors
    /// If they are damaged, or the budget has no room for them while they are read.
    pub fn verifying_key_bytes(&self) -> io::Result<Vec<u8>> {
        self.0.verifying_key_bytes()
    }

    /// The circuit that the key is of.
    ///
    /// # Errors
    /// [`SavedError`] within the error, for a key that was saved without it and
    /// for a description that is none; the engine's.
    pub fn description(&self) -> io::Result<CircuitDescription> {
        self.0.description()
    }

    /// The key. The file must not change as long as it lives.
    ///
    /// # Errors
    /// As [`open_proving_key`].
    pub fn proving_key<ConcreteCircuit: Circuit<Fr>>(
        &self,
        #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
    ) -> io::Result<ProvingKey<G1Affine>> {
        self.k()?;
        let another = |what: &str| self.0.of_another_circuit(what);
        let mut reader = self.0.key_bytes()?;
        let vk = VerifyingKey::<G1Affine>::read::<_, ConcreteCircuit>(
            &mut reader,
            FORMAT,
            #[cfg(feature = "circuit-params")]
            params,
        )
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => another("fewer bytes than a verifying key of this circuit has"),
            _ => error,
        })?;
        if reader.read(&mut [0])? != 0 {
            return Err(another("more bytes than a verifying key of this circuit has"));
        }
        if self.0.is_described()? && self.description()?.key != element(&vk.transcript_repr()) {
            return Err(another("a key that differs from one of this circuit"));
        }
        let rows = vk.get_domain().get_n();
        let (fixed, sigmas) = (vk.fixed_commitments().len(), vk.permutation().commitments().len());
        let mut row_polys = self.group(ROWS, ROW_POLYNOMIALS, rows)?.into_iter();
        let (Some(l0), Some(l_last), Some(l_active_row)) =
            (row_polys.next(), row_polys.next(), row_polys.next())
        else {
            return Err(io::Error::other("a group of three polynomials has fewer"));
        };
        let sigma_values = self.group(SIGMA_VALUES, sigmas, rows)?;
        let sigma_polys = self.group(SIGMA_POLYS, sigmas, rows)?;
        let permutation = permutation::ProvingKey::from_parts(sigma_values, sigma_polys);
        let fixed_values = self.group(FIXED_VALUES, fixed, rows)?;
        let fixed_polys = self.group(FIXED_POLYS, fixed, rows)?;
        Ok(ProvingKey::from_parts(
            vk,
            l0,
            l_last,
            l_active_row,
            fixed_values,
            fixed_polys,
            permutation,
        ))
    }

    fn group<B>(&self, label: &str, polynomials: usize, rows: u64) -> io::Result<Vec<Polynomial<Fr, B>>> {
        let columns = self.0.group::<Scalar>(label, polynomials, rows)?;
        Ok(columns.into_iter().map(from_column).collect())
    }
}

/// The column of a polynomial, for the engine.
fn on_disk<B>(poly: &Polynomial<Fr, B>) -> Result<Column<Scalar>> {
    column(poly).map_err(of_outside)
}
