/** Exact fractions between 0 and 1. */
import { DecimalError, parseExact } from './decimal.js';

/** A fraction in lowest terms. Both numbers are below 2^32. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** A fraction that is known to be in lowest terms. */
export function fraction(numerator: number, denominator: number): Fraction {
  return { numerator: BigInt(numerator), denominator: BigInt(denominator) };
}

const MAX = 0xffff_ffffn;
const PLACES = 9;
const UNITS = 1_000_000_000n;

/** Reads `1/3` or `0.2`; undefined if it is no such fraction. */
export function parseFraction(text: string): Fraction | undefined {
  const line = text.indexOf('/');
  const numerator = line < 0 ? decimal(text) : whole(text.slice(0, line).trim());
  const denominator = line < 0 ? UNITS : whole(text.slice(line + 1).trim());
  if (numerator === undefined || denominator === undefined) return undefined;
  if (numerator < 0n || denominator <= 0n || numerator > denominator) return undefined;
  const divisor = gcd(numerator, denominator);
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b);
}

function decimal(text: string): bigint | undefined {
  try {
    const number = parseExact(text, PLACES);
    return number <= MAX ? number : undefined;
  } catch (refused) {
    if (refused instanceof DecimalError) return undefined;
    throw refused;
  }
}

function whole(text: string): bigint | undefined {
  if (!/^\+?[0-9]{1,400}$/.test(text)) return undefined;
  const number = BigInt(text.replace('+', ''));
  return number <= MAX ? number : undefined;
}
