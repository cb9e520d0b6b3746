//! Examples for those who check rows, and ask for evidence, on a clock that the group moves.

use super::Step::{self, Beside, Own, Runs};
use super::clock;

pub(super) const STEPS: &[Step] = &[
    Own(clock::PROGRAMS),
    Own("alpheus ca init pki
         alpheus ca issue pki --role server --name service
         alpheus ca issue pki --role controller --name first
         alpheus ca issue pki --role consumer --name analyst
         (umask 077 && head -c 32 /dev/urandom | base64 > first.key)
         alpheus controller init --identity pki/first --state run/first --key-file first.key --ca pki
         cat > schema.yaml <<END
name: Meters
version: 1
tick: 1s
anchor: 4s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 2s, alpha: 0, dropout: 1/3 }
END
         cat > policies.yaml <<END
schema: Meters
service: analyst
default:
  reading: { option: crowd, clients: 1 }
END"),
    Beside("alpheus server --identity pki/service --schema schema.yaml --state run/service \
             --api 127.0.0.1:7400", "serving at "),
    Beside("alpheus controller run --identity pki/first --state run/first --key-file first.key \
             --schema schema.yaml --server https://localhost:7400 --api 127.0.0.1:7401", "serving at "),
    Own("for name in ada bob; do
             alpheus ca issue pki --role owner --name $name
             alpheus ca issue pki --role producer --name meter-$name
             alpheus owner add --identity pki/$name --controller https://localhost:7401 \
                 --schema schema.yaml --policies policies.yaml \
                 --producer meter-$name --device $name.json
         done
         echo \"CREATE STREAM Stats AS SELECT SUM(reading), COUNT(reading)
             WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters
             BETWEEN 2 AND 100 WITH (integrity = 'verified', alpha = '1/3')\" > stats.sql
         until alpheus query --server https://localhost:7400 --identity pki/analyst \
             --query \"EXPLAIN $(cat stats.sql)\"; do tick 1; sleep 0.2; done
         alpheus query --server https://localhost:7400 --identity pki/analyst \
             --query \"$(cat stats.sql)\""),
    Own("echo unix_ms,reading > readings.csv
         for second in $(seq 50); do
             echo $(($(< now) / 1000000 + 2 + second))500,7 >> readings.csv
         done
         for name in ada bob; do
             alpheus produce --identity pki/meter-$name --device $name.json \
                 --state run/meter-$name --schema schema.yaml \
                 --server https://localhost:7400 --input readings.csv --time-column unix_ms &
         done
         while [ \"$(jobs -r)\" ]; do tick 1; sleep 0.2; done
         until alpheus query --server https://localhost:7400 --identity pki/analyst \
             --results Stats | grep 'ok.*signed'; do tick 1; sleep 0.2; done"),
    Runs("alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats --verified"),
    Runs("alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats"),
    Runs("alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats --save"),
    Runs("alpheus verify --identity"),
    Runs("alpheus evidence --server https://localhost:7400 --identity pki/analyst --from 2026-01-01 --until 2026-12-31 --output"),
    Own("rm evidence.jsonl"),
    Runs("alpheus evidence --server https://localhost:7400 --identity pki/analyst --from 2026-01-01 --until 2026-12-31 --openlineage"),
];
