import spillproof from './index.js';

export const { groth16, zKey, SpillproofError } = spillproof;
export default spillproof;
