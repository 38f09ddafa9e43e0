//! Proofs over ranks of keys in files: a `.zkey`, of which a rank keeps its own coefficients, and a key that is dealt
//! to the ranks, each with a share of its own. They are another library's; files that do not belong together, are
//! damaged or missing, and imports that fail, are typed errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use spillproof_engine::error::Invalid;
use spillproof_engine::{Error, Result};
use spillproof_format::FormatError;
use spillproof_groth16::iden3::{
    DealtImport, KeyFile, deal_zkey, import_zkey, plan_of_files_over_ranks, read_wtns, read_zkey_of_rank,
};
use spillproof_groth16::{
    Cut, DealtKey, OfRank, PairingCurve, Place, Proof, ProvingKey, Shares, prove, prove_over_ranks,
};
use spillproof_ranks::faults::{Fault, FaultPlan, Faulty};
use spillproof_ranks::{Ranks, Transport};
use spillproof_testing::session;

use crate::circom_files;
use crate::proofs::key_on_disk;
use crate::ranks::{CUTS, MIB, Statement, each_rank, transports};

const PATIENCE: Duration = Duration::from_secs(120);

/// A key and a witness in the files of circom's tools.
struct Files {
    dir: tempfile::TempDir,
    key: PathBuf,
    witness: PathBuf,
}

impl Files {
    fn of<E: PairingCurve>(statement: &Statement<E>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let [key, witness] = ["key.zkey", "witness.wtns"].map(|name| dir.path().join(name));
        std::fs::write(&key, circom_files::zkey(&statement.circuit, &statement.key)).expect("a key");
        let values = circom_files::wtns::<E>(&statement.circuit.witness);
        std::fs::write(&witness, values).expect("a witness");
        Self { dir, key, witness }
    }

    /// A folder of its own for a key.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.dir.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// The key, dealt to ranks.
    fn deal(
        &self,
        transports: Vec<Arc<dyn Transport>>,
        weights: &[u64],
        target: &Path,
        timeout: Duration,
    ) -> Vec<Result<DealtImport>> {
        each_rank(transports, timeout, |ranks| {
            let (_dir, session) = session(4 * MIB, 1);
            let imported = deal_zkey(
                session.workspace(),
                ranks,
                weights,
                [&self.key, target],
                &mut |_| (),
            );
            assert!(session.budget().peak_bytes() <= 4 * MIB);
            assert_eq!(session.budget().held_bytes(), 0);
            imported
        })
    }

    fn dealt(&self, weights: &[u64], target: &Path) -> Vec<DealtImport> {
        let imported = self.deal(transports(weights.len()), weights, target, PATIENCE);
        imported
            .into_iter()
            .map(|imported| imported.expect("an import"))
            .collect()
    }

    /// One rank's part of a proof with a dealt key.
    fn prove<E: PairingCurve>(
        &self,
        statement: &Statement<E>,
        (ranks, weights): (&Ranks, &[u64]),
        key: &Path,
        memory_bytes: u64,
    ) -> Result<Proof<E>> {
        let (_dir, session) = session(memory_bytes, 1);
        let workspace = session.workspace();
        let of = of_rank(ranks.rank(), weights);
        let opened = DealtKey::<E>::open(workspace, key).and_then(|key| key.share(workspace, &of));
        let key = opened.inspect_err(|error| ranks.give_up(error))?;
        let witness = read_wtns::<E>(workspace, &self.witness, &mut |_| ())?;
        let shares = of.shares(&key.shape()?)?;
        let place = Place {
            ranks,
            shares: &shares,
        };
        let made = prove_over_ranks(&session, &place, &key, &witness, statement.random_of(ranks));
        assert!(session.budget().peak_bytes() <= memory_bytes);
        made.map(|(proof, _nothing)| proof)
    }
}

fn of_rank(rank: usize, weights: &[u64]) -> OfRank<'_> {
    OfRank {
        rank,
        weights,
        cut: Cut::Layout,
    }
}

