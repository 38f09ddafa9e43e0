//! Takes memory: `memory-hog heap BYTES` touches that much of the heap and holds it for a moment,
//! `memory-hog file BYTES PATH` writes that much through the page cache and reads it back. Prints the bytes
//! when it got there.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

const CHUNK_BYTES: usize = 1 << 20;
const HOLD: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let took = match arguments[..] {
        ["heap", bytes] => bytes
            .parse()
            .map_err(|_| "BYTES is no number".to_owned())
            .map(heap),
        ["file", bytes, path] => match bytes.parse() {
            Ok(bytes) => file(bytes, path).map_err(|error| format!("{path}: {error}")),
            Err(_) => Err("BYTES is no number".to_owned()),
        },
        _ => Err("usage: memory-hog heap BYTES | file BYTES PATH".to_owned()),
    };
    match took {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn heap(bytes: usize) -> usize {
    let chunks: Vec<Vec<u8>> = (0..bytes / CHUNK_BYTES)
        .map(|i| vec![i as u8 | 1; CHUNK_BYTES])
        .collect();
    // A reader from outside comes every few milliseconds.
    std::thread::sleep(HOLD);
    // What is never read could be optimised away.
    std::hint::black_box(&chunks).iter().map(Vec::len).sum()
}

fn file(bytes: usize, path: &str) -> std::io::Result<usize> {
    let mut chunk = vec![1u8; CHUNK_BYTES];
    let mut file = File::create(path)?;
    for written in 0..bytes / CHUNK_BYTES {
        file.write_all(&chunk)?;
        // Dirty pages cannot be reclaimed, and v1 groups do not slow their writers down.
        if written % 4 == 3 {
            file.sync_data()?;
        }
    }
    let mut file = File::open(path)?;
    let mut took = 0;
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(took),
            read => took += read,
        }
    }
}
