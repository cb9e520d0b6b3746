/*
 * Alpheus: a producer of encrypted streams, and a client of anonymous passes.
 *
 * Nothing here opens a connection or a file, starts a thread or keeps anything global: the caller brings times and
 * carries bytes. README.md beside it has examples.
 *
 * - A function returns a code: ALPHEUS_OK, or why not. The last argument, which may be NULL, gets the reason and words for people.
 * - A length is that of the argument before it. A text needs no zero byte at its end. NULL with length 0 is empty.
 * - A function that fills a buffer says the length, also where the buffer is too small; then nothing has changed, and the call may be repeated.
 * - A function that makes a handle takes the address of its variable, and so does the one that frees it, which sets the variable to NULL.
 * - Times are microseconds since 1970. Random numbers are the system's.
 * - A handle belongs to the process that made it: a copy of that process, made by fork(), is refused.
 */

#ifndef ALPHEUS_H
#define ALPHEUS_H

/* cbindgen makes this file of bindings/c/src. Do not edit it. */

#include <stddef.h>
#include <stdint.h>

// It is done.
#define ALPHEUS_OK 0

// A text is not UTF-8.
#define ALPHEUS_FILE_NOT_TEXT 1

// A file cannot be understood.
#define ALPHEUS_FILE_INVALID 2

// A schema is not valid.
#define ALPHEUS_SCHEMA_INVALID 3

// An event, or a time, is refused. The event leaves no trace.
#define ALPHEUS_LINE_REFUSED 4

// A file of a device's identity is missing or not valid.
#define ALPHEUS_IDENTITY_INVALID 5

// A certificate is refused.
#define ALPHEUS_CERTIFICATE_REFUSED 6

// A key is too short, or does not open what it was given for.
#define ALPHEUS_KEY_WRONG 7

// An answer is not one that this version understands.
#define ALPHEUS_SERVER_OTHER_VERSION 8

// A card is not valid, or a gateway has another configuration than the card.
#define ALPHEUS_CARD_INVALID 9

// A rule of passes forbids it, or an answer is not right.
#define ALPHEUS_PASS_REFUSED 10

// There is no pass for this period: request it.
#define ALPHEUS_PASS_MISSING 11

// A pass file is not valid.
#define ALPHEUS_PASSFILE_INVALID 12

// The caller could not store a pass file, or the system has no randomness.
#define ALPHEUS_IO_FAILED 13

// A fault in the library. The handle that was used is closed.
#define ALPHEUS_INTERNAL_ERROR 14

// An argument is missing, too long, or not one that the function takes.
#define ALPHEUS_ARGUMENT_WRONG 100

// The buffer is smaller than what would be written. The length is said, and nothing has changed.
#define ALPHEUS_BUFFER_SMALL 101

// The handle is closed.
#define ALPHEUS_HANDLE_CLOSED 102

// Another call uses the pass, for example the one that is storing it.
#define ALPHEUS_HANDLE_BUSY 103

// The handle was made in another process, of which this one is a copy.
#define ALPHEUS_PROCESS_COPIED 104

// A schema is YAML.
#define ALPHEUS_YAML 0

// A schema is an Avro schema, as JSON.
#define ALPHEUS_AVRO 1

// There may have been a session: another opens at the next tick of the clock.
#define ALPHEUS_AGAIN 0

// The stream never had a session: its first opens at the tick at or before a time, even in the past.
#define ALPHEUS_FIRST 1

// A number: integer units of 10^-decimals.
#define ALPHEUS_KIND_DECIMAL 1

// A number: number, read by its shortest digits.
#define ALPHEUS_KIND_NUMBER 2

// A truth value: integer, 0 or 1.
#define ALPHEUS_KIND_BOOLEAN 3

// A text of text_length bytes.
#define ALPHEUS_KIND_TEXT 4

// Bytes that hold any upload.
#define ALPHEUS_MAX_UPLOAD 300000

// Bytes that hold any frame.
#define ALPHEUS_MAX_FRAME 66000

// Bytes that hold any message of a pass.
#define ALPHEUS_MAX_MESSAGE 1024

// Bytes of a re-up, which no login has.
#define ALPHEUS_RE_UP_LENGTH 168

// Bytes that hold any stamp.
#define ALPHEUS_MAX_STAMP 128

// The running epoch or period.
#define ALPHEUS_RUNNING 0

// The next epoch or period, shortly before it begins.
#define ALPHEUS_NEXT 1

