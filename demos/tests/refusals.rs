//! A table of command lines that cannot succeed: each ends with its exit code and says why in words, before
//! it has written anything.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::BINARY;

/// An error, which the words explain.
const ERROR: i32 = 1;
/// A command line that cannot be carried out.
const USAGE: i32 = 2;

fn run(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars() {
        if name.starts_with("SPILLPROOF_") && !name.starts_with("SPILLPROOF_TEST") {
            command.env_remove(name);
        }
    }
    let arguments = line.split_whitespace();
    let command = command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command.output().expect("the binary runs")
}

/// Names and contents of all files.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    let named = entries.map(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), fs::read(&path).unwrap_or_default())
    });
    named.collect()
}

/// Good files of each kind, and bad ones.
fn files(dir: &Path) {
    for line in [
        "srs gen --k 6 --out ok.srs",
        "srs gen --k 8 --out large.srs",
        "srs export ok.srs --out ok.params",
        "srs export ok.srs --out ok.processed --format processed",
        "srs gen --curve bls12-381 --k 6 --out m.srs",
        "srs export m.srs --out m.params",
        "srs gen --system midnight --k 7 --out m7.srs",
        "srs gen --system zcash --k 6 --out z.srs",
        "srs export z.srs --out z.params",
        "keygen --k 6 --srs ok.srs --out ok.key --vk ok.vk",
        "keygen --k 7 --srs large.srs --out other.key --vk other.vk",
        "keygen --k 6 --circuit lookups --srs ok.srs --out lookups.key --vk lookups.vk",
        "prove --k 6 --srs ok.srs --out ok.proof",
        "prove --k 6 --system zcash --srs z.srs --out z.proof",
        "keygen --k 6 --system midnight --srs m.srs --out m.key --vk m.vk",
        "keygen --k 7 --system midnight --srs m7.srs --out m7.key",
        "prove --k 6 --system midnight --srs m.srs --out m.proof",
        "groth16 example c.zkey c.wtns --k 6",
        "groth16 example b.zkey b.wtns --k 6 --curve bls12381",
        "groth16 import c.zkey --out c.key",
        "groth16 vkey c.zkey vkey.json",
        "groth16 prove c.zkey c.wtns proof.json public.json",
    ] {
        let output = run(dir, line);
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let read = |name: &str| fs::read(dir.join(name)).expect("a file");
    let write = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).expect("a file");
    write("empty", &[]);
    write("zeros", &[0; 1000]);
    write(
        "junk",
        &(0..1000u32).map(|i| (i * 151 % 251) as u8).collect::<Vec<_>>(),
    );
    write("text", b"a text, and nothing else");
    write("large.bin", &[0xff; 64]);
    write("poly.bin", &[&[1u8][..], &[0; 31]].concat());
    let proof = read("ok.proof");
    write("short.proof", &proof[..900]);
    write("long.proof", &[&proof[..], b"x"].concat());
    let mut changed = proof.clone();
    changed[1100] ^= 1;
    write("changed.proof", &changed);
    let params = read("ok.params");
    write("short.params", &params[..params.len() - 1]);
    let mut off_curve = params.clone();
    off_curve[4 + 64 * 5] ^= 1;
    write("off-curve.params", &off_curve);
    let mut swapped = params.clone();
    let (five, six) = (4 + 64 * 5, 4 + 64 * 6);
    swapped[five..six].copy_from_slice(&params[six..six + 64]);
    swapped[six..six + 64].copy_from_slice(&params[five..six]);
    write("swapped.params", &swapped);
    let midnight = read("m.params");
    write("short-m.params", &midnight[..midnight.len() - 1]);
    let fifth = 4 + 96 * 5;
    let mut flags = midnight.clone();
    flags[fifth] |= 0x80;
    write("flags.params", &flags);
    // (0, 2) is of order three.
    let mut outside = midnight.clone();
    outside[fifth..fifth + 96].fill(0);
    outside[fifth + 95] = 2;
    write("outside.params", &outside);
    let mut mixed = midnight.clone();
    mixed[fifth..fifth + 96].copy_from_slice(&midnight[fifth + 96..fifth + 192]);
    mixed[fifth + 96..fifth + 192].copy_from_slice(&midnight[fifth..fifth + 96]);
    write("swapped-m.params", &mixed);
    let key = read("m.key");
    write("short-m.key", &key[..key.len() - 1]);
    write("long-m.key", &[&key[..], b"x"].concat());
    let mut above = key.clone();
    // The last value, above the modulus.
    let last = above.len() - 32;
    above[last..].fill(0xff);
    write("above-m.key", &above);
    let proof = read("m.proof");
    write("short-m.proof", &proof[..900]);
    write("long-m.proof", &[&proof[..], b"x"].concat());
    let mut wrong_k = params.clone();
    wrong_k[0] = 7;
    write("wrong-k.params", &wrong_k);
    for (name, changed) in [
        ("ok.srs", "flipped.srs"),
        ("ok.key", "flipped.key"),
        ("c.key", "c-flipped.key"),
    ] {
        let mut bytes = read(name);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes[20] ^= 1;
        write(changed, &bytes);
        write(&format!("short-{name}"), &bytes[..bytes.len() / 2]);
    }
    let vk = read("ok.vk");
    write("short.vk", &vk[..vk.len() - 1]);
    write("long.vk", &[&vk[..], b"x"].concat());
    let zkey = read("c.zkey");
    write("short.zkey", &zkey[..zkey.len() / 2]);
    let wtns = read("c.wtns");
    write("short.wtns", &wtns[..wtns.len() / 2]);
    let mut wrong = wtns.clone();
    // The last signal's value.
    let last = wrong.len() - 32;
    wrong[last] ^= 1;
    write("wrong.wtns", &wrong);
    write("public-wrong.json", b"[\"1\"]");
    write("public-none.json", b"[]");
    fs::create_dir(dir.join("folder")).expect("a folder");
    write("protected", b"kept");
    fs::set_permissions(dir.join("protected"), fs::Permissions::from_mode(0o444)).expect("a mode");
}

