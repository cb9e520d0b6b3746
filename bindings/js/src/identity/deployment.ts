/** The deployment that a party belongs to: `deployment.json`, the same file for all. */
import { fromHex } from '../bytes.js';
import { VerifyingKey } from '../crypto/sign.js';
import { readJson } from '../document/json.js';
import type { Node } from '../document/node.js';
import { DocumentError } from '../document/problem.js';
import { CryptoError } from '../errors.js';
import { type Certificate, CertificateError, readCertificate } from './certificate.js';

const VERSION = 1;

/** Whom a device belongs to. */
export interface Deployment {
  /** The key of the authority. */
  readonly authority: VerifyingKey;
  /** Certificates of the service's ingest keys: the one that devices use, then retired ones. */
  readonly ingest: readonly Certificate[];
}

/** Reads the file, and checks that the authority signed the ingest keys' certificates. */
export async function readDeployment(text: string): Promise<Deployment> {
  try {
    const file = readJson(text);
    needed(file, 'version').integer(VERSION, VERSION);
    const digits = fromHex(needed(file, 'authority').text());
    if (digits === undefined) throw new CertificateError('NotADeployment');
    const authority = VerifyingKey.of(digits);
    const listed = file.map().get('ingest')?.list() ?? [];
    const ingest: Certificate[] = [];
    for (const { value } of listed) {
      if (value.kind !== 'scalar') throw new CertificateError('NotADeployment');
      ingest.push(await readCertificate(value.text, authority, 'ingest'));
    }
    return { authority, ingest };
  } catch (refused) {
    if (refused instanceof DocumentError || refused instanceof CryptoError) throw new CertificateError('NotADeployment');
    throw refused;
  }
}

function needed(file: Node, key: string): Node {
  const found = file.map().get(key);
  if (found === undefined) throw new CertificateError('NotADeployment');
  return found;
}
