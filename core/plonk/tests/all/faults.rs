//! Every storage operation of a commitment, of a transform and of a quotient, failing in every way: the right
//! answer or a typed error, and nothing left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use ark_bn254::{Fr, G1Affine};
use ark_ff::UniformRand;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{HALO2_ROOT_OF_UNITY, Srs, generate, kzg, omega};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Draft, Placement, Scratch, Workspace, Writer};
use spillproof_engine::storage::{Backend, Fault, FaultPlan, Storage};
use spillproof_engine::stream::{Scalars, Transform, ntt_in_tiles};
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::stages::permutation::{ProductSet, grand_product};
use spillproof_plonk::stages::sort::sort_as_planned;
use spillproof_plonk::stages::{
    Builder, Constraints, CosetDomain, SortPlan, Source, lookup, quotient, quotient_of_constraints,
};

const K: u32 = 12;
/// Elements of the transform, which takes two passes in tiles of half that.
const LOG_N: u32 = 12;
/// Operations of one run that are tried with a fault, at most: others for each fault. A transform has
/// hundreds, all alike but for their place.
const TRIED_MAX: usize = 20;

const FAULTS: [Fault; 10] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::Unsupported,
    Fault::Interrupted,
    Fault::Short(1),
    Fault::FlipByte(1234),
    // Where a frame of scalars has a part of its tag.
    Fault::FlipByte(4095),
    Fault::Torn,
    Fault::SwapFrames(16 * 1024),
    Fault::Truncate,
];

fn workspace(dir: &Path, backend: Backend, faults: FaultPlan) -> Result<Workspace> {
    let storage = Storage::builder()
        .dir(dir)
        .backend(backend)
        .faults(faults)
        .build()?;
    // Plain as well as sealed frames: as the backends are tried in turn.
    let scratch = match backend {
        Backend::Pread => Scratch::Plain,
        _ => Scratch::Sealed,
    };
    Workspace::new(storage, Budget::new(4 << 20)).with_scratch(scratch)
}

/// Opens the SRS, writes a polynomial, commits to it and opens it.
fn commit(workspace: &Workspace, srs: &Path, values: &[Fr]) -> Result<(G1Affine, kzg::Opening)> {
    let srs = <Srs>::open_container(workspace, srs)?;
    let mut writer = Writer::scratch(workspace, "polynomial", values.len() as u64, Placement::Disk)?;
    writer.push(values)?;
    let column = writer.finish()?;
    let commitment = kzg::commit(&srs, &[Scalars::Column(&column)])?;
    Ok((commitment[0], kzg::open(&srs, &column, Fr::from(5u64))?))
}

/// Writes a column and transforms it in two passes over the disk.
fn transform(workspace: &Workspace, values: &[Fr]) -> Result<Vec<Fr>> {
    let len = values.len() as u64;
    let mut writer = Writer::new(Draft::scratch_with_frames(
        workspace,
        "values",
        len,
        Placement::Disk,
        4096,
    )?);
    writer.push(values)?;
    let column = writer.finish()?;
    let transform = Transform::forward(LOG_N, omega(HALO2_ROOT_OF_UNITY, LOG_N)?);
    ntt_in_tiles(&column, &transform, Placement::Disk, LOG_N - 1)?.to_vec()
}

fn written(workspace: &Workspace, values: &[Fr]) -> Result<Column<Fr>> {
    let mut writer = Writer::scratch(workspace, "values", values.len() as u64, Placement::Disk)?;
    writer.push(values)?;
    writer.finish()
}

/// Writes a lookup's input and table and permutes them; merges runs in two rounds.
fn permute(workspace: &Workspace, values: &[Fr]) -> Result<Vec<Fr>> {
    let rows = values.len() as u64 - 3;
    let table = written(workspace, values)?;
    let repeated: Vec<Fr> = values
        .iter()
        .step_by(2)
        .chain(values.iter().skip(1).step_by(2))
        .copied()
        .collect();
    let input = written(workspace, &repeated)?;
    let tail = &values[..3];
    let (permuted_input, permuted_table) = lookup::permute(
        workspace,
        &input,
        &table,
        rows,
        [tail, tail],
        LeftOvers::Ascending,
    )?;
    let plan = SortPlan {
        len: rows,
        run: 512,
        run_chunk: 512,
        fan_in: 2,
        merge_chunk: 512,
        write_chunk: 512,
    };
    assert_eq!(plan.rounds(), 2);
    let merged = sort_as_planned(workspace, &input, &plan, tail)?.to_vec()?;
    let all = [merged, permuted_input.to_vec()?, permuted_table.to_vec()?];
    Ok(all.concat())
}

