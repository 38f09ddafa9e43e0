'use strict';

// Values of input signals, as programs give them.

const { SpillproofError } = require('./errors.js');

/** An error of an input signal. */
function inputError(message, cause) {
  return new SpillproofError('SPILLPROOF_INPUT', message, { cause });
}

/**
 * The values of each signal, in order. Arrays of any depth are one list. A bus is an object: its fields are signals
 * with names such as `point.x`, or `points[1].x` in an array.
 *
 * @returns {Map<string, unknown[]>}
 */
function flatten(input) {
  const signals = new Map();
  const add = (name, value) => {
    if (isBus(value)) {
      for (const [field, inner] of Object.entries(value)) add(name === '' ? field : `${name}.${field}`, inner);
    } else if (Array.isArray(value) && value.flat(Infinity).some(isBus)) {
      value.forEach((inner, at) => add(`${name}[${at}]`, inner));
    } else {
      signals.set(name, Array.isArray(value) ? value.flat(Infinity) : [value]);
    }
  };
  add('', input);
  return signals;
}

function isBus(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as an integer from 0 up to the prime. Negative ones count from the prime down. */
function reduce(name, index, value, prime) {
  let integer;
  try {
    integer = BigInt(value);
  } catch {
    // Neither the value nor an error that names it: it may be a secret.
    const given = value == null ? String(value) : `a ${typeof value} that is no integer`;
    throw inputError(
      `input signal ${name}, value ${index}: ${given}: give a bigint, a safe integer, or a text of digits`,
    );
  }
  const rest = integer % prime;
  return rest < 0n ? rest + prime : rest;
}

/** The halves of a signal's name in 64-bit FNV-1a, by which the programs know it. */
function hash(name) {
  let hashed = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) {
    hashed = BigInt.asUintN(64, (hashed ^ BigInt(byte)) * 0x100000001b3n);
  }
  return [Number(hashed >> 32n), Number(hashed & 0xffffffffn)];
}

/** Writes an integer as words of 32 bits, the lowest first. */
function toWords(integer, words) {
  let rest = integer;
  for (let at = 0; at < words.length; at += 1, rest >>= 32n) words[at] = Number(rest & 0xffffffffn);
}

/** The integer of such words. */
function fromWords(words) {
  return words.reduceRight((integer, word) => (integer << 32n) | BigInt(word), 0n);
}

module.exports = { flatten, fromWords, hash, inputError, reduce, toWords };
