/** What only Node can do: read a device's folder, speak mutual TLS, and relay for browsers. */
export { readDeviceFiles } from './identity.js';
export { mutualTls, type MutualTlsOptions, PeerError } from './mutual-tls.js';
export { createRelay, type Grant, type RelayOptions } from './relay.js';