/// Writes two columns and takes a grand product over them.
fn product(workspace: &Workspace, values: &[Fr]) -> Result<(Vec<Fr>, Fr)> {
    let (column, sigma) = (written(workspace, values)?, written(workspace, &values[1..])?);
    let set = ProductSet {
        values: vec![&column, &sigma],
        sigmas: vec![&sigma, &column],
        beta: values[0],
        gamma: values[1],
        delta_start: values[2],
        delta: values[3],
        omega: values[4],
    };
    let (z, last) = grand_product(workspace, &set, sigma.len(), values[5], &values[..6])?;
    Ok((z.to_vec()?, last))
}

/// Writes two columns and takes a quotient of them on two cosets: in panels and tiles, or in groups of constraints.
fn take_quotient(workspace: &Workspace, values: &[Fr], in_groups: bool) -> Result<Vec<Vec<Fr>>> {
    let columns = [
        written(workspace, values)?,
        written(workspace, &[values, values].concat()[1..=values.len()])?,
    ];
    let mut builder = Builder::new();
    let (a, b, a_before) = (builder.query(0, 1), builder.query(1, 0), builder.query(0, -1));
    let product = builder.mul(a, b);
    let difference = builder.sub(product, a_before);
    let constraints = Constraints::new(builder, vec![difference, product], Fr::from(9u64));
    let program = constraints.program();
    let domain = CosetDomain {
        log_n: LOG_N,
        omega: omega(HALO2_ROOT_OF_UNITY, LOG_N)?,
        log_cosets: 1,
        extended_omega: omega(HALO2_ROOT_OF_UNITY, LOG_N + 1)?,
        shift: Fr::from(5u64),
        pieces: 2,
    };
    let sources = [
        Source::Coefficients(&columns[0]),
        Source::Coefficients(&columns[1]),
    ];
    let pieces = match in_groups {
        true => quotient_of_constraints(workspace, &sources, (&constraints, &program), &domain),
        false => quotient(workspace, &sources, &program, &domain),
    }?;
    pieces.iter().map(Column::to_vec).collect()
}

/// Runs `work` once without faults, then with each fault at each operation.
fn try_all<T: PartialEq + std::fmt::Debug>(
    dir: &Path,
    backend: Backend,
    files: usize,
    work: impl Fn(&Workspace) -> Result<T>,
) {
    let counting = FaultPlan::none();
    let wanted = {
        let workspace = workspace(dir, backend, counting.clone()).expect("storage");
        work(&workspace).expect("no faults")
    };
    let operations = counting.operations();
    assert!(operations > 5, "{operations} operations are too few to be all");
    let stride = (operations as usize).div_ceil(TRIED_MAX);
    let (mut right, mut refused) = (0, 0);
    for (number, fault) in FAULTS.into_iter().enumerate() {
        let first = (number * stride / FAULTS.len()) as u64;
        for index in (first..operations).step_by(stride) {
            let result = workspace(dir, backend, FaultPlan::at(index, fault)).and_then(|workspace| {
                let result = work(&workspace);
                // A buffer outlives its transfer, which may still be under way.
                let patience = Instant::now();
                while workspace.budget.held_bytes() > 0 && patience.elapsed() < Duration::from_secs(10) {
                    std::thread::yield_now();
                }
                assert_eq!(
                    workspace.budget.held_bytes(),
                    0,
                    "{fault:?} at {index} keeps a lease"
                );
                result
            });
            match result {
                Ok(found) => {
                    assert_eq!(found, wanted, "{fault:?} at operation {index} of {operations}");
                    right += 1;
                }
                Err(error) => {
                    let typed = matches!(
                        error,
                        Error::Io { .. } | Error::File { .. } | Error::Damaged { .. } | Error::Format { .. }
                    );
                    assert!(typed, "{fault:?} at {index}: {error:?}");
                    assert!(
                        !matches!(fault, Fault::Interrupted | Fault::Short(_)),
                        "{fault:?} at operation {index} has to be overcome: {error}"
                    );
                    refused += 1;
                }
            }
            let left = std::fs::read_dir(dir).expect("listing").count();
            assert_eq!(left, files, "{fault:?} at {index} leaves something");
        }
    }
    println!(
        "{backend:?}: {operations} operations, every {stride}. tried: {right} runs right, {refused} refused"
    );
    assert!(right > 0 && refused > 0);
}

