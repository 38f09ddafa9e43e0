'use strict';

// Calls that are stopped, watched, many at a time, or cut off with their process.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { groth16, zKey } = require('spillproof');
const { eachFileIn, example, filesIn, folder, script } = require('./helpers.js');

/** Large enough to be stopped half way. */
const LARGE = 15;
/** Milliseconds until a stopped call has ended: half of them on an idle machine. */
const MOMENT = 2000;

/** Bytes on disk of files of a folder that are open. */
function bytesIn(dir) {
  const bytes = filesIn(dir).map((file) => {
    try {
      return 512 * fs.statSync(file).blocks;
    } catch {
      // It was closed meanwhile.
      return 0;
    }
  });
  return bytes.reduce((sum, of) => sum + of, 0);
}

test('a signal stops a call within a second, and nothing is left', async (t) => {
  const options = { memory: '24MiB', dir: folder(t) };
  const [zkey, wtns] = example(LARGE);
  // The key stays open, and the blocks of closed files are kept for the next ones: no more than a proof takes at one time. That is
  // looked at when steps begin; a step has two columns more at most.
  let most = 0;
  const look = () => (most = Math.max(most, bytesIn(options.dir)));
  await groth16.prove(zkey, wtns, null, { ...options, onProgress: look });
  most += 2 * 32 * 2 ** LARGE;
  const steps = [];
  for (const last of Array(3).fill(['copy of the witness', 'constraints', 'quotient', 'sum over H', 'verification']).flat()) {
    const controller = new AbortController();
    let stopped;
    const onProgress = ({ step }) => {
      steps.push(step);
      if (step === last) {
        stopped = performance.now();
        controller.abort(new Error('enough'));
      }
    };
    const proved = groth16.prove(zkey, wtns, null, { ...options, signal: controller.signal, onProgress });
    const error = await proved.then(
      () => assert.fail(`it was not stopped at ${last}`),
      (error) => error,
    );
    const milliseconds = performance.now() - stopped;
    assert.equal(error.name, 'AbortError', error.stack);
    assert.equal(error.code, 'ABORT_ERR');
    assert.equal(error.cause.message, 'enough');
    assert.ok(milliseconds < MOMENT, `${last}: ${milliseconds} ms`);
    // A thread closes files behind the call.
    const end = performance.now() + MOMENT;
    while (bytesIn(options.dir) > most && performance.now() < end) await sleep(5);
    assert.ok(bytesIn(options.dir) <= most, `${bytesIn(options.dir)} bytes after ${last}, at most ${most} before`);
    assert.deepEqual(fs.readdirSync(options.dir), []);
  }
  assert.equal(steps.filter((step) => step === 'copy of the witness').length, 15);
  // What was stopped held no room.
  await groth16.prove(zkey, wtns, null, options);
});

test('a signal that was aborted before keeps a call from beginning', async (t) => {
  const options = { memory: '16MiB', dir: folder(t), signal: AbortSignal.abort() };
  const [zkey, wtns] = example(8);
  const calls = [
    () => groth16.prove(zkey, wtns, null, options),
    () => groth16.prove(zkey, fs.readFileSync(wtns), null, options),
    () => zKey.exportVerificationKey(zkey, null, options),
  ];
  for (const call of calls) {
    await assert.rejects(call(), { name: 'AbortError', code: 'ABORT_ERR' });
  }
});

test('calls that wait for a key, for room or for bytes are stopped, too', async (t) => {
  const options = { memory: '24MiB', dir: folder(t) };
  const [zkey, wtns] = example(LARGE);
  // While the first call reads the key, and while it proves: there is room for one at a time.
  for (const last of [undefined, 'constraints']) {
    const controllers = Array.from({ length: 4 }, () => new AbortController());
    let stopped;
    const stop = () => {
      stopped ??= performance.now();
      controllers.forEach((controller) => controller.abort());
    };
    const onProgress = ({ step }) => {
      if (step === last) stop();
    };
    const calls = controllers.map(({ signal }, at) =>
      groth16.prove(zkey, at % 2 ? wtns : fs.readFileSync(wtns), null, { ...options, signal, onProgress }),
    );
    const ended = Promise.allSettled(calls);
    if (last === undefined) setImmediate(stop);
    for (const { reason } of await ended) assert.equal(reason?.code, 'ABORT_ERR', `${last}: ${reason?.stack}`);
    const milliseconds = performance.now() - stopped;
    assert.ok(milliseconds < MOMENT, `${last}: ${milliseconds} ms`);
  }
});

