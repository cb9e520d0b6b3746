/** A device: the key of its stream, and who it is to the service. */
import { type Bytes, fromHex, isEqual, toHex } from '../bytes.js';
import { SigningKey } from '../crypto/sign.js';
import { readJson } from '../document/json.js';
import { DocumentError } from '../document/problem.js';
import { AlpheusError, fill } from '../errors.js';
import { schemaId } from '../schema/id.js';
import type { Schema } from '../schema/model.js';
import { MasterSecret } from '../stream/keys.js';
import type { DeviceIdentity } from '../tick/opening.js';
import { CertificateError, checkKey, readCertificate, readSeed } from './certificate.js';
import { readDeployment } from './deployment.js';

const WORDS = {
  NotADeviceFile: 'it is not a device file; use the file that `alpheus owner add` wrote',
  OtherFormat: 'the device file has version {0}, but this package reads version 1',
  BadSecret: "the file's secret is not 64 hexadecimal digits",
  OtherSchema: 'the device file is for another schema, or for another version of it',
  NoIdentity: 'the schema has one frame a tick, for which the device needs deployment.json, device.txt and device.seed',
} as const;

/** A device's file that cannot be used. It never holds the file's content. */
export class DeviceError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

/** The files of a device, as text. */
export interface DeviceFiles {
  /** The device's file, from `alpheus owner add`. It holds the stream's key. */
  readonly device: string;
  /** From `alpheus ca issue`, unless the schema says `frames: events`. */
  readonly identity?: {
    /** `deployment.json` */
    readonly deployment: string;
    /** `device.txt` */
    readonly certificate: string;
    /** `device.seed` */
    readonly seed: string;
  };
}

/** Which stream a device sends, and with which keys. Its keys are handles: they show in no text and no JSON. */
export interface Device {
  readonly stream: Bytes;
  readonly schema: Bytes;
  readonly master: MasterSecret;
  readonly identity: DeviceIdentity | undefined;
  /** The device's signed certificate, which introduces it to the service. */
  readonly certificate: Bytes | undefined;
}

/** Reads the files of a device of a schema. Once it has them, an application should drop the texts. */
export async function readDevice(files: DeviceFiles, schema: Schema): Promise<Device> {
  const read = readDeviceFile(files.device);
  try {
    if (!isEqual(read.schema, schemaId(schema))) throw new DeviceError('OtherSchema');
    const master = await MasterSecret.of(read.secret);
    const { identity, certificate } = await identityOf(files, schema);
    return { stream: read.stream, schema: read.schema, master, identity, certificate };
  } finally {
    read.secret.fill(0);
  }
}

function readDeviceFile(text: string): { stream: Bytes; schema: Bytes; secret: Bytes } {
  let fields: ReadonlyMap<string, string>;
  let version: bigint;
  try {
    const file = readJson(text).map();
    fields = new Map([...file].map(([key, node]) => [key, node.text()]));
    version = file.get('version')?.integer(0, 1n << 32n) ?? -1n;
  } catch (refused) {
    if (refused instanceof DocumentError) throw new DeviceError('NotADeviceFile');
    throw refused;
  }
  const hex = (key: string, length: number): Bytes | undefined => {
    const bytes = fromHex(fields.get(key) ?? '');
    return bytes?.length === length ? bytes : undefined;
  };
  const [stream, schema, secret] = [hex('stream', 16), hex('schema', 32), hex('secret', 32)];
  const known = [...fields.keys()].sort().join() === 'schema,secret,stream,version';
  if (!known || version < 0n || stream === undefined || schema === undefined) throw new DeviceError('NotADeviceFile');
  if (version !== 1n) throw new DeviceError('OtherFormat', version);
  if (secret === undefined) throw new DeviceError('BadSecret');
  return { stream, schema, secret };
}

async function identityOf(files: DeviceFiles, schema: Schema): Promise<Pick<Device, 'identity' | 'certificate'>> {
  if (schema.frames.kind === 'events') return { identity: undefined, certificate: undefined };
  if (files.identity === undefined) throw new DeviceError('NoIdentity');
  const { authority, ingest } = await readDeployment(files.identity.deployment);
  const [current] = ingest;
  if (current?.sealing === undefined) throw new CertificateError('NoIngest');
  const certificate = await readCertificate(files.identity.certificate, authority, 'device');
  const seed = readSeed(files.identity.seed);
  const key = await SigningKey.fromSeed(seed);
  seed.fill(0);
  await checkKey(certificate, key);
  const identity = {
    authority,
    key,
    certificate: certificate.digest,
    ingest: current.sealing,
    ingestId: current.digest,
  };
  return { identity, certificate: certificate.signed };
}

/** The stream's id in hexadecimal digits. */
export function streamName(device: Pick<Device, 'stream'>): string {
  return toHex(device.stream);
}
