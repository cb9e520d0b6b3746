//! Examples of commands over files.

use super::Step::{self, Lasts, Own, Runs, Serves};
use super::statistics;

pub(super) const STEPS: &[Step] = &[
    Own("cp examples/fitness/schema.yaml examples/fitness/policies.yaml \
         examples/fitness/source.yaml .
         cp examples/fitness/queries/heart-rate.sql stats.sql
         cp schema.yaml S.yaml && cp examples/fitness/profile.yaml P.yaml
         sed '/^GROUP BY/d; s/AND 10000$/AND 10000;/' examples/fitness/queries/speed.sql > daily.sql
         alpheus generate --schema S.yaml --profile P.yaml --streams 300 --minutes 1 \
             --output data.csv
         gzip data.csv"),
    Own("mkdir my-data && cp examples/household/*.yaml my-data
         cp examples/household/street.sql my-data/query.sql
         alpheus generate --schema my-data/schema.yaml --profile my-data/profile.yaml \
             --streams 6 --minutes 1 --output readings.csv"),
    Own("python3 - > fitness.csv <<END
print('activity_id,timestamp,heart_rate,altitude_m,speed_mps')
for second in range(200):
    for rider in range(30):
        print(f'r{rider},{1700000000 + second},{100 + rider},{10 + second % 5},{3 + rider % 4}')
END
gzip fitness.csv"),
    Runs("alpheus demo --check"),
    Runs("alpheus demo --input fitness.csv.gz --owners 30"),
    Runs("alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz --policies policies.yaml --query stats.sql --output results.csv"),
    Runs("alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz --policies policies.yaml --query stats.sql --controllers 8"),
    Runs("alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz --policies policies.yaml --query stats.sql --query daily.sql"),
    Runs("alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz --policies policies.yaml --output -"),
    Runs("alpheus generate --schema examples/fitness/schema.yaml"),
    Runs("alpheus generate --schema S.yaml"),
    Runs("alpheus check examples/fitness/schema.yaml"),
    Own("echo 'format = \"json\"' > alpheus.toml"),
    Runs("alpheus check alpheus.toml"),
    Runs("alpheus check my-data"),
    Runs("alpheus check --json-schema schema"),
    Runs("alpheus init readings.csv"),
    Runs("alpheus init readings.csv --yes --output readings"),
    Own("printf 'customer;day;amount\\nann;03/04/2024;10\\nbob;03/04/2024;20\\nann;05/04/2024;30\\n' > export.csv
         printf 'Date,Clock,Temp\\n13.02.2024,10:00,20.5\\n14.02.2024,11:00,21.5\\n' > logger.txt"),
    Runs("alpheus init data.csv.gz"),
    Runs("alpheus init export.csv"),
    Runs("alpheus init logger.txt"),
    Own("for day in 1 2 3; do for who in ann bob cy; do
             printf '{\"who\": \"%s\", \"when\": \"2024-03-0%sT10:00:00Z\", \"level\": %s, \"note\": \"%s7\"}\\n' \
                 $who $day 2$day.5 $day
         done; done > events.jsonl"),
    Runs("alpheus init events.jsonl --measure level"),
    Own("cat > orders.odcs.yaml <<END
kind: DataContract
apiVersion: v3.1.0
name: Shop
schema:
  - name: orders
    properties:
      - { name: order_id, logicalType: string, primaryKey: true, required: true }
      - { name: total, logicalType: number, physicalType: \"DECIMAL(10,2)\", required: true }
END
cat > datacontract.yaml <<END
dataContractSpecification: 1.1.0
id: shop
info: { title: Shop, version: 1.0.0 }
models:
  line_items:
    fields:
      item_id: { type: string, primaryKey: true }
      quantity: { type: integer, minimum: 0, maximum: 100 }
END
mkdir models
cat > models/properties.yml <<END
version: 2
models:
  - name: staff
    columns:
      - { name: hours, data_type: integer }
END
cat > user.avsc <<END
{\"type\": \"record\", \"name\": \"User\", \"fields\": [{\"name\": \"age\", \"type\": \"int\"}]}
END"),
    Runs("alpheus import orders.odcs.yaml"),
    Runs("alpheus import datacontract.yaml"),
    Runs("alpheus import models/properties.yml"),
    Runs("alpheus import user.avsc"),
    Own("sed -n '/^cat > captured.json/,/^END/p' examples/../docs/standards.md | bash"),
    Runs("alpheus otlp import captured.json"),
    Runs("alpheus query --schema schema.yaml --policies policies.yaml --query stats.sql"),
    Runs("alpheus query --schema schema.yaml --query 'DESCRIBE FitnessTracker'"),
    Runs("alpheus query --schema schema.yaml --policies policies.yaml --owners 300"),
    Runs("alpheus query --schema schema.yaml --metadata"),
    Runs("alpheus suggest my-data --input readings.csv"),
    Runs("alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql"),
    Runs("alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql --format json"),
    Runs("alpheus suggest --schema schema.yaml --policies policies.yaml --owners 300"),
    Runs("alpheus errors"),
    Runs("alpheus errors policy-forbids-window"),
    Runs("alpheus errors server-unreachable --format json"),
    Own("mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions"),
    Runs("alpheus completions bash"),
    Runs("alpheus completions fish"),
    Own("printf 'Hello\\nWorld\\nYes\\n' > posts.txt"),
    Runs("alpheus board replay --input posts.txt --output board.txt"),
    Own("rm board.txt"),
    Runs("alpheus board replay --input posts.txt --servers 3"),
    Own("rm board.txt"),
    Runs("alpheus board replay --input posts.txt --rows"),
    Own("sed -n '/^cat > speed.csv/,/^END/p; /^cat > source.yaml/,/^END/p' \
             examples/../docs/statistics.md | bash"),
    Own(statistics::GATE),
    Runs("alpheus stats replay --input speed.csv --source source.yaml --define gate.yaml"),
    // These play on until they are stopped.
    Serves("alpheus up my-data --input readings.csv", "Results of Street, as they arrive"),
    Lasts("alpheus up my-data --input readings.csv --query"),
];
