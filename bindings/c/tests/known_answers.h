/* What the tests' library adds to the interface: sessions and passes whose random numbers are chosen. */
#ifndef KNOWN_H
#define KNOWN_H

#include <alpheus.h>

#ifdef __cplusplus
extern "C" {
#endif

int32_t known_session(const char *vector, size_t length, alpheus_session **session, alpheus_error *error);
int32_t known_tick_session(const char *vector, size_t length, alpheus_session **session, alpheus_error *error);
int32_t known_words(const alpheus_session *session, uint64_t at_us, const uint64_t *words, size_t count,
                    alpheus_error *error);
int32_t known_pass(const char *vector, size_t length, alpheus_pass_store store, void *context, alpheus_pass **pass,
                   alpheus_error *error);
int32_t known_pass_draws(const alpheus_pass *pass, const uint8_t *bytes, size_t length, alpheus_error *error);
int32_t known_pass_log_in(const alpheus_pass *pass, const uint8_t (*hello)[96], const uint8_t (*message)[32],
                          uint64_t now_us, uint8_t *buffer, size_t capacity, size_t *length, alpheus_error *error);
int32_t known_pass_credential(const alpheus_pass *pass, uint64_t period, uint8_t *buffer, size_t capacity,
                              size_t *length, alpheus_error *error);

#ifdef __cplusplus
}
#endif

#endif
