// The package as one file, as bundlers make it for browsers.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

// The code of a script whose imports are the package's. `format`: esm or iife.
export async function bundled(contents, format = 'esm') {
  const built = await build({
    stdin: { contents, resolveDir: ROOT, loader: 'js' },
    bundle: true,
    minify: true,
    format,
    write: false,
    target: 'es2022',
    platform: 'browser',
    legalComments: 'none',
  });
  return built.outputFiles[0].text;
}
