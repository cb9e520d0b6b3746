/* What callers get wrong, and what must not happen then: NULL, lengths, order, forks, threads, secrets in errors. */
#define _XOPEN_SOURCE 700
#include "known_answers.h"
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *SCHEMA =
    "frames: events\nname: Meters\ntick: 1s\ncapacity: { population: 100, events: 100 }\nstreamAttributes:\n"
    "  - { name: power, type: decimal, scale: 1, unit: W, min: 0, max: 20000, aggregations: [variance] }\n"
    "  - { name: on, type: [boolean, optional], aggregations: [count] }\n"
    "  - { name: room, type: [string, optional], maxBytes: 8, aggregations: [count] }\n";
static const char *SECRET = "65666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f8081828384";
static const uint64_t START = 1772366400000000, SECOND = 1000000;
static alpheus_error error;
static alpheus_schema *schema;
static alpheus_device *device;

static void nothing_shows(void) {
  CHECK(strstr(error.message, "31415926") == NULL && strstr(error.message, "656667") == NULL);
  CHECK(strlen(error.message) < sizeof error.message && strlen(error.reason) < sizeof error.reason);
}

static int32_t read_device(const char *form, alpheus_device **out) {
  char text[512], id[65];
  alpheus_schema_info info;
  alpheus_device_files files;
  memset(&files, 0, sizeof files);
  DONE(alpheus_schema_describe(schema, &info, &error));
  to_hex(info.id, 32, id);
  snprintf(text, sizeof text, form, id, SECRET);
  files.device = text;
  files.device_length = strlen(text);
  return alpheus_device_read(schema, &files, out, &error);
}

static const char *DEVICE =
    "{\"version\": 1, \"stream\": \"11111111111111111111111111111111\", \"schema\": \"%s\", \"secret\": \"%s\"}";

