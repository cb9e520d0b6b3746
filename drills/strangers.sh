#!/bin/sh
# Ten thousand strangers connect to the service, which may have 1,024 files open, and say nothing:
# devices, controllers and a consumer go on. The build is that of `make test`.
set -eu
cd "$(dirname "$0")/.."
ALPHEUS_STRANGERS="${ALPHEUS_STRANGERS:-10000}" \
  "${CARGO:-cargo}" test --workspace --features alpheus/kafka,alpheus/object-store,alpheus-bench/pairing --locked \
    --test processes -- strangers::strangers_who_say_nothing --nocapture
