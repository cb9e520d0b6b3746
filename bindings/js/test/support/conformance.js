// The conformance suite of a producer: every vector of the repository that a producer can run, good and bad. One module
// for Node and for browsers: `load` gives a vector file's text, `a` is the package's `alpheus/protocol`.
import { equal, parseVectors, refused } from './vectors.js';

// Vectors of the producer's folders that are about another party's work.
export const OTHERS = [
  // A reader's or controller's: proofs about roots, agreement of controllers, hybrid seals for strangers, masks.
  'crypto/v1/merkle_proof.json', 'crypto/v1/merkle_bad_path.json', 'crypto/v1/merkle_bad_inner_node.json',
  'crypto/v1/merkle_bad_leaf.json', 'crypto/v1/merkle_bad_size.json', 'crypto/v1/merkle_bad_index.json',
  'crypto/v1/agreement.json', 'crypto/v1/hybrid.json', 'crypto/v1/hybrid_bad_context.json',
  'crypto/v1/hybrid_bad_label.json', 'crypto/v1/hybrid_bad_bytes.json', 'crypto/v1/hybrid_bad_public.json',
  'crypto/v1/hybrid_bad_key.json', 'crypto/v1/mask_pad.json',
  // A controller's: segments of claims.
  'ticks/v1/segment.json',
];

export function conformance(load, a) {
  const cases = async (file) => [parseVectors(await load(file))].flat();
  const hex = (digits) => a.fromHex(digits);
  const parts = (each) => each.parts.map(hex);
  const word = (digits) => BigInt(`0x${digits}`);
  const wordsOf = (all) => {
    const words = a.zeros(all.length);
    all.forEach((each, i) => a.addTo(words, i, Number(word(each) & 0xffffffffn), Number(word(each) >> 32n)));
    return words;
  };
  const hexWords = (words) => Array.from({ length: words.length / 2 }, (_, i) => a.wordAt(words, i).toString(16).padStart(16, '0'));
  const master = (each) => a.MasterSecret.of(hex(each.master));
  const keys = async (each) => a.StreamKeys.of(await master(each), hex(each.stream), hex(each.schema));
  const all = async (files, run) => {
    for (const file of files) for (const each of await cases(file)) await run(each, file);
  };
  const bad = (folder, what, kinds) => kinds.split(' ').map((kind) => `${folder}/v1/${what}_bad_${kind}.json`);
  const c = { cases, hex, parts, word, wordsOf, hexWords, master, keys, all, bad, a };
  return { ...cryptography(c), ...schemas(c), ...streams(c), ...ticks(c) };
}

