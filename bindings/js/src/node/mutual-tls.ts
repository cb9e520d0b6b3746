/** Requests to a service over mutual TLS 1.3, as a device's identity folder allows them. */
import { readFileSync } from 'node:fs';
import { Agent, request, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { Bytes } from '../bytes.js';
import { AlpheusError } from '../errors.js';
import type { Answer, Transport } from '../live/transport.js';

/** Most bytes of an answer. */
const MAX_ANSWER = 16 << 20;
const SERVER = 'alpheus://server/';

/** The peer is not the service. */
export class PeerError extends AlpheusError<'NotTheService'> {}

/** Where the service is, and as whom it is asked. */
export interface MutualTlsOptions {
  /** The service's address: `https://host:port`. */
  readonly server: string;
  /** The device's identity folder: `tls.pem`, `tls.key`, `ca.pem`. Read again for each new connection. */
  readonly identity: string;
}

/** Requests over mutual TLS. Connections are kept for a while. */
export function mutualTls(options: MutualTlsOptions): Transport & { close(): void } {
  const base = new URL(options.server);
  // A ticket would link connections.
  const agent = new Agent({ keepAlive: true, maxSockets: 4, maxCachedSessions: 0 });
  const read = (name: string): Buffer => readFileSync(join(options.identity, name));
  return {
    close: () => agent.destroy(),
    post(path, body, signal) {
      const identity = { cert: read('tls.pem'), key: read('tls.key'), ca: read('ca.pem') };
      // Said here, NODE_TLS_REJECT_UNAUTHORIZED does not undo it.
      const strict = { minVersion: 'TLSv1.3' as const, rejectUnauthorized: true, checkServerIdentity: checkService };
      const tls = { ...identity, ...strict };
      return ask(new URL(path, base), { ...tls, agent, signal, method: 'POST' }, body);
    },
  };
}

/** The host's name as always, and then that the certificate is of a server. */
function checkService(host: string, certificate: PeerCertificate): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  if (wrong !== undefined) return wrong;
  const names = (certificate.subjectaltname ?? '').split(', ').filter((name) => name.startsWith('URI:alpheus:'));
  const [name] = names;
  if (names.length === 1 && name?.startsWith(`URI:${SERVER}`)) return undefined;
  return new PeerError('NotTheService', 'the peer’s certificate is not that of a service');
}

function ask(url: URL, options: RequestOptions, body: Bytes): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': body.length };
    const asked = request(url, { ...options, headers }, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > MAX_ANSWER) asked.destroy(new Error('the answer is too long'));
      });
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: new Uint8Array(Buffer.concat(chunks)) });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}