/// Names in a folder, and the bytes of all its files.
fn files_in(folder: &Path) -> (Vec<String>, u64) {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.map(|entry| {
        let bytes = entry.metadata().expect("a file").len();
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    });
    let (mut names, bytes): (Vec<_>, Vec<_>) = files.unzip();
    names.sort();
    (names, bytes.into_iter().sum())
}

/// The coefficients of all ranks are those of the key, and their proof is another library's.
fn same_from_a_zkey<E: PairingCurve>(seed: u64, constraints: usize) {
    let statement = Statement::<E>::new(seed, constraints);
    let files = Files::of(&statement);
    for weights in [&[1][..], &[1, 1], &[2, 0, 1], &[1; 4]] {
        for cut in CUTS {
            let proved = each_rank(transports(weights.len()), PATIENCE, |ranks| {
                let (_dir, session) = session(8 * MIB, 1);
                let workspace = session.workspace();
                let of = OfRank {
                    rank: ranks.rank(),
                    weights,
                    cut,
                };
                let key = read_zkey_of_rank::<E>(workspace, &files.key, &of, &mut |_| ())?;
                let witness = read_wtns::<E>(workspace, &files.witness, &mut |_| ())?;
                let shares = of.shares(&key.shape()?)?;
                let place = Place {
                    ranks,
                    shares: &shares,
                };
                let random = statement.random_of(ranks);
                let (proof, _nothing) = prove_over_ranks(&session, &place, &key, &witness, random)?;
                Ok((proof, key.constraints.len()))
            });
            let mut coefficients = 0;
            for proved in proved {
                let (proof, kept) = proved.expect("a proof");
                statement.check(Ok(proof));
                coefficients += kept;
            }
            let (_dir, session) = session(32 * MIB, 1);
            let whole = key_on_disk(session.workspace(), &statement.circuit, &statement.key);
            assert_eq!(coefficients, whole.constraints.len(), "{weights:?}, {cut:?}");
        }
    }
}

#[test]
fn a_rank_keeps_its_own_coefficients_of_a_zkey() {
    same_from_a_zkey::<Bn254>(5, 5000);
    same_from_a_zkey::<Bls12_381>(6, 300);
}

/// A key that was opened for one rank, in the place of another one.
#[test]
fn a_rank_s_key_is_for_that_rank() {
    let statement = Statement::<Bn254>::new(7, 300);
    let files = Files::of(&statement);
    let (_dir, session) = session(32 * MIB, 1);
    let workspace = session.workspace();
    let of = |rank, weights, cut| OfRank { rank, weights, cut };
    let key = |of: &OfRank<'_>| read_zkey_of_rank::<Bn254>(workspace, &files.key, of, &mut |_| ());
    let witness = read_wtns::<Bn254>(workspace, &files.witness, &mut |_| ()).expect("a witness");
    let mine: ProvingKey<Bn254> = key(&of(0, &[1, 1], Cut::Layout)).expect("a key");
    let alone = prove(&mine, &witness, statement.random);
    assert!(
        matches!(
            alone,
            Err(Error::Invalid(Invalid::OtherRanks {
                dealt: 2,
                given: 1,
                ..
            }))
        ),
        "{alone:?}"
    );
    assert!(matches!(
        key(&of(2, &[1, 1], Cut::Layout)).err(),
        Some(Error::Invalid(Invalid::Index { .. }))
    ));
    for (rank, weights, cut) in [
        (1, &[1, 1][..], Cut::Layout),
        (0, &[1, 1], Cut::Rows),
        (0, &[3, 1], Cut::Layout),
        (0, &[1, 1, 1], Cut::Layout),
    ] {
        let ranks = Ranks::dry(rank, weights.len());
        let shares = Shares::new(&mine.shape().expect("a shape"), weights, cut).expect("shares");
        let place = Place {
            ranks: &ranks,
            shares: &shares,
        };
        let refused = prove_over_ranks(&session, &place, &mine, &witness, statement.random);
        assert!(
            matches!(
                refused,
                Err(Error::Invalid(
                    Invalid::OtherRanks { .. } | Invalid::OtherShares { .. }
                ))
            ),
            "rank {rank}, {weights:?}, {cut:?}: {refused:?}"
        );
    }
}

