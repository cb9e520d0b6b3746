//! Examples beside one deployment of encrypted streams.

use super::Step::{self, Lasts, Own, Runs, Serves};

pub(super) const STEPS: &[Step] = &[
    Own("alpheus ca init pki
         alpheus ca issue pki --role server --name service
         alpheus ca issue pki --role controller --name first
         for name in analyst doctor; do alpheus ca issue pki --role consumer --name $name; done
         for name in alice bob; do alpheus ca issue pki --role owner --name $name; done
         for name in watch meter; do alpheus ca issue pki --role producer --name $name; done
         alpheus ca issue pki --role operator --name operator
         mkdir doctor && cp pki/doctor/consumer.txt doctor
         cp examples/fitness/schema.yaml schema.yaml && cp schema.yaml meter.yaml
         echo 'SHOW SCHEMAS; SHOW STREAMS;' > statements.sql
         (umask 077 && head -c 32 /dev/urandom | base64 > alice.key)"),
    Serves("alpheus server --identity pki/service", "serving at "),
    Own("cat > server.toml <<END
identity = \"pki/service\"
schema = \"schema.yaml\"
state = \"run/second\"
api = \"127.0.0.1:7410\"
END"),
    Serves("alpheus server --config server.toml --listen", "serving at "),
    Runs("(umask 077 && head -c 32 /dev/urandom | base64 > first.key)"),
    Runs("alpheus controller init --identity pki/first"),
    Serves("alpheus controller run", "serving at "),
    Runs("alpheus owner add"),
    Runs("alpheus owner streams"),
    Runs("alpheus owner log"),
    Runs("alpheus owner budgets"),
    Runs(
        "alpheus owner grant --identity pki/alice --controller https://localhost:7401 --stream $(cat alice.stream) --reader doctor/consumer.txt --from",
    ),
    // It prints the owner's id, which the reader receives.
    Own("alpheus owner grant --identity pki/alice --controller https://localhost:7401 \
             --stream $(cat alice.stream) --reader doctor/consumer.txt --from 2026-11-01 \
             --to 2026-11-30 | grep -oE '[0-9a-f]{64}' | head -1 > alice.id
         until alpheus read --identity pki/doctor --controller https://localhost:7401 \
             --server https://localhost:7400 --stream $(cat alice.stream) --schema schema.yaml \
             > read.txt 2>&1; do sleep 0.2; done"),
    Runs("alpheus read --identity pki/doctor --controller https://localhost:7401 --server"),
    Runs(
        "alpheus read --identity pki/doctor --controller https://localhost:7401 --controller-name",
    ),
    // Nothing is typed.
    Runs("alpheus produce --identity pki/watch"),
    Own("alpheus owner add --identity pki/bob --controller https://localhost:7401 \
             --schema schema.yaml --policies examples/fitness/policies.yaml \
             --metadata region=Texas --producer meter --device meter.json > bob.stream
         now=$(date +%s)
         echo unix_ms,heart_rate,altitude,speed,ascent,descent,temperature > readings.csv
         echo $((now - 5))000,80,10,3,0,0,20 >> readings.csv"),
    Runs(
        "alpheus produce --identity pki/meter --device meter.json --state run/meter --schema meter.yaml --server https://localhost:7400 --input readings.csv --time-column",
    ),
    Own("now=$(date +%s)
         echo 'when;who;pulse;height;speed;up;down;air' > readings.csv
         echo \"$((now - 2));meter-7;90;10;3;0;0;20\" >> readings.csv
         echo \"$((now - 2));other;91;10;3;0;0;20\" >> readings.csv
         cat > source.yaml <<END
schema: FitnessTracker
file: { delimiter: ';' }
time: { column: when }
stream: who
attributes:
  { heart_rate: pulse, altitude: height, speed: speed, ascent: up, descent: down, temperature: air }
metadata: { region: { constant: Texas } }
END"),
    Runs(
        "alpheus produce --identity pki/meter --device meter.json --state run/meter --schema meter.yaml --server https://localhost:7400 --input readings.csv --source",
    ),
    Serves("alpheus console --identity pki/analyst", "http://"),
    Serves("alpheus console --identity pki/alice", "http://"),
    Serves("alpheus console --identity pki/operator", "http://"),
    Runs("alpheus sql --server https://localhost:7400 --identity pki/analyst"),
    Runs("alpheus sql --server https://localhost:7400 --identity pki/analyst --format csv"),
    Runs("echo 'SHOW SCHEMAS;' | alpheus sql"),
    // Eleven more owners: the policies of the example release nothing about fewer than ten.
    Own("for number in $(seq 13); do
             alpheus ca issue pki --role owner --name o$number
             alpheus ca issue pki --role producer --name d$number
             alpheus owner add --identity pki/o$number --controller https://localhost:7401 \
                 --schema schema.yaml --policies examples/fitness/policies.yaml \
                 --metadata region=Texas --producer d$number --device d$number.json > /dev/null
         done
         echo 'CREATE STREAM Stats AS SELECT AVG(heart_rate)
             WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 10 AND 1000' > stats.sql
         until alpheus query --server https://localhost:7400 --identity pki/analyst \
             --query \"EXPLAIN $(cat stats.sql)\" > /dev/null 2>&1; do sleep 0.2; done"),
    Runs("alpheus query --server https://localhost:7400 --identity pki/analyst --query"),
    Lasts(
        "alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats --follow",
    ),
    Runs(
        "alpheus owner grant --identity pki/alice --controller https://localhost:7401 --stream $(cat alice.stream) --reader doctor/consumer.txt --stop",
    ),
    Runs("alpheus owner choose"),
    Runs("alpheus owner backup"),
    Runs("alpheus owner restore"),
    Runs("alpheus owner revoke"),
    Runs("alpheus owner erase"),
];