/// Of a frame of scalars on disk, each word's last byte has a part of the tag.
#[test]
fn a_changed_element_and_a_changed_tag_are_found_where_they_are() {
    const FRAME: usize = 16 * 1024;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let values: Vec<Fr> = (0..3 * FRAME / 32).map(|_| Fr::rand(&mut rng)).collect();
    let (dir, counts) = (tempfile::tempdir().unwrap(), FaultPlan::none());
    let workspace_with = |faults| workspace(dir.path(), Backend::Pread, faults).unwrap();
    let column = written(&workspace_with(counts.clone()), &values).unwrap();
    let read_at = counts.operations();
    drop(column);
    let bytes = (0..8).chain(30..34).chain([63, 127, 4095, 4127, 8191]);
    for at in bytes.chain((0..FRAME).step_by(509)) {
        for frame in 0..3u64 {
            let place = frame as usize * FRAME + at;
            let workspace = workspace_with(FaultPlan::at(read_at, Fault::FlipByte(place)));
            let found = written(&workspace, &values).and_then(|column| column.to_vec());
            assert!(
                matches!(
                    &found,
                    Err(Error::Damaged { file, frame: bad, offset })
                        if file.contains("values") && *bad == frame && *offset == frame * FRAME as u64
                ),
                "byte {place}: {:?}",
                found.map(|values| values.len())
            );
        }
    }
}

#[test]
fn every_fault_in_a_commitment() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("test.srs");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let plain = workspace(dir.path(), Backend::Pread, FaultPlan::none()).expect("storage");
    generate::<ark_bn254::Bn254>(&plain, &path, K, Fr::rand(&mut rng), |_| ()).expect("SRS");
    let values: Vec<Fr> = (0..1 << K).map(|_| Fr::rand(&mut rng)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        try_all(dir.path(), backend, 1, |workspace| {
            commit(workspace, &path, &values)
        });
    }
}

#[test]
fn every_fault_in_a_transform() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let values: Vec<Fr> = (0..1 << LOG_N).map(|_| Fr::rand(&mut rng)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        try_all(dir.path(), backend, 0, |workspace| transform(workspace, &values));
    }
}

#[test]
fn every_fault_in_a_permuted_lookup() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let values: Vec<Fr> = (0..1900u64).map(|i| -Fr::from(i * i % 701)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        try_all(dir.path(), backend, 0, |workspace| permute(workspace, &values));
    }
}

#[test]
fn every_fault_in_a_grand_product() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let values: Vec<Fr> = (0..1700).map(|_| Fr::rand(&mut rng)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        try_all(dir.path(), backend, 0, |workspace| product(workspace, &values));
    }
}

#[test]
fn every_fault_in_short_columns() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let values: Vec<Fr> = (0..1 << LOG_N).map(|_| Fr::rand(&mut rng)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        try_all(dir.path(), backend, 0, |workspace| {
            let columns = [written(workspace, &values)?, written(workspace, &values)?];
            let pair = [&columns[0], &columns[1]];
            let tails = [[&values[..5]; 2]; 3];
            let usable = (1 << LOG_N) - 5;
            let permuted = lookup::permute_all(workspace, &[pair; 3], usable, &tails, LeftOvers::Ascending)?;
            permuted
                .iter()
                .flatten()
                .map(Column::to_vec)
                .collect::<Result<Vec<_>>>()
        });
    }
}

#[test]
fn every_fault_in_a_quotient() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let values: Vec<Fr> = (0..1 << LOG_N).map(|_| Fr::rand(&mut rng)).collect();
    for backend in [Backend::Auto, Backend::Pread] {
        for in_groups in [false, true] {
            try_all(dir.path(), backend, 0, |workspace| {
                take_quotient(workspace, &values, in_groups)
            });
        }
    }
}

#[test]
fn every_fault_in_a_generated_srs() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let scratch = dir.path().join("scratch");
    let k = 6;
    let counting = FaultPlan::none();
    let secret = Fr::from(77u64);
    let attempt = |faults: FaultPlan| -> Result<[u8; 32]> {
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir(&scratch).expect("directory");
        let workspace = workspace(&scratch, Backend::Auto, faults)?;
        generate::<ark_bn254::Bn254>(&workspace, &scratch.join("out.srs"), k, secret, |_| ())?;
        // Whatever was reported as written has to read back, without faults.
        let plain = self::workspace(&scratch, Backend::Auto, FaultPlan::none())?;
        let opened = spillproof_engine::column::Container::open(&plain, &scratch.join("out.srs"))?;
        opened.verify(|_| ())?;
        Ok(opened.root())
    };
    attempt(counting.clone()).expect("no faults");
    let operations = counting.operations();
    for fault in FAULTS {
        for index in 0..operations {
            match attempt(FaultPlan::at(index, fault)) {
                Ok(_) => assert!(scratch.join("out.srs").exists()),
                Err(Error::Io { .. } | Error::File { .. } | Error::Damaged { .. } | Error::Format { .. }) => {
                    let left: Vec<_> = std::fs::read_dir(&scratch).expect("listing").flatten().collect();
                    let only_the_file = left.iter().all(|entry| entry.file_name() == "out.srs");
                    assert!(only_the_file, "{fault:?} at {index} leaves {left:?}");
                }
                Err(error) => panic!("{fault:?} at {index}: {error:?}"),
            }
        }
    }
}