// Do nothing before a time.
#define ALPHEUS_STEP_WAIT 0

// Carry the session on, by alpheus_pass_re_up.
#define ALPHEUS_STEP_RE_UP 1

// Log in for the running epoch.
#define ALPHEUS_STEP_LOG_IN 2

// Log in for the next epoch.
#define ALPHEUS_STEP_LOG_IN_NEXT 3

// The issuer's address.
#define ALPHEUS_CARD_ISSUER 0

// The gateway's address.
#define ALPHEUS_CARD_GATEWAY 1

// Certificate authorities of both, in PEM form; empty without TLS.
#define ALPHEUS_CARD_AUTHORITY 2

// The value of the header Authorization for the issuer. It is secret.
#define ALPHEUS_CARD_AUTHORIZATION 3

// A connection of a session, whose requests it stamps. Threads may share it.
typedef struct alpheus_connection alpheus_connection;

// Which stream a device sends, and with which keys. Any thread may use it. Its keys are wiped when it is freed.
typedef struct alpheus_device alpheus_device;

// A pass. Any thread of the process that opened it may use it, one call at a time: a second one gets
// ALPHEUS_HANDLE_BUSY. Its secrets are wiped when it is freed.
typedef struct alpheus_pass alpheus_pass;

// A schema that was checked. It does not change, and any thread may use it.
typedef struct alpheus_schema alpheus_schema;

// A session of a device: the only thing that encrypts. It is never stored and never resumed. Threads of the process that
// opened it may share it: calls wait for each other. Its keys are wiped when it is freed.
typedef struct alpheus_session alpheus_session;

// Makes a pass file durable in place of the one before, and returns 0; anything else means that it did not. The library sends
// nothing before. Use one file in one process at a time, and never an older copy of it: two presentations in one epoch expose
// that they are of one pass. It must not use the pass.
typedef int32_t (*alpheus_pass_store)(void *context, const uint8_t *file, size_t length);

// Why a call failed. The caller owns it, and may pass NULL in its place. Both texts end with a zero byte,
// and hold no secret and no value of an event.
typedef struct {
  // One of ALPHEUS_…; ALPHEUS_OK if the call succeeded.
  int32_t code;
  // The rule by its name, such as OutOfBounds.
  char reason[64];
  // What happened and how to fix it, in UTF-8.
  char message[512];
} alpheus_error;

// What to do next.
typedef struct {
  // One of ALPHEUS_STEP_….
  int32_t step;
  // Nothing before this time, in microseconds, if the step is ALPHEUS_STEP_WAIT.
  uint64_t until_us;
} alpheus_pass_step;

// What a schema says.
typedef struct {
  // The hash of its content.
  uint8_t id[32];
  // Microseconds between borders.
  uint64_t tick_us;
  // Words of an event.
  uint32_t words;
  // Attributes of an event.
  uint32_t attributes;
  // 1 if each event has a frame, 0 if each tick has one.
  int32_t frames_are_events;
} alpheus_schema_info;

// What a schema says of an attribute. The name belongs to the schema, and lives as long.
typedef struct {
  // The name, of name_length bytes.
  const char *name;
  // Bytes of the name.
  size_t name_length;
  // ALPHEUS_KIND_DECIMAL, ALPHEUS_KIND_BOOLEAN or ALPHEUS_KIND_TEXT.
  int32_t kind;
  // Decimal places of a number; digits beyond them are rounded.
  uint32_t decimals;
  // Smallest number, in units of 10^-decimals.
  int64_t min;
  // Largest number, in the same units; of a text, the largest length in bytes.
  int64_t max;
  // 1 if an event may lack it.
  int32_t optional;
} alpheus_attribute;

// The value of one attribute, made by the functions below. An attribute without a value is missing.
typedef struct {
  // The attribute's name, of name_length bytes.
  const char *name;
  // Bytes of the name.
  size_t name_length;
  // One of ALPHEUS_KIND_….
  int32_t kind;
  // Decimal places of integer.
  uint32_t decimals;
  // Units, or a truth value.
  int64_t integer;
  // A number in natural units.
  double number;
  // A text.
  const char *text;
  // Bytes of the text.
  size_t text_length;
} alpheus_value;

