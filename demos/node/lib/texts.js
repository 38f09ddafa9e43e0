'use strict';

// Keys, proofs and signals of the program's as texts for the native half, with the fields that it reads. What has the
// wrong form is a mistake in the call; what values mean is for the native half to say.

const { argument } = require('./errors.js');

function isNumber(value) {
  return (
    typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))
  );
}

/** A number, as a text. */
function number(name, value) {
  if (!isNumber(value)) throw argument(name, 'give a number as a text of digits, or a bigint', value);
  return String(value);
}

/** A coordinate: a number, or two of them. */
function coordinates(name, value, inner) {
  if (!Array.isArray(value) || value.length < 2 || value.length > 3)
    throw argument(name, 'give an array of 3 coordinates', value);
  return value.map((coordinate, at) => inner(`${name}[${at}]`, coordinate));
}

const inG1 = (name, value) => coordinates(name, value, number);
const inG2 = (name, value) => coordinates(name, value, pair);

function pair(name, value) {
  if (!Array.isArray(value) || value.length !== 2) throw argument(name, 'give an array of 2 numbers', value);
  return value.map((part, at) => number(`${name}[${at}]`, part));
}

function object(name, value, what) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw argument(name, `give ${what} as an object (JSON.parse makes one of a text)`, value);
  return value;
}

/** A verification key. */
function keyText(key) {
  const name = 'vkVerifier';
  object(name, key, 'a verification key');
  if (key.protocol !== undefined && key.protocol !== 'groth16')
    throw argument(`${name}.protocol`, 'keys of groth16 are taken', key.protocol);
  if (key.curve !== undefined && typeof key.curve !== 'string')
    throw argument(`${name}.curve`, 'give the name of a curve', key.curve);
  if (!Array.isArray(key.IC)) throw argument(`${name}.IC`, 'give an array of points', key.IC);
  return JSON.stringify({
    curve: key.curve,
    vk_alpha_1: inG1(`${name}.vk_alpha_1`, key.vk_alpha_1),
    vk_beta_2: inG2(`${name}.vk_beta_2`, key.vk_beta_2),
    vk_gamma_2: inG2(`${name}.vk_gamma_2`, key.vk_gamma_2),
    vk_delta_2: inG2(`${name}.vk_delta_2`, key.vk_delta_2),
    IC: key.IC.map((point, at) => inG1(`${name}.IC[${at}]`, point)),
  });
}

/** Public signals. */
function signalsText(signals) {
  if (!Array.isArray(signals)) throw argument('publicSignals', 'give an array of numbers', signals);
  return JSON.stringify(signals.map((signal, at) => number(`publicSignals[${at}]`, signal)));
}

/** A proof. Its curve is its key's. */
function proofText(proof) {
  object('proof', proof, 'a proof');
  return JSON.stringify({
    pi_a: inG1('proof.pi_a', proof.pi_a),
    pi_b: inG2('proof.pi_b', proof.pi_b),
    pi_c: inG1('proof.pi_c', proof.pi_c),
  });
}

/** A number of at most 32 bytes as Solidity takes it. */
function word(text) {
  if (!/^(0x[0-9a-fA-F]+|[0-9]+)$/.test(text) || BigInt(text) >> 256n)
    throw argument('a number for Solidity', 'give one from 0 to 2^256 - 1', text);
  return `"0x${BigInt(text).toString(16).padStart(64, '0')}"`;
}

/** Arguments of a verifier in Solidity. Coordinates of the second group have their imaginary part first there. */
function callData(proof, signals) {
  const { pi_a: a, pi_b: b, pi_c: c } = JSON.parse(proofText(proof));
  const point = ([x, y]) => `[${word(x)}, ${word(y)}]`;
  const reversed = ([real, imaginary]) => `[${word(imaginary)}, ${word(real)}]`;
  const inputs = JSON.parse(signalsText(signals)).map(word).join(',');
  return `${point(a)},[${reversed(b[0])},${reversed(b[1])}],${point(c)},[${inputs}]`;
}

module.exports = { callData, keyText, proofText, signalsText };
