#!/bin/sh
# Ten thousand strangers, and a device that sends what costs the most memory for its size, meet a service with default
# limits that may have 512 MB: all windows open whole, and /healthz answers within a second.
set -eu
cd "$(dirname "$0")/.."
ALPHEUS_STRANGERS="${ALPHEUS_STRANGERS:-10000}" \
  "${CARGO:-cargo}" test --workspace --features alpheus/kafka,alpheus/object-store,alpheus-bench/pairing --locked \
    --test processes -- drills::memory --ignored --nocapture
