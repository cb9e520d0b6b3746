/** Durations as people write them: `10s`, `5 min`, `1hr`, `PT1H`. */

const SECOND = 1_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;
const WEEK = 7n * DAY;
const LIMIT = 1n << 52n;
const MAX_DIGITS = 256;

const UNITS = new Map<string, bigint>([
  ['us', 1n],
  ['µs', 1n],
  ['ms', 1_000n],
  ...['s', 'sec', 'second', 'seconds'].map((unit): [string, bigint] => [unit, SECOND]),
  ...['m', 'min', 'minute', 'minutes'].map((unit): [string, bigint] => [unit, MINUTE]),
  ...['h', 'hr', 'hour', 'hours'].map((unit): [string, bigint] => [unit, HOUR]),
  ...['d', 'day', 'days'].map((unit): [string, bigint] => [unit, DAY]),
  ...['w', 'week', 'weeks'].map((unit): [string, bigint] => [unit, WEEK]),
]);

/** Microseconds; undefined if the text is no duration, or is zero, or exceeds the cipher's time range. */
export function parseDuration(text: string): number | undefined {
  const micros = text.startsWith('P') ? iso(text.slice(1)) : plain(text);
  return micros !== undefined && micros > 0n && micros < LIMIT ? Number(micros) : undefined;
}

function plain(text: string): bigint | undefined {
  const digits = /^[0-9]*/.exec(text)?.[0] ?? '';
  const unit = UNITS.get(text.slice(digits.length).trimStart());
  return unit === undefined ? undefined : product(digits, unit);
}

/** An ISO 8601 duration after P, in weeks or shorter units. */
function iso(text: string): bigint | undefined {
  const split = text.indexOf('T');
  const first = parts(split < 0 ? text : text.slice(0, split), [['W', WEEK], ['D', DAY]]);
  const second = parts(split < 0 ? '' : text.slice(split + 1), [['H', HOUR], ['M', MINUTE], ['S', SECOND]]);
  return first === undefined || second === undefined ? undefined : first + second;
}

function parts(text: string, units: readonly (readonly [string, bigint])[]): bigint | undefined {
  let total = 0n;
  let rest = text;
  for (const [name, unit] of units) {
    const end = rest.indexOf(name);
    if (end < 0) continue;
    // A sign is read as in the Rust implementation.
    const part = product(rest.slice(rest.startsWith('+') ? 1 : 0, end), unit);
    if (part === undefined) return undefined;
    total += part;
    rest = rest.slice(end + 1);
  }
  return rest === '' ? total : undefined;
}

function product(digits: string, unit: bigint): bigint | undefined {
  if (digits.length > MAX_DIGITS || !/^[0-9]+$/.test(digits)) return undefined;
  return BigInt(digits) * unit;
}
