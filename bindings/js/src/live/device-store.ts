/**
 * A device in the browser's database (IndexedDB): its keys as handles that no script can export, and public facts. A script
 * of the origin can use them. No
 * state of a session is kept, so a copy of a profile, or an older one, uses no pad twice.
 */
import { type Bytes, isEqual } from '../bytes.js';
import { SealingPublic } from '../crypto/seal.js';
import { SigningKey, VerifyingKey } from '../crypto/sign.js';
import { type Device, DeviceError } from '../identity/device.js';
import { schemaId } from '../schema/id.js';
import type { Schema } from '../schema/model.js';
import { MasterSecret } from '../stream/keys.js';

const DATABASE = 'alpheus';
const STORE = 'devices';

/** What is stored of a device. */
interface Stored {
  readonly stream: Bytes;
  readonly schema: Bytes;
  readonly master: CryptoKey;
  readonly certificate: Bytes | undefined;
  readonly identity:
    | {
        readonly authority: Bytes;
        readonly key: CryptoKey;
        readonly certificate: Bytes;
        readonly ingest: Bytes;
        readonly ingestId: Bytes;
      }
    | undefined;
}

/** Stores a device under a name. It resolves once the database has it. Afterwards the files that it came from can be dropped. */
export async function storeDevice(name: string, device: Device): Promise<void> {
  const { identity } = device;
  const key = identity?.key.handle;
  if (identity !== undefined && key === undefined) {
    throw new DOMException('this browser lacks Ed25519, so the key has no handle to store', 'NotSupportedError');
  }
  const stored: Stored = {
    stream: device.stream,
    schema: device.schema,
    master: device.master.handle,
    certificate: device.certificate,
    identity:
      identity === undefined || key === undefined
        ? undefined
        : {
            authority: identity.authority.bytes,
            key,
            certificate: identity.certificate,
            ingest: identity.ingest.bytes,
            ingestId: identity.ingestId,
          },
  };
  await inStore('readwrite', (store) => store.put(stored, name));
}

/** A device that was stored under a name; undefined if there is none. It must be of this schema. */
export async function loadDevice(name: string, schema: Schema): Promise<Device | undefined> {
  const stored = (await inStore('readonly', (store) => store.get(name))) as Stored | undefined;
  if (stored === undefined) return undefined;
  if (!isEqual(stored.schema, schemaId(schema))) throw new DeviceError('OtherSchema');
  const { stream, certificate, identity } = stored;
  const master = MasterSecret.fromHandle(stored.master);
  if (identity === undefined) return { stream, schema: stored.schema, master, certificate, identity: undefined };
  return {
    stream,
    schema: stored.schema,
    master,
    certificate,
    identity: {
      authority: VerifyingKey.of(identity.authority),
      key: SigningKey.fromHandle(identity.key),
      certificate: identity.certificate,
      ingest: await SealingPublic.of(identity.ingest),
      ingestId: identity.ingestId,
    },
  };
}

/** Deletes a device from the database. A stream that is open keeps its keys, and the browser's files may keep old content. */
export async function forgetDevice(name: string): Promise<void> {
  await inStore('readwrite', (store) => store.delete(name));
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function inStore<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await done(opening);
  try {
    const transaction = database.transaction(STORE, mode);
    const complete = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const [found] = await Promise.all([done(work(transaction.objectStore(STORE))), complete]);
    return found;
  } finally {
    database.close();
  }
}
