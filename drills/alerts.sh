#!/bin/sh
# Faults are injected into real processes, one after the other, while a real Prometheus looks at them with our rules as
# often as docs/operating.md says: each alert is raised within a minute, and none while all is well. Ten minutes or so.
set -eu
cd "$(dirname "$0")/.."
"${CARGO:-cargo}" test --workspace --features alpheus/kafka,alpheus/object-store,alpheus-bench/pairing --locked \
  --test processes -- drills::alerts --include-ignored --nocapture --test-threads 1
