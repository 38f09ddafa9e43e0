'use strict';

// Witnesses by a circuit's own program.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { groth16, zKey } = require('spillproof');
const { fixture, folder, script } = require('./helpers.js');

const [wasm, zkey] = ['product.wasm', 'product.zkey'].map(fixture);

test('inputs in all forms make the same public signals', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const key = await zKey.exportVerificationKey(zkey, null, options);
  const modulus = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;
  const inputs = [
    { factors: [2, 3, 4, 5], offset: 7 },
    { factors: ['2', '0x3', 4n, '5'], offset: '7' },
    {
      offset: [7],
      factors: [
        [2, 3],
        [4, [5]],
      ],
    },
    { factors: [2n + modulus, 3n - modulus, 4, 5], offset: 7n - 2n * modulus },
  ];
  const programs = [
    wasm,
    fs.readFileSync(wasm),
    { type: 'mem', data: new Uint8Array(fs.readFileSync(wasm)) },
    { type: 'file', fileName: wasm },
  ];
  for (const [at, input] of inputs.entries()) {
    const { proof, publicSignals } = await groth16.fullProve(input, programs[at], zkey, undefined, undefined, options);
    assert.deepEqual(publicSignals, ['127', '7']);
    assert.equal(await groth16.verify(key, publicSignals, proof, null, options), true);
  }
});

test('the documented example runs', async () => {
  const { stdout } = await script(`
    const snarkjs = require("spillproof");
    const fs = require("fs");
    async function run() {
      const { proof, publicSignals } = await snarkjs.groth16.fullProve({factors: [2, 3, 4, 5], offset: 7}, ${JSON.stringify(wasm)}, ${JSON.stringify(zkey)});
      console.log("Proof: ");
      console.log(JSON.stringify(proof, null, 1));
      const vKey = await snarkjs.zKey.exportVerificationKey(${JSON.stringify(zkey)});
      const res = await snarkjs.groth16.verify(vKey, publicSignals, proof);
      if (res === true) {
        console.log("Verification OK");
      } else {
        console.log("Invalid proof");
      }
    }
    run().then(() => {
      process.exit(0);
    });`);
  // The circuit logs its offset.
  assert.match(stdout, /^offset 7\nProof: \n\{[^}]*"pi_a"[^}]*\}\nVerification OK\n$/s);
});

test('mistakes in inputs are named, and not their values', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const secret = '31337x';
  const cases = [
    [{ factors: [2, 3, 4, 5] }, 'SPILLPROOF_INPUT', 'Not all inputs have been set. Only 4 out of 5'],
    [{ factors: [2, 3, 4], offset: 7 }, 'SPILLPROOF_INPUT', /Not enough values for input signal factors/],
    [{ factors: [2, 3, 4, 5, 6], offset: 7 }, 'SPILLPROOF_INPUT', /Too many values for input signal factors/],
    [{ factors: [2, 3, 4, 5], offset: 7, other: 1 }, 'SPILLPROOF_INPUT', /Signal not found.* other/],
    [{ factors: [2, 3, 4, secret], offset: 7 }, 'SPILLPROOF_INPUT', /factors, value 3: a string/],
    [{ factors: [2, 3, 4, 1.5], offset: 7 }, 'SPILLPROOF_INPUT', /factors, value 3: a number/],
    [{ factors: [2, 3, 4, undefined], offset: 7 }, 'SPILLPROOF_INPUT', /factors, value 3: undefined/],
    [
      { factors: [2, 3, 4, 1], offset: 7 },
      'SPILLPROOF_WITNESS',
      /^Assert Failed. Error in template Product_0 line: \d+$/,
    ],
    [[2, 3], 'SPILLPROOF_ARGUMENT', /^input: an array of 2/],
    [null, 'SPILLPROOF_ARGUMENT', /^input: null/],
  ];
  for (const [input, code, message] of cases) {
    const error = await groth16.fullProve(input, wasm, zkey, null, null, options).then(
      () => assert.fail('it proves'),
      (error) => error,
    );
    assert.equal(error.code, code, error.message);
    if (typeof message === 'string') assert.equal(error.message, message);
    else assert.match(error.message, message);
    assert.ok(!`${error.stack} ${error.cause?.message}`.includes(secret));
  }
  assert.deepEqual(fs.readdirSync(options.dir), []);
});

test('programs that are none are refused', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  // An empty module, and no module.
  for (const bytes of [Buffer.from('\0asm\x01\0\0\0', 'latin1'), Buffer.from('no program'), Buffer.alloc(0)]) {
    const proved = groth16.fullProve({}, bytes, zkey, null, null, options);
    await assert.rejects(proved, { code: 'SPILLPROOF_FORMAT', message: /^wasmFile: it is not the WebAssembly/ });
  }
  await assert.rejects(groth16.fullProve({}, 'missing.wasm', zkey, null, null, options), (error) => {
    assert.equal(error.code, 'SPILLPROOF_FILE');
    assert.equal(error.cause.code, 'ENOENT');
    return true;
  });
});
