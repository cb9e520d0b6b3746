/* A device that sends to a live service: live_device SCHEMA DEVICE IDENTITY VALUE TICKS. An identity of `-` is none. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include "carried.h"

/* Both are in README.md. */
int deliver(const alpheus_session *session, alpheus_error *error);
alpheus_session *start(const alpheus_device *device, alpheus_error *error);

static char *in_folder(const char *folder, const char *name, size_t *length) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return load(path, length);
}

int main(int count, char **arguments) {
  CHECK(count == 6);
  alpheus_error error;
  alpheus_schema *schema = NULL;
  alpheus_device *device = NULL;
  alpheus_device_files files;
  size_t length;
  memset(&files, 0, sizeof files);
  char *yaml = load(arguments[1], &length);
  DONE(alpheus_schema_read(yaml, length, ALPHEUS_YAML, &schema, &error));
  files.device = load(arguments[2], &files.device_length);
  if (arguments[3][0] != '-') {
    files.deployment = in_folder(arguments[3], "deployment.json", &files.deployment_length);
    files.certificate = in_folder(arguments[3], "device.txt", &files.certificate_length);
    files.seed = in_folder(arguments[3], "device.seed", &files.seed_length);
  }
  DONE(alpheus_device_read(schema, &files, &device, &error));
  alpheus_session *session = start(device, &error);
  CHECK(session != NULL);
  for (int tick = 0; tick < atoi(arguments[5]); tick++) {
    alpheus_session_info info;
    DONE(alpheus_session_describe(session, &info, &error));
    uint64_t border = info.next_border_us;
    wait_until(border - 800000);
    alpheus_value values[2] = {alpheus_integer(ALPHEUS_STR("reading"), atoi(arguments[4])), alpheus_number(ALPHEUS_STR("share"), 0.25)};
    uint64_t now = alpheus_now();
    DONE(alpheus_session_event(session, now < border ? now : border - 1, values, 2, &error));
    wait_until(border);
    DONE(alpheus_session_advance(session, border, &error));
    CHECK(deliver(session, &error) == 0);
  }
  DONE(alpheus_session_close(session, 0, &error));
  CHECK(deliver(session, &error) == 0);
  alpheus_session_info info;
  DONE(alpheus_session_describe(session, &info, &error));
  CHECK(info.frames == 0);
  alpheus_session_free(&session);
  alpheus_device_free(&device);
  alpheus_schema_free(&schema);
  free((void *)files.device);
  free((void *)files.deployment);
  free((void *)files.certificate);
  free((void *)files.seed);
  free(yaml);
  printf("done\n");
  return 0;
}
