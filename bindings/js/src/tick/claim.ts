/** What a tick frame states, apart from its words. */
import { type Bytes, isEqual } from '../bytes.js';
import type { StreamKeys } from '../stream/keys.js';
import { ROOT } from './blocks.js';

/** Kinds of frames: the numbers in their MACs; plus 0x20, their first bytes. */
export const ClaimKind = { opening: 0, tick: 1, gap: 2, closingTick: 3, closingGap: 4 } as const;

/** What the device states of the time (from, to] in a session. */
export interface Statement {
  readonly kind: number;
  readonly session: bigint;
  readonly from: number;
  readonly to: number;
  /** Number of events since the last anchor. */
  readonly count: bigint;
  /** The start of the root of the sum since then. */
  readonly root: Bytes;
}

/** The same as the service sees it: the number of events is under a pad. */
export interface Claim extends Omit<Statement, 'count'> {
  readonly maskedCount: bigint;
  readonly tag: Bytes;
}

/** The root of an opening. */
export const NO_ROOT = new Uint8Array(ROOT);

/** Whether nothing happened in the time of such a frame, and its words are absent. */
export function isGap(kind: number): boolean {
  return kind === ClaimKind.gap || kind === ClaimKind.closingGap;
}

/** Whether an anchor lies in (from, to], where sum and count start again. */
export function endsPeriod(from: number, to: number, anchor: number): boolean {
  return Math.floor(from / anchor) !== Math.floor(to / anchor);
}

/** Makes the claim that states this. The pad may have been asked for before. */
export async function makeClaim(keys: StreamKeys, statement: Statement, asked?: Promise<bigint>): Promise<Claim> {
  const { count, ...rest } = statement;
  const [pad, tag] = await Promise.all([asked ?? padOf(keys, statement), tagOf(keys, statement)]);
  return { ...rest, maskedCount: BigInt.asUintN(64, count + pad), tag };
}

/** What a claim states; undefined if the device of this stream did not state it. */
export async function openClaim(keys: StreamKeys, claim: Claim): Promise<Statement | undefined> {
  const { maskedCount, tag, ...rest } = claim;
  const count = BigInt.asUintN(64, maskedCount - (await padOf(keys, claim)));
  const statement = { ...rest, count };
  return isEqual(await tagOf(keys, statement), tag) ? statement : undefined;
}

/** The pad over a frame's count. An opening counts nothing, and has none. */
async function padOf(keys: StreamKeys, { kind, session, to }: Pick<Statement, 'kind' | 'session' | 'to'>): Promise<bigint> {
  return kind === ClaimKind.opening ? 0n : keys.countPad(session, to);
}

async function tagOf(keys: StreamKeys, { kind, session, from, to, count, root }: Statement): Promise<Bytes> {
  return keys.tickTag(kind, session, [from, to], count, root);
}
