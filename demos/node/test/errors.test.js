'use strict';

// Errors: their codes, their fields, their words.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { groth16, zKey, SpillproofError } = require('spillproof');
const { eachFileIn, example, fixture, folder, script } = require('./helpers.js');

/** The error that a call ends with. */
const errorOf = (call) =>
  call.then(
    () => assert.fail('no error'),
    (error) => error,
  );

test('mistakes in arguments are typed errors that name them', async () => {
  const [zkey, wtns] = example(8);
  const key = await zKey.exportVerificationKey(zkey);
  const { proof, publicSignals } = await groth16.prove(zkey, wtns);
  const wasm = fixture('product.wasm');
  const prove = (options) => groth16.prove(zkey, wtns, undefined, options);
  const cases = {
    zkeyFileName: [
      undefined,
      null,
      1,
      '',
      'a\0b',
      {},
      [],
      { type: 'mem' },
      { type: 'file' },
      { type: 'bigMem', data: new Uint8Array(1) },
      new Uint16Array(4),
      new ArrayBuffer(4),
    ].map((given) => () => groth16.prove(given, wtns)),
    witnessFileName: [undefined, {}, { type: 'mem', data: [1, 2] }].map((given) => () => groth16.prove(zkey, given)),
    wasmFile: [undefined, {}].map((given) => () => groth16.fullProve({}, given, zkey)),
    zkeyName: [undefined, {}].map((given) => () => zKey.exportVerificationKey(given)),
    wtnsCalcOptions: [() => groth16.fullProve({}, wasm, zkey, null, 'sanityCheck')],
    'wtnsCalcOptions.memorySize': [0, 1.5, 65537].map(
      (memorySize) => () => groth16.fullProve({}, wasm, zkey, null, { memorySize }),
    ),
    logger: [() => groth16.prove(zkey, wtns, 'console'), () => groth16.verify(key, publicSignals, proof, true)],
    options: ['memory', [1]].map((given) => () => prove(given)),
    'options.memroy': [() => prove({ memroy: '16MiB' })],
    'options.memory': [0, -1, 1.5, '', {}, Number.NaN].map((memory) => () => prove({ memory })),
    'options.dir': [1, '', {}].map((dir) => () => prove({ dir })),
    'options.threads': [0, 1.5, '2', 1025].map((threads) => () => prove({ threads })),
    'options.signal': [{}, true].map((signal) => () => prove({ signal })),
    'options.onProgress': [() => prove({ onProgress: 'log' })],
    'options.allowInsecure': [() => groth16.verify(key, publicSignals, proof, null, { allowInsecure: 1 })],
    vkVerifier: [undefined, JSON.stringify(key), []].map((given) => () => groth16.verify(given, publicSignals, proof)),
    'vkVerifier.protocol': [() => groth16.verify({ ...key, protocol: 'plonk' }, publicSignals, proof)],
    'vkVerifier.IC': [() => groth16.verify({ ...key, IC: undefined }, publicSignals, proof)],
    'vkVerifier.IC[0]': [() => groth16.verify({ ...key, IC: [[]] }, publicSignals, proof)],
    'vkVerifier.vk_beta_2[0]': [() => groth16.verify({ ...key, vk_beta_2: key.vk_alpha_1 }, publicSignals, proof)],
    publicSignals: [undefined, '1', {}].map((given) => () => groth16.verify(key, given, proof)),
    'publicSignals[0]': [undefined, null, 1.5, 2 ** 60, [1]].map((given) => () => groth16.verify(key, [given], proof)),
    proof: [undefined, JSON.stringify(proof)].map((given) => () => groth16.verify(key, publicSignals, given)),
    'proof.pi_b': [() => groth16.verify(key, publicSignals, { ...proof, pi_b: undefined })],
  };
  for (const [name, calls] of Object.entries(cases)) {
    for (const call of calls) {
      const error = await errorOf(call());
      assert.ok(error instanceof TypeError, error.stack);
      assert.equal(error.code, 'SPILLPROOF_ARGUMENT');
      assert.ok(error.message.startsWith(`${name}: `), `${name}: ${error.message}`);
    }
  }
});

test('a budget that is too small says what was asked and what would do', async (t) => {
  const dir = folder(t);
  const files = example(15);
  const error = await errorOf(groth16.prove(...files, null, { memory: '512KiB', dir }));
  assert.ok(error instanceof SpillproofError && error instanceof Error);
  assert.deepEqual([error.name, error.code], ['SpillproofError', 'SPILLPROOF_OVER_BUDGET']);
  // A step may have less than the whole.
  assert.ok(error.bytesLimit <= 512 * 1024 && error.bytesLimit > 500 * 1024, error.stack);
  assert.ok(error.bytesAsked > 0, error.stack);
  assert.ok(error.bytesNeeded > error.bytesLimit);
  // Where the whole plan was computed, what it says is enough.
  let needed = error;
  while (needed.bytesHeld !== undefined)
    needed = await errorOf(groth16.prove(...files, null, { memory: needed.bytesNeeded * 2, dir }));
  await groth16.prove(...files, null, { memory: needed.bytesNeeded, dir });
});

