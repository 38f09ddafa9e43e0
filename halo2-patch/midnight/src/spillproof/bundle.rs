//! A proving key in a file of the engine's, which is opened in place.
//!
//! `ProvingKey::read` copies: from any reader, in stock's bytes, into scratch, and computes coefficients. A
//! file of [`spillproof_plonk::saved`] has both, and is opened without a copy. It has the verifying key as
//! [`SerdeFormat::RawBytes`], and four groups of polynomials.

use std::io::{self, Read};
use std::path::Path;

use ff::PrimeField as _;
use spillproof_engine::column::{Column, Group};
use spillproof_engine::Session;
use spillproof_plonk::description::{DescribedTrash, Midnight, ProofsOf};
use spillproof_plonk::saved::{
    self, of_outside, KeyGroup, NewKeyFile, FIXED_POLYS, FIXED_VALUES, SIGMA_POLYS, SIGMA_VALUES,
};
use spillproof_plonk::{CircuitDescription, SavedError, Width};

use super::describe::{described_expression, element, has_one_phase, of_system};
use super::key::{KeyOf, KeyOnDisk};
use super::names::{session_for, Fr, ProvingKey, Scalar, VerifyingKey, CURVE};
use super::protocol::BOOK;
use crate::plonk::spillproof_keygen::on_disk;
use crate::plonk::{Circuit, ConstraintSystem, Expression};
use crate::spillproof_release::RELEASE;
use crate::utils::SerdeFormat;

/// How the verifying key is written.
const FORMAT: SerdeFormat = SerdeFormat::RawBytes;

/// Writes a proving key to a file that [`open_proving_key`] opens in place. Returns the root, 32 bytes that
/// name the file. The file appears under its name only when it is whole.
///
/// # Errors
/// Without a session; if the key's columns can't be read, or the file can't be written.
pub fn save_proving_key(pk: &ProvingKey, path: impl AsRef<Path>) -> io::Result<[u8; 32]> {
    let session = session_for("a proving key's own file")?;
    save(&session, pk, None, path.as_ref())
}

/// [`save_proving_key`] with a description of the key's circuit in the file, so that another program can
/// prove and verify with it: the binary `spillproof`, with a witness of
/// [`save_witness`](super::save_witness). The circuit is the one that keygen had; its witness has no part in
/// it. Of its instance columns, the verifier has the first `nb_committed_instances` as commitments, as in
/// `create_proof`. The file says which release its proofs are of.
///
/// # Errors
/// As there; [`SavedError`] within the error for a key of another circuit, for one with challenges, and for
/// one too large to be described.
pub fn save_described_key<ConcreteCircuit: Circuit<Fr>>(
    pk: &ProvingKey,
    circuit: &ConcreteCircuit,
    #[cfg(feature = "committed-instances")] nb_committed_instances: usize,
    path: impl AsRef<Path>,
) -> io::Result<[u8; 32]> {
    #[cfg(not(feature = "committed-instances"))]
    let nb_committed_instances = 0;
    let session = session_for("a proving key's own file")?;
    let description = described(pk.get_vk(), circuit, nb_committed_instances)?;
    save(&session, pk, Some(&description), path.as_ref())
}

/// The description of the circuit that a key is of.
fn described<ConcreteCircuit: Circuit<Fr>>(
    vk: &VerifyingKey,
    circuit: &ConcreteCircuit,
    committed_instances: usize,
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
    let mut of = of_system(&cs, element(&vk.transcript_repr()))?;
    of.proofs = ProofsOf::Midnight(Midnight {
        release: RELEASE,
        has_truncated_challenges: BOOK.width == Width::Half,
        committed_instances,
    });
    of.unblinded_advice = cs.unblinded_advice_columns.clone();
    for argument in &cs.trashcans {
        let Expression::Selector(selector) = argument.selector() else {
            return Err(SavedError::NotOfThisCircuit.into());
        };
        of.simple_selectors[selector.index()] = selector.is_simple();
        let constraints = argument.constraint_expressions().iter();
        let constraints =
            constraints.map(|constraint| described_expression(constraint, &mut of.simple_selectors, 0));
        of.trash.push(DescribedTrash {
            name: argument.name().to_owned(),
            selector: selector.index(),
            constraints: constraints.collect::<Result<_, _>>()?,
        });
    }
    // Selectors become fixed columns, wherever they are on.
    let selectors = vec![Vec::new(); cs.num_selectors];
    let (of_key, _) = cs.directly_convert_selectors_to_fixed(selectors);
    // Upstream pins no unblinded columns.
    let pinned =
        |cs: &ConstraintSystem<Fr>| (format!("{:?}", cs.pinned()), cs.unblinded_advice_columns.clone());
    match pinned(&of_key) == pinned(vk.cs()) {
        true => Ok(of),
        false => Err(SavedError::NotOfThisCircuit.into()),
    }
}