// The files of a device, as texts.
typedef struct {
  // The device's file, from alpheus owner add. It holds the stream's key.
  const char *device;
  // Its bytes.
  size_t device_length;
  // deployment.json of alpheus ca issue; NULL under a schema with frames: events.
  const char *deployment;
  // Its bytes.
  size_t deployment_length;
  // device.txt of the same folder.
  const char *certificate;
  // Its bytes.
  size_t certificate_length;
  // device.seed of the same folder, which is secret.
  const char *seed;
  // Its bytes.
  size_t seed_length;
} alpheus_device_files;

// What is known about a session.
typedef struct {
  // Its number, which is public; it changes at midnight.
  uint64_t number;
  // Time of its last event or border, in microseconds.
  uint64_t last_us;
  // Time of the next border: call alpheus_session_advance then.
  uint64_t next_border_us;
  // Frames that wait.
  size_t frames;
  // 1 once it is closed; then the first three are 0.
  int32_t closed;
} alpheus_session_info;

// What became of an upload.
typedef struct {
  // 1 if the frames are durable at the service. They wait no longer.
  int32_t taken;
  // 1 if the service does not know the stream yet: send the same upload again, later.
  int32_t early;
  // 1 if the stream's owner has withdrawn it: stop, for good.
  int32_t withdrawn;
  // 1 if the service lost this session: introduce the device again, and open another.
  int32_t reopen;
  // Frames that count for nothing, of this upload or earlier ones.
  uint32_t refused;
} alpheus_receipt;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's version, as text that a zero byte ends.
const char *alpheus_version(void);

// The id of a code, as alpheus errors explains it; NULL for a number that is no code.
const char *alpheus_code_id(int32_t code);

// The system's clock, in microseconds since 1970. No other function reads it.
uint64_t alpheus_now(void);

// Creates a pass for an account of a deployment, and stores its file. card is the deployment's card.json. secret is what the account
// shows the issuer; without one, show an ID token. key locks the file: 32 random bytes that lie elsewhere, or a long passphrase.
//
// # Safety
// Each argument has as many bytes as its length says. store takes context as long as the pass lives.
int32_t alpheus_pass_create(const char *card,
                            size_t card_length,
                            const char *account,
                            size_t account_length,
                            const char *secret,
                            size_t secret_length,
                            const uint8_t *key,
                            size_t key_length,
                            alpheus_pass_store store,
                            void *context,
                            alpheus_pass **pass,
                            alpheus_error *error);

// Opens a pass file with its key.
//
// # Safety
// Each argument has as many bytes as its length says. store takes context as long as the pass lives.
int32_t alpheus_pass_open(const uint8_t *file,
                          size_t file_length,
                          const uint8_t *key,
                          size_t key_length,
                          alpheus_pass_store store,
                          void *context,
                          alpheus_pass **pass,
                          alpheus_error *error);

// Frees a pass, wipes its secrets, and sets the variable to NULL.
void alpheus_pass_free(alpheus_pass **pass);

// The fingerprint of the pass's card: 32 bytes. Compare it with other subscribers': another card could be used to track you.
int32_t alpheus_pass_fingerprint(const alpheus_pass *pass,
                                 uint8_t (*fingerprint)[32],
                                 alpheus_error *error);

// A text of the pass's card or account: text is one of ALPHEUS_CARD_…. No zero byte ends it.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_card(const alpheus_pass *pass,
                          int32_t text,
                          char *buffer,
                          size_t capacity,
                          size_t *length,
                          alpheus_error *error);

// The body of the issuer's POST /v1/pass for the pass of a period; of length 0 if the file has it. when is ALPHEUS_RUNNING or
// ALPHEUS_NEXT. Send it at a time that has nothing to do with a login, with the header Authorization.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_request(const alpheus_pass *pass,
                             int32_t when,
                             uint64_t now_us,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// Takes the issuer's answer, and stores the pass.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_issued(const alpheus_pass *pass, const uint8_t *answer, size_t length, alpheus_error *error);

