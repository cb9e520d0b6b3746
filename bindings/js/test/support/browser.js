// A real Chromium, Debian's.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';
// In continuous integration a test that cannot run fails.
export const hasChromium = existsSync(EXECUTABLE) || process.env.CI !== undefined;
export const noChromium = !hasChromium && 'there is no Chromium: apt-get install chromium';

const OPTIONS = { executablePath: EXECUTABLE, args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--host-resolver-rules=MAP elsewhere.test 127.0.0.1'] };

// A browser without a profile.
export function launch() {
  return chromium.launch(OPTIONS);
}

// A browser with this profile.
export function launchWith(profile) {
  return chromium.launchPersistentContext(profile, OPTIONS);
}

export async function newProfile() {
  const folder = await mkdtemp(join(tmpdir(), 'alpheus-profile-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }) };
}

// A page of the site, once its script has run.
export async function openPage(context, url) {
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForFunction(() => globalThis.alpheus !== undefined);
  return page;
}
