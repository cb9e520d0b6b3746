/* Reads the vectors: enough of JSON for files that Python wrote. */
#ifndef JSON_H
#define JSON_H

#include "check.h"

typedef struct json {
  char kind; /* { [ " or the first character of a number, true, false, null */
  const char *from, *to; /* of the whole text of this value */
  char *text; /* of a string, with a zero byte */
  size_t length; /* bytes of the string, members of a list or object */
  const char *name; /* in an object */
  struct json *first, *next;
} json;

static const char *json_at;

static inline void json_space(void) { json_at += strspn(json_at, " \t\r\n,:"); }

/* A code point as UTF-8. */
static inline void json_put(char **out, unsigned point) {
  if (point < 0x80) {
    *(*out)++ = (char)point;
  } else if (point < 0x800) {
    *(*out)++ = (char)(0xc0 | point >> 6);
    *(*out)++ = (char)(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *(*out)++ = (char)(0xe0 | point >> 12);
    *(*out)++ = (char)(0x80 | (point >> 6 & 0x3f));
    *(*out)++ = (char)(0x80 | (point & 0x3f));
  } else {
    *(*out)++ = (char)(0xf0 | point >> 18);
    *(*out)++ = (char)(0x80 | (point >> 12 & 0x3f));
    *(*out)++ = (char)(0x80 | (point >> 6 & 0x3f));
    *(*out)++ = (char)(0x80 | (point & 0x3f));
  }
}

static inline unsigned json_escape(void) {
  unsigned point;
  CHECK(sscanf(json_at, "u%4x", &point) == 1);
  json_at += 5;
  return point;
}

static inline char *json_string(size_t *length) {
  char *text = (char *)malloc(strlen(json_at) + 1), *out = text;
  CHECK(text != NULL && *json_at == '"');
  for (json_at++; *json_at != '"';) {
    if (*json_at != '\\') {
      *out++ = *json_at++;
      continue;
    }
    json_at++;
    if (*json_at == 'u') {
      unsigned point = json_escape();
      if (point >= 0xd800 && point < 0xdc00) {
        CHECK(*json_at++ == '\\');
        point = 0x10000 + ((point - 0xd800) << 10) + (json_escape() - 0xdc00);
      }
      json_put(&out, point);
    } else {
      const char *known = "n\nt\tr\rb\bf\f", *found = strchr(known, *json_at);
      *out++ = found != NULL && (found - known) % 2 == 0 ? found[1] : *json_at;
      json_at++;
    }
  }
  json_at++;
  *out = 0;
  *length = (size_t)(out - text);
  char *kept = (char *)realloc(text, *length + 1);
  CHECK(kept != NULL);
  return kept;
}

static inline json *json_value(void) {
  json *own = (json *)calloc(1, sizeof *own), **last = &own->first;
  CHECK(own != NULL);
  json_space();
  own->from = json_at;
  own->kind = *json_at;
  if (own->kind == '{' || own->kind == '[') {
    char end = own->kind == '{' ? '}' : ']';
    json_at++;
    for (json_space(); *json_at != end; json_space()) {
      size_t ignored;
      char *name = own->kind == '{' ? json_string(&ignored) : NULL;
      *last = json_value();
      (*last)->name = name;
      last = &(*last)->next;
      own->length++;
    }
    json_at++;
  } else if (own->kind == '"') {
    own->text = json_string(&own->length);
  } else {
    json_at += strcspn(json_at, " \t\r\n,:]}");
  }
  own->to = json_at;
  return own;
}

static inline void json_free(json *own) {
  while (own != NULL) {
    json *next = own->next;
    json_free(own->first);
    free(own->text);
    free((void *)own->name);
    free(own);
    own = next;
  }
}

/* A member of an object, or NULL. */
static inline json *json_find(const json *own, const char *name) {
  for (json *each = own->first; each != NULL; each = each->next)
    if (each->name != NULL && strcmp(each->name, name) == 0) return each;
  return NULL;
}

static inline json *json_get(const json *own, const char *name) {
  json *found = json_find(own, name);
  if (found == NULL) fprintf(stderr, "a case has no %s\n", name);
  CHECK(found != NULL);
  return found;
}

static inline uint64_t json_number(const json *own) { return strtoull(own->from, NULL, 10); }
static inline uint64_t json_u64(const json *own, const char *name) { return json_number(json_get(own, name)); }
/* A number in hexadecimal digits. */
static inline uint64_t json_word(const json *own) { return strtoull(own->text, NULL, 16); }
/* Bytes in hexadecimal digits. */
static inline size_t json_bytes(const json *own, const char *name, uint8_t *out) {
  const json *found = json_get(own, name);
  return from_hex(found->text, found->length, out);
}
static inline const char *json_text(const json *own, const char *name) { return json_get(own, name)->text; }

#endif
