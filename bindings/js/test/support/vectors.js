// The vectors of the repository, read so that no number is rounded. Runs in Node and in a browser.

// Numbers that a float may not hold become bigints.
export function parseVectors(text) {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}/g, (found) => (found[0] === '"' ? found : `"\\u0001${found}"`));
  return JSON.parse(marked, (_, value) => {
    if (typeof value !== 'string' || value[0] !== '\u0001') return value;
    const number = BigInt(value.slice(1));
    return Number.isSafeInteger(Number(number)) ? Number(number) : number;
  });
}

export class Failed extends Error {}

function shown(value) {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each));
}

export function equal(found, expected, what = '') {
  if (shown(found) !== shown(expected)) {
    throw new Failed(`${what}: found ${shown(found)?.slice(0, 400)}, expected ${shown(expected)?.slice(0, 400)}`);
  }
}

// The error's code. Fails if there is none.
export async function refused(run, what = '') {
  try {
    await run();
  } catch (error) {
    if (typeof error?.code !== 'string') throw error;
    return error.code;
  }
  throw new Failed(`${what}: nothing was refused`);
}
