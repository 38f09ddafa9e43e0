export * from './index.js';
import * as spillproof from './index.js';
export default spillproof;