#[test]
fn refusals() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    files(dir);
    let before = contents(dir);
    let mut wrong = Vec::new();
    let mut lines = 0;
    for (code, table) in [(ERROR, ERRORS), (USAGE, USAGES)] {
        for row in table.trim().lines() {
            let (line, words) = row.split_once("=>").expect("a row has words");
            let output = run(dir, line);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let said = errors.to_lowercase();
            let missing: Vec<_> = words
                .split('|')
                .map(str::trim)
                .filter(|word| !said.contains(&word.to_lowercase()))
                .collect();
            // Debug output, panics, and the bytes of a terminal are no words.
            let no_words = [
                "panicked",
                "Error {",
                "Custom {",
                "Os {",
                "\u{1b}",
                "ExitStatus",
                "Some(",
            ];
            let no_words: Vec<_> = no_words
                .into_iter()
                .filter(|text| errors.contains(text))
                .collect();
            if output.status.code() != Some(code) || !missing.is_empty() || !no_words.is_empty() {
                wrong.push(format!(
                    "{line}: {:?}, without {missing:?}, with {no_words:?}: {errors}{}",
                    output.status,
                    String::from_utf8_lossy(&output.stdout)
                ));
            }
            let after = contents(dir);
            if after != before {
                let names: Vec<_> = after
                    .keys()
                    .filter(|&name| before.get(name) != after.get(name))
                    .collect();
                wrong.push(format!("{line}: left or changed {names:?}"));
                for name in names {
                    match before.get(name) {
                        Some(bytes) => fs::write(dir.join(name), bytes).expect("a file"),
                        None => fs::remove_file(dir.join(name)).expect("a file"),
                    }
                }
            }
            lines += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {lines}:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(lines >= 150, "{lines}");
}

/// Standard output that is full is an error; one that is closed is not.
#[test]
fn standard_output_that_takes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    for line in [
        "plan --k 8 --json",
        "plan --k 8",
        "srs gen --k 4 --out x.srs --json",
    ] {
        let mut command = Command::new(BINARY);
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let output = command
            .args(line.split(' '))
            .current_dir(dir.path())
            .stdout(full)
            .output()
            .expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(ERROR), "{line}: {errors}");
        assert!(errors.contains("standard output"), "{errors}");
    }
}

