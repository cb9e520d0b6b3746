/* Every vector of a producer and of a pass's client, good and bad: conformance VECTORS, the repository's folder. */
#include "json.h"
#include "known_answers.h"
#include <dirent.h>
#include <inttypes.h>

static const char *vectors;
static alpheus_error error;
static unsigned run;

/* Acts on each case of a file. A file is a list of cases, or one. */
static void each(const char *file, void (*act)(const json *)) {
  char path[512];
  size_t length;
  snprintf(path, sizeof path, "%s/%s", vectors, file);
  char *text = load(path, &length);
  json_at = text;
  json *all = json_value();
  CHECK(all->length > 0);
  if (all->kind == '{') {
    act(all);
    run++;
  }
  for (json *one = all->first; all->kind == '[' && one != NULL; one = one->next) {
    act(one);
    run++;
  }
  json_free(all);
  free(text);
}

/* Acts on the files of a folder whose names begin so; says how many there are. */
static int each_named(const char *folder, const char *prefix, void (*act)(const json *)) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", vectors, folder);
  DIR *files = opendir(path);
  CHECK(files != NULL);
  int found = 0;
  for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
    if (strncmp(file->d_name, prefix, strlen(prefix)) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    each(path, act);
    found++;
  }
  closedir(files);
  return found;
}

/* Fails unless the last call was refused for the case's reason. */
static void refused_as(const json *one, int32_t code, int32_t expected) {
  const char *reason = json_text(one, "error");
  if (code != expected || strcmp(error.reason, reason) != 0)
    fprintf(stderr, "code %d, %s: %s; expected %s\n", code, error.reason, error.message, reason);
  CHECK(code == expected && strcmp(error.reason, reason) == 0);
}

/* ---- schema ---- */

static int32_t read_schema(const json *one, alpheus_schema **schema) {
  const json *yaml = json_find(one, "yaml"), *avsc = json_find(one, "avsc"), *file = json_find(one, "file");
  if (yaml != NULL) return alpheus_schema_read(yaml->text, yaml->length, ALPHEUS_YAML, schema, &error);
  if (avsc != NULL) return alpheus_schema_read(avsc->text, avsc->length, ALPHEUS_AVRO, schema, &error);
  char path[512];
  size_t length;
  CHECK(file != NULL);
  snprintf(path, sizeof path, "%s/../%s", vectors, file->text);
  char *text = load(path, &length);
  int32_t code = alpheus_schema_read(text, length, ALPHEUS_YAML, schema, &error);
  free(text);
  return code;
}

static void schema_has_its_meaning(const json *one) {
  alpheus_schema *schema = NULL;
  alpheus_schema_info info;
  char id[65];
  DONE(read_schema(one, &schema));
  DONE(alpheus_schema_describe(schema, &info, &error));
  to_hex(info.id, 32, id);
  CHECK(strcmp(id, json_text(one, "id")) == 0);
  CHECK(info.tick_us == json_u64(one, "tick") && info.words == json_u64(one, "words"));
  alpheus_schema_free(&schema);
  CHECK(schema == NULL);
}

static void schema_is_refused(const json *one) {
  alpheus_schema *schema = NULL;
  refused_as(one, read_schema(one, &schema), ALPHEUS_SCHEMA_INVALID);
  CHECK(schema == NULL);
}

/* The script's values, which are scaled, with the names of the attributes. */
static int32_t encode(const alpheus_schema *schema, const json *row, uint64_t *words, size_t *length) {
  alpheus_value values[16];
  size_t count = 0;
  uint32_t place = 0;
  for (const json *value = row->first; value != NULL; value = value->next) {
    alpheus_attribute own;
    if (alpheus_schema_attribute(schema, place++, &own, &error) != ALPHEUS_OK) return error.code;
    CHECK(count < 16);
    alpheus_value *out = &values[count];
    if (value->kind == 'n') continue;
    count++;
    if (value->kind == '"') *out = alpheus_text(own.name, own.name_length, value->text, value->length);
    else if (value->kind == 't' || value->kind == 'f') *out = alpheus_boolean(own.name, own.name_length, value->kind == 't');
    else *out = alpheus_decimal(own.name, own.name_length, strtoll(value->from, NULL, 10), own.decimals);
  }
  return alpheus_schema_encode(schema, values, count, words, 8192, length, &error);
}

static void events_have_their_words(const json *one) {
  alpheus_schema *schema = NULL;
  static uint64_t words[8192];
  size_t length;
  DONE(read_schema(one, &schema));
  for (const json *event = json_get(one, "events")->first; event != NULL; event = event->next) {
    DONE(encode(schema, json_get(event, "values"), words, &length));
    for (const json *at = json_get(event, "random")->first; at != NULL; at = at->next) {
      CHECK(words[json_number(at)] != 0);
      words[json_number(at)] = 0;
    }
    const json *expected = json_get(event, "words");
    CHECK(expected->length == length);
    size_t place = 0;
    for (const json *word = expected->first; word != NULL; word = word->next) CHECK(words[place++] == json_word(word));
  }
  alpheus_schema_free(&schema);
}

