'use strict';

// The time of `groth16.prove` beside snarkjs', in turns, in processes of their own:
//
//   node bench/beside.js KEY WITNESS [TURNS] [MEMORY]
//
// from a folder in which both packages are installed. Prints the median, the least and the most of each, the median of
// processors' seconds, and the ratios of medians. A turn is what a program waits for in a process that has loaded the package: the first call with a key,
// and the second one. snarkjs' proof of each turn is verified by this package, and the reverse.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const os = require('node:os');
const path = require('node:path');

const CALLS = ['first', 'second'];
/** Packages of the folder that this is run from, and not the one that this file is of. */
const installed = createRequire(path.join(process.cwd(), 'package.json'));

/** In a process of its own: two proofs, and their times in milliseconds. */
async function turn(name, zkey, wtns, memory) {
  const { groth16 } = installed(name);
  const options = name === 'spillproof' ? { memory } : undefined;
  const [times, processors] = [[], []];
  let made;
  for (const _call of CALLS) {
    const [began, used] = [performance.now(), process.cpuUsage()];
    made = await groth16.prove(zkey, wtns, undefined, options);
    times.push(performance.now() - began);
    const { user, system } = process.cpuUsage(used);
    processors.push((user + system) / 1000);
  }
  const resident = process.resourceUsage().maxRSS / 1024;
  fs.writeFileSync(process.argv[7], JSON.stringify({ times, processors, resident, made }));
  process.exit(0);
}

async function main([zkey, wtns, turns = '5', memory = '128MiB']) {
  if (!zkey || !wtns) throw new Error('usage: node bench/beside.js KEY WITNESS [TURNS] [MEMORY]');
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'beside-'));
  const results = { spillproof: [], snarkjs: [] };
  for (let at = 0; at < Number(turns); at += 1) {
    for (const name of Object.keys(results)) {
      const file = path.join(dir, name);
      execFileSync(process.execPath, [__filename, '--turn', name, zkey, wtns, memory, file], { stdio: 'inherit' });
      results[name].push(JSON.parse(fs.readFileSync(file)));
    }
  }
  fs.rmSync(dir, { recursive: true });
  const ours = installed('spillproof');
  const theirs = installed('snarkjs');
  const key = await ours.zKey.exportVerificationKey(zkey);
  for (const { made } of results.spillproof) {
    if (!(await theirs.groth16.verify(key, made.publicSignals, made.proof))) throw new Error('snarkjs refuses a proof');
  }
  for (const { made } of results.snarkjs) {
    if (!(await ours.groth16.verify(key, made.publicSignals, made.proof, null, { allowInsecure: true })))
      throw new Error('a proof of snarkjs is refused');
  }
  const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
  for (const [call, words] of CALLS.entries()) {
    const medians = Object.entries(results).map(([name, all]) => {
      const [times, processors] = ['times', 'processors'].map((what) => all.map((one) => one[what][call] / 1000));
      const range = `${Math.min(...times).toFixed(2)} to ${Math.max(...times).toFixed(2)}`;
      const resident = Math.max(...all.map((one) => one.resident)).toFixed(0);
      const [wall, used] = [times, processors].map(median);
      console.log(
        `${words} call, ${name}: ${wall.toFixed(2)} s (${range}), ${used.toFixed(2)} s of processors, ${resident} MiB`,
      );
      return [wall, used];
    });
    const [wall, used] = [0, 1].map((what) => (medians[0][what] / medians[1][what]).toFixed(3));
    console.log(`${words} call: ratio ${wall}, of processors ${used}`);
  }
  process.exit(0);
}

if (process.argv[2] === '--turn') turn(...process.argv.slice(3));
else main(process.argv.slice(2));
