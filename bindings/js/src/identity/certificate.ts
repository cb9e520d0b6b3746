/** Certificates of a deployment's authority. */
import { type Bytes, fromHex, isEqual } from '../bytes.js';
import { labelledHash } from '../crypto/hash.js';
import { SealingKey, SealingPublic } from '../crypto/seal.js';
import { SIGNATURE, SigningKey, VerifyingKey } from '../crypto/sign.js';
import { AlpheusError, CryptoError, fill } from '../errors.js';
import { PostcardError, Reader } from '../postcard.js';

const LABEL = 'alpheus/certificate/v2';
const PROBE = 'alpheus/certificate/probe/v1';

const WORDS = {
  NotACertificate: 'it is not a certificate; use the text that `alpheus ca` wrote',
  NotADeployment: "it is not a deployment's file; use the `deployment.json` of the deployment",
  Unsigned: "the deployment's authority did not sign it; use a certificate of the same deployment",
  Role: 'it certifies a party of role `{0}`, and one of role `{1}` is needed',
  Keys: 'its keys are not usable, or not those of its role; ask the authority for another certificate',
  NoIngest:
    'it names no ingest key, but a schema without `frames: events` needs one; create the deployment with `alpheus ca init` of this version',
  OtherSeed: 'the key is not that of the certificate; use the two files that were made together',
  NotASeed: 'it is not a seed: 64 hexadecimal digits',
} as const;

/** A certificate that cannot be used. */
export class CertificateError extends AlpheusError<keyof typeof WORDS> {
  constructor(fault: keyof typeof WORDS, ...details: readonly unknown[]) {
    super(fault, fill(WORDS[fault], details));
  }
}

/** What a party is. The position is the number in its certificate. */
export const ROLES = ['service', 'controller', 'consumer', 'owner', 'device', 'ingest'] as const;
/** What a party is. */
export type Role = (typeof ROLES)[number];

/** The authority's statement that keys belong to one party, after its signature was checked. */
export interface Certificate {
  readonly role: Role;
  /** The party's name, for people. */
  readonly name: string;
  /** Stays when the certificate is renewed: 16 bytes. */
  readonly subject: Bytes;
  readonly verifying: VerifyingKey;
  readonly sealing: SealingPublic | undefined;
  /** Identifies the certificate, 32 bytes. */
  readonly digest: Bytes;
  /** The signed certificate as it goes over the wire. */
  readonly signed: Bytes;
}

/** Reads a certificate of a role from its hexadecimal digits, and checks that the authority signed it. */
export async function readCertificate(text: string, authority: VerifyingKey, role: Role): Promise<Certificate> {
  const signed = fromHex(text.trim());
  if (signed === undefined) throw new CertificateError('NotACertificate');
  const { content, signature } = read(signed, (reader) => ({
    content: reader.sized(),
    signature: reader.raw(SIGNATURE),
  }));
  try {
    authority.verify(LABEL, content, signature);
  } catch (refused) {
    if (refused instanceof CryptoError) throw new CertificateError('Unsigned');
    throw refused;
  }
  const found = await parse(content, signed);
  if (found.role !== role) throw new CertificateError('Role', found.role, role);
  return found;
}

/** Reads all of some bytes. */
function read<T>(bytes: Bytes, all: (reader: Reader) => T): T {
  try {
    const reader = new Reader(bytes);
    const found = all(reader);
    if (reader.isAtEnd) return found;
  } catch (refused) {
    if (!(refused instanceof PostcardError || refused instanceof TypeError)) throw refused;
  }
  throw new CertificateError('NotACertificate');
}

async function parse(content: Bytes, signed: Bytes): Promise<Certificate> {
  const fields = read(content, (reader) => {
    const subject = reader.raw(16);
    const role = ROLES[Number(reader.number())];
    if (role === undefined) throw new PostcardError('no such role');
    const [name, verifying] = [reader.text(), reader.raw(32)];
    const agreement = reader.bool() ? reader.raw(32) : undefined;
    const sealing = reader.bool() ? reader.raw(32) : undefined;
    // The digest of the hybrid key for master secrets, which are not sealed here.
    const hybrid = reader.bool() ? reader.raw(32) : undefined;
    return { subject, role, name, verifying, agreement, sealing, hybrid };
  });
  const { subject, role, name } = fields;
  const agrees = role === 'controller' || role === 'consumer';
  const unseals = role === 'ingest';
  try {
    const verifying = VerifyingKey.of(fields.verifying);
    const sealing = fields.sealing === undefined ? undefined : await SealingPublic.of(fields.sealing);
    const hasKeys =
      agrees === (fields.agreement !== undefined) &&
      agrees === (fields.hybrid !== undefined) &&
      unseals === (sealing !== undefined);
    if (!hasKeys) throw new CertificateError('Keys');
    return { role, name, subject, verifying, sealing, digest: labelledHash(LABEL, content), signed };
  } catch (refused) {
    if (refused instanceof CryptoError) throw new CertificateError('Keys');
    throw refused;
  }
}

/** The 32 bytes of a seed's file. */
export function readSeed(text: string): Bytes {
  const seed = fromHex(text.trim());
  if (seed?.length !== 32) throw new CertificateError('NotASeed');
  return seed;
}

/** The signing key that a certificate is for. */
export async function signingKeyOf(certificate: Certificate, seed: Bytes): Promise<SigningKey> {
  const key = await SigningKey.fromSeed(seed);
  await checkKey(certificate, key);
  return key;
}

/** Checks that a key is that of a certificate. */
export async function checkKey(certificate: Certificate, key: SigningKey): Promise<void> {
  const probe = new Uint8Array(0);
  try {
    certificate.verifying.verify(PROBE, probe, await key.sign(PROBE, probe));
  } catch (refused) {
    if (refused instanceof CryptoError) throw new CertificateError('OtherSeed');
    throw refused;
  }
}

/** The one of several certificates that a sealing key is for. */
export async function certificateOfKey(certificates: readonly Certificate[], seed: Bytes): Promise<Certificate> {
  const { own } = await SealingKey.fromSeed(seed);
  const found = certificates.find(({ sealing }) => sealing !== undefined && isEqual(sealing.bytes, own));
  if (found === undefined) throw new CertificateError('OtherSeed');
  return found;
}
