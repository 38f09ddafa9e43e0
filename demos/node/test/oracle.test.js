'use strict';

// snarkjs as the oracle: proofs of one are verified by the other, results have the same form.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, test } = require('node:test');
const { groth16, zKey } = require('spillproof');
const { example, fixture, folder, noOracle, snarkjs } = require('./helpers.js');

const theirs = noOracle ? undefined : snarkjs(after);
const skip = noOracle;
/** The fields of an object, and of those in it. */
const shape = (value) =>
  Array.isArray(value)
    ? value.map(shape)
    : typeof value === 'object'
      ? Object.entries(value).map(([name, inner]) => [name, shape(inner)])
      : typeof value;

for (const curve of ['bn128', 'bls12381']) {
  test(`each verifies the proofs of the other, over ${curve}`, { skip }, async (t) => {
    const options = { memory: '16MiB', dir: folder(t) };
    for (const k of [8, 9]) {
      const files = example(k, curve);
      const key = await zKey.exportVerificationKey(files[0], null, options);
      assert.deepEqual(key, await theirs.zKey.exportVerificationKey(files[0]));
      assert.equal(JSON.stringify(key), JSON.stringify(await theirs.zKey.exportVerificationKey(files[0])));
      const [ours, other] = [await groth16.prove(...files, null, options), await theirs.groth16.prove(...files)];
      assert.deepEqual(ours.publicSignals, other.publicSignals);
      assert.deepEqual(shape(ours), shape(other));
      assert.equal(await theirs.groth16.verify(key, ours.publicSignals, ours.proof), true);
      assert.equal(await groth16.verify(key, other.publicSignals, other.proof, null, options), true);
      const wrong = ['1', ...ours.publicSignals.slice(1)];
      assert.equal(await theirs.groth16.verify(key, wrong, ours.proof), false);
      assert.equal(await groth16.verify(key, wrong, other.proof, null, options), false);
    }
  });
}

test('a whole proof is one for both, and so is the text for Solidity', { skip }, async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [wasm, zkey] = ['product.wasm', 'product.zkey'].map(fixture);
  const input = { factors: ['0x10', 3, [4n, '5']], offset: -7 };
  const key = await zKey.exportVerificationKey(zkey, null, options);
  assert.deepEqual(key, await theirs.zKey.exportVerificationKey(zkey));
  const ours = await groth16.fullProve(input, wasm, zkey, null, null, options);
  const other = await theirs.groth16.fullProve(input, wasm, zkey);
  assert.deepEqual(ours.publicSignals, other.publicSignals);
  assert.equal(await theirs.groth16.verify(key, ours.publicSignals, ours.proof), true);
  assert.equal(await groth16.verify(key, other.publicSignals, other.proof, null, options), true);
  const witness = { type: 'mem' };
  await theirs.wtns.calculate(input, wasm, witness);
  assert.deepEqual((await groth16.prove(zkey, witness, null, options)).publicSignals, ours.publicSignals);
  const text = await groth16.exportSolidityCallData(ours.proof, ours.publicSignals);
  assert.deepEqual(
    JSON.parse(`[${text}]`),
    JSON.parse(`[${await theirs.groth16.exportSolidityCallData(ours.proof, ours.publicSignals)}]`),
  );
});

test('a witness has the same bytes', { skip }, async () => {
  const { calculate } = require(path.join(require.resolve('spillproof'), '../lib/witness.js'));
  const wasm = fixture('product.wasm');
  const input = { factors: [2, 3, 4, 5], offset: -1 };
  const file = { type: 'mem' };
  await theirs.wtns.calculate(input, wasm, file);
  const witness = await calculate(input, fs.readFileSync(wasm));
  for (const piece of [1, 7, 32, 76, 1000]) {
    const parts = [];
    for (let at = 0; at < witness.bytes; at += piece)
      parts.push(Buffer.from(witness.read(at, Math.min(piece, witness.bytes - at))));
    assert.ok(Buffer.concat(parts).equals(Buffer.from(file.data)), `in pieces of ${piece}`);
  }
});
