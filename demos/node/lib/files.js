'use strict';

// Files as snarkjs takes them: a path, bytes, or an object that says which of both it is.

const fs = require('node:fs');
const { SpillproofError, argument } = require('./errors.js');

/** A witness or a key of another one's, in memory, as the native half asks for it. */
class Bytes {
  constructor(name, data) {
    this.name = name;
    this.data = data;
    this.bytes = data.byteLength;
  }

  /** The bytes from an offset on. They are copied before anything else runs. */
  read(offset, bytes) {
    // Bytes that were transferred to another owner have no length here.
    if (offset + bytes > this.data.byteLength) {
      throw new SpillproofError(
        'SPILLPROOF_ARGUMENT',
        `${this.name}: its bytes were transferred or changed in length during the call: keep them as they are until it ends`,
      );
    }
    return this.data.subarray(offset, offset + bytes);
  }
}

/**
 * A file argument.
 *
 * @returns {{path: string} | {source: Bytes}}
 */
function file(name, given) {
  if (typeof given === 'string') return ofPath(name, given, given);
  if (given instanceof Uint8Array) return ofData(name, given, given);
  if (typeof given === 'object' && given !== null) {
    if (given.type === 'file') return ofPath(name, given.fileName, given);
    if (given.type === 'mem') return ofData(name, given.data, given);
  }
  throw argument(name, 'give a path, a Uint8Array, { type: "mem", data } or { type: "file", fileName }', given);
}

function ofPath(name, path, given) {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw argument(name, 'give the path of a file', given);
  return { path };
}

function ofData(name, data, given) {
  if (!(data instanceof Uint8Array)) throw argument(name, 'give its bytes as a Uint8Array, in the field `data`', given);
  return { source: new Bytes(name, data) };
}

/** That the file of a path is there: the error has Node's own as its cause. */
async function check(name, { path }) {
  if (path === undefined) return;
  try {
    await fs.promises.access(path, fs.constants.R_OK);
  } catch (cause) {
    throw new SpillproofError('SPILLPROOF_FILE', `${name}: ${cause.message}`, { cause });
  }
}

/** All bytes of a small file. */
async function contents(name, given) {
  const { path, source } = file(name, given);
  if (source) return source.data;
  try {
    return await fs.promises.readFile(path);
  } catch (cause) {
    throw new SpillproofError('SPILLPROOF_FILE', `${name}: ${cause.message}`, { cause });
  }
}

module.exports = { check, contents, file };