function cryptography({ hex, parts, all, bad, word, hexWords, a }) {
  const tagHolds = async (each) => a.isEqual(await (await a.TagKey.of(hex(each.key))).tag(each.label, ...parts(each)), hex(each.tag));
  const verify = (each) => a.VerifyingKey.of(hex(each.public)).verify(each.label, hex(each.message), hex(each.signature));
  const open = async (each) => (await a.SealingKey.fromSeed(hex(each.seed))).open(each.label, hex(each.context), hex(each.sealed));
  return {
    'labelled hashes': () => all(['crypto/v1/labelled_hash.json'], (each) =>
      equal(a.toHex(a.labelledHash(each.label, ...parts(each))), each.digest)),
    'derived keys': () => all(['crypto/v1/derive.json'], async (each) => {
      const secret = await a.importSecret(hex(each.secret));
      equal(a.toHex(await a.deriveBytes(secret, each.key.length / 2, each.label, ...parts(each))), each.key);
    }),
    tags: async () => {
      await all(['crypto/v1/mac.json'], async (each) => equal(await tagHolds(each), true));
      await all(bad('crypto', 'mac', 'boundary key label tag'), async (each, file) => equal(await tagHolds(each), false, file));
    },
    'link hashes': () => all(['crypto/v1/link.json'], (each) => equal(a.link(word(each.session), each.t), word(each.h))),
    'key streams': () => all(['crypto/v1/keystream.json'], async (each) => {
      const stream = await a.StreamKey.of(hex(each.key));
      const found = await stream.fill(hex(each.first), 8 * each.words.length, 128);
      equal(hexWords(new Uint32Array(found)), each.words);
    }),
    'Merkle roots': () => all(['crypto/v1/merkle_root.json'], (each) => equal(a.toHex(a.merkleRoot(each.leaves.map(hex))), each.root)),
    signatures: async () => {
      await all(['crypto/v1/signature.json'], async (each) => {
        const key = await a.SigningKey.fromSeed(hex(each.seed));
        equal(a.toHex(await key.sign(each.label, hex(each.message))), each.signature);
        verify(each);
        equal(await refused(() => verify({ ...each, signature: each.signature.slice(2) })), 'Mismatch');
      });
      const kinds = 'label malleated message no_point small_order_key small_order_point';
      await all(bad('crypto', 'signature', kinds), async (each, file) => equal(await refused(() => verify(each)), each.error, file));
    },
    'HPKE, as in RFC 9180': () => all(['crypto/v1/hpke.json'], async (each) => {
      const key = await a.SealingKey.fromSeed(hex(each.seed));
      equal(a.toHex(key.own), each.public);
      const rest = [hex(each.info), hex(each.data)];
      equal(a.toHex(await a.hpkeSeal(key.own, ...rest, hex(each.secret), hex(each.ephemeral))), each.sealed);
      equal(a.toHex(await key.openRaw(...rest, hex(each.sealed))), each.secret);
    }),
    'sealed secrets': async () => {
      await all(['crypto/v1/sealed.json'], async (each) => {
        equal(a.toHex(await open(each)), each.secret);
        const recipient = await a.SealingPublic.of(hex(each.public));
        const sealed = await recipient.seal(each.label, hex(each.context), hex(each.secret), (out) => out.set(hex(each.ephemeral)));
        equal(a.toHex(sealed), each.sealed);
      });
      await all(bad('crypto', 'sealed', 'key label context bytes low_order'), async (each, file) =>
        equal(await refused(() => open(each)), each.error, file));
    },
    'nothing is sealed for a key that everybody has': () => all(['crypto/v1/agreement_bad_low_order.json'], async (each) =>
      equal(await refused(() => a.SealingPublic.of(hex(each.their))), 'SealingKey')),
  };
}

const NAMES = {
  'event-count': 'EventCount', count: 'Count', sum: 'Sum', 'sum-of-squares': 'SumOfSquares', any: 'Any', all: 'All',
  histogram: 'Histogram', sketch: 'Sketch', pair: 'Pair', by: 'By', threshold: 'Threshold',
};
const MOMENTS = { count: 'Count', x: 'X', y: 'Y', xx: 'Xx', xy: 'Xy', yy: 'Yy' };

// A statistic as the vectors have it.
function statistic({ kind, moment, ...rest }) {
  const order = { pair: ['y', 'x'], by: ['of', 'by', 'aggregation', 'order'], threshold: ['of', 'aggregation', 'order'] };
  const keys = order[kind] ?? ['of', 'aggregation'];
  const numbers = keys.map((key) => rest[key]).filter((value) => value !== undefined);
  return [NAMES[kind], ...numbers, ...(moment === undefined ? [] : [MOMENTS[moment]])];
}

function schemas({ cases, all, bad, hexWords, a }) {
  const read = async (each, load) => {
    if (each.yaml !== undefined) return a.schemaFromYaml(each.yaml);
    if (each.avsc !== undefined) return a.schemaFromAvsc(each.avsc);
    return a.schemaFromYaml(await load(`../${each.file}`));
  };
  const row = (values) => values.map((value) => {
    if (value === null) return undefined;
    return typeof value === 'string' ? new TextEncoder().encode(value) : value;
  });
  const random = (out) => crypto.getRandomValues(out);
  return {
    'schemas have the meaning of the vectors': (load) => all(['schema', 'avro', 'frames'].map((kind) => `schema/v1/${kind}.json`), async (each) => {
      const schema = await read(each, load);
      const layout = a.layoutOf(schema);
      equal(schema.tick, each.tick, schema.name);
      const packing = ({ kind, bits, perWord }) => (kind === 'digits' ? [kind, bits, perWord] : [kind]);
      const fields = layout.fields.map((field) => ({
        statistic: statistic(field.statistic), first: field.first, cells: field.cells, packing: packing(field.packing),
      }));
      equal(fields, each.fields, schema.name);
      equal(layout.words, each.words, schema.name);
      equal(a.toHex(a.schemaId(schema)), each.id, schema.name);
    }),
    'bad schemas are refused with the error of the vectors': (load) => all(bad('schema', 'schema', 'yaml avro frames'), async (each) =>
      equal(await refused(() => read(each, load), each.error), each.error, each.yaml ?? each.avsc)),
    'events have the words of the vectors': () => all(['schema/v1/encoding.json'], (each) => {
      const encoder = new a.Encoder(a.schemaFromYaml(each.yaml));
      for (const event of each.events) {
        const words = a.zeros(encoder.words);
        encoder.encode(row(event.values), random, words);
        const found = hexWords(words);
        for (const at of event.random) {
          equal(found[at] === '0'.repeat(16), false, 'a random word is never zero');
          found[at] = '0'.repeat(16);
        }
        equal(found, event.words);
      }
    }),
    'bad events are refused and change nothing': async () => {
      for (const each of await cases('schema/v1/encoding_bad_values.json')) {
        const encoder = new a.Encoder(a.schemaFromYaml(each.yaml));
        const words = a.zeros(encoder.words);
        equal(await refused(() => encoder.encode(row(each.values), random, words)), each.error);
        equal(words.some((half) => half !== 0), false, 'half encoded');
      }
    },
  };
}

