/** Schemas as people write them. Apart, so that a page that has its schema as JSON need not load a YAML reader. */
import { readYaml } from '../document/yaml.js';
import type { Schema } from './model.js';
import { schemaOf } from './read.js';

/**
 * Reads and checks a schema in YAML.
 *
 * @throws DocumentError with line and column, the problem, and how to fix it
 */
export function schemaFromYaml(text: string): Schema {
  return schemaOf(readYaml(text));
}
