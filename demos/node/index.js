'use strict';

const groth16 = require('./lib/groth16.js');
const zKey = require('./lib/zkey.js');
const { SpillproofError } = require('./lib/errors.js');

module.exports = { groth16, zKey, SpillproofError };
