'use strict';

// The native half, from the package of this platform: installed beside this one, or in the folder beside it.

const path = require('node:path');
const { SpillproofError } = require('./errors.js');

/** The library for tests, and for a build of one's own. */
const HERE = path.join(__dirname, '..', 'spillproof.node');

/** The platform's name in the names of packages. There are libraries for glibc; they do not load with another one. */
const PLATFORM = `${process.platform}-${process.arch}-gnu`;

function load() {
  const name = `spillproof-${PLATFORM}`;
  let found;
  for (const candidate of [HERE, name, path.join(__dirname, '..', '..', name)]) {
    try {
      return require(candidate);
    } catch (error) {
      // A library that is there and does not load says more than one that is not.
      if (error.code !== 'MODULE_NOT_FOUND') found ??= error;
    }
  }
  const what = found ? `the native library does not load: ${found.message}` : `the package ${name} is not installed`;
  throw new SpillproofError(
    'SPILLPROOF_PLATFORM',
    `${what}: there are packages for linux-x64-gnu and linux-arm64-gnu (npm installs them without --omit=optional), ` +
      'and `cargo xtask dist DIR node` builds one',
    { cause: found },
  );
}

let native;

/** The native half of this environment. It is loaded when it is first needed, so that the error is that of a call. */
module.exports = function getNative() {
  native ??= new (load().Native)();
  return native;
};
