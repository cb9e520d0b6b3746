// A device of no deployment: from the vectors' keys, with secrets that tests look for.
import { readFileSync } from 'node:fs';
import { schemaFromYaml, schemaId } from 'alpheus';
import { toHex } from 'alpheus/protocol';

const [device, ingest] = JSON.parse(readFileSync(new URL('../../../../vectors/ticks/v1/certificate.json', import.meta.url), 'utf8'));

export const SCHEMA = `\
name: Watch
tick: 1s
anchor: 4s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [variance, {histogram: {lo: 0, width: 10, bins: 20}}] }
`;
export const SECRET = 'd2'.repeat(32);
export const SEED = device.seed;
export const deviceFiles = {
  device: JSON.stringify({ version: 1, stream: 'ab'.repeat(16), schema: toHex(schemaId(schemaFromYaml(SCHEMA))), secret: SECRET }),
  identity: {
    deployment: JSON.stringify({ version: 1, authority: ingest.authority, service: '00', ingest: [ingest.certificate] }),
    certificate: device.certificate,
    seed: `${SEED}\n`,
  },
};
