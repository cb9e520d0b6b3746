/* A subscriber of a live gateway: live_pass CARD SECRET FILE, for the account ada. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include <unistd.h>
#include "carried.h"

/* In README.md. */
alpheus_connection *log_in(const alpheus_pass *pass, int32_t when, alpheus_error *error);

static const uint8_t KEY[33] = "a key of thirty-two random bytes";
static alpheus_error error;

/* Makes a file durable in place of the one before. */
static int32_t store(void *path, const uint8_t *file, size_t length) {
  char beside[512];
  snprintf(beside, sizeof beside, "%s.new", (const char *)path);
  FILE *out = fopen(beside, "wb");
  if (out == NULL) return 1;
  int bad = fwrite(file, 1, length, out) != length || fflush(out) != 0 || fsync(fileno(out)) != 0;
  return fclose(out) != 0 || bad || rename(beside, (const char *)path) != 0;
}

/* Gets the pass of the running period. */
static void fetch(const alpheus_pass *pass) {
  uint8_t body[ALPHEUS_MAX_MESSAGE], answer[4096];
  size_t length, answered;
  DONE(alpheus_pass_request(pass, ALPHEUS_RUNNING, alpheus_now(), body, sizeof body, &length, &error));
  if (length == 0) return;
  DONE(alpheus_pass_card(pass, ALPHEUS_CARD_AUTHORIZATION, authorization, sizeof authorization - 1, &answered, &error));
  authorization[answered] = 0;
  CHECK(http("POST", "/v1/pass", body, length, answer, sizeof answer, &answered) == 0);
  DONE(alpheus_pass_issued(pass, answer, answered, &error));
  strcpy(authorization, "-");
  DONE(alpheus_pass_request(pass, ALPHEUS_RUNNING, alpheus_now(), body, sizeof body, &length, &error));
  CHECK(length == 0);
}

/* Logs in as the pass's steps say, and until the gateway takes it: a new verifier takes nobody in its first epoch. */
static alpheus_connection *in_time(const alpheus_pass *pass) {
  for (int tries = 0; tries < 200; tries++) {
    alpheus_pass_step step;
    uint64_t now = alpheus_now();
    DONE(alpheus_pass_next(pass, now, &step, &error));
    if (step.step == ALPHEUS_STEP_LOG_IN || step.step == ALPHEUS_STEP_LOG_IN_NEXT) {
      alpheus_connection *made = log_in(pass, step.step == ALPHEUS_STEP_LOG_IN ? ALPHEUS_RUNNING : ALPHEUS_NEXT, &error);
      if (made != NULL) return made;
    }
    wait_until(now + 100000);
  }
  CHECK(0 && "no login was taken");
  return NULL;
}

/* A request to the service behind the gateway. */
static int song(const alpheus_connection *connection, const char *authority, const char *stamped) {
  uint8_t answer[4096];
  size_t length, answered;
  DONE(alpheus_connection_stamp(connection, ALPHEUS_STR("GET"), authority, strlen(authority), stamped, strlen(stamped),
                                authorization, sizeof authorization - 1, &length, &error));
  authorization[length] = 0;
  int failed = http("GET", "/song", NULL, 0, answer, sizeof answer, &answered);
  strcpy(authorization, "-");
  CHECK(failed || (answered == 4 && memcmp(answer, "song", 4) == 0));
  return failed;
}

static void re_up(const alpheus_pass *pass) {
  uint8_t body[ALPHEUS_MAX_MESSAGE], answer[64];
  size_t length, answered;
  for (;;) {
    alpheus_pass_step step;
    DONE(alpheus_pass_next(pass, alpheus_now(), &step, &error));
    if (step.step == ALPHEUS_STEP_RE_UP) break;
    CHECK(step.step == ALPHEUS_STEP_WAIT);
    wait_until(step.until_us);
  }
  DONE(alpheus_pass_re_up(pass, alpheus_now(), body, sizeof body, &length, &error));
  CHECK(length == ALPHEUS_RE_UP_LENGTH);
  CHECK(http("POST", "/.alpheus/pass/re-up", body, length, answer, sizeof answer, &answered) == 0);
  DONE(alpheus_pass_acknowledged(pass, answer, answered, alpheus_now(), &error));
}

int main(int count, char **arguments) {
  CHECK(count == 5);
  alpheus_pass *pass = NULL;
  size_t card_length, secret_length, length, answered;
  char *card = load(arguments[1], &card_length), *secret = load(arguments[2], &secret_length);
  secret_length = strcspn(secret, "\r\n");
  DONE(alpheus_pass_create(card, card_length, ALPHEUS_STR("ada"), secret, secret_length, KEY, 32, store, arguments[3], &pass, &error));
  fetch(pass);
  /* What is stored is enough to go on. */
  alpheus_pass_free(&pass);
  char *file = load(arguments[3], &length);
  DONE(alpheus_pass_open((const uint8_t *)file, length, KEY, 32, store, arguments[3], &pass, &error));
  alpheus_connection *connection = in_time(pass);
  CHECK(song(connection, arguments[4], "/song") == 0);
  /* A stamp is for one path. */
  CHECK(song(connection, arguments[4], "/other") == 1);
  re_up(pass);
  CHECK(song(connection, arguments[4], "/song") == 0);
  uint8_t body[ALPHEUS_MAX_MESSAGE], answer[64];
  DONE(alpheus_pass_log_out(pass, body, sizeof body, &length, &error));
  CHECK(http("POST", "/.alpheus/pass/logout", body, length, answer, sizeof answer, &answered) == 0);
  CHECK(song(connection, arguments[4], "/song") == 1);
  alpheus_connection_free(&connection);
  alpheus_pass_free(&pass);
  free(card);
  free(secret);
  free(file);
  printf("done\n");
  return 0;
}
