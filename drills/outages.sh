#!/bin/sh
# The service is killed and away for seconds, ten minutes and an hour, while meters run on: each
# window opens whole. Time is that of a clock that waits for all processes and leaps over long
# outages, so this takes minutes.
set -eu
cd "$(dirname "$0")/.."
ALPHEUS_OUTAGES="${ALPHEUS_OUTAGES:-4 8 15 40 600 3600}" \
  "${CARGO:-cargo}" test --package alpheus --test processes -- outages::every_window --nocapture