// What to do next, at moments that do not distinguish this subscriber from others. Ask often, with the time now.
int32_t alpheus_pass_next(const alpheus_pass *pass, uint64_t now_us, alpheus_pass_step *step, alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/login, on a fresh connection. hello is what GET /.alpheus/pass gave on it. If the pass was
// presented before in the epoch, the same bytes come, or a re-up's: a body of ALPHEUS_RE_UP_LENGTH goes to …/re-up.
//
// # Safety
// hello has hello_length bytes, buffer room for capacity.
int32_t alpheus_pass_log_in(const alpheus_pass *pass,
                            int32_t when,
                            const uint8_t *hello,
                            size_t hello_length,
                            uint64_t now_us,
                            uint8_t *buffer,
                            size_t capacity,
                            size_t *length,
                            alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/re-up, on the session's connection.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_re_up(const alpheus_pass *pass,
                           uint64_t now_us,
                           uint8_t *buffer,
                           size_t capacity,
                           size_t *length,
                           alpheus_error *error);

// Takes the gateway's answer to the last login or re-up.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_acknowledged(const alpheus_pass *pass,
                                  const uint8_t *answer,
                                  size_t length,
                                  uint64_t now_us,
                                  alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/connect, for the session that was acknowledged last. hello is a new one.
//
// # Safety
// hello has hello_length bytes, buffer room for capacity.
int32_t alpheus_pass_connect(const alpheus_pass *pass,
                             const uint8_t *hello,
                             size_t hello_length,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// Takes the gateway's answer, and gives the connection.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_connected(const alpheus_pass *pass,
                               const uint8_t *answer,
                               size_t length,
                               alpheus_connection **connection,
                               alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/logout, for the session that was acknowledged last. The pass forgets it: send the
// bytes until they are answered.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_log_out(const alpheus_pass *pass,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// The value of the header alpheus-pass for one request, to be used once: method such as GET, authority the host and port,
// path with the query, as they are sent. ALPHEUS_MAX_STAMP bytes hold any; no zero byte ends it.
//
// # Safety
// Each argument has as many bytes as its length says, buffer room for capacity.
int32_t alpheus_connection_stamp(const alpheus_connection *connection,
                                 const char *method,
                                 size_t method_length,
                                 const char *authority,
                                 size_t authority_length,
                                 const char *path,
                                 size_t path_length,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *length,
                                 alpheus_error *error);

// Frees a connection, wipes its key, and sets the variable to NULL.
void alpheus_connection_free(alpheus_connection **connection);

// Reads a schema: format is ALPHEUS_YAML or ALPHEUS_AVRO.
//
// # Safety
// text has length bytes.
int32_t alpheus_schema_read(const char *text,
                            size_t length,
                            int32_t format,
                            alpheus_schema **schema,
                            alpheus_error *error);

// Frees a schema, and sets the variable to NULL. Devices and sessions of it stay.
void alpheus_schema_free(alpheus_schema **schema);

// What a schema says.
int32_t alpheus_schema_describe(const alpheus_schema *schema, alpheus_schema_info *info, alpheus_error *error);

// What a schema says of the attribute at a place, from 0.
int32_t alpheus_schema_attribute(const alpheus_schema *schema,
                                 uint32_t place,
                                 alpheus_attribute *attribute,
                                 alpheus_error *error);

// The words of an event in the clear: what is encrypted. It checks an event, too.
//
// # Safety
// values has count values with their names and texts, words room for capacity words.
int32_t alpheus_schema_encode(const alpheus_schema *schema,
                              const alpheus_value *values,
                              size_t count,
                              uint64_t *words,
                              size_t capacity,
                              size_t *length,
                              alpheus_error *error);

// Reads the files of a device of a schema. Wipe the texts once they are read.
//
// # Safety
// Each text has as many bytes as its length says.
int32_t alpheus_device_read(const alpheus_schema *schema,
                            const alpheus_device_files *files,
                            alpheus_device **device,
                            alpheus_error *error);

// Frees a device, wipes its keys, and sets the variable to NULL. Its sessions stay.
void alpheus_device_free(alpheus_device **device);

// The id of the device's stream: 16 bytes.
int32_t alpheus_device_stream(const alpheus_device *device, uint8_t (*stream)[16], alpheus_error *error);

// The body of POST /v1/device, which introduces the device to the service before its first upload;
// empty under a schema with frames: events, which needs no introduction.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_device_introduction(const alpheus_device *device,
                                    uint8_t *buffer,
                                    size_t capacity,
                                    size_t *length,
                                    alpheus_error *error);

// Opens a session. start is ALPHEUS_AGAIN: at the next tick, and at_us is the time now. Or it is ALPHEUS_FIRST,
// for a stream that never had one: at the tick at or before at_us.
int32_t alpheus_session_open(const alpheus_device *device,
                             int32_t start,
                             uint64_t at_us,
                             alpheus_session **session,
                             alpheus_error *error);

// Frees a session, wipes its keys, and sets the variable to NULL. Events since its last border are lost unless it was closed,
// and so are frames that wait.
void alpheus_session_free(alpheus_session **session);

// Encrypts one event at a time in microseconds. Each time is later than the one before, and none is a border's.
//
// # Safety
// values has count values with their names and texts.
int32_t alpheus_session_event(const alpheus_session *session,
                              uint64_t at_us,
                              const alpheus_value *values,
                              size_t count,
                              alpheus_error *error);

// Makes the borders of all ticks up to a time. With one frame a tick, their frames are made now.
int32_t alpheus_session_advance(const alpheus_session *session, uint64_t now_us, alpheus_error *error);

// The device slept up to a time. With one frame a tick, one frame says so for all ticks without an event.
int32_t alpheus_session_sleep(const alpheus_session *session, uint64_t now_us, alpheus_error *error);

// Closes a session at a tick; 0 is the end of the open one. Frames that wait stay. A second call says
// ALPHEUS_HANDLE_CLOSED.
int32_t alpheus_session_close(const alpheus_session *session, uint64_t at_us, alpheus_error *error);

// What is known about a session.
int32_t alpheus_session_describe(const alpheus_session *session, alpheus_session_info *info, alpheus_error *error);

// Takes the oldest frame that waits, for those who carry frames themselves; of length 0 if none waits. It cannot be made
// again. ALPHEUS_MAX_FRAME bytes hold any.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_session_frame(const alpheus_session *session,
                              uint8_t *buffer,
                              size_t capacity,
                              size_t *length,
                              alpheus_error *error);

