#!/bin/sh
# A day with certificates of an hour, which are renewed while all processes run on. A stream moves to another
# host, the authority is replaced, and a device and its owner are revoked: each window is whole and there once.
# Time is that of a clock that waits for all processes and leaps, so the day takes minutes.
set -eu
cd "$(dirname "$0")/.."
ALPHEUS_DAY_OF_KEYS="${ALPHEUS_DAY_OF_KEYS:-24}" \
  "${CARGO:-cargo}" test --workspace --features alpheus/kafka,alpheus/object-store,alpheus-bench/pairing --locked \
  --test processes -- day_of_keys:: --ignored --nocapture --test-threads 1
