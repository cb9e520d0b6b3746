/** The first frame of a session: the device signs it, and seals the session's key for the service in it. */
import { type Bytes, concat } from '../bytes.js';
import type { SealingKey, SealingPublic } from '../crypto/seal.js';
import { SIGNATURE, type SigningKey, type VerifyingKey } from '../crypto/sign.js';
import type { Random } from '../encode/encoder.js';
import type { Claim } from './claim.js';
import { OPENING, openingHead, type Previous, SEALED, SessionKey } from './frame.js';

const SESSION_KEY_LABEL = 'alpheus/session-key/v2';
const OPENING_LABEL = 'alpheus/opening/v2';

/** Who a device is to the service, and how it reaches it. It says nothing about values. */
export interface DeviceIdentity {
  /** The key of the deployment's authority. */
  readonly authority: VerifyingKey;
  /** The device's key. */
  readonly key: SigningKey;
  /** Digest of its certificate. */
  readonly certificate: Bytes;
  /** The service's ingest key, and the digest of that key's certificate. */
  readonly ingest: SealingPublic;
  readonly ingestId: Bytes;
}

/** Where an opening belongs: authority's key ‖ stream ‖ schema. */
export function openingContext(authority: VerifyingKey, stream: Bytes, schema: Bytes): Bytes {
  return concat(authority.bytes, stream, schema);
}

/** Makes an opening, without the MAC of the session's key. */
export async function makeOpening(
  claim: Claim,
  previous: Previous | undefined,
  key: Bytes,
  device: DeviceIdentity,
  context: Bytes,
  random: Random,
): Promise<Bytes> {
  const frame = openingHead(claim, device.ingestId, previous);
  const over = (length: number): Bytes => concat(context, frame.subarray(0, length));
  frame.set(await device.ingest.seal(SESSION_KEY_LABEL, over(OPENING.context), key, random), OPENING.context);
  frame.set(device.certificate, OPENING.context + SEALED);
  frame.set(await device.key.sign(OPENING_LABEL, over(OPENING.signed)), OPENING.signed);
  return frame;
}

/** Checks that a device signed an opening for this place. Throws if it did not. */
export function verifyOpening(frame: Bytes, context: Bytes, device: VerifyingKey): void {
  const signature = frame.subarray(OPENING.signed, OPENING.signed + SIGNATURE);
  device.verify(OPENING_LABEL, concat(context, frame.subarray(0, OPENING.signed)), signature);
}

/** Opens the session's key, as the service does once it has verified the opening. */
export async function openSessionKey(frame: Bytes, context: Bytes, service: SealingKey): Promise<SessionKey> {
  const sealed = frame.subarray(OPENING.context, OPENING.context + SEALED);
  const stream = context.slice(32, 48);
  const over = concat(context, frame.subarray(0, OPENING.context));
  return SessionKey.of(await service.open(SESSION_KEY_LABEL, over, sealed), stream);
}