/// Command lines and the words of their errors, exit code 1.
const ERRORS: &str = r"
new folder => folder|exists
new nowhere/proofs => nowhere/proofs|no such file
srs inspect nowhere => nowhere|no such file
srs inspect folder => folder|directory
srs inspect empty => empty|0 bytes long|cut short
srs inspect junk => junk|1000 bytes long|cut short
srs inspect zeros => zeros|1000 bytes long
srs inspect text => text|cut short
srs inspect short.params => short.params|not a spillproof container|srs import
srs inspect flipped.srs => flipped.srs
srs inspect short-ok.srs => short-ok.srs
srs verify nowhere => nowhere
srs verify folder => folder
srs verify junk => junk
srs verify ok.proof => ok.proof
srs verify flipped.srs => flipped.srs
srs verify off-curve.params => off-curve.params|not on the curve|offset
srs verify swapped.params => swapped.params|belong together
srs verify flags.params => flags.params|flag bits|offset 484
srs verify ok.processed => ok.processed|import
srs import nowhere --out x => nowhere
srs import folder --out x => folder
srs import empty --out x => empty|0 bytes
srs import junk --out x => junk|1000 bytes
srs import ok.srs --out x => ok.srs|bytes
srs import short.params --out x => short.params|bytes long
srs import off-curve.params --out x => off-curve.params|not on the curve|offset
srs import swapped.params --out x => swapped.params|belong together
srs import wrong-k.params --out x => wrong-k.params|k
srs import ok.processed --out x --format raw => ok.processed
srs import ok.params --out x --format processed => ok.params
srs import z.params --out x => z.params
srs import m.params --curve bn254 --out x => m.params|over BN254|bytes long
srs import m.params --system axiom --out x => m.params|over BN254
srs import ok.params --curve bls12-381 --out x => ok.params|over BLS12-381
srs import short-m.params --out x => short-m.params|bytes long
srs import flags.params --out x => flags.params|flag bits|offset 484
srs import outside.params --out x => outside.params|point 5 of g|subgroup
srs import ok.params --system midnight --out x => ok.params|over BLS12-381
srs import ok.params --system zcash --out x => ok.params
srs import z.srs --system zcash --out x => z.srs
srs import short.params --system zcash --out x => short.params
srs import ok.params --out nowhere/x => nowhere/x
srs import ok.params --out folder => folder
srs import ok.params --out protected => protected|write-protected
srs export nowhere --out x => nowhere
srs export junk --out x => junk
srs export ok.params --out x => ok.params
srs export ok.key --out x => ok.key
srs export c.key --out x => c.key
srs export ok.srs --out nowhere/x => nowhere/x
srs export ok.srs --out protected => protected|write-protected
srs lagrange nowhere --out x => nowhere
srs lagrange junk --out x => junk
srs lagrange ok.srs --k 9 --out x => ok.srs|k = 6|k = 9
srs lagrange z.srs --out x => z.srs
srs lagrange ok.srs --out protected => protected|write-protected
srs gen --k 6 --out nowhere/x => nowhere/x
srs gen --k 6 --out folder => folder
srs gen --k 6 --out protected => protected|write-protected
srs gen --k 6 --out x --dir ok.srs => ok.srs|no folder
srs gen --k 10 --out x --memory 4KiB => memory
msm --log-n 10 --memory 1KiB => 1024|--memory
msm --log-n 10 --memory 0 => --memory
msm --log-n 4 --srs nowhere => nowhere
msm --log-n 4 --srs junk => junk
msm --log-n 7 --srs ok.params => ok.params|2^6
msm --log-n 8 --srs ok.srs => ok.srs|2^6|2^8
msm --log-n 10 --memory 8MiB --dir ok.srs => ok.srs
msm --log-n 4 --gpu 0 => gpu
commit --srs nowhere --polynomial poly.bin => nowhere
commit --srs junk --polynomial poly.bin => junk
commit --srs swapped.params --polynomial poly.bin => swapped.params|belong together
commit --srs ok.key --polynomial poly.bin => ok.key
commit --srs z.srs --polynomial poly.bin => z.srs
commit --srs m.srs --polynomial poly.bin => m.srs|BN254
commit --srs ok.srs --polynomial nowhere => nowhere
commit --srs ok.srs --polynomial folder => folder
commit --srs ok.srs --polynomial empty => empty|coefficient
commit --srs ok.srs --polynomial junk => junk|32 bytes
commit --srs ok.srs --polynomial large.bin => large.bin|scalar 0|modulus
commit --srs ok.srs --polynomial /dev/zero => /dev/zero|save them to a file
commit --srs ok.srs --polynomial ok.proof => ok.proof
plan --k 8 --memory 64KiB => needs|--memory
plan --k 8 --memory 4KiB => needs|--memory
plan --k 8 --memory 0 => --memory
plan --k 8 --memory 64KiB --json => --memory
plan --k 8 --circuit wide --memory 1MiB => --memory
plan --k 8 --system midnight --memory 64KiB => needs|--memory
plan --k 8 --system zcash --memory 64KiB => --memory
plan --k 8 --dir ok.srs => ok.srs
prove --k 8 --memory 64KiB --out x => --memory
prove --k 8 --out nowhere/x => nowhere/x|no folder nowhere|make it
prove --k 8 --out folder => folder
prove --k 8 --out protected => protected|write-protected
prove --k 8 --out x --report nowhere/r => nowhere/r
prove --k 8 --out x --samples nowhere/s => nowhere/s
prove --k 8 --out x --svg nowhere/v => nowhere/v
prove --k 8 --out x --report protected => protected|write-protected
prove --k 8 --out x --dir ok.srs => ok.srs
prove --k 6 --srs nowhere --out x => nowhere
prove --k 6 --srs folder --out x => folder
prove --k 6 --srs empty --out x => empty
prove --k 6 --srs junk --out x => junk|1000
prove --k 6 --srs text --out x => text
prove --k 7 --srs ok.srs --out x => ok.srs|2^6 rows|k = 7 or more|2^6 rows at most
prove --k 7 --srs ok.params --out x => ok.params|2^6 rows
prove --k 6 --srs short.params --out x => short.params
prove --k 6 --srs off-curve.params --out x => off-curve.params
prove --k 6 --srs swapped.params --out x => belong together
prove --k 6 --srs wrong-k.params --out x => wrong-k.params
prove --k 6 --srs z.params --out x => z.params
prove --k 6 --srs z.srs --out x => z.srs
prove --k 6 --srs m.srs --out x => m.srs|BN254
prove --k 6 --srs m.params --out x => m.params|BN254
prove --k 6 --srs ok.key --out x => ok.key
prove --k 6 --srs flipped.srs --out x => flipped.srs
prove --k 6 --srs ok.srs --no-session --out x => ok.srs|session|export
prove --k 6 --system midnight --srs ok.srs --out x => ok.srs|BLS12-381
prove --k 6 --system midnight --srs ok.params --out x => ok.params|BLS12-381
prove --k 6 --system midnight --srs z.srs --out x => z.srs
prove --k 6 --system midnight --srs folder --out x => folder|bls_midnight_2p6
prove --k 7 --system midnight --srs m.srs --out x => m.srs|2^6 rows
prove --k 7 --system midnight --srs m.params --out x => m.params|2^6 rows
prove --k 6 --system midnight --srs flags.params --out x => flags.params|flag bits|offset 484
prove --k 6 --system midnight --srs outside.params --out x => outside.params|point 5 of g
prove --k 6 --system midnight --srs swapped-m.params --out x => swapped-m.params|belong together
prove --k 6 --system midnight --srs short-m.params --out x => short-m.params|bytes long
prove --k 6 --system midnight --srs m.srs --no-session --out x => m.srs|session|export
prove --k 6 --system midnight --srs m.srs --key nowhere --out x => nowhere
prove --k 6 --system midnight --srs m.srs --key empty --out x => empty
prove --k 6 --system midnight --srs m.srs --key junk --out x => junk
prove --k 6 --system midnight --srs m.srs --key ok.key --out x => ok.key
prove --k 6 --system midnight --srs m.srs --key m7.key --out x => m7.key|2^7
prove --k 6 --system midnight --srs m.srs --key short-m.key --out x => short-m.key
prove --k 6 --system midnight --srs m.srs --key long-m.key --out x => long-m.key|bytes follow
prove --k 6 --system midnight --srs m.srs --key above-m.key --out x => above-m.key|scalar
prove --k 6 --system zcash --srs ok.params --out x => ok.params
prove --k 6 --system zcash --srs ok.srs --out x => ok.srs
prove --k 7 --system zcash --srs z.srs --out x => z.srs|k
prove --k 7 --system zcash --srs z.params --out x => z.params
prove --k 6 --srs ok.srs --key nowhere --out x => nowhere
prove --k 6 --srs ok.srs --key junk --out x => junk
prove --k 6 --srs ok.srs --key ok.srs --out x => ok.srs
prove --k 6 --srs ok.srs --key flipped.key --out x => flipped.key
prove --k 6 --srs ok.srs --key other.key --out x => other.key|2^7
prove --k 6 --circuit lookups --srs ok.srs --key ok.key --out x => ok.key: more bytes|another circuit|--circuit is lookups
prove --k 6 --srs ok.srs --key lookups.key --out x => lookups.key: fewer bytes|another circuit|--circuit is chain
prove --k 6 --circuit wide --srs ok.srs --key lookups.key --out x => lookups.key: a key that differs|another circuit|--circuit is wide
prove --k 6 --srs ok.srs --key c.key --out x => c.key
prove --k 6 --gpu 7 --out x => gpu
prove --k 6 --out x --checkpoint folder => checkpoint key|--checkpoint-key
prove --k 6 --system midnight --checkpoint folder --out x => checkpoint key|--checkpoint-key
prove --k 6 --out x --checkpoint-key poly.bin => checkpoint|--checkpoint
prove --k 6 --out x --checkpoint folder --checkpoint-key empty => checkpoint key
prove --k 6 --out x --checkpoint folder --checkpoint-key nowhere => nowhere|no such file|head -c 32
keygen --k 6 --srs nowhere --out x => nowhere
keygen --k 7 --srs ok.srs --out x => ok.srs|2^6 rows
keygen --k 6 --srs ok.srs --out nowhere/x => nowhere/x
keygen --k 6 --srs ok.srs --out protected => protected|write-protected
keygen --k 6 --srs ok.srs --out x --vk nowhere/x => nowhere/x
keygen --k 6 --srs ok.srs --out x --vk folder => folder
keygen --k 8 --memory 64KiB --out x => --memory
keygen --k 8 --system midnight --memory 64KiB --out x => --memory
keygen --k 6 --system midnight --srs m.srs --out protected => protected|write-protected
verify --k 6 --srs ok.params nowhere => nowhere
verify --k 6 --srs ok.params folder => folder
verify --k 6 --srs ok.params empty => refuses|cut short|0 bytes
verify --k 6 --srs ok.params junk => refuses
verify --k 6 --srs ok.params text => refuses|cut short
verify --k 6 --srs ok.params short.proof => refuses|cut short|900 bytes
verify --k 6 --srs ok.params long.proof => refuses|1 bytes follow
verify --k 6 --srs ok.params changed.proof => refuses
verify --k 6 --srs ok.params --seed 2 ok.proof => refuses|does not hold
verify --k 6 --srs ok.params --circuit wide ok.proof => refuses
verify --k 6 --srs ok.params --scheme gwc ok.proof => refuses
verify --k 6 --srs-seed 3 ok.proof => refuses
verify --k 6 --srs ok.srs ok.proof => ok.srs|--vk|export
verify --k 7 --srs ok.params ok.proof => ok.params|2^6 rows
verify --k 6 --srs junk ok.proof => junk
verify --k 6 --system midnight --srs m.params ok.proof => refuses
verify --k 6 --system midnight --srs m.params empty => refuses|cut short|0 bytes
verify --k 6 --system midnight --srs m.params short-m.proof => refuses|cut short|900 bytes
verify --k 6 --system midnight --srs m.params long-m.proof => refuses|1 bytes follow
verify --k 6 --system midnight --srs m.params --seed 2 m.proof => refuses|does not hold
verify --k 6 --system midnight --srs-seed 3 m.proof => refuses
verify --k 6 --system midnight --srs m.srs m.proof => m.srs|--vk|export
verify --k 6 --system midnight --srs m.srs --vk m.vk long-m.proof => 1 bytes follow
verify --k 6 --system midnight --srs m.srs --vk ok.vk m.proof => ok.vk
verify --k 7 --system midnight --srs m7.srs --vk m.vk m.proof => m.vk|2^6
verify --k 6 --system zcash --srs z.params ok.proof => refuses
verify --k 6 --system zcash --srs z.srs z.proof => z.srs|export
verify --k 6 --system zcash --srs z.params --seed 2 z.proof => refuses
verify --k 6 --srs ok.srs --vk nowhere ok.proof => nowhere
verify --k 6 --srs ok.srs --vk empty ok.proof => empty|verifying key
verify --k 6 --srs ok.srs --vk junk ok.proof => junk|no verifying key|offset 1|28 at most|keygen --vk
verify --k 6 --srs ok.srs --vk short.vk ok.proof => short.vk
verify --k 6 --srs ok.srs --vk long.vk ok.proof => long.vk|1 of
verify --k 6 --srs ok.srs --vk other.vk ok.proof => other.vk|2^7
verify --k 6 --srs ok.srs --vk lookups.vk ok.proof => lookups.vk
verify --k 6 --srs junk --vk ok.vk ok.proof => junk
verify --k 6 --srs ok.srs --vk ok.vk long.proof => 1 bytes follow
verify --k 6 --srs ok.srs --vk ok.vk --seed 2 ok.proof => does not hold
verify --k 6 --vk ok.vk --srs-seed 3 ok.proof => refuses
groth16 prove nowhere c.wtns p q => nowhere
groth16 prove junk c.wtns p q => junk
groth16 prove short.zkey c.wtns p q => short.zkey
groth16 prove c.wtns c.wtns p q => c.wtns
groth16 prove ok.key c.wtns p q => ok.key
groth16 prove c.zkey nowhere p q => nowhere
groth16 prove c.zkey junk p q => junk|.wtns
groth16 prove c.zkey short.wtns p q => short.wtns
groth16 prove c.zkey wrong.wtns p q => witness
groth16 prove c.zkey b.wtns p q => b.wtns
groth16 prove b.zkey c.wtns p q => c.wtns
groth16 prove c-flipped.key c.wtns p q => c-flipped.key
groth16 prove c.zkey c.wtns nowhere/p q => nowhere/p
groth16 prove c.zkey c.wtns p nowhere/q => nowhere/q
groth16 prove c.zkey c.wtns protected q => protected|write-protected
groth16 prove c.zkey c.wtns p q --memory 4KiB => memory
groth16 verify nowhere public.json proof.json => nowhere
groth16 verify junk public.json proof.json => junk
groth16 verify c.zkey public.json proof.json => c.zkey|no verification key|spillproof groth16 vkey
groth16 verify c.key public.json proof.json => c.key|no verification key|spillproof groth16 vkey
groth16 verify vkey.json junk proof.json => junk
groth16 verify vkey.json public.json junk => junk
groth16 verify vkey.json proof.json public.json => public.json|a list
groth16 verify public.json public.json proof.json => public.json|a list
groth16 verify vkey.json public-wrong.json proof.json => does not verify
groth16 verify vkey.json public-none.json proof.json => public
groth16 import junk --out x => junk
groth16 import short.zkey --out x => short.zkey
groth16 import c.zkey --out nowhere/x => nowhere/x
groth16 import c.zkey --out protected => protected|write-protected
groth16 vkey junk x => junk
groth16 vkey c.zkey nowhere/x => nowhere/x
groth16 inspect junk => junk
groth16 inspect ok.srs => ok.srs|Groth16
groth16 plan junk => junk
groth16 plan c.zkey --memory 4KiB => --memory
groth16 setup junk junk x => junk|.r1cs
groth16 setup nowhere junk x => nowhere
groth16 contribute junk x => junk
groth16 contribute c.wtns x => c.wtns
groth16 verify-key junk junk c.zkey => c.zkey|do not follow
groth16 verify-key junk junk junk => junk
ptau verify nowhere => nowhere
ptau verify junk => junk|.ptau
ptau prepare junk x => junk|.ptau
ptau truncate junk x --power 3 => junk|.ptau
ptau import c.zkey --out x => c.zkey|.ptau
demo oom --circuit chain --k 8 --memory 1GiB => was not killed|it finished
msm --log-n 4 --limit 1MiB => limit of 1048576 bytes|--limit
prove --k 6 --limit 1MiB --out x => leaves no budget|--limit
commit --srs ok.srs --polynomial poly.bin --out nowhere/x => nowhere/x
open verify --srs ok.srs nowhere => nowhere
open verify --srs ok.srs text => text|commit --out
open verify --srs ok.srs proof.json => proof.json|commit --out
open verify --srs nowhere --commitment infinity --point 1 --value 0 --proof infinity => nowhere
open verify --srs ok.srs --commitment infinity --point 1 --value 1 --proof infinity => does not hold
";

