/**
 * A relay for browsers, which cannot show a certificate of mutual TLS. It forwards a device's two requests with that
 * device's TLS identity. It sees what the service sees: ciphertext, and when devices are on. Who may send for a stream
 * is for the application to say, in `authorize`, before the relay reads a body.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Bytes, toHex } from '../bytes.js';
import type { Transport } from '../live/transport.js';
import { streamsOf } from '../live/wire.js';
import { PostcardError } from '../postcard.js';

/** Most bytes of a request: a device's upload has 256 KiB of frames, or one frame that is larger. */
const MAX_BODY = 1 << 20;
const PATIENCE = 30_000;
const TYPE = 'application/octet-stream';

/** For whom a request may send. */
export interface Grant {
  /** The service, as the device that the request may send for. */
  readonly service: Transport;
  /** That device's streams, in hexadecimal digits. The relay refuses uploads of others. */
  readonly streams: readonly string[];
}

/** What a relay forwards, and for whom. */
export interface RelayOptions {
  /** For whom this request may send, by your own session; undefined refuses it. Its body has not been read. */
  readonly authorize: (request: IncomingMessage) => Promise<Grant | undefined>;
  /**
   * Origins whose pages may ask, as `https://page.example`. A page of the relay's own host may always. Behind a proxy that changes
   * the `Host` header, name your own site's origin too.
   */
  readonly origins?: readonly string[];
  /** Headers that pages of those origins may send, besides `content-type` and `authorization`. */
  readonly headers?: readonly string[];
  /** What its paths begin with: `/alpheus`. */
  readonly prefix?: string;
  /** How long a body, and the service's answer, may take: milliseconds, 30 s by default. */
  readonly patience?: number;
}

/** A status to answer with. */
class Refusal extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

/**
 * A request handler for `node:http`, Express and their like. Resolves to false if the path is none of its own. It never
 * rejects: a request that cannot be read is answered with 400, and one whose client has gone with nothing.
 */
export function createRelay(
  options: RelayOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<boolean> {
  const { prefix = '' } = options;
  return async (request, response) => {
    // No URL is made of it: of `//` there is none.
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (path !== `${prefix}/v1/events` && path !== `${prefix}/v1/device`) return false;
    try {
      await respond(options, request, response, path.slice(prefix.length));
    } catch (refused) {
      // Why is the relay's own matter: its addresses may be in the error.
      answer(response, statusOf(refused));
    }
    return true;
  };
}

function statusOf(refused: unknown): number {
  if (refused instanceof Refusal) return refused.status;
  return refused instanceof PostcardError ? 400 : 502;
}

async function respond(
  options: RelayOptions,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const { authorize, patience = PATIENCE } = options;
  admitOrigin(options, request, response);
  if (request.method === 'OPTIONS') {
    answer(response, 204);
    return;
  }
  if (request.method !== 'POST') throw new Refusal(405);
  // A form of another site can send its user's cookies, but not this type.
  if (request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() !== TYPE) throw new Refusal(415);
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY) throw new Refusal(413);
  const grant = await authorize(request);
  if (grant === undefined) throw new Refusal(403);
  const body = await bodyOf(request, patience);
  const asked = path === '/v1/events' ? streamsOf(body).map(toHex) : [];
  if (!asked.every((stream) => grant.streams.includes(stream))) throw new Refusal(403);
  const found = await grant.service.post(path, body, AbortSignal.timeout(patience));
  response.setHeader('content-type', TYPE);
  answer(response, found.status, found.body);
}

/** Refuses pages of other sites, which could send with their user's cookies. */
function admitOrigin({ origins = [], headers = [] }: RelayOptions, request: IncomingMessage, response: ServerResponse): void {
  const { origin, host } = request.headers;
  if (origin !== undefined && origins.includes(origin)) {
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-allow-credentials', 'true');
    response.setHeader('access-control-allow-headers', ['content-type', 'authorization', ...headers].join(', '));
    response.setHeader('vary', 'origin');
    return;
  }
  if (origin !== undefined && hostOf(origin) !== host) throw new Refusal(403);
  if (request.headers['sec-fetch-site'] === 'cross-site') throw new Refusal(403);
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}

function answer(response: ServerResponse, status: number, body?: Bytes): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status);
  response.end(body);
}

/** The body; ends the connection if it takes too long. */
async function bodyOf(request: IncomingMessage, patience: number): Promise<Bytes> {
  const timer = setTimeout(() => request.destroy(), patience);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_BODY) throw new Refusal(413);
      chunks.push(chunk);
    }
  } finally {
    clearTimeout(timer);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
