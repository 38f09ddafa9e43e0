'use strict';

// A call into the native half as a promise.

const { SpillproofError, aborted, ofFailure } = require('./errors.js');
const { say } = require('./options.js');

/** How the native half is told of a file. */
function given({ path, source }) {
  return source ? { bytes: source.bytes } : { path };
}

/**
 * Runs a call until its outcome.
 *
 * @param {(onEvent: Function) => {stop(): void}} begin begins it
 * @param {{signal?: AbortSignal, onProgress?: Function}} options
 * @param {object} [log] the logger
 * @param {{key?: object, witness?: object}} [sources] files in memory
 * @returns {Promise<string[]>} texts in JSON
 */
function call(begin, { signal, onProgress }, log, sources = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted(signal));
      return;
    }
    let running;
    let thrown;
    const stop = () => running.stop();
    const giveUp = (error) => {
      thrown ??= { error };
      running?.stop();
    };
    const end = ({ texts, failure }) => {
      signal?.removeEventListener('abort', stop);
      // Whatever the program threw comes first: the native half only ended because of it.
      if (thrown) reject(thrown.error);
      else if (signal?.aborted) reject(aborted(signal));
      else if (failure) reject(ofFailure(failure));
      else resolve(texts);
    };
    const onEvent = (event) => {
      if (event.outcome) {
        try {
          end(event.outcome);
        } catch (error) {
          // Of a signal that is not Node's.
          reject(error);
        }
        return undefined;
      }
      if (thrown) return undefined;
      try {
        if (event.ask) return sources[event.ask.of].read(event.ask.offset, event.ask.bytes);
        if (event.witnessRead) sources.witness = undefined;
        if (event.step && !signal?.aborted) {
          say(log, 'debug', event.step);
          onProgress?.({ step: event.step });
        }
      } catch (error) {
        giveUp(error);
      }
      return undefined;
    };
    try {
      running = begin(onEvent);
    } catch (cause) {
      // The native half has no code for what it throws: it could not begin.
      reject(
        cause instanceof SpillproofError ? cause : new SpillproofError('SPILLPROOF_SYSTEM', cause.message, { cause }),
      );
      return;
    }
    signal?.addEventListener('abort', stop, { once: true });
  });
}

module.exports = { call, given };
