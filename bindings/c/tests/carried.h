/* HTTP of the live tests: requests go out on standard output, and answers come in on standard input. */
#ifndef CARRIED_H
#define CARRIED_H

#include "check.h"

/* What the next request carries in the header `Authorization`. */
static char authorization[256] = "-";

int http(const char *method, const char *path, const uint8_t *body, size_t length, uint8_t *answer, size_t capacity,
         size_t *answered);

int http(const char *method, const char *path, const uint8_t *body, size_t length, uint8_t *answer, size_t capacity,
         size_t *answered) {
  char *digits = (char *)malloc(2 * (length > capacity ? length : capacity) + 64);
  CHECK(digits != NULL);
  to_hex(body, length, digits);
  printf("%s %s %s\n%s\n", method, path, authorization, digits);
  fflush(stdout);
  CHECK(fgets(digits, (int)(2 * capacity + 64), stdin) != NULL);
  size_t read = strcspn(digits, "\n");
  int failed = digits[0] == '-';
  if (!failed) *answered = from_hex(digits, read, answer);
  free(digits);
  return failed;
}

/* Waits until a time. */
static void wait_until(uint64_t then) {
  while (alpheus_now() < then) {
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
  }
}

#endif