/// Command lines that say something impossible, and the words of their errors, exit code 2.
const USAGES: &str = r"
frobnicate => unrecognized
new => FOLDER
new 2proofs => 2proofs|letter first
new . => letter first
new halo2_proofs => halo2_proofs|another
new proofs --path folder => folder|--path
new proofs --path nowhere => nowhere|--path
new proofs --system groth => groth
new proofs --system midnight => midnight|possible values: axiom, zcash
srs => usage
srs gen --k 6 => --out
srs gen --k 0 --out x => 1..=28
srs gen --k 29 --out x => 1..=28
srs gen --k six --out x => six
srs gen --k 6 --seed -1 --out x => unexpected argument
srs gen --k 6 --system zcash --seed 1 --out x => --seed
srs gen --k 6 --curve pallas --out x => --curve
srs gen --k 6 --system midnight --curve bn254 --out x => BLS12-381
srs import ok.params => --out
srs import ok.params --out ok.params => same file
srs import z.params --system zcash --format raw --out x => --format
srs export z.srs --format raw --out x => --format
srs export ok.srs --out ok.srs => same file
srs lagrange ok.srs --out ok.srs => same file
srs lagrange ok.srs --k 29 --out x => 0..=28
msm --log-n 29 => 0..=28
msm --log-n 4 --memory lots => lots|is not a size
msm --log-n 4 --memory 12XB => 12XB|suffix
msm --log-n 4 --memory -1 => unexpected
msm --log-n 4 --threads 100000 => 1024
msm --log-n 4 --threads many => many
msm --log-n 4 --backend magic => magic
msm --log-n 4 --scratch open => open
msm --log-n 4 --vram 1GiB => --vram|--gpu
msm --log-n 4 --pinned 1MiB => --pinned|--gpu
msm --log-n 4 --write-combined => --write-combined|--gpu
msm --log-n 4 --gpu first => first
msm --log-n 4 --in-memory --gpu auto => cannot be used
msm --log-n 4 --in-memory --srs ok.srs => cannot be used
commit --srs ok.srs => --polynomial
commit --srs ok.srs --polynomial poly.bin --open-at zz => zz|scalar
commit --srs ok.srs --polynomial poly.bin --open-at 1f => 1f|scalar
commit --srs ok.srs --polynomial poly.bin --open-at 21888242871839275222246405745257275088548364400416034343698204186575808495617 => scalar
commit --srs ok.srs --polynomial poly.bin --lagrange --open-at 5 => cannot be used
commit --srs ok.srs --polynomial poly.bin --vram 1GiB => --vram
plan --k 3 => 4..=28
plan --k 29 => 4..=28
plan => --k
plan --k 8 --circuit square => square
plan --k 8 --system groth => groth
plan --k 8 --vram 1GiB => --vram|--gpu
plan --k 8 --offload always => --offload|--gpu
plan --k 8 --system midnight --gpu auto => --gpu|axiom|midnight
plan --k 8 --system midnight --scheme gwc => --scheme|axiom
plan --k 8 --system zcash --gpu auto => --gpu
plan --k 8 --system zcash --scheme gwc => --scheme
plan --k 8 --threads 1025 => 1024
prove --k 8 => --out
prove --k 8 --out x --report x => same file
prove --k 8 --out x --report ./x => same file
prove --k 8 --out x --svg y --samples y => same file
prove --k 6 --srs ok.params --out ok.params => same file
prove --k 6 --srs ok.srs --key ok.key --out ok.key => same file
prove --k 6 --srs ok.srs --srs-seed 3 --out x => cannot be used
prove --k 6 --out x --no-session --gpu auto => cannot be used
prove --k 6 --out x --no-session --key ok.key => cannot be used
prove --k 6 --out x --no-session --checkpoint folder => cannot be used
prove --k 6 --out x --vram 1GiB => --vram
prove --k 6 --out x --offload always => --offload
prove --k 6 --system midnight --scheme gwc --out x => --scheme|axiom
prove --k 6 --system midnight --gpu auto --out x => --gpu|axiom
prove --k 6 --system zcash --scheme gwc --out x => --scheme
prove --k 6 --system zcash --srs-seed 2 --out x => --srs-seed
prove --k 6 --system zcash --gpu auto --out x => --gpu
prove --k 6 --system zcash --checkpoint folder --out x => --checkpoint
prove --k 6 --system zcash --key ok.key --out x => --key|axiom and midnight
keygen --k 6 => --out
keygen --k 6 --out x --vk x => same file
keygen --k 6 --system zcash --out x => axiom|halo2_proofs
keygen --k 6 --srs ok.srs --out ok.srs => same file
verify --k 6 => PROOF
verify --k 6 --system zcash --srs z.params --vk ok.vk z.proof => halo2_proofs
groth16 => usage
groth16 prove c.zkey c.wtns p => PUBLIC
groth16 prove c.zkey c.wtns p p => same file
groth16 prove c.zkey c.wtns c.wtns q => same file
groth16 import c.zkey --out c.zkey => same file
groth16 vkey c.zkey c.zkey => same file
groth16 example x y --k 3 => 4..=27
groth16 example x x --k 6 => same file
groth16 example x y --k 6 --ptau x => same file
groth16 contribute c.zkey c.zkey => same file
groth16 beacon c.zkey x zz 10 => hex
groth16 beacon c.zkey x 01 9 => 10..=63
groth16 setup c.zkey c.wtns c.zkey => same file
ptau prepare junk junk => same file
ptau truncate junk junk --power 3 => same file
ptau truncate junk x => --power
ptau truncate junk x --power 28 => 1..=27
ptau import junk --out junk => same file
open => usage
open verify --srs ok.srs => FILE
open verify --srs ok.srs --commitment infinity => --point
open verify --srs ok.srs --point 1 --value 0 --proof infinity => --commitment
open verify --srs ok.srs ok.proof --commitment infinity --point 1 --value 0 --proof infinity => cannot be used
open verify --srs ok.srs --commitment 12 --point 1 --value 0 --proof infinity => 12|no point
open verify --srs ok.srs --commitment infinity --point 1f --value 0 --proof infinity => --point|1f
completions => SHELL
completions tcsh => tcsh|possible values
msm --log-n 4 --limit lots => lots|is not a size
msm --log-n 4 --in-memory --limit 1GiB => --limit
msm --log-n 4 --check --limit 1GiB => --limit
prove --k 6 --no-session --limit 1GiB --out x => --limit|--no-session
verify --k 6 --srs ok.srs --limit 1GiB ok.proof => --limit|--vk
demo --limit 1GiB => --limit
msm --log-n 4 -q -v => cannot be used
prove --k 6 --out - --json => --json|standard output
prove --k 6 --out - --report - => --out|--report
keygen --k 6 --out - => --out|no stream
srs gen --k 6 --out - => --out|no stream
srs import ok.params --out - => --out|no stream
groth16 import c.zkey --out - => --out|no stream
groth16 prove c.zkey c.wtns - - => PROOF|PUBLIC
demo oom --log-n 9 => 10..=28
demo oom --circuit chain --log-n 20 => cannot be used
demo oom --k 18 => required
demo oom --circuit chain --k 8 --memory 1MiB => budget
demo --k 7 => 8..=20
";
