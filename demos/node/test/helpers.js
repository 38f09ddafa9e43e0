'use strict';

// What the tests have in common. `tests/node.rs` installs the package and makes the files.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');

/** The folder of the files that `tests/node.rs` makes: keys and witnesses of example circuits. */
const FILES = process.env.SPILLPROOF_TEST_NODE_FILES;
/** A folder with snarkjs, where npm can fetch it. */
const ORACLE = process.env.SPILLPROOF_TEST_NODE_ORACLE;
/** A folder of `cargo xtask fixtures`. */
const PUBLISHED = process.env.SPILLPROOF_TEST_FIXTURES || undefined;

const fixture = (name) => path.join(__dirname, 'fixtures', name);
/** Example files of 2^k rows over a curve, with values of the full size. */
const example = (k, curve = 'bn128') => ['zkey', 'wtns'].map((ending) => path.join(FILES, `${curve}-${k}.${ending}`));

/** An empty folder, until the test ends. */
function folder(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'spillproof-node-'));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Whether snarkjs is here; the reason if not. */
const noOracle = ORACLE === undefined && 'SKIPPED: npm cannot fetch snarkjs here';
const noPublished =
  PUBLISHED === undefined && 'SKIPPED: SPILLPROOF_TEST_FIXTURES names no folder of `cargo xtask fixtures`';

/** snarkjs, from a folder. Its workers are ended when the tests of the file have. */
function snarkjs(after, from = ORACLE) {
  const found = require(path.join(from, 'node_modules/snarkjs'));
  after(async () => {
    for (const curve of [globalThis.curve_bn128, globalThis.curve_bls12381]) await curve?.terminate();
  });
  return found;
}

/** Open files of this process in a folder, by their descriptors: scratch has no names. */
function filesIn(dir) {
  const files = fs.readdirSync('/proc/self/fd').map((fd) => `/proc/self/fd/${fd}`);
  return files.filter((file) => {
    try {
      return fs.readlinkSync(file).startsWith(dir);
    } catch {
      // It was closed meanwhile.
      return false;
    }
  });
}

/** Opens each of them, but for those that are closed meanwhile. */
function eachFileIn(dir, flags, work) {
  for (const file of filesIn(dir)) {
    let opened;
    try {
      opened = fs.openSync(file, flags);
    } catch {
      continue;
    }
    try {
      work(opened);
    } finally {
      fs.closeSync(opened);
    }
  }
}

/** Runs a script in a process of its own, from the folder of the files. */
async function script(text, { type = 'commonjs', env = {}, timeout = 120_000 } = {}) {
  const options = { cwd: path.dirname(FILES), env: { ...process.env, ...env }, timeout };
  // The test runner's own variable would make of it a test.
  delete options.env.NODE_TEST_CONTEXT;
  const file = path.join(
    path.dirname(FILES),
    `script-${process.pid}-${Math.random().toString(36).slice(2)}.${type === 'module' ? 'mjs' : 'cjs'}`,
  );
  fs.writeFileSync(file, text);
  try {
    return await promisify(execFile)(process.execPath, [file], options);
  } finally {
    fs.rmSync(file);
  }
}

module.exports = { PUBLISHED, eachFileIn, example, filesIn, fixture, folder, noOracle, noPublished, script, snarkjs };
