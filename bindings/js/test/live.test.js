// A live service opens what Node sends: its rows are the plaintext's sums.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readDevice, schemaFromYaml, Stream } from 'alpheus';
import { mutualTls, readDeviceFiles } from 'alpheus/node';
import { hasBinary, startService } from './support/service.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// A device without a tick's frame is in no window; a busy machine needs some.
const SECONDS = 12;

// Sends the same events each second, so that every whole window has the same sums.
async function send(service, name, value) {
  const schema = schemaFromYaml(service.schema);
  const files = await readDeviceFiles(service.path(`${name}.device`), service.path(`pki/${name}`));
  const device = await readDevice(files, schema);
  const transport = mutualTls({ server: service.url, identity: service.path(`pki/${name}`) });
  const stream = await Stream.open({ schema, device, transport });
  for (let second = 0; second < SECONDS; second++) {
    const border = Math.ceil(Date.now() / 1000) * 1000;
    await pause(border - Date.now() + 200);
    await stream.add({ reading: value, share: '0.25' });
    await stream.add({ reading: BigInt(value), share: -0.05 });
  }
  await stream.flush();
  await stream.close();
  transport.close();
  return stream.status;
}

for (const frames of ['', 'frames: events']) {
  test(`rows are the plaintext's sums${frames && `, with ${frames}`}`, { skip: !hasBinary && 'the program is not built: cargo build' }, async () => {
    const service = await startService(['a', 'b'], { frames });
    try {
      const [first, second] = await Promise.all([send(service, 'a', 100), send(service, 'b', 7)]);
      for (const status of [first, second]) {
        assert.deepEqual([status.events, status.lost, status.refusals, status.state], [2 * SECONDS, 0, [], 'closed']);
      }
      const row = await service.until('window of both', (rows) => rows.find((each) => each.population === 2 && each.count_reading === 8));
      assert.equal(row.status, 'ok');
      assert.equal(row.sum_reading, String(4 * 107));
      assert.equal(row.var_reading, 46.5 ** 2);
      assert.equal(row.sum_share, '0.80');
    } finally {
      await service.stop();
    }
  });
}
