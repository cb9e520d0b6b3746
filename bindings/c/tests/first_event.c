/* Runs the first event of README.md: first_event OUT. */
#include "check.h"

int first_event(const char *yaml, size_t yaml_length, const alpheus_device_files *files, FILE *out);

int main(int count, char **arguments) {
  static const char yaml[] =
      "frames: events\nname: Meters\ntick: 1s\ncapacity: { population: 100, events: 100 }\nstreamAttributes:\n"
      "  - { name: power, type: decimal, scale: 1, unit: W, min: 0, max: 20000, aggregations: [variance] }\n";
  CHECK(count == 2);
  char text[512], id[65];
  alpheus_error error;
  alpheus_schema *schema = NULL;
  alpheus_schema_info info;
  DONE(alpheus_schema_read(yaml, sizeof yaml - 1, ALPHEUS_YAML, &schema, &error));
  DONE(alpheus_schema_describe(schema, &info, &error));
  alpheus_schema_free(&schema);
  to_hex(info.id, 32, id);
  snprintf(text, sizeof text, "{\"version\": 1, \"stream\": \"%032d\", \"schema\": \"%s\", \"secret\": \"%064d\"}", 7, id, 9);
  alpheus_device_files files;
  memset(&files, 0, sizeof files);
  files.device = text;
  files.device_length = strlen(text);
  FILE *out = fopen(arguments[1], "wb");
  CHECK(out != NULL);
  CHECK(first_event(yaml, sizeof yaml - 1, &files, out) == ALPHEUS_OK);
  CHECK(fclose(out) == 0);
  return 0;
}
