'use strict';

// Arguments of calls, checked.

const { argument } = require('./errors.js');

const THREADS_MAX = 1024;
const KNOWN = ['memory', 'dir', 'threads', 'signal', 'onProgress', 'allowInsecure', 'singleThread'];

/** What snarkjs takes for a logger: an object with some of debug, info, warn, error. */
function logger(given) {
  if (given === undefined || given === null) return undefined;
  if (typeof given !== 'object' && typeof given !== 'function') {
    throw argument('logger', 'give an object with the functions debug, info and error, or nothing', given);
  }
  return given;
}

/** Says something to a logger that has a function for it. */
function say(log, level, text) {
  if (typeof log?.[level] === 'function') log[level](text);
}

/**
 * The options of a call.
 *
 * @returns {{settings: object, signal?: AbortSignal, onProgress?: Function, allowInsecure: boolean}}
 */
function options(given) {
  if (given === undefined || given === null) return { settings: {}, allowInsecure: false };
  if (typeof given !== 'object' || Array.isArray(given)) throw argument('options', 'give an object, or nothing', given);
  for (const name of Object.keys(given)) {
    if (!KNOWN.includes(name))
      throw argument(`options.${name}`, `there is no such option: known are ${KNOWN.join(', ')}`, given[name]);
  }
  const { signal, onProgress } = given;
  if (
    signal !== undefined &&
    signal !== null &&
    !(typeof signal.aborted === 'boolean' && typeof signal.addEventListener === 'function' && typeof signal.removeEventListener === 'function')
  ) {
    throw argument('options.signal', 'give the `signal` of an AbortController', signal);
  }
  if (onProgress !== undefined && onProgress !== null && typeof onProgress !== 'function') {
    throw argument('options.onProgress', 'give a function', onProgress);
  }
  for (const name of ['allowInsecure', 'singleThread']) {
    if (given[name] !== undefined && typeof given[name] !== 'boolean')
      throw argument(`options.${name}`, 'give true or false', given[name]);
  }
  return {
    settings: { memory: memory(given.memory), dir: dir(given.dir), threads: threads(given.threads) },
    signal: signal ?? undefined,
    onProgress: onProgress ?? undefined,
    allowInsecure: given.allowInsecure ?? false,
  };
}

function memory(given) {
  if (given === undefined || given === null) return undefined;
  const isNumber = (typeof given === 'number' && Number.isSafeInteger(given)) || typeof given === 'bigint';
  if (isNumber && given > 0) return String(given);
  // The native half reads the text, and its error says what a size is.
  if (typeof given === 'string' && given !== '') return given;
  throw argument('options.memory', 'give a number of bytes, or a size such as "128MiB" or "auto"', given);
}

function dir(given) {
  if (given === undefined || given === null) return undefined;
  if (typeof given === 'string' && given !== '' && !given.includes('\0')) return given;
  throw argument('options.dir', 'give the path of a folder on a disk', given);
}

function threads(given) {
  if (given === undefined || given === null) return undefined;
  if (Number.isInteger(given) && given >= 1 && given <= THREADS_MAX) return given;
  throw argument(
    'options.threads',
    `give a number from 1 to ${THREADS_MAX}, or leave it out for one for each core`,
    given,
  );
}

module.exports = { logger, options, say };
