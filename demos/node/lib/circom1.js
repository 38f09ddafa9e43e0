'use strict';

// Programs of circom 0.5 and before. They work in a memory that is given to them, whose first word is the end of what
// is taken of it. A number there is: 32 bits of a short one, 32 bits that say which form it has, then its words.

const { SpillproofError } = require('./errors.js');
const { fromWords, hash, inputError, reduce, toWords } = require('./inputs.js');

/** Pages of the memory, of 64 KiB: what is not written takes no room. Less is tried where the system gives none. */
const PAGES = 32767;
const PAGES_MIN = 256;
/** The form of a number that is in its words. */
const LONG = 0x80000000;

class Circom1 {
  static EXPORTS = [
    'getFrLen',
    'getNVars',
    'getPRawPrime',
    'getSignalOffset32',
    'getWitnessBuffer',
    'init',
    'setSignal',
  ];

  /** An instance of a compiled program. */
  static async open(module, pages) {
    const program = new Circom1();
    program.memory = memory(pages);
    const nothing = () => {};
    const runtime = {
      error: (_code, text, ...numbers) => program.fail(program.text(text), numbers),
      log: (at) => console.log(program.number(at).toString()),
      logSetSignal: nothing,
      logGetSignal: nothing,
      logFinishComponent: nothing,
      logStartComponent: nothing,
    };
    const instance = await WebAssembly.instantiate(module, { env: { memory: program.memory }, runtime });
    program.exports = instance.exports;
    // Of a number, the form and the short one are no words of it.
    program.valueBytes = program.exports.getFrLen() - 8;
    program.prime = fromWords(program.view(program.exports.getPRawPrime(), program.valueBytes));
    program.values = program.exports.getNVars();
    return program;
  }

  view(at, bytes) {
    return new Uint32Array(this.memory.buffer, at, bytes / 4);
  }

  /** Takes some of the memory. */
  take(bytes) {
    const end = this.view(0, 4);
    const at = end[0];
    end[0] += bytes;
    return at;
  }

  /** A text that ends with a zero. */
  text(at) {
    const bytes = new Uint8Array(this.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  number(at) {
    const [short, form, ...words] = this.view(at, this.valueBytes + 8);
    return form & LONG ? fromWords(words) : BigInt(short | 0);
  }

  fail(text, numbers) {
    throw new SpillproofError('SPILLPROOF_WITNESS', `${text} (${numbers.join(', ')})`);
  }

  /** Computes all values. */
  run(signals, sanityCheck) {
    const { exports } = this;
    exports.init(sanityCheck ? 1 : 0);
    const [offset, number] = [this.take(8), this.take(this.valueBytes + 8)];
    for (const [name, values] of signals) {
      try {
        exports.getSignalOffset32(offset, 0, ...hash(name));
      } catch (cause) {
        throw inputError(`Signal not found: the circuit has no input signal ${name}`, cause);
      }
      const first = this.view(offset, 4)[0];
      values.forEach((value, index) => {
        const place = this.view(number, this.valueBytes + 8);
        place[0] = 0;
        place[1] = LONG;
        toWords(reduce(name, index, value, this.prime), place.subarray(2));
        try {
          exports.setSignal(0, 0, first + index, number);
        } catch (cause) {
          if (cause instanceof SpillproofError) throw cause;
          throw inputError(`input signal ${name}, value ${index}: ${cause.message}`, cause);
        }
      });
    }
    this.first = exports.getWitnessBuffer();
  }

  /** The bytes of a value. */
  value(index) {
    return new Uint8Array(this.memory.buffer, this.first + index * this.valueBytes, this.valueBytes);
  }
}

function memory(pages) {
  for (let initial = pages ?? PAGES; ; initial = Math.floor(initial / 2)) {
    try {
      return new WebAssembly.Memory({ initial });
    } catch (error) {
      if (pages !== undefined || initial < PAGES_MIN) throw error;
    }
  }
}

module.exports = { Circom1 };
