/** How a stream reaches its service. */
import type { Bytes } from '../bytes.js';

/** An answer of the service. */
export interface Answer {
  readonly status: number;
  readonly body: Bytes;
}

/**
 * Carries requests to a service, which answers devices over mutual TLS only. In Node that is `mutualTls` of
 * `alpheus/node`. A browser cannot show a certificate by `fetch`: there it is {@link fetchTransport} to a relay
 * (`createRelay` of `alpheus/node`), which then sees what the service sees, ciphertext.
 */
export interface Transport {
  /** Sends a body to a path of the service. Rejects if there is no answer. */
  post(path: string, body: Bytes, signal: AbortSignal): Promise<Answer>;
}

/** Where a relay is, and how to ask it. */
export interface FetchOptions {
  /** The relay's address: `https://…/alpheus`. */
  readonly url: string;
  /** Headers of each request, such as an authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether cookies go with it. */
  readonly credentials?: RequestCredentials;
  /** Takes the place of the platform's `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Requests by `fetch`, to a relay. */
export function fetchTransport(options: FetchOptions): Transport {
  const base = options.url.replace(/\/+$/, '');
  const ask = options.fetch ?? globalThis.fetch.bind(globalThis);
  return {
    async post(path, body, signal) {
      const response = await ask(base + path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/octet-stream', ...options.headers },
        credentials: options.credentials ?? 'same-origin',
        cache: 'no-store',
        redirect: 'error',
        signal,
      });
      return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
    },
  };
}