// The body of POST /v1/events with the oldest frames that wait; of length 0 if none waits. Until its answer has come,
// the same body comes again. ALPHEUS_MAX_UPLOAD bytes hold any.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_session_upload(const alpheus_session *session,
                               uint8_t *buffer,
                               size_t capacity,
                               size_t *length,
                               alpheus_error *error);

// Takes the body of the service's answer, of status 200, to the last upload.
//
// # Safety
// answer has length bytes.
int32_t alpheus_session_receipt(const alpheus_session *session,
                                const uint8_t *answer,
                                size_t length,
                                alpheus_receipt *receipt,
                                alpheus_error *error);

// A whole number.
alpheus_value alpheus_integer(const char *name, size_t name_length, int64_t value);

// units times 10^-decimals, exactly: 415 and 1 are 41.5.
alpheus_value alpheus_decimal(const char *name, size_t name_length, int64_t units, uint32_t decimals);

// A number, read by its shortest digits: 0.285 is 0.29 at two places.
alpheus_value alpheus_number(const char *name, size_t name_length, double value);

// A truth value: 0 is false.
alpheus_value alpheus_boolean(const char *name, size_t name_length, int32_t value);

// A text in UTF-8.
alpheus_value alpheus_text(const char *name, size_t name_length, const char *text, size_t text_length);

// A whole number.
alpheus_value alpheus_integer(const char *name, size_t name_length, int64_t value);

// units times 10^-decimals, exactly: 415 and 1 are 41.5.
alpheus_value alpheus_decimal(const char *name, size_t name_length, int64_t units, uint32_t decimals);

// A number, read by its shortest digits: 0.285 is 0.29 at two places.
alpheus_value alpheus_number(const char *name, size_t name_length, double value);

// A truth value: 0 is false.
alpheus_value alpheus_boolean(const char *name, size_t name_length, int32_t value);

// A text in UTF-8.
alpheus_value alpheus_text(const char *name, size_t name_length, const char *text, size_t text_length);

// Reads a schema: format is ALPHEUS_YAML or ALPHEUS_AVRO.
//
// # Safety
// text has length bytes.
int32_t alpheus_schema_read(const char *text,
                            size_t length,
                            int32_t format,
                            alpheus_schema **schema,
                            alpheus_error *error);

// Frees a schema, and sets the variable to NULL. Devices and sessions of it stay.
void alpheus_schema_free(alpheus_schema **schema);

// What a schema says.
int32_t alpheus_schema_describe(const alpheus_schema *schema, alpheus_schema_info *info, alpheus_error *error);

// What a schema says of the attribute at a place, from 0.
int32_t alpheus_schema_attribute(const alpheus_schema *schema,
                                 uint32_t place,
                                 alpheus_attribute *attribute,
                                 alpheus_error *error);

