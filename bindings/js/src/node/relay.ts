/**
 * A relay for browsers, which cannot show a certificate of mutual TLS. It forwards a device's two requests with that
 * device's TLS identity. It sees what the service sees: ciphertext, and when devices are on. Who may send for a stream
 * is for the application to say, in `authorize`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Bytes, toHex } from '../bytes.js';
import type { Transport } from '../live/transport.js';
import { streamsOf } from '../live/wire.js';
import { PostcardError } from '../postcard.js';

/** Most bytes of a request: a device's upload has 256 KiB of frames. */
const MAX_BODY = 1 << 20;
const PATIENCE = 30_000;

/** What a relay forwards, and for whom. */
export interface RelayOptions {
  /**
   * The service, as the device that this request may send for; undefined refuses it. `streams` are those of an upload,
   * in hexadecimal digits, and none where a device introduces itself.
   */
  readonly authorize: (request: IncomingMessage, streams: readonly string[]) => Promise<Transport | undefined>;
  /** Origins whose pages may ask, for CORS; none by default. */
  readonly origins?: readonly string[];
  /** What its paths begin with: `/alpheus`. */
  readonly prefix?: string;
}

/** A request handler for `node:http`, Express and their like. Resolves to false if the path is none of its own. */
export function createRelay(
  options: RelayOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<boolean> {
  const { prefix = '', origins = [] } = options;
  return async (request, response) => {
    const path = new URL(request.url ?? '/', 'http://relay').pathname;
    if (path !== `${prefix}/v1/events` && path !== `${prefix}/v1/device`) return false;
    const { origin } = request.headers;
    if (origin !== undefined && origins.includes(origin)) {
      response.setHeader('access-control-allow-origin', origin);
      response.setHeader('access-control-allow-credentials', 'true');
      response.setHeader('access-control-allow-headers', 'content-type, authorization');
      response.setHeader('vary', 'origin');
    }
    if (request.method === 'OPTIONS') answer(response, 204);
    else if (request.method !== 'POST') answer(response, 405);
    else await forward(options, request, response, path.slice(prefix.length));
    return true;
  };
}

async function forward(
  { authorize }: RelayOptions,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const body = await bodyOf(request);
  if (body === undefined) {
    answer(response, 413);
    return;
  }
  let streams: string[];
  try {
    streams = path === '/v1/events' ? [...new Set(streamsOf(body).map(toHex))] : [];
  } catch (refused) {
    if (!(refused instanceof PostcardError)) throw refused;
    answer(response, 400);
    return;
  }
  try {
    const service = await authorize(request, streams);
    if (service === undefined) {
      answer(response, 403);
      return;
    }
    const found = await service.post(path, body, AbortSignal.timeout(PATIENCE));
    response.setHeader('content-type', 'application/octet-stream');
    answer(response, found.status, found.body);
  } catch {
    // Why is the relay's own matter: its addresses may be in the error.
    answer(response, 502);
  }
}

function answer(response: ServerResponse, status: number, body?: Bytes): void {
  response.writeHead(status);
  response.end(body);
}

async function bodyOf(request: IncomingMessage): Promise<Bytes | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