static void event_is_refused(const json *one) {
  alpheus_schema *schema = NULL;
  static uint64_t words[8192];
  size_t length;
  DONE(read_schema(one, &schema));
  refused_as(one, encode(schema, json_get(one, "values"), words, &length), ALPHEUS_LINE_REFUSED);
  alpheus_schema_free(&schema);
}

/* ---- encrypted-stream and ticks ---- */

/* Compares the frames that wait with the script's from `*expected` on; without `compares` they are only counted. */
static void frames_are(const alpheus_session *session, const json **expected, int compares) {
  static uint8_t frame[ALPHEUS_MAX_FRAME];
  static char digits[2 * ALPHEUS_MAX_FRAME + 1];
  for (;;) {
    size_t length;
    DONE(alpheus_session_frame(session, frame, sizeof frame, &length, &error));
    if (length == 0) return;
    CHECK(*expected != NULL);
    to_hex(frame, length, digits);
    CHECK(!compares || strcmp(digits, (*expected)->text) == 0);
    *expected = (*expected)->next;
  }
}

static void session_has_its_frames(const json *one) {
  alpheus_session *session = NULL;
  const json *expected = json_get(one, "frames")->first;
  DONE(known_session(one->from, (size_t)(one->to - one->from), &session, &error));
  for (const json *event = json_get(one, "events")->first; event != NULL; event = event->next) {
    uint64_t words[64];
    size_t count = 0;
    for (const json *word = json_get(event, "plain")->first; word != NULL; word = word->next) words[count++] = json_word(word);
    /* The last word is the session's own. */
    DONE(known_words(session, json_u64(event, "t"), words, count - 1, &error));
    frames_are(session, &expected, 1);
  }
  DONE(alpheus_session_close(session, json_u64(one, "close"), &error));
  frames_are(session, &expected, 1);
  CHECK(expected == NULL);
  alpheus_session_free(&session);
}

/* The keys that such a case leaves open. */
static void time_is_refused(const json *one) {
  char vector[1024], tail[512];
  alpheus_session *session = NULL;
  const json *close = json_get(one, "close");
  uint64_t start = json_u64(one, "start");
  int length = snprintf(tail, sizeof tail, "\"tick\": %" PRIu64 ", \"start\": %" PRIu64 "}", json_u64(one, "tick"), start);
  CHECK(length > 0);
  snprintf(vector, sizeof vector,
           "{\"master\": \"%064d\", \"stream\": \"%032d\", \"schema\": \"%064d\", \"session\": \"7\", \"words\": 2, %s", 1, 2, 3, tail);
  int32_t code = known_session(vector, strlen(vector), &session, &error);
  for (const json *event = json_get(one, "events")->first; code == ALPHEUS_OK && event != NULL; event = event->next) {
    uint64_t word = 1;
    code = known_words(session, start + (uint64_t)strtoll(event->from, NULL, 10), &word, 1, &error);
  }
  if (code == ALPHEUS_OK && close->kind != 'n')
    code = alpheus_session_close(session, start + (uint64_t)strtoll(close->from, NULL, 10), &error);
  refused_as(one, code, ALPHEUS_LINE_REFUSED);
  alpheus_session_free(&session);
}

/* The words of the generator's event of this number. */
static void tick_event(const alpheus_session *session, uint64_t at, uint64_t number) {
  uint64_t words[20];
  for (uint64_t i = 0; i < 20; i++) words[i] = (number * 31 + i) % 97;
  DONE(known_words(session, at + number, words, 20, &error));
}

/* Roots of ticks, anchors, gaps and all: the opening apart, whose seal draws a key. */
static void ticks_have_their_frames(const json *one) {
  alpheus_session *session = NULL;
  const json *expected = json_get(one, "frames")->first;
  uint64_t opened = json_u64(one, "opened"), tick = json_u64(one, "tick");
  const uint64_t starts[] = {0, 1, 2, 5, 14}, firsts[] = {1, 3, 4, 4, 5}, ends[] = {3, 4, 4, 5, 8};
  DONE(known_tick_session(one->from, (size_t)(one->to - one->from), &session, &error));
  frames_are(session, &expected, 0);
  for (int i = 0; i < 5; i++) {
    uint64_t at = opened + starts[i] * tick;
    if (starts[i] > 3) DONE(alpheus_session_sleep(session, at, &error));
    for (uint64_t event = firsts[i]; event < ends[i]; event++) tick_event(session, at, event);
    DONE(alpheus_session_advance(session, at + tick, &error));
    frames_are(session, &expected, 1);
  }
  DONE(alpheus_session_close(session, opened + 16 * tick, &error));
  frames_are(session, &expected, 1);
  CHECK(expected == NULL);
  alpheus_session_free(&session);
}

