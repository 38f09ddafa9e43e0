'use strict';

const { call, given } = require('./call.js');
const { check, file } = require('./files.js');
const getNative = require('./native.js');
const { logger, options } = require('./options.js');

/** The verification key of a proving key. */
async function exportVerificationKey(zkeyName, log, opts) {
  const key = file('zkeyName', zkeyName);
  const [chosen, toLog] = [options(opts), logger(log)];
  await check('zkeyName', key);
  const begin = (onEvent) => getNative().exportVerificationKey(chosen.settings, given(key), onEvent);
  const [text] = await call(begin, chosen, toLog, { key: key.source });
  return JSON.parse(text);
}

module.exports = { exportVerificationKey };
