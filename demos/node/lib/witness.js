'use strict';

// Witnesses by a circuit's own program, which circom compiles to WebAssembly. The program holds the values; they are
// read out of it as the pieces of a `.wtns` file that are asked for, and are nowhere else whole.

const { SpillproofError, argument } = require('./errors.js');
const { Circom1 } = require('./circom1.js');
const { Circom2 } = require('./circom2.js');
const { flatten } = require('./inputs.js');

/** Bytes of a value in a `.wtns` file. */
const VALUE_BYTES = 32;
/** Pages that a program can have. */
const PAGES_MAX = 65536;

/** A `.wtns` file whose values are in a circuit's program. */
class Witness {
  constructor(program) {
    this.program = program;
    this.head = head(program.prime, program.values);
    this.bytes = this.head.byteLength + program.values * VALUE_BYTES;
  }

  /** The bytes from an offset on. They are used before the next call. */
  read(offset, bytes) {
    if (this.piece === undefined || this.piece.byteLength < bytes) this.piece = new Uint8Array(bytes);
    const piece = this.piece.subarray(0, bytes);
    let done = 0;
    if (offset < this.head.byteLength) {
      const part = this.head.subarray(offset, offset + bytes);
      piece.set(part);
      done = part.byteLength;
    }
    while (done < bytes) {
      const at = offset + done - this.head.byteLength;
      const [index, within] = [Math.floor(at / VALUE_BYTES), at % VALUE_BYTES];
      const value = this.program.value(index);
      const isWhole = within === 0 && bytes - done >= VALUE_BYTES;
      const part = isWhole ? value : value.subarray(within, within + bytes - done);
      piece.set(part, done);
      done += part.byteLength;
    }
    return piece;
  }
}

/** What is before the values: the file's kind, the sections, the prime, the number of values. */
function head(prime, values) {
  const bytes = new Uint8Array(12 + 12 + 4 + VALUE_BYTES + 4 + 12);
  const view = new DataView(bytes.buffer);
  let at = 0;
  const u32 = (value) => {
    view.setUint32(at, value, true);
    at += 4;
  };
  const u64 = (value) => {
    view.setBigUint64(at, BigInt(value), true);
    at += 8;
  };
  bytes.set([...'wtns'].map((letter) => letter.charCodeAt(0)));
  at = 4;
  [2, 2].forEach(u32);
  u32(1);
  u64(4 + VALUE_BYTES + 4);
  u32(VALUE_BYTES);
  for (let rest = prime, word = 0; word < VALUE_BYTES / 4; word += 1, rest >>= 32n) u32(Number(rest & 0xffffffffn));
  u32(values);
  u32(2);
  u64(values * VALUE_BYTES);
  return bytes;
}

/**
 * Computes a witness.
 *
 * @param {object} input values of the input signals, by name
 * @param {Uint8Array} bytes the program
 * @param {object} [options] `sanityCheck`; of old programs also `memorySize`, in pages of 64 KiB
 * @returns {Promise<Witness>}
 */
async function calculate(input, bytes, options) {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw argument('input', 'give an object with a value for each input signal', input);
  if (options !== undefined && options !== null && typeof options !== 'object')
    throw argument('wtnsCalcOptions', 'give an object, or nothing', options);
  const { sanityCheck = false, memorySize } = options ?? {};
  if (memorySize !== undefined && !(Number.isInteger(memorySize) && memorySize > 0 && memorySize <= PAGES_MAX)) {
    throw argument('wtnsCalcOptions.memorySize', `give a number of pages of 64 KiB, ${PAGES_MAX} at most`, memorySize);
  }
  let module;
  try {
    module = await WebAssembly.compile(bytes);
  } catch (cause) {
    throw notACircuit(cause.message, cause);
  }
  const names = WebAssembly.Module.exports(module).map(({ name }) => name);
  const Kind = names.includes('getVersion') ? Circom2 : Circom1;
  const lacking = Kind.EXPORTS.filter((name) => !names.includes(name));
  if (lacking.length > 0) throw notACircuit(`it has no function ${lacking.join(', ')}`);
  const program = await Kind.open(module, memorySize).catch((cause) => {
    throw notACircuit(cause.message, cause);
  });
  if (program.valueBytes !== VALUE_BYTES) {
    throw new SpillproofError(
      'SPILLPROOF_FORMAT',
      `wasmFile: its values have ${program.valueBytes} bytes: circuits over bn128 and bls12381 have ${VALUE_BYTES}`,
    );
  }
  program.run(flatten(input), Boolean(sanityCheck));
  return new Witness(program);
}

function notACircuit(reason, cause) {
  return new SpillproofError(
    'SPILLPROOF_FORMAT',
    `wasmFile: it is not the WebAssembly that circom makes of a circuit: ${reason}`,
    { cause },
  );
}

module.exports = { Witness, calculate };