test('steps are told, to a function and to a logger', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [zkey, wtns] = example(9);
  const [steps, logged] = [[], []];
  await groth16.prove(
    zkey,
    wtns,
    { debug: (step) => logged.push(step) },
    { ...options, onProgress: ({ step }) => steps.push(step) },
  );
  assert.deepEqual(logged, steps);
  for (const step of ['copy of the witness', 'constraints', 'quotient', 'sum over H', 'verification']) {
    assert.ok(steps.includes(step), `${step} in ${steps}`);
  }
});

test('what a function of the program throws ends the call', async (t) => {
  const options = { memory: '16MiB', dir: folder(t) };
  const [zkey, wtns] = example(9);
  const thrown = new Error('of the program');
  const proved = groth16.prove(zkey, wtns, null, {
    ...options,
    onProgress() {
      throw thrown;
    },
  });
  await assert.rejects(proved, (error) => error === thrown);
});

test('five calls at a time share a budget, and leave events, timers and files alone', async (t) => {
  const dir = folder(t);
  const options = { memory: '32MiB', dir };
  const files = example(LARGE);
  const key = await zKey.exportVerificationKey(files[0], null, options);
  let isDone = false;
  const gaps = [];
  const watch = (async () => {
    while (!isDone) {
      const began = performance.now();
      await sleep(10);
      await fs.promises.readFile(__filename);
      gaps.push(performance.now() - began);
    }
  })();
  const proofs = await Promise.all(Array.from({ length: 5 }, () => groth16.prove(...files, null, options)));
  isDone = true;
  await watch;
  // As many threads of libuv's as there are would be taken by four calls.
  assert.ok(gaps.length > 10 && Math.max(...gaps) < 1000, `${gaps.length} looks, ${Math.max(...gaps)} ms`);
  for (const { proof, publicSignals } of proofs) {
    assert.equal(await groth16.verify(key, publicSignals, proof, null, options), true);
  }
  assert.equal(new Set(proofs.map(({ proof }) => proof.pi_a[0])).size, 5, 'blinding is random');
  assert.deepEqual(fs.readdirSync(dir), []);
});

test('five calls at a time in 128 MiB take less than 256 MiB, Node included', async (t) => {
  const { stdout } = await script(`
    const { groth16 } = require('spillproof');
    const fs = require('node:fs');
    const files = ${JSON.stringify(example(LARGE))};
    const options = { memory: '128MiB', dir: ${JSON.stringify(folder(t))} };
    const prove = () => groth16.prove(...files, null, options);
    Promise.all([1, 2, 3, 4, 5].map(prove)).then(() => console.log(process.resourceUsage().maxRSS));`);
  assert.ok(Number(stdout) > 0 && Number(stdout) < 256 * 1024, `${stdout} KiB`);
});