function streams({ cases, hex, word, wordsOf, hexWords, master, keys, all, bad, a }) {
  const KINDS = { opening: 0, interior: 1, closing: 2 };
  const borderHolds = async (each) => {
    const tag = await (await keys(each)).borderTag(KINDS[each.kind], word(each.session), each.t, each.count);
    return a.isEqual(tag, hex(each.tag));
  };
  const number = (value) => (out) => out.set(a.u64(value));
  const run = async ({ tick, start, events, close }) => {
    const setup = { master: await a.MasterSecret.of(new Uint8Array(32)), stream: new Uint8Array(16), schema: new Uint8Array(32) };
    const producer = await a.Producer.of({ ...setup, tick, words: 2, random: number(7n) });
    const session = await producer.open('first', start, () => {});
    const made = events.map((offset) => session.event(start + offset, () => {}).catch(() => {}));
    if (close !== null) await session.close(start + close);
    await Promise.all(made);
  };
  return {
    'key vectors': () => all(['encrypted-stream/v1/key_vector.json'], async (each) =>
      equal(hexWords(await (await keys(each)).keyVector(word(each.session), each.t, each.words.length)), each.words)),
    borders: async () => {
      await all(['encrypted-stream/v1/border.json'], async (each) => equal(await borderHolds(each), true));
      await all(bad('encrypted-stream', 'border', 'kind session time count stream schema master'), async (each, file) =>
        equal(await borderHolds(each), false, file));
    },
    'a session of events, byte for byte': () => all(['encrypted-stream/v1/session.json'], async (each) => {
      const sent = [];
      const producer = await a.Producer.of({
        master: await master(each), stream: hex(each.stream), schema: hex(each.schema), tick: each.tick, words: each.words,
        random: number(word(each.session)),
      });
      const session = await producer.open('first', each.start, (frame) => sent.push(a.toHex(frame)));
      const made = each.events.map((event) => session.event(event.t, (vector) => a.add(vector, wordsOf(event.plain))));
      await session.close(each.close);
      await Promise.all(made);
      equal(sent, each.frames);
    }),
    'window sums open': () => all(['encrypted-stream/v1/window.json'], async (each) => {
      const sum = a.zeros(each.sum.length);
      let [digest, count] = [0n, 0];
      for (const bytes of each.frames.map(hex)) {
        const frame = a.parseFrame(bytes);
        if (frame.t <= each.from || frame.t > each.to) continue;
        a.add(sum, new Uint32Array(frame.words.slice().buffer));
        digest = BigInt.asUintN(64, digest + frame.digest);
        count += bytes[0] === 0x11 ? 1 : 0;
      }
      equal([hexWords(sum), digest, count], [each.sum, word(each.link_digest), each.count]);
      const stream = await keys(each);
      const [from, to] = await Promise.all([each.from, each.to].map((t) => stream.keyVector(word(each.session), t, each.sum.length)));
      const opened = a.zeros(each.sum.length);
      a.encipher(opened, sum, from, to);
      const released = each.release.map((row) => BigInt.asUintN(64, row.reduce((all, at) => all + a.wordAt(opened, at), 0n)));
      equal(released.map((value) => value.toString(16).padStart(16, '0')), each.result);
    }),
    'bad frames are refused': () => all(bad('encrypted-stream', 'frame', 'empty kind truncated trailing partial_word no_words too_many_words time order'), async (each, file) => {
      const bytes = a.concat(hex(each.frame), new Uint8Array(each.zeros ?? 0));
      equal(await refused(() => a.parseFrame(bytes)), each.error, file);
    }),
    'bad times are refused': () => all(bad('encrypted-stream', 'producer', 'equal_time backward_time before_opening at_opening before_border on_tick jump beyond_limit close_off_tick close_early'), async (each, file) =>
      equal(await refused(() => run(each), file), each.error, file)),
  };
}

