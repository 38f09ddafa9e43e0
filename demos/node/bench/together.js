'use strict';

// Several proofs at a time in one budget, for a run under a hard limit of memory:
//
//   node bench/together.js KEY WITNESS [CALLS] [MEMORY]
//
// Prints the seconds, and the most memory that the process had resident.

const { createRequire } = require('node:module');
const path = require('node:path');

const { groth16, zKey } = createRequire(path.join(process.cwd(), 'package.json'))('spillproof');

async function main([zkey, wtns, calls = '5', memory = '128MiB']) {
  const options = { memory };
  const began = performance.now();
  const made = await Promise.all(Array.from({ length: Number(calls) }, () => groth16.prove(zkey, wtns, null, options)));
  const seconds = (performance.now() - began) / 1000;
  const key = await zKey.exportVerificationKey(zkey, null, options);
  for (const { proof, publicSignals } of made) {
    const isValid = await groth16.verify(key, publicSignals, proof, null, { ...options, allowInsecure: true });
    if (!isValid) throw new Error('a proof is not valid');
  }
  console.log(
    `${made.length} proofs in ${seconds.toFixed(2)} s, ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MiB resident`,
  );
}

main(process.argv.slice(2));