// The words of an event in the clear: what is encrypted. It checks an event, too.
//
// # Safety
// values has count values with their names and texts, words room for capacity words.
int32_t alpheus_schema_encode(const alpheus_schema *schema,
                              const alpheus_value *values,
                              size_t count,
                              uint64_t *words,
                              size_t capacity,
                              size_t *length,
                              alpheus_error *error);

// Reads the files of a device of a schema. Wipe the texts once they are read.
//
// # Safety
// Each text has as many bytes as its length says.
int32_t alpheus_device_read(const alpheus_schema *schema,
                            const alpheus_device_files *files,
                            alpheus_device **device,
                            alpheus_error *error);

// Frees a device, wipes its keys, and sets the variable to NULL. Its sessions stay.
void alpheus_device_free(alpheus_device **device);

// The id of the device's stream: 16 bytes.
int32_t alpheus_device_stream(const alpheus_device *device, uint8_t (*stream)[16], alpheus_error *error);

// The body of POST /v1/device, which introduces the device to the service before its first upload;
// empty under a schema with frames: events, which needs no introduction.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_device_introduction(const alpheus_device *device,
                                    uint8_t *buffer,
                                    size_t capacity,
                                    size_t *length,
                                    alpheus_error *error);

// Opens a session. start is ALPHEUS_AGAIN: at the next tick, and at_us is the time now. Or it is ALPHEUS_FIRST,
// for a stream that never had one: at the tick at or before at_us.
int32_t alpheus_session_open(const alpheus_device *device,
                             int32_t start,
                             uint64_t at_us,
                             alpheus_session **session,
                             alpheus_error *error);

// Frees a session, wipes its keys, and sets the variable to NULL. Events since its last border are lost unless it was closed,
// and so are frames that wait.
void alpheus_session_free(alpheus_session **session);

// Encrypts one event at a time in microseconds. Each time is later than the one before, and none is a border's.
//
// # Safety
// values has count values with their names and texts.
int32_t alpheus_session_event(const alpheus_session *session,
                              uint64_t at_us,
                              const alpheus_value *values,
                              size_t count,
                              alpheus_error *error);

// Makes the borders of all ticks up to a time. With one frame a tick, their frames are made now.
int32_t alpheus_session_advance(const alpheus_session *session, uint64_t now_us, alpheus_error *error);

// The device slept up to a time. With one frame a tick, one frame says so for all ticks without an event.
int32_t alpheus_session_sleep(const alpheus_session *session, uint64_t now_us, alpheus_error *error);

// Closes a session at a tick; 0 is the end of the open one. Frames that wait stay. A second call says
// ALPHEUS_HANDLE_CLOSED.
int32_t alpheus_session_close(const alpheus_session *session, uint64_t at_us, alpheus_error *error);

// What is known about a session.
int32_t alpheus_session_describe(const alpheus_session *session, alpheus_session_info *info, alpheus_error *error);

// Takes the oldest frame that waits, for those who carry frames themselves; of length 0 if none waits. It cannot be made
// again. ALPHEUS_MAX_FRAME bytes hold any.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_session_frame(const alpheus_session *session,
                              uint8_t *buffer,
                              size_t capacity,
                              size_t *length,
                              alpheus_error *error);

// The body of POST /v1/events with the oldest frames that wait; of length 0 if none waits. Until its answer has come,
// the same body comes again. ALPHEUS_MAX_UPLOAD bytes hold any.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_session_upload(const alpheus_session *session,
                               uint8_t *buffer,
                               size_t capacity,
                               size_t *length,
                               alpheus_error *error);

// Takes the body of the service's answer, of status 200, to the last upload.
//
// # Safety
// answer has length bytes.
int32_t alpheus_session_receipt(const alpheus_session *session,
                                const uint8_t *answer,
                                size_t length,
                                alpheus_receipt *receipt,
                                alpheus_error *error);

// Creates a pass for an account of a deployment, and stores its file. card is the deployment's card.json. secret is what the account
// shows the issuer; without one, show an ID token. key locks the file: 32 random bytes that lie elsewhere, or a long passphrase.
//
// # Safety
// Each argument has as many bytes as its length says. store takes context as long as the pass lives.
int32_t alpheus_pass_create(const char *card,
                            size_t card_length,
                            const char *account,
                            size_t account_length,
                            const char *secret,
                            size_t secret_length,
                            const uint8_t *key,
                            size_t key_length,
                            alpheus_pass_store store,
                            void *context,
                            alpheus_pass **pass,
                            alpheus_error *error);

