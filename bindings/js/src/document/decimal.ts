/** Decimal text as scaled integers, without floating point: 0.285 at scale 2 is 29 and never 28. */
import { AlpheusError, fill } from '../errors.js';

const WORDS = {
  Empty: 'the number is empty; leave the field out, or write digits such as 12.5',
  Malformed: 'not a number at character {0}; write digits such as 12.5, -3 or 1e-9',
  TooLarge: 'the number times 10^{0} does not fit 64 bits; use a smaller scale or unit',
  TooFine: 'the number has more than {0} decimal places; round it, or raise the scale',
} as const;

const MAX_BYTES = 400;
const MAX_EXPONENT = 400;
/** Numbers with more digits are beyond 64 bits whatever the digits are. */
const MAX_DIGITS = 30;
/** The bounds of a signed 64-bit number. */
export const I64 = { least: -(1n << 63n), most: (1n << 63n) - 1n };

/** A text that is not a scaled integer. The error never contains the text. */
export class DecimalError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, number: number) {
    super(fault, fill(WORDS[fault], [number]));
  }
}

interface Read {
  negative: boolean;
  digits: string;
  exponent: number;
}

/** Reads text × 10^scale, and rejects digits beyond the scale. */
export function parseExact(text: string, scale: number): bigint {
  return scaled(read(text), scale, true);
}

/** Reads text × 10^scale, rounding digits beyond the scale half away from zero. */
export function parseScaled(text: string, scale: number): bigint {
  return scaled(read(text), scale, false);
}

function read(text: string): Read {
  if (text === '') throw new DecimalError('Empty', 0);
  if (text.length > MAX_BYTES) throw new DecimalError('Malformed', MAX_BYTES + 1);
  const matched = /^([+-]?)([0-9]*)(?:(\.)([0-9]*))?/.exec(text);
  const [whole = '', sign = '', before = '', , after = ''] = matched ?? [];
  const digits = before + after;
  if (digits === '') throw new DecimalError('Malformed', whole.length + 1);
  const rest = text.slice(whole.length);
  return { negative: sign === '-', digits, exponent: exponentOf(rest, whole.length) - after.length };
}

function exponentOf(rest: string, at: number): number {
  if (rest === '') return 0;
  if (!/^[eE]/.test(rest)) throw new DecimalError('Malformed', at + 1);
  const written = rest.slice(1);
  const exponent = /^[+-]?[0-9]{1,19}$/.test(written) ? Number(written) : Number.NaN;
  if (!(Math.abs(exponent) <= MAX_EXPONENT)) throw new DecimalError('Malformed', at + 2);
  return exponent;
}

function scaled({ negative, digits, exponent }: Read, scale: number, exact: boolean): bigint {
  // Number of digits before the decimal point of the scaled number.
  const kept = digits.length + exponent + scale;
  const split = Math.min(Math.max(kept, 0), digits.length);
  const magnitude = (): bigint => {
    const significant = digits.slice(0, split).replace(/^0+/, '');
    const zeros = significant === '' ? 0 : Math.max(kept - digits.length, 0);
    if (significant.length + zeros > MAX_DIGITS) throw new DecimalError('TooLarge', scale);
    const found = BigInt(`0${significant}${'0'.repeat(zeros)}`);
    if (found > 1n << 64n) throw new DecimalError('TooLarge', scale);
    return found;
  };
  if (exact && /[^0]/.test(digits.slice(split))) {
    // A number that is too large is reported as too large first.
    magnitude();
    throw new DecimalError('TooFine', scale);
  }
  const up = kept >= 0 && (digits[split] ?? '0') >= '5' ? 1n : 0n;
  const signed = (magnitude() + up) * (negative ? -1n : 1n);
  if (signed < I64.least || signed > I64.most) throw new DecimalError('TooLarge', scale);
  return signed;
}
