/**
 * Producers of encrypted streams for browsers, workers and Node. A service computes statistics on what they send, as
 * the streams' owners allow, and never holds it.
 */
export { DocumentError } from './document/problem.js';
export { EncodeError, type Input } from './encode/row.js';
export { AlpheusError, CryptoError } from './errors.js';
export { CertificateError } from './identity/certificate.js';
export { type Device, DeviceError, type DeviceFiles, readDevice, streamName } from './identity/device.js';
export { forgetDevice, loadDevice, storeDevice } from './live/device-store.js';
export { StreamError } from './live/errors.js';
export { type Clock, Stream, type StreamOptions, type StreamStatus } from './live/stream.js';
export { type Answer, type FetchOptions, fetchTransport, type Transport } from './live/transport.js';
export { schemaId } from './schema/id.js';
export type { Schema } from './schema/model.js';
export { schemaFromAvsc, schemaFromJson } from './schema/read.js';
export { schemaFromYaml } from './schema/yaml.js';