// Opens a pass file with its key.
//
// # Safety
// Each argument has as many bytes as its length says. store takes context as long as the pass lives.
int32_t alpheus_pass_open(const uint8_t *file,
                          size_t file_length,
                          const uint8_t *key,
                          size_t key_length,
                          alpheus_pass_store store,
                          void *context,
                          alpheus_pass **pass,
                          alpheus_error *error);

// Frees a pass, wipes its secrets, and sets the variable to NULL.
void alpheus_pass_free(alpheus_pass **pass);

// The fingerprint of the pass's card: 32 bytes. Compare it with other subscribers': another card could be used to track you.
int32_t alpheus_pass_fingerprint(const alpheus_pass *pass,
                                 uint8_t (*fingerprint)[32],
                                 alpheus_error *error);

// A text of the pass's card or account: text is one of ALPHEUS_CARD_…. No zero byte ends it.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_card(const alpheus_pass *pass,
                          int32_t text,
                          char *buffer,
                          size_t capacity,
                          size_t *length,
                          alpheus_error *error);

// The body of the issuer's POST /v1/pass for the pass of a period; of length 0 if the file has it. when is ALPHEUS_RUNNING or
// ALPHEUS_NEXT. Send it at a time that has nothing to do with a login, with the header Authorization.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_request(const alpheus_pass *pass,
                             int32_t when,
                             uint64_t now_us,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// Takes the issuer's answer, and stores the pass.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_issued(const alpheus_pass *pass, const uint8_t *answer, size_t length, alpheus_error *error);

// What to do next, at moments that do not distinguish this subscriber from others. Ask often, with the time now.
int32_t alpheus_pass_next(const alpheus_pass *pass, uint64_t now_us, alpheus_pass_step *step, alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/login, on a fresh connection. hello is what GET /.alpheus/pass gave on it. If the pass was
// presented before in the epoch, the same bytes come, or a re-up's: a body of ALPHEUS_RE_UP_LENGTH goes to …/re-up.
//
// # Safety
// hello has hello_length bytes, buffer room for capacity.
int32_t alpheus_pass_log_in(const alpheus_pass *pass,
                            int32_t when,
                            const uint8_t *hello,
                            size_t hello_length,
                            uint64_t now_us,
                            uint8_t *buffer,
                            size_t capacity,
                            size_t *length,
                            alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/re-up, on the session's connection.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_re_up(const alpheus_pass *pass,
                           uint64_t now_us,
                           uint8_t *buffer,
                           size_t capacity,
                           size_t *length,
                           alpheus_error *error);

// Takes the gateway's answer to the last login or re-up.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_acknowledged(const alpheus_pass *pass,
                                  const uint8_t *answer,
                                  size_t length,
                                  uint64_t now_us,
                                  alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/connect, for the session that was acknowledged last. hello is a new one.
//
// # Safety
// hello has hello_length bytes, buffer room for capacity.
int32_t alpheus_pass_connect(const alpheus_pass *pass,
                             const uint8_t *hello,
                             size_t hello_length,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// Takes the gateway's answer, and gives the connection.
//
// # Safety
// answer has length bytes.
int32_t alpheus_pass_connected(const alpheus_pass *pass,
                               const uint8_t *answer,
                               size_t length,
                               alpheus_connection **connection,
                               alpheus_error *error);

// The body of the gateway's POST /.alpheus/pass/logout, for the session that was acknowledged last. The pass forgets it: send the
// bytes until they are answered.
//
// # Safety
// buffer has room for capacity bytes.
int32_t alpheus_pass_log_out(const alpheus_pass *pass,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *length,
                             alpheus_error *error);

// The value of the header alpheus-pass for one request, to be used once: method such as GET, authority the host and port,
// path with the query, as they are sent. ALPHEUS_MAX_STAMP bytes hold any; no zero byte ends it.
//
// # Safety
// Each argument has as many bytes as its length says, buffer room for capacity.
int32_t alpheus_connection_stamp(const alpheus_connection *connection,
                                 const char *method,
                                 size_t method_length,
                                 const char *authority,
                                 size_t authority_length,
                                 const char *path,
                                 size_t path_length,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *length,
                                 alpheus_error *error);

// Frees a connection, wipes its key, and sets the variable to NULL.
void alpheus_connection_free(alpheus_connection **connection);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ALPHEUS_H */

/* A literal text and its length, as two arguments. */
#define ALPHEUS_STR(literal) (literal), (sizeof(literal) - 1)
