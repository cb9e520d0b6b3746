/** Errors of this package. None holds a secret, or a value of an event. */

/** An error with a code that does not change between versions, as `MinAboveMax`. */
export class AlpheusError<Code extends string = string> extends Error {
  /** Which rule is broken. */
  readonly code: Code;

  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
    this.name = new.target.name;
  }
}

/** Why bytes are no key, no signature, or do not open. */
export class CryptoError extends AlpheusError<'InvalidKey' | 'Mismatch' | 'SealingKey' | 'DoesNotOpen' | 'NoWebCrypto'> {}

/** Fills `{0}`, `{1}` … of a template. */
export function fill(template: string, details: readonly unknown[]): string {
  return template.replace(/\{(\d)\}/g, (_, at: string) => String(details[Number(at)]));
}