const CLAIMS = { opening: 0, tick: 1, gap: 2, closing_tick: 3, closing_gap: 4 };

function ticks({ cases, hex, word, wordsOf, master, keys, all, bad, a }) {
  const root = (each) => a.toHex(new a.Blocks(each.blocks).root(wordsOf(each.words)));
  const claim = (each) => ({
    kind: CLAIMS[each.kind], session: word(each.session), from: each.from, to: each.to,
    maskedCount: word(each.masked_count), root: hex(each.root), tag: hex(each.tag),
  });
  const statement = (each) => {
    const { maskedCount: _, tag: __, ...rest } = claim(each);
    return { ...rest, count: BigInt(each.count) };
  };
  const claimed = (made) => ({ ...made, root: a.toHex(made.root), tag: made.tag && a.toHex(made.tag) });
  const sorted = (object) => Object.fromEntries(Object.entries(object).sort());
  const device = async (each) => {
    const ingest = await a.SealingKey.fromSeed(hex(each.ingest_seed));
    return {
      authority: a.VerifyingKey.of(hex(each.authority)), key: await a.SigningKey.fromSeed(hex(each.device_seed)),
      certificate: hex(each.certificate), ingest: await a.SealingPublic.of(ingest.own), ingestId: hex(each.ingest_key),
    };
  };
  const context = (each) => a.openingContext(a.VerifyingKey.of(hex(each.authority)), hex(each.stream), hex(each.schema));
  const certificate = async (each) => a.readCertificate(each.certificate, a.VerifyingKey.of(hex(each.authority)), each.role);
  return {
    'roots of ticks': async () => {
      await all(['ticks/v1/root.json'], (each) => equal(root(each), each.root));
      await all(bad('ticks', 'root', 'word blocks order'), (each, file) => equal(root(each) === each.root, false, file));
    },
    claims: async () => {
      await all(['ticks/v1/claim.json'], async (each) => {
        equal(sorted(claimed(await a.makeClaim(await keys(each), statement(each)))), sorted(claimed(claim(each))));
        equal(sorted(claimed(await a.openClaim(await keys(each), claim(each)))), sorted(claimed(statement(each))));
      });
      await all(bad('ticks', 'claim', 'kind session from to root stream schema master'), async (each, file) =>
        equal(await a.openClaim(await keys(each), claim(each)), undefined, file));
      await all(bad('ticks', 'claim', 'count'), async (each) => {
        const made = claimed(await a.makeClaim(await keys(each), statement(each)));
        equal(JSON.stringify([made.tag, `${made.maskedCount}`]) === JSON.stringify([each.tag, `${word(each.masked_count)}`]), false);
      });
    },
    'a session of ticks, byte for byte': () => all(['ticks/v1/session.json'], async (each) => {
      const drawn = [a.u64(word(each.session)), hex(each.session_key), hex(each.ephemeral)];
      const producer = await a.TickProducer.of({
        master: await master(each), stream: hex(each.stream), schema: hex(each.schema), tick: each.tick, anchor: each.anchor,
        blocks: each.blocks, device: await device(each), random: (out) => out.set(drawn.shift()),
      });
      const sent = [];
      const before = { session: word(each.session) - 1n, last: each.opened - 4 * each.tick };
      const session = await producer.open('first', each.opened, before, (frame) => sent.push(a.toHex(frame)));
      // The words of the generator's event of this number.
      const add = (event) => (vector) => {
        for (let i = 0; i < vector.length / 2 - 1; i++) a.addTo(vector, i, (event * 31 + i) % 97, 0);
      };
      // Nothing waits for what was asked before.
      const made = [];
      const tick = (...events) => {
        for (const event of events) session.event(session.last + 1, add(event));
        made.push(session.advance(session.nextBorder));
      };
      tick(1, 2);
      tick(3);
      tick();
      made.push(session.sleepUntil(session.nextBorder + each.tick));
      tick(4);
      made.push(session.sleepUntil(session.nextBorder + 7 * each.tick));
      tick(5, 6, 7);
      made.push(session.close(session.nextBorder));
      await Promise.all(made);
      equal(sent, each.frames);
    }),
    'frames say what the script says': () => all(['ticks/v1/session.json'], async (each) => {
      const key = await a.SessionKey.of(hex(each.session_key), hex(each.stream));
      const blocks = new a.Blocks(each.blocks);
      const sum = a.zeros(each.words);
      for (const [i, bytes] of each.frames.map(hex).entries()) {
        equal(await key.verifies(bytes), true);
        const frame = a.parseTickFrame(bytes, each.tick);
        equal(sorted(claimed(frame.claim)), sorted(claimed(claim(each.claims[i]))));
        equal(frame.opening, i === 0);
        if (frame.words.length > 0) {
          a.add(sum, new Uint32Array(frame.words.slice().buffer));
          equal(a.toHex(blocks.root(sum).slice(0, 16)), a.toHex(frame.claim.root));
        }
        const { kind, from, to } = frame.claim;
        if (kind === 0 || a.endsPeriod(from, to, each.anchor)) sum.fill(0);
      }
    }),
    'an opening is its device’s for one stream of one deployment': () => all(['ticks/v1/session.json'], async (each) => {
      const frame = hex(each.frames[0]);
      const here = context(each);
      const ingest = await a.SealingKey.fromSeed(hex(each.ingest_seed));
      const own = a.VerifyingKey.of(hex(each.device));
      a.verifyOpening(frame, here, own);
      equal(await (await a.openSessionKey(frame, here, ingest)).verifies(frame), true);
      equal(await refused(() => a.verifyOpening(frame, here, a.VerifyingKey.of(hex(each.authority)))), 'Mismatch');
      for (let at = 0; at < here.length; at += 5) {
        const other = here.slice();
        other[at] ^= 1;
        equal(await refused(() => a.verifyOpening(frame, other, own)), 'Mismatch');
        equal(await refused(() => a.openSessionKey(frame, other, ingest)), 'DoesNotOpen');
      }
      for (let at = 1; at < frame.length - 16; at += 3) {
        const changed = frame.slice();
        changed[at] ^= 1;
        await refused(() => {
          a.parseTickFrame(changed, each.tick);
          a.verifyOpening(changed, here, own);
        }, `byte ${at}`);
      }
    }),
    'a frame counts for nothing without its session’s key': () => all(['ticks/v1/frame_bad_mac.json'], async (each) =>
      equal(await (await a.SessionKey.of(hex(each.session_key), hex(each.stream))).verifies(hex(each.frame)), false, each.part)),
    'bytes that are no tick frame are refused': () => all(bad('ticks', 'frame', 'empty kind old_kind truncated_opening long_opening truncated_tick no_words partial_word long_gap truncated_gap gap_back time previous_flag'), async (each, file) =>
      equal(await refused(() => a.parseTickFrame(hex(each.frame), 10_000_000)), each.error, file)),
    certificates: async () => {
      for (const each of await cases('ticks/v1/certificate.json')) {
        const found = await certificate(each);
        equal([a.toHex(found.digest), a.toHex(found.verifying.bytes)], [each.digest, each.verifying]);
        if (each.sealing === undefined) {
          await a.signingKeyOf(found, hex(each.seed));
          equal(await refused(() => a.signingKeyOf(found, new Uint8Array(32))), 'OtherSeed');
        } else {
          equal(a.toHex(found.sealing.bytes), each.sealing);
          equal((await a.certificateOfKey([found], hex(each.seed))) === found, true);
          equal(await refused(() => a.certificateOfKey([found], new Uint8Array(32))), 'OtherSeed');
        }
      }
      for (const each of await cases('ticks/v1/certificate_bad_content.json')) {
        equal(await refused(() => certificate(each), each.error), each.error, each.certificate);
      }
    },
  };
}