/// Another library's proof, of shares whose files together have the bytes of the whole container, but for frames that
/// are not full.
fn same_from_shares<E: PairingCurve>(seed: u64, constraints: usize) {
    let statement = Statement::<E>::new(seed, constraints);
    let files = Files::of(&statement);
    let whole = files.dir.path().join("whole");
    let (_dir, session) = session(16 * MIB, 1);
    let imported = import_zkey(session.workspace(), &files.key, &whole, &mut |_| ()).expect("an import");
    let whole_bytes = std::fs::metadata(&whole).expect("a file").len();
    for (index, weights) in [&[1][..], &[1, 1], &[2, 1, 1], &[1; 4], &[2, 0, 1, 5]]
        .into_iter()
        .enumerate()
    {
        let folder = files.folder(&format!("dealt-{index}"));
        let target = folder.join("key");
        let dealt = files.dealt(weights, &target);
        assert_eq!(dealt[0].key.shape.coefficients, imported.shape.coefficients);
        let roots: Vec<_> = dealt.iter().map(|dealt| dealt.key.root).collect();
        assert!(roots.iter().all(|root| *root == roots[0]), "{roots:?}");
        let (names, bytes) = files_in(&folder);
        assert_eq!(names.len(), 1 + weights.len(), "{names:?}");
        // The longest, those of the whole key.
        let frame_bytes = u64::from(spillproof_format::srs::frame_bytes(imported.curve));
        // A frame of each section, the header and the table of digests; values of coefficients are in each share.
        let beside = (8 * frame_bytes + (3 << 12)) * (weights.len() as u64 + 1)
            + 32 * imported.shape.values * weights.len() as u64;
        assert!(
            bytes <= whole_bytes + beside && whole_bytes <= bytes + beside,
            "{bytes} bytes of {weights:?}, {whole_bytes} of the whole key"
        );
        for memory_bytes in [4 * MIB, 32 * MIB] {
            let proofs = each_rank(transports(weights.len()), PATIENCE, |ranks| {
                files.prove(&statement, (ranks, weights), &target, memory_bytes)
            });
            for proof in proofs {
                statement.check(proof);
            }
        }
    }
}

#[test]
fn proofs_of_dealt_keys_are_another_library_s_on_bn254() {
    for constraints in [10, 200, 3000, 10_000] {
        same_from_shares::<Bn254>(8, constraints);
    }
}

#[test]
fn proofs_of_dealt_keys_are_another_library_s_on_bls12_381() {
    for constraints in [60, 3000] {
        same_from_shares::<Bls12_381>(9, constraints);
    }
}

/// In the smallest budget that the plan of each rank names.
#[test]
fn a_plan_with_a_dealt_key_holds() {
    let statement = Statement::<Bn254>::new(10, 12_000);
    let files = Files::of(&statement);
    let (weights, target) = ([1, 2, 1], files.folder("dealt").join("key"));
    let imported = files.dealt(&weights, &target);
    let shape = imported[0].key.shape;
    let shares = Shares::new(&shape, &weights, Cut::Layout).expect("shares");
    let proofs = each_rank(transports(weights.len()), PATIENCE, |ranks| {
        let dry = ranks.rehearsal();
        let place = Place {
            ranks: &dry,
            shares: &shares,
        };
        let plan = plan_of_files_over_ranks::<Bn254>(&shape, KeyFile::Dealt, &place, (64 * MIB, 1), None)?;
        files.prove(&statement, (ranks, &weights), &target, plan.smallest_budget_bytes)
    });
    for proof in proofs {
        statement.check(proof);
    }
}

