'use strict';

/** An error of this package. `code` tells its kind; the README lists all of them. */
class SpillproofError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{cause?: unknown}} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    this.code = code;
  }
}
SpillproofError.prototype.name = 'SpillproofError';

/** Fields of an error that are there only where they have a meaning. */
const BYTES = ['bytesAsked', 'bytesHeld', 'bytesLimit', 'bytesNeeded'];

/** The error of a call that the native half ended. */
function ofFailure(failure) {
  const error = new SpillproofError(failure.code, failure.message);
  for (const name of BYTES) {
    if (failure[name] != null) error[name] = failure[name];
  }
  return error;
}

/** What a promise is rejected with whose signal was aborted: name and code are those of Node's own functions. */
function aborted(signal) {
  const error = new Error('The operation was aborted', { cause: signal.reason });
  error.name = 'AbortError';
  error.code = 'ABORT_ERR';
  return error;
}

/** A mistake in a call: a `TypeError` with the code SPILLPROOF_ARGUMENT. */
function argument(name, expected, given) {
  const error = new TypeError(`${name}: ${describe(given)} was given: ${expected}`);
  error.code = 'SPILLPROOF_ARGUMENT';
  return error;
}

/** A value in a few words. */
function describe(value) {
  if (value === null || value === undefined) return String(value);
  switch (typeof value) {
    case 'string':
      return value.length > 40 ? `the text "${value.slice(0, 40)}..."` : `the text "${value}"`;
    case 'number':
    case 'bigint':
    case 'boolean':
      return `${typeof value} ${value}`;
    case 'object': {
      if (Array.isArray(value)) return `an array of ${value.length}`;
      const type = value.constructor?.name ?? 'Object';
      return type === 'Object'
        ? `an object with ${Object.keys(value).slice(0, 5).join(', ') || 'no fields'}`
        : `a ${type}`;
    }
    default:
      return `a ${typeof value}`;
  }
}

module.exports = { SpillproofError, aborted, argument, describe, ofFailure };
