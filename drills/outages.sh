#!/bin/sh
# The service is killed and away for seconds, ten minutes and an hour, while meters run on: each
# window opens whole. Then a backup is restored that is an hour old, while meters run on: each later
# window is right, and no device is restarted. Time is that of a clock that waits for all processes
# and leaps over long outages, so this takes minutes.
set -eu
cd "$(dirname "$0")/.."
outages() {
  "${CARGO:-cargo}" test --workspace --features alpheus/kafka,alpheus/object-store,alpheus-bench/pairing \
    --test processes -- "$@" --nocapture --test-threads 1
}
ALPHEUS_OUTAGES="${ALPHEUS_OUTAGES:-4 8 15 40 600 3600}" outages outages::every_window
ALPHEUS_BACKUP_AGE="${ALPHEUS_BACKUP_AGE:-3600}" outages restored_from_a_backup
