'use strict';

// Keys of public ceremonies with their published programs, beside snarkjs. `cargo xtask fixtures DIR` fetches them.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, test } = require('node:test');
const { groth16, zKey } = require('spillproof');
const { PUBLISHED, folder, noPublished, snarkjs } = require('./helpers.js');

const skip = noPublished;
const theirs = skip ? undefined : snarkjs(after, PUBLISHED);
const inPackages = (...names) => path.join(PUBLISHED ?? '', 'node_modules', ...names);

/** Proofs of both, verified by both; the published verification key where there is one. */
async function bothProve(t, input, wasm, zkey, published) {
  const options = { memory: '32MiB', dir: folder(t) };
  const key = await zKey.exportVerificationKey(zkey, null, options);
  assert.deepEqual(key, await theirs.zKey.exportVerificationKey(zkey));
  if (published) assert.deepEqual(key, JSON.parse(fs.readFileSync(published)));
  const ours = await groth16.fullProve(input, wasm, zkey, null, null, options);
  const other = await theirs.groth16.fullProve(input, wasm, zkey);
  assert.deepEqual(ours.publicSignals, other.publicSignals);
  for (const { proof, publicSignals } of [ours, other]) {
    assert.equal(await groth16.verify(key, publicSignals, proof, null, options), true);
    assert.equal(await theirs.groth16.verify(key, publicSignals, proof), true);
  }
}

for (let depth = 1; depth <= 32; depth += 1) {
  test(`semaphore, depth ${depth}`, { skip }, async (t) => {
    const [wasm, zkey, key] = ['wasm', 'zkey', 'json'].map((ending) =>
      inPackages('@zk-kit/semaphore-artifacts', `semaphore-${depth}.${ending}`),
    );
    const input = {
      secret: '123456789',
      merkleProofLength: Math.min(depth, 3),
      merkleProofIndex: 1,
      merkleProofSiblings: Array.from({ length: depth }, (_, level) => (level < 3 ? '5' : '0')),
      scope: '7',
      message: `${depth}`,
    };
    await bothProve(t, input, wasm, zkey, key);
  });
}

for (const [cipher, keyBits] of [
  ['chacha20', 256],
  ['aes-128-ctr', 128],
  ['aes-256-ctr', 256],
]) {
  test(cipher, { skip }, async (t) => {
    const [wasm, zkey] = ['circuit.wasm', 'circuit_final.zkey'].map((name) =>
      inPackages('@reclaimprotocol/circom-symmetric-crypto/resources', cipher, name),
    );
    const bits = (length) => Array.from({ length }, (_, bit) => Number(bit % 3 === 0));
    await bothProve(t, { key: bits(keyBits), nonce: bits(96), counter: bits(32), in: bits(512) }, wasm, zkey);
  });
}

test('a program of circom 0.5', { skip }, async (t) => {
  const dir = folder(t);
  const circuit = (name) => inPackages('react-native-snarkjs/test/circuit', name);
  const powers = inPackages('react-native-snarkjs/test/plonk_circuit/powersOfTau15_final.ptau');
  const [first, zkey] = [`${dir}/first.zkey`, `${dir}/second.zkey`];
  await theirs.zKey.newZKey(circuit('circuit.r1cs'), powers, first);
  await theirs.zKey.contribute(first, zkey, 'test', 'text');
  await bothProve(t, { a: '3', b: '11' }, circuit('circuit.wasm'), zkey);
  const proved = groth16.fullProve({ other: 1 }, circuit('circuit.wasm'), zkey, null, null, { memory: '32MiB', dir });
  await assert.rejects(proved, { code: 'SPILLPROOF_INPUT', message: /no input signal other/ });
});
