'use strict';

// Kinds of arguments, and results.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const spillproof = require('spillproof');
const { example, folder, script } = require('./helpers.js');

const { groth16, zKey } = spillproof;

for (const curve of ['bn128', 'bls12381']) {
  test(`all kinds of files make proofs that verify, over ${curve}`, async (t) => {
    const options = { memory: '16MiB', dir: folder(t) };
    const files = example(9, curve);
    const bytes = files.map((file) => fs.readFileSync(file));
    const key = await zKey.exportVerificationKey(files[0], null, options);
    assert.equal(key.curve, curve);
    const kinds = {
      path: files,
      bytes,
      'plain bytes': bytes.map((data) => new Uint8Array(data)),
      mem: bytes.map((data) => ({ type: 'mem', data })),
      file: files.map((fileName) => ({ type: 'file', fileName })),
      'bytes inside of others': bytes.map((data) =>
        Buffer.concat([Buffer.alloc(5), data, Buffer.alloc(3)]).subarray(5, -3),
      ),
    };
    const signals = [];
    for (const [kind, [zkey, wtns]] of Object.entries(kinds)) {
      const { proof, publicSignals } = await groth16.prove(zkey, wtns, undefined, options);
      assert.equal(await groth16.verify(key, publicSignals, proof, undefined, options), true, kind);
      assert.deepEqual(await zKey.exportVerificationKey(zkey, undefined, options), key, kind);
      signals.push(publicSignals);
      assert.deepEqual(Object.keys(proof), ['pi_a', 'pi_b', 'pi_c', 'protocol', 'curve']);
      assert.deepEqual([proof.protocol, proof.curve], ['groth16', curve]);
      assert.ok([proof.pi_a, proof.pi_b.flat(), proof.pi_c, publicSignals].flat().every((text) => /^\d+$/.test(text)));
    }
    for (const others of signals) assert.deepEqual(others, signals[0]);
    assert.deepEqual(fs.readdirSync(options.dir), []);
  });
}

test('a key is read again when its file is another one', async (t) => {
  const dir = folder(t);
  const options = { memory: '16MiB', dir };
  const file = `${dir}/circuit.zkey`;
  for (const [k, others] of [
    [8, 9],
    [9, 8],
  ]) {
    const [zkey, wtns] = example(k);
    fs.copyFileSync(zkey, `${file}.new`);
    fs.renameSync(`${file}.new`, file);
    await groth16.prove(file, wtns, null, options);
    await groth16.prove(file, wtns, null, options);
    await assert.rejects(groth16.prove(file, example(others)[1], null, options), { code: 'SPILLPROOF_WITNESS' });
  }
});

test('a proof of other signals, or with another point, is not valid', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [zkey, wtns] = example(8);
  const key = await zKey.exportVerificationKey(zkey, null, options);
  const { proof, publicSignals } = await groth16.prove(zkey, wtns, null, options);
  const said = [];
  const logger = { debug() {}, info: (text) => said.push(text), error: (text) => said.push(text) };
  const verify = (signals, other = proof) => groth16.verify(key, signals, other, logger, options);
  const modulus = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;
  assert.equal(await verify(publicSignals), true);
  assert.deepEqual(said.splice(0), ['OK!']);
  const values = publicSignals.map(BigInt);
  assert.equal(await verify(values), true);
  assert.equal(await verify(publicSignals, { ...proof, pi_a: proof.pi_a.map(BigInt) }), true);
  said.splice(0);
  const wrong = [
    [[values[0] ^ 1n, ...values.slice(1)]],
    [[values[0] + modulus, ...values.slice(1)]],
    [[-1n, ...values.slice(1)]],
    [values.slice(1)],
    [[...values, 1n]],
    [values, { ...proof, pi_a: ['5', proof.pi_a[1], '1'] }],
    [values, { ...proof, pi_a: ['0', '1', '0'] }],
    [values, { ...proof, pi_c: ['abc', '1', '1'] }],
    [values, { ...proof, pi_a: proof.pi_c }],
  ];
  for (const [signals, other] of wrong) assert.equal(await verify(signals, other), false, signals.join());
  assert.equal(said.length, wrong.length);
  assert.ok(
    said.every((text) => text.startsWith('Invalid proof')),
    said.join(),
  );
});

test('a module of either kind has the same functions', async () => {
  const module = await script(
    `import spillproof, { groth16, zKey, SpillproofError } from 'spillproof';
     console.log(JSON.stringify([Object.keys(spillproof), Object.keys(groth16), Object.keys(zKey), SpillproofError.name]));`,
    { type: 'module' },
  );
  const [keys, ofGroth16, ofZKey, name] = JSON.parse(module.stdout);
  assert.deepEqual(keys, Object.keys(spillproof));
  assert.deepEqual(ofGroth16, Object.keys(groth16));
  assert.deepEqual(ofZKey, Object.keys(zKey));
  assert.equal(name, spillproof.SpillproofError.name);
});
