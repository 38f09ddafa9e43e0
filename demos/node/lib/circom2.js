'use strict';

// Programs of circom 2. A value goes in and out through one place of the program's memory, which all calls share.

const { SpillproofError } = require('./errors.js');
const { fromWords, hash, inputError, reduce, toWords } = require('./inputs.js');

/** What the numbers mean that a program ends with. */
const EXCEPTIONS = {
  1: 'Signal not found',
  2: 'Too many signals set',
  3: 'Signal already set',
  4: 'Assert Failed',
  5: 'Not enough memory',
  6: 'Input signal array access exceeds the size',
};
/** Those of the input: all others are of the circuit. */
const OF_INPUT = [1, 2, 3, 6];

class Circom2 {
  static EXPORTS = [
    'getFieldNumLen32',
    'getInputSize',
    'getRawPrime',
    'getSharedRWMemoryStart',
    'getWitness',
    'getWitnessSize',
    'init',
    'memory',
    'setInputSignal',
  ];

  /** An instance of a compiled program. */
  static async open(module) {
    const program = new Circom2();
    program.said = '';
    program.line = '';
    const nothing = () => {};
    const runtime = {
      exceptionHandler: (number) => program.fail(number),
      printErrorMessage: () => {
        program.said += `${program.message()} `;
      },
      writeBufferMessage: () => program.print(program.message()),
      showSharedRWMemory: () => program.print(program.shared().toString()),
      // Of the first releases.
      error: nothing,
      log: () => console.log(program.shared().toString()),
    };
    const instance = await WebAssembly.instantiate(module, { runtime });
    program.exports = instance.exports;
    program.words = program.exports.getFieldNumLen32();
    program.valueBytes = program.words * 4;
    program.exports.getRawPrime();
    program.prime = program.shared();
    program.values = program.exports.getWitnessSize();
    return program;
  }

  /** The place that all calls share. The memory may have moved since the last call. */
  place() {
    return new Uint32Array(this.exports.memory.buffer, this.exports.getSharedRWMemoryStart(), this.words);
  }

  shared() {
    return fromWords(this.place());
  }

  /** A text that the program gives letter by letter. */
  message() {
    let text = '';
    for (let letter = this.exports.getMessageChar(); letter !== 0; letter = this.exports.getMessageChar())
      text += String.fromCharCode(letter);
    return text;
  }

  /** A part of a line that the circuit logs. */
  print(part) {
    if (part === '\n') {
      console.log(this.line);
      this.line = '';
    } else {
      this.line += this.line === '' ? part : ` ${part}`;
    }
  }

  fail(number) {
    const text = `${EXCEPTIONS[number] ?? `Unknown error ${number}`}. ${this.said}`.trim();
    throw OF_INPUT.includes(number) ? inputError(text) : new SpillproofError('SPILLPROOF_WITNESS', text);
  }

  /** Computes all values. The last input signal that is set begins it. */
  run(signals, sanityCheck) {
    const { exports } = this;
    exports.init(sanityCheck ? 1 : 0);
    let set = 0;
    for (const [name, values] of signals) {
      const key = hash(name);
      const size = exports.getInputSignalSize?.(...key) ?? values.length;
      if (size <= 0 && values.length > 0) throw inputError(`Signal not found: the circuit has no input signal ${name}`);
      if (values.length < size)
        throw inputError(`Not enough values for input signal ${name}: ${values.length}, and it has ${size}`);
      if (values.length > size)
        throw inputError(`Too many values for input signal ${name}: ${values.length}, and it has ${size}`);
      values.forEach((value, index) => {
        toWords(reduce(name, index, value, this.prime), this.place());
        try {
          exports.setInputSignal(...key, index);
        } catch (cause) {
          if (cause instanceof SpillproofError) throw cause;
          throw new SpillproofError('SPILLPROOF_WITNESS', `the circuit's program ended: ${cause.message}`, { cause });
        }
        set += 1;
      });
    }
    const size = exports.getInputSize();
    if (set < size) throw inputError(`Not all inputs have been set. Only ${set} out of ${size}`);
  }

  /** The bytes of a value: they are used before the next call. */
  value(index) {
    const { buffer } = this.exports.memory;
    // One view for all values: there are millions.
    if (this.view?.buffer !== buffer)
      this.view = new Uint8Array(buffer, this.exports.getSharedRWMemoryStart(), this.valueBytes);
    this.exports.getWitness(index);
    return this.view;
  }
}

module.exports = { Circom2 };
