/** A process's identity folder, as `alpheus ca issue` writes it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeviceFiles } from '../identity/device.js';

/** Reads a device's file, and its identity folder if its schema has one frame a tick. */
export async function readDeviceFiles(device: string, identity?: string): Promise<DeviceFiles> {
  const text = await readFile(device, 'utf8');
  if (identity === undefined) return { device: text };
  const [deployment, certificate, seed] = await Promise.all(
    ['deployment.json', 'device.txt', 'device.seed'].map((name) => readFile(join(identity, name), 'utf8')),
  );
  return { device: text, identity: { deployment: deployment ?? '', certificate: certificate ?? '', seed: seed ?? '' } };
}
