//! A program in C over this library, linked to it in both ways, against arkworks over the same SRS; and the
//! header against the functions.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ark_bn254::{Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{BigInt, BigInteger, FftField, Field, PrimeField};
use ark_poly::univariate::DensePolynomial;
use ark_poly::{DenseUVPolynomial, EvaluationDomain, Polynomial, Radix2EvaluationDomain};
use spillproof_commit::{HALO2_ROOT_OF_UNITY, export_params_kzg, generate, omega};
use spillproof_format::params_kzg::SerdeFormat;

const BUDGET_BYTES: u64 = 16 << 20;
/// What a process holds besides its budget: code, stacks, tables, the heap.
const BESIDE_BYTES: u64 = 16 << 20;
const SECRET: u64 = 5;
const LITTLE_LOG: u32 = 6;

#[derive(Clone, Copy, Debug)]
enum Link {
    Shared,
    Static,
}

/// Splitmix64, as the program has it.
fn word(index: u64) -> u64 {
    let z = (index.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn scalar(index: u64) -> Fr {
    let mut limbs = [0, 1, 2, 3].map(|limb| word(4 * index + limb));
    limbs[3] &= u64::MAX >> 4;
    Fr::from_bigint(BigInt::new(limbs)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_field(value: impl PrimeField) -> String {
    hex(&value.into_bigint().to_bytes_le())
}

fn of_point(point: &G1Affine) -> String {
    point
        .xy()
        .map_or("00".repeat(64), |(x, y)| of_field(x) + &of_field(y))
}

fn of_g2(point: &G2Affine) -> String {
    let (x, y) = point.xy().unwrap();
    [x.c0, x.c1, y.c0, y.c1].map(of_field).concat()
}

/// Where the libraries are that were built beside this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let found = [folder, folder.parent().unwrap()].map(Path::to_owned);
    let is_there = |folder: &PathBuf| folder.join("libspillproof_c.a").exists();
    found.into_iter().find(is_there).unwrap()
}

fn compile(dir: &Path, link: Link) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (program, library) = (dir.join(format!("{link:?}")), library_folder());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler
        .arg(package.join("include"))
        .arg(package.join("tests/program.c"));
    compiler.arg("-o").arg(&program);
    match link {
        Link::Shared => compiler.arg("-L").arg(library).arg("-lspillproof_c"),
        Link::Static => compiler
            .arg(library.join("libspillproof_c.a"))
            .args(["-lm", "-ldl"]),
    };
    let built = compiler.arg("-lpthread").output().unwrap();
    assert!(built.status.success(), "{built:?}");
    program
}

fn has_compiler() -> bool {
    let compiler = Command::new("cc").arg("--version").output();
    let is_there = compiler.is_ok_and(|output| output.status.success());
    if !is_there {
        // Not captured, as what a test prints is.
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no C compiler");
    }
    is_there
}

/// Runs the program over an SRS of `2^k` points, and compares what it prints. Gives the most that it had in
/// memory while it worked on `2^k` coefficients, as the kernel counts.
fn compare(dir: &Path, program: &Path, k: u32, srs_path: &Path, expected: &Expected) -> u64 {
    let mut child = Command::new(program)
        .arg(dir)
        .arg(srs_path)
        .arg(k.to_string())
        .arg(dir.join("little.params"))
        .env("LD_LIBRARY_PATH", library_folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut said, mut line) = (String::new(), String::new());
    while output.read_line(&mut line).unwrap() > 0 && line != "large done\n" {
        said += &line;
        line.clear();
    }
    let state = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let most = state.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most_kib: u64 = most.map_or(0, |most| most.trim().trim_end_matches(" kB").parse().unwrap());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    output.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{:?}", said.lines().last());
    assert!(said.ends_with("all calls did as expected\n"));
    let said: HashMap<&str, &str> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    for (name, value) in &expected.0 {
        assert!(said.get(name) == Some(&value.as_str()), "{name} differs");
    }
    most_kib << 10
}

/// What arkworks makes of the same.
struct Expected(Vec<(&'static str, String)>);

impl Expected {
    fn new(k: u32, points: &[G1Affine]) -> Self {
        let coefficients: Vec<Fr> = (0..1 << k).map(scalar).collect();
        let commitment = G1Projective::msm(points, &coefficients).unwrap().into_affine();
        if k == 20 {
            // What the tests of the Python package compare with.
            assert_eq!(of_point(&commitment), include_str!("commitment_2_20.hex").trim());
        }
        let polynomial = DensePolynomial::from_coefficients_vec(coefficients);
        // The SRS is of a known secret: no sum is needed to say what the proof is.
        let (point, secret) = (scalar(1 << 40), Fr::from(SECRET));
        let (value, at_secret) = (polynomial.evaluate(&point), polynomial.evaluate(&secret));
        assert_eq!(commitment, G1Projective::generator() * at_secret);
        let quotient = (at_secret - value) * (secret - point).inverse().unwrap();
        let proof = (G1Projective::generator() * quotient).into_affine();

        let little: Vec<Fr> = (1000..1000 + (1 << LITTLE_LOG)).map(scalar).collect();
        let ntt = |generator: Fr| {
            let domain = Radix2EvaluationDomain::<Fr>::new(little.len()).unwrap();
            let elements = std::iter::successors(Some(Fr::from(7u64)), |at| Some(*at * generator));
            let little = DensePolynomial::from_coefficients_vec(little.clone());
            let values = elements.take(domain.size()).map(|at| little.evaluate(&at));
            values.map(of_field).collect::<String>()
        };
        let generator = |root| omega(root, LITTLE_LOG).unwrap();
        let arkworks = Radix2EvaluationDomain::<Fr>::new(1 << LITTLE_LOG).unwrap();
        assert_eq!(arkworks.group_gen(), generator(Fr::TWO_ADIC_ROOT_OF_UNITY));
        let s_g2 = (G2Projective::generator() * secret).into_affine();
        Self(vec![
            ("commitment", of_point(&commitment)),
            ("value", of_field(value)),
            ("proof", of_point(&proof)),
            ("ntt_halo2", ntt(generator(HALO2_ROOT_OF_UNITY))),
            ("ntt_arkworks", ntt(arkworks.group_gen())),
            ("s_g2", of_g2(&s_g2)),
        ])
    }
}

fn run(k: u32) {
    if !has_compiler() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let builder = spillproof_engine::Session::builder()
        .memory("64MiB")
        .dir(dir.path());
    let session = builder.build().unwrap();
    let workspace = session.workspace();
    let generated = |name: &str, k| {
        let path = dir.path().join(name);
        let srs = generate::<ark_bn254::Bn254>(workspace, &path, k, Fr::from(SECRET), |_| ()).unwrap();
        (path, srs)
    };
    let (path, srs) = generated("srs", k);
    let (little, _) = generated("for_export.srs", LITTLE_LOG);
    let params = dir.path().join("little.params");
    export_params_kzg(workspace, &little, &params, SerdeFormat::RawBytes, &mut |_| ()).unwrap();
    let points = srs.monomial().unwrap().to_vec().unwrap();
    let points: Vec<G1Affine> = points
        .iter()
        .map(|point| point.to_affine::<ark_bn254::g1::Config>())
        .collect();
    let expected = Expected::new(k, &points);
    for link in [Link::Shared, Link::Static] {
        let program = compile(dir.path(), link);
        let most_bytes = compare(dir.path(), &program, k, &path, &expected);
        println!(
            "2^{k} coefficients in {} MiB, {link:?}: {:.1} MiB resident at most",
            BUDGET_BYTES >> 20,
            most_bytes as f64 / f64::from(1 << 20)
        );
        assert!(most_bytes < BUDGET_BYTES + BESIDE_BYTES, "{most_bytes}");
    }
}

#[test]
fn a_c_program_does_as_arkworks_does() {
    run(16);
}

#[test]
#[ignore = "two minutes: cargo test --release -p spillproof-c --test program -- --ignored --nocapture"]
fn a_c_program_commits_to_a_million_coefficients() {
    run(20);
}

/// The functions of the header, or of the library: names, and types as C writes them.
type Functions = Vec<(String, Vec<String>)>;

fn declared() -> Functions {
    let header = include_str!("../include/spillproof.h");
    let without_comments: String = header
        .split("/*")
        .map(|part| part.split_once("*/").map_or(part, |(_, rest)| rest))
        .collect();
    let lines = without_comments.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    let declarations = text.split(';').filter_map(|declaration| {
        let (head, arguments) = declaration.split_once('(')?;
        let name = head.rsplit([' ', '*']).next()?.to_owned();
        let arguments = arguments.trim_end().trim_end_matches(')').split(',');
        let types = arguments.filter(|argument| *argument != "void").map(|argument| {
            let end = argument.rfind([' ', '*']).map_or(0, |at| at + 1);
            argument[..end].split_whitespace().collect::<Vec<_>>().join(" ")
        });
        Some((name, types.collect()))
    });
    declarations.collect()
}

/// A type of Rust as C writes it.
fn in_c(rust: &str) -> String {
    let pointer = |target: &str, mark: &str| match target.strip_prefix("*const ") {
        Some(inner) => format!("const {} *const *", in_c(inner)),
        None => match target.strip_prefix("*mut ") {
            Some(inner) => format!("{} **", in_c(inner)),
            None => format!("{mark}{} *", in_c(target)),
        },
    };
    if let Some(target) = rust.strip_prefix("*const ") {
        return pointer(target, "const ");
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return pointer(target, "");
    }
    match rust {
        "u8" => "uint8_t".into(),
        "u32" => "uint32_t".into(),
        "u64" => "uint64_t".into(),
        "c_char" => "char".into(),
        handle => handle.chars().fold("spillproof".to_owned(), |name, letter| {
            match letter.is_uppercase() {
                true => name + "_" + &letter.to_lowercase().to_string(),
                false => name + &letter.to_string(),
            }
        }),
    }
}

fn defined() -> Functions {
    let source = include_str!("../src/functions.rs");
    let functions = source.split("extern \"C\" fn ").skip(1).map(|function| {
        let (name, rest) = function.split_once('(').unwrap();
        let (arguments, _) = rest.split_once(')').unwrap();
        let types = arguments
            .split(',')
            .filter_map(|argument| argument.split_once(": "));
        (
            name.to_owned(),
            types.map(|(_, rust)| in_c(rust.trim())).collect(),
        )
    });
    functions.collect()
}

#[test]
fn the_header_declares_what_there_is() {
    let sorted = |mut functions: Functions| {
        functions.sort();
        functions
    };
    let (declared, defined) = (sorted(declared()), sorted(defined()));
    assert!(defined.len() > 20, "{defined:?}");
    assert_eq!(declared, defined);
}