fn save(
    session: &Session,
    pk: &ProvingKey,
    circuit: Option<&CircuitDescription>,
    path: &Path,
) -> io::Result<[u8; 32]> {
    let (workspace, vk) = (session.workspace(), pk.get_vk());
    let key = KeyOf::new(workspace, pk);
    let (key, fixed) = (key.columns(), vk.cs().num_fixed_columns());
    let sigmas = vk.permutation().commitments().len();
    let groups = vec![
        group(FIXED_VALUES, true, fixed, || key.fixed_values()),
        group(FIXED_POLYS, false, fixed, || key.fixed_polynomials()),
        group(SIGMA_VALUES, true, sigmas, || key.sigma_values()),
        group(SIGMA_POLYS, false, sigmas, || key.sigma_polynomials()),
    ];
    let file = NewKeyFile {
        curve: CURVE,
        rows: vk.n(),
        key: &|mut writer| vk.write(&mut writer, FORMAT),
        circuit,
        groups,
    };
    file.save(workspace, path)
}

fn group<'k>(
    label: &'static str,
    lagrange: bool,
    polynomials: usize,
    columns: impl FnOnce() -> spillproof_plonk::Result<Vec<Column<Scalar>>> + Send + 'k,
) -> KeyGroup<'k, Scalar> {
    let each = |columns: spillproof_plonk::Result<Vec<_>>| match columns {
        Ok(columns) => columns.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(of_outside(error.into()))],
    };
    KeyGroup {
        group: Group {
            label,
            lagrange,
            polynomials,
        },
        columns: Box::new(std::iter::once_with(columns).flat_map(each)),
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
) -> io::Result<ProvingKey> {
    let mut cs = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    ConcreteCircuit::configure_with_params(&mut cs, params);
    #[cfg(not(feature = "circuit-params"))]
    ConcreteCircuit::configure(&mut cs);
    KeyFile::open(path)?.proving_key(cs)
}

/// The file of a proving key, opened.
#[derive(Debug)]
pub struct KeyFile(saved::KeyFile);

impl KeyFile {
    /// Opens a file of [`save_proving_key`] or [`save_described_key`].
    ///
    /// # Errors
    /// Without a session; if the file is not a proving key over BLS12-381, or damaged.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let session = session_for("a proving key's own file")?;
        saved::KeyFile::open(session.workspace(), path.as_ref(), CURVE).map(Self)
    }

    /// `2^k` rows.
    ///
    /// # Errors
    /// If the key's bytes are damaged, or are none.
    pub fn k(&self) -> io::Result<u32> {
        let mut head = [0; 2];
        self.0.key_bytes()?.read_exact(&mut head)?;
        let [_version, k] = head;
        self.0.checked_k(k.into(), 1)
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
    /// [`SavedError`] within the error, for a key that was saved without it and for a description that is
    /// none; the engine's.
    pub fn description(&self) -> io::Result<CircuitDescription> {
        self.0.description()
    }

    /// The key of the circuit that `configure` made `cs` of. The file must not change as long as it lives.
    ///
    /// # Errors
    /// As [`open_proving_key`].
    pub fn proving_key(&self, cs: ConstraintSystem<Fr>) -> io::Result<ProvingKey> {
        let another = |what: &str| self.0.of_another_circuit(what);
        let (k, pieces) = (self.k()?, cs.degree().saturating_sub(1).max(1));
        if k + pieces.next_power_of_two().ilog2() > Fr::S || (1 << k) < cs.minimum_rows() {
            return Err(another("as many rows as no key of this circuit has"));
        }
        let mut reader = self.0.key_bytes()?;
        let vk = VerifyingKey::read_from_cs(&mut reader, FORMAT, cs).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => another("fewer bytes than a verifying key of this circuit has"),
            _ => error,
        })?;
        if reader.read(&mut [0])? != 0 {
            return Err(another("more bytes than a verifying key of this circuit has"));
        }
        let (fixed, sigmas) = (vk.cs().num_fixed_columns(), vk.permutation().commitments().len());
        if vk.fixed_commitments().len() != fixed {
            return Err(another("another number of fixed columns than this circuit has"));
        }
        if self.0.is_described()? && self.description()?.key != element(&vk.transcript_repr()) {
            return Err(another("a key that differs from one of this circuit"));
        }
        let group = |label, polynomials| self.0.group::<Scalar>(label, polynomials, vk.n());
        let columns = KeyOnDisk::new(
            [group(FIXED_VALUES, fixed)?, group(FIXED_POLYS, fixed)?],
            [group(SIGMA_VALUES, sigmas)?, group(SIGMA_POLYS, sigmas)?],
        );
        Ok(on_disk(vk, columns))
    }
}
