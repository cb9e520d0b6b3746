/** Producers of encrypted streams for browsers, workers and Node. */
export { AlpheusError } from './errors.js';