/* ---- anonymous-credential and access-pass ---- */

static int32_t stored(void *context, const uint8_t *file, size_t length) {
  CHECK(file != NULL && length > 0);
  ++*(int *)context;
  return 0;
}

static int stores;

static alpheus_pass *pass_of(const json *one) {
  alpheus_pass *pass = NULL;
  DONE(known_pass(one->from, (size_t)(one->to - one->from), stored, &stores, &pass, &error));
  return pass;
}

static void draws(const alpheus_pass *pass, const json *one, const char *name) {
  uint8_t bytes[4096];
  DONE(known_pass_draws(pass, bytes, json_bytes(one, name, bytes), &error));
}

/* The middle of an epoch of the case's schedule. */
static uint64_t during(const json *one, uint64_t epoch) {
  const json *start = json_get(json_get(one, "configuration"), "schedule")->first;
  uint64_t length = json_number(start->next);
  return json_number(start) + epoch * length + length / 2;
}

static uint64_t first_epoch(const json *one, uint64_t period) {
  const json *start = json_get(json_get(one, "configuration"), "schedule")->first;
  return period * json_number(start->next->next->next->next);
}

/* A gateway of the same configuration says hello. */
static void hello_of(const json *one, uint8_t (*hello)[96]) {
  memset(*hello, 0, sizeof *hello);
  CHECK(json_bytes(json_get(one, "configuration"), "fingerprint", *hello) == 32);
}

static void bytes_are(const json *one, const char *name, const uint8_t *found, size_t length) {
  uint8_t expected[4096];
  CHECK(json_bytes(one, name, expected) == length && memcmp(expected, found, length) == 0);
}

static alpheus_pass *requested(const json *one, uint8_t *request, size_t *length) {
  alpheus_pass *pass = pass_of(one);
  draws(pass, one, "request_randomness");
  uint64_t now = during(one, first_epoch(one, json_u64(one, "period")));
  int before = stores;
  DONE(alpheus_pass_request(pass, ALPHEUS_RUNNING, now, request, ALPHEUS_MAX_MESSAGE, length, &error));
  CHECK(stores == before + 1);
  return pass;
}

static void pass_is_issued(const json *one) {
  uint8_t request[ALPHEUS_MAX_MESSAGE], answer[4096], record[256];
  size_t length;
  alpheus_pass *pass = requested(one, request, &length);
  bytes_are(one, "request", request, length);
  DONE(alpheus_pass_issued(pass, answer, json_bytes(one, "response", answer), &error));
  DONE(known_pass_credential(pass, json_u64(one, "period"), record, sizeof record, &length, &error));
  CHECK(length == 96);
  bytes_are(one, "m1", record, 32);
  bytes_are(one, "u", record + 32, 32);
  bytes_are(one, "mac", record + 64, 32);
  alpheus_pass_free(&pass);
}

static void response_is_refused(const json *one) {
  uint8_t request[ALPHEUS_MAX_MESSAGE], answer[4096];
  size_t length;
  alpheus_pass *pass = requested(one, request, &length);
  refused_as(one, alpheus_pass_issued(pass, answer, json_bytes(one, "response", answer), &error), ALPHEUS_PASS_REFUSED);
  alpheus_pass_free(&pass);
}

static size_t log_in(const alpheus_pass *pass, const json *one, uint64_t epoch, uint8_t *login) {
  uint8_t hello[96], message[32];
  size_t length;
  hello_of(one, &hello);
  CHECK(json_bytes(one, "message", message) == 32);
  DONE(known_pass_log_in(pass, (const uint8_t(*)[96]) &hello, (const uint8_t(*)[32]) &message, during(one, epoch), login, 4096, &length, &error));
  return length;
}

static void pass_logs_in(const json *one) {
  uint8_t login[4096];
  alpheus_pass *pass = pass_of(one);
  draws(pass, one, "randomness");
  int before = stores;
  size_t length = log_in(pass, one, json_u64(one, "epoch"), login);
  bytes_are(one, "login", login, length);
  CHECK(stores > before);
  alpheus_pass_free(&pass);
}

