'use strict';

const { call, given } = require('./call.js');
const { aborted, SpillproofError } = require('./errors.js');
const { check, contents, file } = require('./files.js');
const getNative = require('./native.js');
const { logger, options, say } = require('./options.js');
const { callData, keyText, proofText, signalsText } = require('./texts.js');
const { calculate } = require('./witness.js');

/** A proof, of a key and a witness. */
async function prove(zkeyFileName, witnessFileName, log, opts) {
  const key = file('zkeyFileName', zkeyFileName);
  const witness = file('witnessFileName', witnessFileName);
  const [chosen, toLog] = [options(opts), logger(log)];
  await check('zkeyFileName', key);
  await check('witnessFileName', witness);
  return proveWith(key, witness, chosen, toLog);
}

async function proveWith(key, witness, chosen, toLog) {
  const files = [given(key), given(witness)];
  const begin = (onEvent) => getNative().prove(chosen.settings, ...files, onEvent);
  const sources = { key: key.source, witness: witness.source };
  // The caller's promise must not keep what the call lets go of when it has been read.
  witness.source = undefined;
  const [proof, publicSignals] = await call(begin, chosen, toLog, sources);
  return { proof: JSON.parse(proof), publicSignals: JSON.parse(publicSignals) };
}

/** A proof, of an input for a circuit's program. */
async function fullProve(input, wasmFile, zkeyFileName, log, wtnsCalcOptions, proverOptions) {
  const key = file('zkeyFileName', zkeyFileName);
  file('wasmFile', wasmFile);
  const [chosen, toLog] = [options(proverOptions), logger(log)];
  await check('zkeyFileName', key);
  if (chosen.signal?.aborted) throw aborted(chosen.signal);
  const program = await contents('wasmFile', wasmFile);
  const witness = { source: await calculate(input, program, wtnsCalcOptions) };
  return proveWith(key, witness, chosen, toLog);
}

/** What the native half says of values that are none of a proof: a verifier says that the proof is not valid. */
const NOT_VALID = ['SPILLPROOF_PROOF', 'SPILLPROOF_SIGNALS'];

/** Whether a proof is valid. */
async function verify(vkVerifier, publicSignals, proof, log, opts) {
  const [chosen, toLog] = [options(opts), logger(log)];
  const texts = {
    key: keyText(vkVerifier),
    publicSignals: signalsText(publicSignals),
    proof: proofText(proof),
    allowInsecure: chosen.allowInsecure,
  };
  const begin = (onEvent) => getNative().verify(chosen.settings, texts, onEvent);
  try {
    const [text] = await call(begin, chosen, undefined);
    const isValid = JSON.parse(text);
    if (isValid) say(toLog, 'info', 'OK!');
    else say(toLog, 'error', 'Invalid proof');
    return isValid;
  } catch (error) {
    if (!(error instanceof SpillproofError && NOT_VALID.includes(error.code))) throw error;
    say(toLog, 'error', `Invalid proof: ${error.message}`);
    return false;
  }
}

/** Arguments for the `verifyProof` of a verifier in Solidity, as a text. */
async function exportSolidityCallData(proof, pub) {
  return callData(proof, pub);
}

module.exports = { exportSolidityCallData, fullProve, prove, verify };