/// Shares of two imports, too few ranks, other weights, another cut, a share that is missing.
#[test]
fn what_does_not_belong_together_is_refused() {
    let statement = Statement::<Bn254>::new(11, 400);
    let files = Files::of(&statement);
    let weights = [1, 1];
    let [first, second] = ["first", "second"].map(|name| files.folder(name).join("key"));
    let [of_first, of_second] = [&first, &second].map(|target| files.dealt(&weights, target));
    let (_dir, session) = session(16 * MIB, 1);
    let workspace = session.workspace();
    let share = |of: &OfRank<'_>| -> Result<ProvingKey<Bn254>> {
        DealtKey::open(workspace, &first)?.share(workspace, of)
    };
    share(&of_rank(1, &weights)).expect("a share");
    for (weights, given) in [(&[1][..], 1), (&[1, 1, 1], 3)] {
        let refused = share(&of_rank(0, weights)).err();
        match refused {
            Some(Error::Invalid(Invalid::OtherRanks {
                dealt: 2,
                given: found,
                ..
            })) => assert_eq!(found, given),
            other => panic!("{other:?}"),
        }
    }
    let other_cut = OfRank {
        cut: Cut::Rows,
        ..of_rank(0, &weights)
    };
    for of in [of_rank(0, &[3, 1]), other_cut] {
        let refused = share(&of).err();
        assert!(
            matches!(refused, Some(Error::Invalid(Invalid::OtherShares { .. }))),
            "{refused:?}"
        );
    }
    assert!(ProvingKey::<Bn254>::open_container(workspace, &first).is_err());
    assert!(DealtKey::<Bn254>::open(workspace, &of_first[0].share).is_err());
    assert!(DealtKey::<Bls12_381>::open(workspace, &first).is_err());

    let (good, other) = (&of_first[1].share, &of_second[1].share);
    std::fs::copy(other, good).expect("a copy");
    match share(&of_rank(1, &weights)).err() {
        Some(Error::Format {
            file,
            source: FormatError::OtherShare { .. },
        }) => assert_eq!(file, *good),
        other => panic!("{other:?}"),
    }
    // The other rank ends, too.
    let ended = each_rank(transports(2), Duration::from_secs(20), |ranks| {
        files.prove(&statement, (ranks, &weights), &first, 16 * MIB)
    });
    assert!(matches!(ended[0], Err(Error::Ranks(_))), "{:?}", ended[0]);
    assert!(matches!(ended[1], Err(Error::Format { .. })), "{:?}", ended[1]);
    std::fs::remove_file(good).expect("a file");
    let missing = share(&of_rank(1, &weights)).err().expect("an error").to_string();
    let name = good.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(missing.contains(&name), "{missing}");
}

/// A bit of a share, or of the key, is another one: an error that names the file, or the right proof.
#[test]
fn a_flip_in_a_share_is_found() {
    let statement = Statement::<Bn254>::new(12, 400);
    let files = Files::of(&statement);
    let weights = [1, 1];
    let target = files.folder("dealt").join("key");
    let dealt = files.dealt(&weights, &target);
    let (mut found, mut proved) = (0, 0);
    for file in [&target, &dealt[1].share] {
        let good = std::fs::read(file).expect("a file");
        let frame_bytes = if file == &target { 65536 } else { 16384 };
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        // The header, and the first bytes of each frame, which have elements.
        let frames = (0..(good.len() - 8192) / frame_bytes).map(|frame| 4096 + frame * frame_bytes);
        let table = good.len() - 4096;
        for at in (0..4096)
            .step_by(401)
            .chain(frames.flat_map(|at| [at + 5, at + 700]))
            .chain([table + 3])
        {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(file, &bytes).expect("a file");
            let proofs = each_rank(transports(2), Duration::from_secs(20), |ranks| {
                files.prove(&statement, (ranks, &weights), &target, 16 * MIB)
            });
            let mut named = 0;
            for proof in proofs {
                match proof {
                    Ok(proof) => {
                        statement.check(Ok(proof));
                        proved += 1;
                    }
                    Err(Error::Ranks(_)) => {}
                    Err(error @ (Error::Format { .. } | Error::Damaged { .. } | Error::Invalid(_))) => {
                        assert!(error.to_string().contains(&name), "byte {at}: {error}");
                        named += 1;
                    }
                    Err(other) => panic!("byte {at} of {name}: {other}"),
                }
            }
            found += usize::from(named > 0);
        }
        std::fs::write(file, &good).expect("a file");
    }
    println!("{found} flips found, {proved} ranks proved all the same");
    assert!(found > 20 && proved == 0, "{found} found, {proved} proved");
}