static void pass_is_carried_on(const json *one) {
  uint8_t bytes[4096], re_up[ALPHEUS_MAX_MESSAGE], answer[40];
  size_t length;
  alpheus_pass *pass = pass_of(one);
  json_bytes(one, "login", bytes);
  uint64_t epoch = 0;
  for (int i = 0; i < 8; i++) epoch = epoch << 8 | bytes[i];
  draws(pass, one, "login_randomness");
  length = log_in(pass, one, epoch, bytes);
  bytes_are(one, "login", bytes, length);
  /* The gateway acknowledges the session: its id stands behind the re-up's epoch. */
  memcpy(answer + 32, bytes, 8);
  json_bytes(one, "re_up", bytes);
  memcpy(answer, bytes + 8, 32);
  uint64_t now = during(one, epoch);
  DONE(alpheus_pass_acknowledged(pass, answer, sizeof answer, now, &error));
  const json *opens = json_get(json_get(one, "configuration"), "schedule")->first;
  now += json_number(opens->next) / 2 - json_number(opens->next->next);
  draws(pass, one, "randomness");
  DONE(alpheus_pass_re_up(pass, now, re_up, sizeof re_up, &length, &error));
  bytes_are(one, "re_up", re_up, length);
  alpheus_pass_free(&pass);
}

/* A credential of the vectors, of which a session of the case's id was presented. */
static char credential[8192];

/* The first case's, which may be presented once in an epoch. */
static void keep_credential(const json *one) {
  if (credential[0] == 0) snprintf(credential, sizeof credential, "%.*s", (int)(one->to - one->from), one->from);
}

static void connection_has_its_key(const json *one) {
  static char vector[16384];
  uint8_t hello[96], message[4096], answer[40], until[8];
  size_t length;
  snprintf(vector, sizeof vector, "{\"shown_session\": \"%s\", %s", json_text(one, "session"), credential + 1);
  const char *kept = json_at;
  json_at = vector;
  json *known = json_value();
  json_at = kept;
  alpheus_pass *pass = pass_of(known);
  uint64_t epoch = json_u64(known, "epoch"), now = during(known, epoch);
  /* The pass was presented in this epoch before: the same message goes out, and its session is acknowledged. */
  log_in(pass, known, epoch, message);
  json_bytes(one, "session", answer);
  for (int i = 0; i < 8; i++) answer[32 + i] = (uint8_t)(epoch >> (56 - 8 * i));
  DONE(alpheus_pass_acknowledged(pass, answer, sizeof answer, now, &error));
  hello_of(known, &hello);
  json_bytes(one, "challenge", hello + 32);
  json_bytes(one, "gateway_public", hello + 64);
  draws(pass, one, "client_seed");
  DONE(alpheus_pass_connect(pass, hello, sizeof hello, message, sizeof message, &length, &error));
  CHECK(length == 160);
  bytes_are(one, "session", message, 32);
  bytes_are(one, "challenge", message + 32, 32);
  bytes_are(one, "client_public", message + 64, 32);
  for (int i = 0; i < 8; i++) until[i] = (uint8_t)(json_u64(one, "until") >> (56 - 8 * i));
  memcpy(answer, until, 8);
  json_bytes(one, "confirmation", answer + 8);
  alpheus_connection *connection = NULL;
  DONE(alpheus_pass_connected(pass, answer, 24, &connection, &error));
  alpheus_connection_free(&connection);
  /* Nobody else's confirmation holds. */
  draws(pass, one, "client_seed");
  DONE(alpheus_pass_connect(pass, hello, sizeof hello, message, sizeof message, &length, &error));
  answer[23] ^= 1;
  REFUSED(alpheus_pass_connected(pass, answer, 24, &connection, &error), ALPHEUS_PASS_REFUSED, "Unconfirmed");
  alpheus_pass_free(&pass);
  json_free(known);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  vectors = arguments[1];
  each("schema/v1/schema.json", schema_has_its_meaning);
  each("schema/v1/frames.json", schema_has_its_meaning);
  each("schema/v1/avro.json", schema_has_its_meaning);
  CHECK(each_named("schema/v1", "schema_bad_", schema_is_refused) == 3);
  each("schema/v1/encoding.json", events_have_their_words);
  each("schema/v1/encoding_bad_values.json", event_is_refused);
  each("encrypted-stream/v1/session.json", session_has_its_frames);
  CHECK(each_named("encrypted-stream/v1", "producer_bad_", time_is_refused) >= 10);
  each("ticks/v1/session.json", ticks_have_their_frames);
  each("anonymous-credential/v1/issue.json", pass_is_issued);
  CHECK(each_named("anonymous-credential/v1", "response_bad_", response_is_refused) == 4);
  each("anonymous-credential/v1/login.json", pass_logs_in);
  each("anonymous-credential/v1/re_up.json", pass_is_carried_on);
  each("anonymous-credential/v1/login.json", keep_credential);
  each("access-pass/v1/connection.json", connection_has_its_key);
  printf("%u cases\n", run);
  return 0;
}