static void schemas_and_devices(void) {
  DONE(alpheus_schema_read(SCHEMA, strlen(SCHEMA), ALPHEUS_YAML, &schema, &error));
  alpheus_schema *none = schema;
  REFUSED(alpheus_schema_read(NULL, 5, ALPHEUS_YAML, &none, &error), ALPHEUS_ARGUMENT_WRONG, "WrongLength");
  CHECK(none == NULL);
  REFUSED(alpheus_schema_read(SCHEMA, SIZE_MAX, ALPHEUS_YAML, &none, &error), ALPHEUS_ARGUMENT_WRONG, "WrongLength");
  REFUSED(alpheus_schema_read(SCHEMA, 5, 7, &none, &error), ALPHEUS_ARGUMENT_WRONG, "Format");
  REFUSED(alpheus_schema_read(SCHEMA, 5, ALPHEUS_YAML, NULL, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  REFUSED(alpheus_schema_read("\xff", 1, ALPHEUS_YAML, &none, &error), ALPHEUS_FILE_NOT_TEXT, "NotUtf8");
  REFUSED(alpheus_schema_read(NULL, 0, ALPHEUS_YAML, &none, &error), ALPHEUS_SCHEMA_INVALID, "Empty");
  CHECK(alpheus_schema_read(NULL, 0, ALPHEUS_YAML, &none, NULL) == ALPHEUS_SCHEMA_INVALID);
  REFUSED(alpheus_schema_describe(NULL, NULL, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  REFUSED(alpheus_schema_describe(schema, NULL, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  alpheus_attribute attribute;
  DONE(alpheus_schema_attribute(schema, 0, &attribute, &error));
  CHECK(attribute.name_length == 5 && memcmp(attribute.name, "power", 5) == 0 && attribute.max == 200000);
  REFUSED(alpheus_schema_attribute(schema, 3, &attribute, &error), ALPHEUS_ARGUMENT_WRONG, "Place");
  REFUSED(alpheus_device_read(schema, NULL, &device, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  REFUSED(read_device("{\"version\": 2%.0s%.0s", &device), ALPHEUS_FILE_INVALID, "NotADeviceFile");
  nothing_shows();
  REFUSED(read_device("{\"version\": 9, \"stream\": \"11111111111111111111111111111111\", \"schema\": \"%s\", \"secret\": \"%s\"}", &device),
          ALPHEUS_FILE_INVALID, "OtherFormat(9)");
  REFUSED(read_device("{\"version\": 1, \"stream\": \"11111111111111111111111111111111\", \"schema\": \"%s\", \"secret\": \"%s0\"}", &device),
          ALPHEUS_FILE_INVALID, "BadSecret");
  nothing_shows();
  CHECK(device == NULL);
  DONE(read_device(DEVICE, &device));
  uint8_t stream[16];
  DONE(alpheus_device_stream(device, &stream, &error));
  CHECK(stream[0] == 0x11 && stream[15] == 0x11);
  /* Nothing introduces a device whose frames need no key. */
  size_t length = 7;
  DONE(alpheus_device_introduction(device, NULL, 0, &length, &error));
  CHECK(length == 0);
  CHECK(strcmp(alpheus_code_id(ALPHEUS_LINE_REFUSED), "line-refused") == 0 && alpheus_code_id(77) == NULL);
  CHECK(strlen(alpheus_version()) > 4 && alpheus_now() > START);
}

static alpheus_session *opened(void) {
  alpheus_session *session = NULL;
  DONE(alpheus_session_open(device, ALPHEUS_FIRST, START, &session, &error));
  return session;
}

static int32_t power(const alpheus_session *session, uint64_t at, double value) {
  alpheus_value values = alpheus_number(ALPHEUS_STR("power"), value);
  return alpheus_session_event(session, at, &values, 1, &error);
}

static void events(void) {
  alpheus_session *session = opened();
  alpheus_value values[3] = {alpheus_decimal(ALPHEUS_STR("power"), 415, 1), alpheus_boolean(ALPHEUS_STR("on"), 2),
                             alpheus_text(ALPHEUS_STR("room"), ALPHEUS_STR("attic"))};
  DONE(alpheus_session_event(session, START + 1, values, 3, &error));
  REFUSED(power(session, START + 1, 1), ALPHEUS_LINE_REFUSED, "NotAscending");
  REFUSED(power(session, START + SECOND, 1), ALPHEUS_LINE_REFUSED, "OnATick");
  REFUSED(power(session, START + 2, 31415926.0), ALPHEUS_LINE_REFUSED, "OutOfBounds");
  nothing_shows();
  REFUSED(power(session, START + 2, 0.0 / 0.0), ALPHEUS_LINE_REFUSED, "OutOfBounds");
  REFUSED(alpheus_session_event(session, START + 2, NULL, 0, &error), ALPHEUS_LINE_REFUSED, "Missing");
  REFUSED(alpheus_session_event(session, START + 2, NULL, 1, &error), ALPHEUS_ARGUMENT_WRONG, "WrongLength");
  values[1] = values[0];
  REFUSED(alpheus_session_event(session, START + 2, values, 2, &error), ALPHEUS_LINE_REFUSED, "AttributeTwice");
  values[1] = alpheus_integer(ALPHEUS_STR("powr"), 31415926);
  REFUSED(alpheus_session_event(session, START + 2, values, 2, &error), ALPHEUS_LINE_REFUSED, "UnknownAttribute");
  nothing_shows();
  values[1] = alpheus_text(ALPHEUS_STR("room"), "31415926!", 9);
  REFUSED(alpheus_session_event(session, START + 2, values, 2, &error), ALPHEUS_LINE_REFUSED, "TooLong");
  nothing_shows();
  values[1].kind = 99;
  REFUSED(alpheus_session_event(session, START + 2, values, 2, &error), ALPHEUS_ARGUMENT_WRONG, "Kind");
  /* A refused event leaves no trace, and its time is free. */
  DONE(power(session, START + 2, 41.5));
  alpheus_session *none = session;
  REFUSED(alpheus_session_open(device, 5, START, &none, &error), ALPHEUS_ARGUMENT_WRONG, "Start");
  CHECK(none == NULL);
  alpheus_session_free(&session);
}

static void frames(void) {
  alpheus_session *session = opened();
  static uint8_t frame[ALPHEUS_MAX_FRAME], again[ALPHEUS_MAX_FRAME], body[ALPHEUS_MAX_UPLOAD], same[ALPHEUS_MAX_UPLOAD];
  size_t length, repeated;
  alpheus_session_info info;
  DONE(power(session, START + 1, 1));
  DONE(alpheus_session_describe(session, &info, &error));
  CHECK(info.frames == 2 && info.next_border_us == START + SECOND && info.last_us == START + 1 && !info.closed);
  /* Too small a buffer says the length, and loses nothing. */
  REFUSED(alpheus_session_frame(session, frame, 3, &length, &error), ALPHEUS_BUFFER_SMALL, "BufferSmall");
  REFUSED(alpheus_session_frame(session, NULL, 0, &repeated, &error), ALPHEUS_BUFFER_SMALL, "BufferSmall");
  REFUSED(alpheus_session_frame(session, NULL, 9, &length, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  REFUSED(alpheus_session_frame(session, frame, 9, NULL, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  DONE(alpheus_session_frame(session, frame, repeated, &length, &error));
  CHECK(length == repeated && frame[0] == 0x10);
  DONE(alpheus_session_frame(session, again, sizeof again, &length, &error));
  CHECK(again[0] == 0x11);
  DONE(alpheus_session_frame(session, frame, sizeof frame, &length, &error));
  CHECK(length == 0);
  /* An upload is repeated unchanged, and ends with its answer. */
  alpheus_receipt receipt;
  REFUSED(alpheus_session_receipt(session, NULL, 0, &receipt, &error), ALPHEUS_ARGUMENT_WRONG, "NoUpload");
  DONE(alpheus_session_upload(session, body, sizeof body, &length, &error));
  CHECK(length == 0);
  DONE(power(session, START + 5, 1));
  DONE(alpheus_session_upload(session, body, sizeof body, &length, &error));
  DONE(power(session, START + 6, 1));
  DONE(alpheus_session_upload(session, same, sizeof same, &repeated, &error));
  CHECK(length > 0 && length == repeated && memcmp(body, same, length) == 0);
  REFUSED(alpheus_session_frame(session, frame, sizeof frame, &length, &error), ALPHEUS_ARGUMENT_WRONG, "UploadOnItsWay");
  REFUSED(alpheus_session_receipt(session, (const uint8_t *)"nonsense", 8, &receipt, &error), ALPHEUS_SERVER_OTHER_VERSION, "BadAnswer");
  const uint8_t early[] = {1, 3, 0}, missing[] = {1, 2, 9, 0}, taken[] = {1, 0, 0}, withdrawn[] = {1, 5, 0};
  DONE(alpheus_session_receipt(session, early, sizeof early, &receipt, &error));
  CHECK(receipt.early && !receipt.taken);
  /* The service's state is older: what waits gets another name and number. */
  DONE(alpheus_session_receipt(session, missing, sizeof missing, &receipt, &error));
  CHECK(!receipt.taken && !receipt.early);
  DONE(alpheus_session_upload(session, same, sizeof same, &repeated, &error));
  CHECK(repeated > length && memcmp(body + 17, same + 17, 16) != 0);
  DONE(alpheus_session_receipt(session, taken, sizeof taken, &receipt, &error));
  CHECK(receipt.taken && receipt.refused == 0);
  DONE(power(session, START + 7, 1));
  DONE(alpheus_session_upload(session, body, sizeof body, &length, &error));
  DONE(alpheus_session_receipt(session, withdrawn, sizeof withdrawn, &receipt, &error));
  CHECK(receipt.withdrawn && !receipt.taken);
  DONE(alpheus_session_close(session, 0, &error));
  REFUSED(alpheus_session_close(session, 0, &error), ALPHEUS_HANDLE_CLOSED, "Closed");
  REFUSED(power(session, START + 9 * SECOND + 1, 1), ALPHEUS_HANDLE_CLOSED, "Closed");
  REFUSED(alpheus_session_advance(session, START + 9 * SECOND, &error), ALPHEUS_HANDLE_CLOSED, "Closed");
  DONE(alpheus_session_describe(session, &info, &error));
  CHECK(info.closed && info.frames > 0);
  alpheus_session_free(&session);
  CHECK(session == NULL);
  alpheus_session_free(&session);
  alpheus_session_free(NULL);
  REFUSED(alpheus_session_close(session, 0, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
}

/* Each opening draws another session: also under one time, as after a crash or a clock that was set back. */
static void sessions_are_new(void) {
  uint64_t numbers[20];
  for (int i = 0; i < 20; i++) {
    alpheus_session *session = opened();
    alpheus_session_info info;
    DONE(alpheus_session_describe(session, &info, &error));
    numbers[i] = info.number;
    for (int before = 0; before < i; before++) CHECK(numbers[before] != numbers[i]);
    alpheus_session_free(&session);
  }
}

/* Ends as the calls in a copy of this process did. */
static void in_a_copy(void (*act)(void *), void *on) {
  pid_t copy = fork();
  CHECK(copy >= 0);
  if (copy == 0) {
    act(on);
    _exit(0);
  }
  int status;
  CHECK(waitpid(copy, &status, 0) == copy && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void refused_session(void *on) {
  alpheus_session *session = (alpheus_session *)on;
  static uint8_t body[ALPHEUS_MAX_UPLOAD];
  size_t length;
  alpheus_session_info info;
  REFUSED(power(session, START + 2, 1), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_advance(session, START + 5 * SECOND, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_sleep(session, START + 5 * SECOND, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_close(session, 0, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_frame(session, body, sizeof body, &length, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_upload(session, body, sizeof body, &length, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_session_describe(session, &info, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  alpheus_session_free(&session);
  /* A session of its own is fine. */
  session = opened();
  DONE(power(session, START + 2, 1));
  alpheus_session_free(&session);
}

static void copies(void) {
  alpheus_session *session = opened();
  DONE(power(session, START + 1, 1));
  in_a_copy(refused_session, session);
  DONE(power(session, START + 2, 1));
  alpheus_session_free(&session);
}

static alpheus_session *shared;
static uint64_t next_time;

static void *adds(void *accepted) {
  for (int i = 0; i < 200; i++) {
    uint64_t at = __atomic_add_fetch(&next_time, 1, __ATOMIC_SEQ_CST);
    alpheus_value value = alpheus_integer(ALPHEUS_STR("power"), i);
    alpheus_error own;
    int32_t code = alpheus_session_event(shared, at, &value, 1, &own);
    /* Another thread may have been faster with a later time. */
    CHECK(code == ALPHEUS_OK || strcmp(own.reason, "NotAscending") == 0);
    *(int *)accepted += code == ALPHEUS_OK;
  }
  return NULL;
}

static void threads(void) {
  pthread_t running[4];
  int accepted[4] = {0, 0, 0, 0}, sum = 0;
  alpheus_session_info info;
  shared = opened();
  next_time = START;
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&running[i], NULL, adds, &accepted[i]) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(running[i], NULL) == 0);
  for (int i = 0; i < 4; i++) sum += accepted[i];
  DONE(alpheus_session_describe(shared, &info, &error));
  CHECK(sum >= 200 && info.frames == (size_t)sum + 1);
  alpheus_session_free(&shared);
}

/* ---- passes ---- */

static alpheus_pass *pass;
static int fails, stores;

static int32_t store(void *context, const uint8_t *file, size_t length) {
  CHECK(context == &stores && length > 40 && memcmp(file, "ALPHPASS", 8) == 0);
  stores++;
  if (pass != NULL) {
    alpheus_error own;
    alpheus_pass_step step;
    CHECK(alpheus_pass_next(pass, START, &step, &own) == ALPHEUS_HANDLE_BUSY);
  }
  return fails;
}

static void refused_pass(void *now) {
  uint8_t message[ALPHEUS_MAX_MESSAGE];
  size_t length;
  alpheus_pass_step step;
  REFUSED(alpheus_pass_request(pass, ALPHEUS_NEXT, *(uint64_t *)now, message, sizeof message, &length, &error), ALPHEUS_PROCESS_COPIED, "Copied");
  REFUSED(alpheus_pass_next(pass, *(uint64_t *)now, &step, &error), ALPHEUS_PROCESS_COPIED, "Copied");
}

static void passes(const char *folder) {
  char path[512], text[64];
  uint8_t message[ALPHEUS_MAX_MESSAGE], again[ALPHEUS_MAX_MESSAGE], hello[96] = {0};
  size_t length, repeated;
  alpheus_pass_step step;
  snprintf(path, sizeof path, "%s/anonymous-credential/v1/issue.json", folder);
  char *cases = load(path, &length), *from = strchr(cases, '{'), *to = strstr(from, "},\n {");
  uint64_t now = 1700000000000000;
  CHECK(to != NULL);
  DONE(known_pass(from, (size_t)(to - from) + 1, store, &stores, &pass, &error));
  CHECK(stores == 1);
  DONE(alpheus_pass_next(pass, now, &step, &error));
  CHECK(step.step == ALPHEUS_STEP_LOG_IN);
  REFUSED(alpheus_pass_log_in(pass, ALPHEUS_RUNNING, hello, 96, now, message, sizeof message, &length, &error), ALPHEUS_CARD_INVALID, "OtherConfigurationError");
  REFUSED(alpheus_pass_log_in(pass, ALPHEUS_RUNNING, hello, 95, now, message, sizeof message, &length, &error), ALPHEUS_SERVER_OTHER_VERSION, "Malformed");
  REFUSED(alpheus_pass_connect(pass, hello, 96, message, sizeof message, &length, &error), ALPHEUS_ARGUMENT_WRONG, "NoSession");
  REFUSED(alpheus_pass_re_up(pass, now, message, sizeof message, &length, &error), ALPHEUS_ARGUMENT_WRONG, "NoSession");
  REFUSED(alpheus_pass_log_out(pass, message, sizeof message, &length, &error), ALPHEUS_ARGUMENT_WRONG, "NoSession");
  REFUSED(alpheus_pass_issued(pass, message, 5, &error), ALPHEUS_ARGUMENT_WRONG, "NoRequest");
  REFUSED(alpheus_pass_acknowledged(pass, message, 40, now, &error), ALPHEUS_ARGUMENT_WRONG, "NothingSent");
  REFUSED(alpheus_pass_request(pass, 4, now, message, sizeof message, &length, &error), ALPHEUS_ARGUMENT_WRONG, "When");
  /* Too small a buffer is refused before anything is burnt. */
  REFUSED(alpheus_pass_request(pass, ALPHEUS_RUNNING, now, message, 100, &length, &error), ALPHEUS_BUFFER_SMALL, "BufferSmall");
  CHECK(stores == 1);
  DONE(alpheus_pass_request(pass, ALPHEUS_RUNNING, now, message, sizeof message, &length, &error));
  CHECK(stores == 2);
  DONE(alpheus_pass_request(pass, ALPHEUS_RUNNING, now, again, sizeof again, &repeated, &error));
  CHECK(stores == 2 && length == repeated && memcmp(message, again, length) == 0);
  DONE(alpheus_pass_card(pass, ALPHEUS_CARD_ISSUER, text, sizeof text, &length, &error));
  CHECK(length == 22 && memcmp(text, "https://issuer.example", length) == 0);
  DONE(alpheus_pass_card(pass, ALPHEUS_CARD_AUTHORIZATION, text, sizeof text, &length, &error));
  CHECK(memcmp(text, "Basic ", 6) == 0);
  in_a_copy(refused_pass, &now);
  /* Storage fails: nothing comes out, now or later. */
  fails = 5;
  length = 0;
  memset(message, 0, sizeof message);
  REFUSED(alpheus_pass_request(pass, ALPHEUS_NEXT, now, message, sizeof message, &length, &error), ALPHEUS_IO_FAILED, "NotStored");
  fails = 0;
  REFUSED(alpheus_pass_request(pass, ALPHEUS_NEXT, now, message, sizeof message, &length, &error), ALPHEUS_IO_FAILED, "NotStored");
  for (size_t i = 0; i < sizeof message; i++) CHECK(message[i] == 0);
  alpheus_pass_free(&pass);
  CHECK(pass == NULL);
  REFUSED(alpheus_pass_create("{}", 2, "ada", 3, "s", 1, hello, 32, store, &stores, &pass, &error), ALPHEUS_CARD_INVALID, "Damaged");
  REFUSED(alpheus_pass_open(hello, 96, hello, 32, store, &stores, &pass, &error), ALPHEUS_PASSFILE_INVALID, "Unreadable");
  REFUSED(alpheus_pass_open(hello, 96, hello, 15, store, &stores, &pass, &error), ALPHEUS_KEY_WRONG, "ShortKey");
  REFUSED(alpheus_pass_open(hello, 96, hello, 32, NULL, NULL, &pass, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  alpheus_connection_free(NULL);
  REFUSED(alpheus_connection_stamp(NULL, NULL, 0, NULL, 0, NULL, 0, text, sizeof text, &length, &error), ALPHEUS_ARGUMENT_WRONG, "Missing");
  free(cases);
}

/* How often this program's memory holds the device's secret as bytes; only its digits are in the program itself. */
static int secrets_in_memory(void) {
  static uint8_t page[1 << 16];
  char line[512], access[8], name[256];
  int found = 0, memory = open("/proc/self/mem", O_RDONLY);
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(memory >= 0 && maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    name[0] = 0;
    CHECK(sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, access, name) >= 3);
    if (access[1] != 'w' || to - from > (64UL << 20) || (name[0] == '/' && strstr(name, "misuse") == NULL)) continue;
    int run = 0;
    for (unsigned long at = from; at < to; at += sizeof page) {
      ssize_t length = pread(memory, page, to - at < sizeof page ? to - at : sizeof page, (off_t)at);
      for (ssize_t i = 0; i < length; i++) {
        run = page[i] == 0x65 + run ? run + 1 : page[i] == 0x65;
        if (run == 32) {
          found++;
          run = 0;
        }
      }
    }
  }
  fclose(maps);
  close(memory);
  /* What was read lies in this buffer. */
  memset(page, 0, sizeof page);
  return found;
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  schemas_and_devices();
  CHECK(secrets_in_memory() > 0);
  events();
  frames();
  sessions_are_new();
  copies();
  threads();
  passes(arguments[1]);
  alpheus_schema_free(&schema);
  /* A device outlives its schema. */
  alpheus_session *session = opened();
  alpheus_device_free(&device);
  DONE(power(session, START + 1, 1));
  alpheus_session_free(&session);
  /* Nothing of the secret is left. */
  CHECK(secrets_in_memory() == 0);
  printf("fine\n");
  return 0;
}
