/* What the tests in C share: checks that say where they failed, files, hexadecimal digits. */
#ifndef CHECK_H
#define CHECK_H

#include <alpheus.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless it holds. */
#define CHECK(holds) \
  do { \
    if (!(holds)) { \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #holds); \
      exit(1); \
    } \
  } while (0)

/* Ends the program unless a call succeeds; `error` is its last argument. */
#define DONE(call) \
  do { \
    if ((call) != ALPHEUS_OK) { \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, error.reason, error.message); \
      exit(1); \
    } \
  } while (0)

/* Ends the program unless a call is refused with this code and reason. */
#define REFUSED(call, expected, why) \
  do { \
    int32_t code = (call); \
    if (code != (expected) || error.code != code || strcmp(error.reason, (why)) != 0 || error.message[0] == 0) { \
      fprintf(stderr, "%s:%d: %s: code %d, %s: %s\n", __FILE__, __LINE__, #call, code, error.reason, error.message); \
      exit(1); \
    } \
  } while (0)

/* A file's content, with a zero byte behind it; the caller frees it. */
static inline char *load(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = (char *)malloc((size_t)size + 1);
  CHECK(text != NULL && fread(text, 1, (size_t)size, file) == (size_t)size);
  text[size] = 0;
  fclose(file);
  *length = (size_t)size;
  return text;
}

/* Writes bytes as hexadecimal digits and a zero byte. */
static inline void to_hex(const uint8_t *bytes, size_t length, char *out) {
  for (size_t i = 0; i < length; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
  out[2 * length] = 0;
}

/* Reads as many hexadecimal digits as there are; gives the number of bytes. */
static inline size_t from_hex(const char *digits, size_t length, uint8_t *out) {
  CHECK(length % 2 == 0);
  for (size_t i = 0; i < length / 2; i++) {
    unsigned byte;
    CHECK(sscanf(digits + 2 * i, "%2x", &byte) == 1);
    out[i] = (uint8_t)byte;
  }
  return length / 2;
}

#endif