test('a process that exits in the middle leaves nothing, and does not crash', async (t) => {
  const dir = folder(t);
  const files = JSON.stringify(example(LARGE));
  const begun = `
    const { groth16 } = require('spillproof');
    const fs = require('node:fs');
    const files = ${files};
    const options = (onProgress) => ({ memory: '24MiB', dir: ${JSON.stringify(dir)}, onProgress });`;
  const ends = [
    `process.exit(7)`,
    `setTimeout(() => process.exit(7), 20)`,
    `process.kill(process.pid, 'SIGTERM')`,
    `process.kill(process.pid, 'SIGKILL')`,
  ];
  for (const end of ends) {
    for (const step of ['copy of the witness', 'quotient', 'sum over H']) {
      for (const kind of ['files', 'files.map((file) => fs.readFileSync(file))']) {
        const text = `${begun} groth16.prove(...${kind}, null, options(({ step }) => { if (step === '${step}') { ${end}; } }));`;
        const error = await script(text).then(
          () => assert.fail('it went on'),
          (error) => error,
        );
        const expected = { SIGTERM: 'SIGTERM', SIGKILL: 'SIGKILL' }[/SIG\w+/.exec(end)?.[0]] ?? null;
        assert.deepEqual(
          [error.signal, error.code, error.stderr],
          [expected, expected ? null : 7, ''],
          `${end} at ${step}`,
        );
        assert.deepEqual(fs.readdirSync(dir), []);
      }
    }
  }
});

test('a process waits for its calls, and not longer', async (t) => {
  const [zkey, wtns] = example(9);
  const options = JSON.stringify({ memory: '16MiB', dir: folder(t) });
  const { stdout } = await script(`
    const { groth16 } = require('spillproof');
    groth16.prove(${JSON.stringify(zkey)}, ${JSON.stringify(wtns)}, null, ${options}).then(() => console.log('proved'));`);
  assert.equal(stdout, 'proved\n');
});

test('workers prove, and end in the middle without harm', async (t) => {
  const dir = folder(t);
  const text = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { groth16 } = require('spillproof');
    const onProgress = ({ step }) => parentPort.postMessage(step);
    groth16.prove(...workerData.files, null, { memory: '24MiB', dir: workerData.dir, onProgress }).then(() => parentPort.postMessage('proved'));`;
  const worker = (k) => new Worker(text, { eval: true, workerData: { files: example(k), dir } });
  const all = new Promise((resolve, reject) => {
    const steps = [];
    const whole = worker(9);
    whole.on('message', (step) => steps.push(step));
    whole.on('error', reject);
    whole.on('exit', () => resolve(steps));
  });
  assert.equal((await all).at(-1), 'proved');
  for (const last of ['copy of the witness', 'constraints', 'sum over H']) {
    const cut = worker(LARGE);
    await new Promise((resolve, reject) => {
      cut.on('error', reject);
      cut.on('message', (step) => step === last && cut.terminate().then(resolve));
    });
    assert.deepEqual(fs.readdirSync(dir), []);
  }
  // The calls of the workers that are gone take no room.
  const options = { memory: '24MiB', dir };
  await groth16.prove(...example(LARGE), null, options);
});

test('no file has a witness in plain', async (t) => {
  const dir = folder(t);
  const [zkey, wtns] = example(LARGE);
  const data = fs.readFileSync(wtns);
  const modulus = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;
  // Some values, as they are in the file, and as programs compute with them.
  const values = [1000, 20000].flatMap((index) => {
    const bytes = data.subarray(76 + 32 * index, 76 + 32 * (index + 1));
    const value = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
    const form = ((value << 256n) % modulus).toString(16).padStart(64, '0');
    return [bytes, Buffer.from(form, 'hex').reverse()];
  });
  const sizes = [];
  const onProgress = () => {
    eachFileIn(dir, 'r', (file) => {
      const content = fs.readFileSync(file);
      sizes.push(content.length);
      assert.ok(!values.some((value) => content.includes(value)));
    });
  };
  for (const kind of [wtns, data]) await groth16.prove(zkey, kind, null, { memory: '16MiB', dir, onProgress });
  assert.ok(Math.max(...sizes) >= data.length - 100, `the witness is in a file of at most ${Math.max(...sizes)} bytes`);
  // The same search finds a value that is there.
  fs.writeFileSync(`${dir}/plain`, data);
  const plain = fs.openSync(`${dir}/plain`);
  assert.ok(filesIn(dir).some((file) => fs.readFileSync(file).includes(values[0])));
  fs.closeSync(plain);
});
