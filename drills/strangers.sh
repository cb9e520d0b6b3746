#!/bin/sh
# Ten thousand strangers connect to the service, which may have 1,024 files open, and say nothing:
# devices, controllers and a consumer go on.
set -eu
cd "$(dirname "$0")/.."
ALPHEUS_STRANGERS="${ALPHEUS_STRANGERS:-10000}" \
  "${CARGO:-cargo}" test --package alpheus --test processes -- strangers:: --nocapture
