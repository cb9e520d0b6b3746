// What a tick costs a device. Runs in Node and in a browser; `a` is the package's `alpheus/protocol`. Times in µs.
const ROUNDS = 61;

// The least and the median of some rounds, each the mean of many runs: browsers round their clocks, and machines are shared.
async function measured(times, run) {
  const found = [];
  for (let round = -2; round < ROUNDS; round++) {
    const start = performance.now();
    for (let i = 0; i < times; i++) {
      const made = run(i);
      if (made !== undefined) await made;
    }
    if (round >= 0) found.push(((performance.now() - start) * 1000) / times);
  }
  found.sort((x, y) => x - y);
  return { least: found[0], median: found[ROUNDS >> 1] };
}

export async function bench(a, { yaml, event, device }, times = 20) {
  const schema = a.schemaFromYaml(yaml);
  const encoder = new a.Encoder(schema);
  const { words } = encoder;
  const random = (out) => crypto.getRandomValues(out);
  const keys = await a.StreamKeys.of(device.master, device.stream, device.schema);
  const [sum, plain, out] = [a.zeros(words), a.zeros(words), a.zeros(words)];
  const blocks = new a.Blocks(a.blocksOf(encoder.layout));
  const encode = () => encoder.encode(a.rowOf(schema, event), random, plain);
  const { tick } = schema;
  const at = (i) => (i + 1) * tick;
  let current = await keys.keyVector(7n, 0, words);
  const pads = async (i) => {
    const next = await keys.keyVector(7n, at(i), words);
    a.encipher(out, plain, next, current);
    current = next;
  };
  const results = { words };
  results.encode = await measured(20 * times, encode);
  results.pads = await measured(times, pads);
  results['pads and encoding'] = await measured(times, (i) => {
    encode();
    return pads(i);
  });
  results.root = await measured(times, (i) => {
    sum[0] = i;
    blocks.root(sum);
  });
  // A session of ticks, with one event each: all that a device does but the network.
  const setup = { master: device.master, stream: device.stream, schema: device.schema, tick, anchor: 3600 * tick };
  const producer = await a.TickProducer.of({ ...setup, blocks: blocks.lengths, device: device.identity, random });
  let bytes = 0;
  const session = await producer.open({ now: 0 }, 0, undefined, (frame) => { bytes = frame.length; });
  results.tick = await measured(times, async () => {
    session.event(session.last + 1, () => encode());
    await session.advance(session.nextBorder);
  });
  session.abandon();
  results.bytes = bytes;
  return results;
}