test('files that are not what they should be are named', async (t) => {
  const dir = folder(t);
  const options = { memory: '16MiB', dir };
  const [zkey, wtns] = example(8);
  const cut = `${dir}/cut.zkey`;
  fs.writeFileSync(cut, fs.readFileSync(zkey).subarray(0, -1000));
  const bytes = fs.readFileSync(wtns);
  const high = Buffer.from(bytes);
  high.fill(0xff, bytes.length - 32);
  const changed = Buffer.from(bytes);
  changed[bytes.length - 32] ^= 1;
  const none = Buffer.from(bytes);
  none.fill(0, 76, 77);
  const cases = [
    [`${dir}/missing.zkey`, wtns, 'SPILLPROOF_FILE', /missing\.zkey/],
    [zkey, `${dir}/missing.wtns`, 'SPILLPROOF_FILE', /missing\.wtns/],
    [dir, wtns, 'SPILLPROOF_FILE', /./],
    [cut, wtns, 'SPILLPROOF_FORMAT', /cut\.zkey/],
    [wtns, wtns, 'SPILLPROOF_FORMAT', /wtns/],
    [zkey, zkey, 'SPILLPROOF_FORMAT', /zkey/],
    [fs.readFileSync(cut), wtns, 'SPILLPROOF_FORMAT', /^the key: /],
    [Buffer.alloc(0), wtns, 'SPILLPROOF_FORMAT', /^the key: /],
    [zkey, Buffer.alloc(0), 'SPILLPROOF_FORMAT', /^the witness: /],
    [zkey, bytes.subarray(0, -1), 'SPILLPROOF_FORMAT', /^the witness: /],
    [zkey, high, 'SPILLPROOF_FORMAT', /^the witness: /],
    [zkey, none, 'SPILLPROOF_FORMAT', /^the witness: /],
    [zkey, example(8, 'bls12381')[1], 'SPILLPROOF_FORMAT', /bls12-?381/i],
    [zkey, fs.readFileSync(example(8, 'bls12381')[1]), 'SPILLPROOF_FORMAT', /bls12-?381/i],
    [zkey, example(9)[1], 'SPILLPROOF_WITNESS', /values of a witness/],
    [zkey, changed, 'SPILLPROOF_WITNESS', /./],
  ];
  for (const [at, [key, witness, code, message]] of cases.entries()) {
    const error = await errorOf(groth16.prove(key, witness, null, options));
    assert.equal(error.code, code, `${at}: ${error.stack}`);
    assert.match(error.message, message);
    assert.ok(error instanceof SpillproofError);
    assert.doesNotMatch(error.message, /\/proc\/self/);
  }
  fs.rmSync(cut);
  assert.deepEqual(fs.readdirSync(dir), []);
});

test('keys that verify are looked at', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [zkey, wtns] = example(8);
  const key = await zKey.exportVerificationKey(zkey, null, options);
  const { proof, publicSignals } = await groth16.prove(zkey, wtns, null, options);
  const verify = (other, more) =>
    groth16.verify({ ...key, ...other }, publicSignals, proof, null, { ...options, ...more });
  const insecure = { vk_delta_2: key.vk_gamma_2 };
  assert.equal((await errorOf(verify(insecure))).code, 'SPILLPROOF_INSECURE_KEY');
  assert.equal(await verify(insecure, { allowInsecure: true }), false);
  for (const other of [{ vk_alpha_1: ['1', '1', '1'] }, { curve: 'secp256k1' }, { IC: [] }, { curve: 'bls12381' }]) {
    const error = await errorOf(verify(other));
    assert.equal(error.code, 'SPILLPROOF_FORMAT', error.stack);
    assert.match(error.message, /^the verification key: /);
  }
});

test('settings that cannot be carried out are named', async (t) => {
  const dir = folder(t);
  const files = example(8);
  const prove = (options) => errorOf(groth16.prove(...files, null, options));
  const much = await prove({ memory: 'much', dir });
  assert.equal(much.code, 'SPILLPROOF_SETTING');
  assert.match(much.message, /`much` is not a size/);
  const missing = await prove({ memory: '16MiB', dir: `${dir}/missing` });
  assert.equal(missing.code, 'SPILLPROOF_SETTING');
  assert.match(missing.message, /missing/);
  const text = `require('spillproof').groth16.prove(...${JSON.stringify(files)}).catch((error) => console.log(error.code, error.message))`;
  for (const env of [{ SPILLPROOF_MEMORY: 'much' }, { SPILLPROOF_DIR: `${dir}/missing` }]) {
    const { stdout } = await script(text, { env });
    assert.match(stdout, new RegExp(`^SPILLPROOF_SETTING .*${Object.keys(env)[0]}`));
  }
});