/// An import whose messages do not arrive leaves the key that was there, or is whole.
#[test]
fn an_import_that_fails_leaves_the_older_key() {
    let statement = Statement::<Bn254>::new(13, 200);
    let files = Files::of(&statement);
    let weights = [1, 2];
    let folder = files.folder("dealt");
    let target = folder.join("key");
    files.dealt(&weights, &target);
    // Again: the older shares go.
    let before = files_in(&folder).0;
    files.dealt(&weights, &target);
    let after = files_in(&folder).0;
    assert!(after.len() == 3 && after != before, "{before:?}, {after:?}");

    let whole_key = || {
        let (_dir, session) = session(16 * MIB, 1);
        let workspace = session.workspace();
        for rank in 0..weights.len() {
            let key = DealtKey::<Bn254>::open(workspace, &target).expect("a key");
            key.share(workspace, &of_rank(rank, &weights)).expect("a share");
        }
    };
    let (mut failed, mut left) = (0, 0);
    for rank in 0..weights.len() {
        let mut counted = transports(2);
        let plan = FaultPlan::none();
        counted[rank] = Arc::new(Faulty::new(Arc::clone(&counted[rank]), plan.clone()));
        for imported in files.deal(counted, &weights, &target, PATIENCE) {
            imported.expect("an import");
        }
        for message in 0..plan.messages() {
            for fault in [Fault::Lost, Fault::Flipped(77)] {
                let mut parts = transports(2);
                let inner = Arc::clone(&parts[rank]);
                parts[rank] = Arc::new(Faulty::new(inner, FaultPlan::at(message, fault)));
                let ended = files.deal(parts, &weights, &target, Duration::from_secs(1));
                failed += usize::from(ended.iter().any(Result::is_err));
                whole_key();
                left += files_in(&folder).0.len() - 3;
                for name in files_in(&folder).0 {
                    let is_of_key = whole_names(&target).contains(&name);
                    if !is_of_key {
                        std::fs::remove_file(folder.join(name)).expect("a file");
                    }
                }
            }
        }
    }
    println!("{failed} imports failed, and left {left} shares");
    assert!(failed > 4);
    // A file that one rank does not find.
    let (names, _) = files_in(&folder);
    let ended = each_rank(transports(2), Duration::from_secs(20), |ranks| {
        let (_dir, session) = session(4 * MIB, 1);
        let key = match ranks.rank() {
            0 => files.key.clone(),
            _ => files.dir.path().join("none.zkey"),
        };
        deal_zkey(session.workspace(), ranks, &weights, [&key, &target], &mut |_| ())
    });
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    assert_eq!(files_in(&folder).0, names);
    whole_key();
}

/// Names of the files of a dealt key.
fn whole_names(key: &Path) -> Vec<String> {
    let (_dir, session) = session(16 * MIB, 1);
    let key = DealtKey::<Bn254>::open(session.workspace(), key).expect("a key");
    let files = key.files();
    let name = |file: &PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    files.iter().filter_map(name).collect()
}