test('the budget of the variable is that of calls without one', async (t) => {
  const dir = folder(t);
  const text = `
    const { groth16 } = require('spillproof');
    const files = ${JSON.stringify(example(15))};
    const code = (options) => groth16.prove(...files, null, options).then(() => 'proved', (error) => error.code + ' ' + Math.ceil(error.bytesLimit / 65536));
    (async () => console.log(await code(), '|', await code({ threads: 2 }), '|', await code({ memory: '32MiB' })))();`;
  const { stdout } = await script(text, { env: { SPILLPROOF_MEMORY: '512KiB', SPILLPROOF_DIR: dir } });
  assert.equal(stdout, 'SPILLPROOF_OVER_BUDGET 8 | SPILLPROOF_OVER_BUDGET 8 | proved\n');
});

test(
  'a disk without room is told from other errors',
  { skip: process.getuid() !== 0 && 'SKIPPED: only root mounts file systems' },
  async (t) => {
    const dir = folder(t);
    const { execFileSync } = require('node:child_process');
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', dir], { stdio: 'ignore' });
    } catch {
      t.skip('SKIPPED: file systems cannot be mounted here');
      return;
    }
    try {
      const error = await errorOf(groth16.prove(...example(15), null, { memory: '24MiB', dir }));
      assert.equal(error.code, 'SPILLPROOF_DISK_FULL', error.stack);
    } finally {
      execFileSync('umount', ['-l', dir]);
    }
  },
);

test('scratch that another program changes is found', async (t) => {
  const options = { memory: '8MiB', dir: folder(t) };
  const files = example(15);
  await groth16.prove(...files, null, options);
  const onProgress = ({ step }) => {
    if (step !== 'quotient') return;
    eachFileIn(options.dir, 'r+', (file) => {
      const { size } = fs.fstatSync(file);
      for (let at = 100; at < size; at += 4096) fs.writeSync(file, 'changed', at);
    });
  };
  const error = await errorOf(groth16.prove(...files, null, { ...options, onProgress }));
  assert.equal(error.code, 'SPILLPROOF_DAMAGED', error.stack);
  // The key that stayed open was damaged, too: it is opened again.
  await groth16.prove(...files, null, options);
});

test('bytes that go away during a call are a mistake', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [zkey, wtns] = example(9);
  const data = new Uint8Array(fs.readFileSync(wtns));
  const proved = errorOf(groth16.prove(zkey, data, null, options));
  structuredClone(data.buffer, { transfer: [data.buffer] });
  const error = await proved;
  assert.equal(error.code, 'SPILLPROOF_ARGUMENT', error.stack);
  assert.match(error.message, /^witnessFileName: its bytes were transferred/);
});

test('a library that is not there, or does not load, is named', async (t) => {
  const dir = folder(t);
  const main = `${dir}/node_modules/spillproof`;
  await zKey.exportVerificationKey(fixture('product.zkey'));
  const library = Object.keys(require.cache).find((file) => file.endsWith('spillproof.node'));
  fs.cpSync(path.dirname(require.resolve('spillproof')), main, { recursive: true });
  const export_ = `require('${main}').zKey.exportVerificationKey(__filename).catch((error) => console.log(error.code, error.message))`;
  fs.writeFileSync(`${main}/spillproof.node`, 'no library');
  const broken = await script(export_);
  assert.match(broken.stdout, /^SPILLPROOF_PLATFORM the native library does not load: .*spillproof.node/);
  fs.rmSync(`${main}/spillproof.node`);
  const missing = await script(`Object.defineProperty(process, 'arch', { value: 'riscv64' }); ${export_}`);
  assert.match(missing.stdout, /^SPILLPROOF_PLATFORM the package spillproof-linux-riscv64-gnu is not installed/);
  // The package of the platform, beside this one.
  const name = `spillproof-linux-${process.arch}-gnu`;
  fs.mkdirSync(`${dir}/node_modules/${name}`);
  fs.copyFileSync(library, `${dir}/node_modules/${name}/spillproof.node`);
  fs.writeFileSync(`${dir}/node_modules/${name}/package.json`, JSON.stringify({ name, main: 'spillproof.node' }));
  const there = await script(export_);
  assert.match(there.stdout, /^SPILLPROOF_FORMAT /);
});
