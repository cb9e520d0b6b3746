//! Failures of commands over files and keys, beside no server.

use super::walk::Case;

/// The files that the commands name.
pub(super) const FILES: &str = r#"
cat > meters.yaml <<END
name: Meters
tick: 10s
capacity: { population: 100, events: 10 }
streamAttributes:
  - name: reading
    type: integer
    min: 0
    max: 1000
    aggregations: [sum, count, { histogram: { lo: 0, width: 100, bins: 10 } }]
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [10], window: 10s, alpha: 0, dropout: 0 }
END
echo '{ schema: Meters, service: analyst, default: { reading: crowd } }' > crowd.yaml
echo 'SELECT SUM(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters' > sum.sql
cat > source.yaml <<END
{ schema: Meters, time: { column: time }, stream: meter, attributes: { reading: reading } }
END
echo 'time,meter,reading' > empty.csv
echo x > x.csv
printf 'shop,day,orders\nnorth,03/04/2024,10\nsouth,03/04/2024,20\n' > open.csv
{ echo person,time,steps
  for n in $(seq 0 47); do
      printf 'p%d,2024-03-04 %02d:00,%d\n' $((n % 12)) $((n / 12)) $((n * 7 % 31))
  done
} > steps.csv
echo 'name: 5' > broken.yaml
printf 'name: caf\351' > latin.yaml
echo 'nonsense = 1' > wrong.toml
echo junk > junk
{ echo activity_id,timestamp,heart_rate,altitude_m,speed_mps
  for second in $(seq 0 199); do
      for rider in $(seq 0 19); do
          [ $second -lt 30 ] || [ $second -ge 40 ] || [ $rider -lt 3 ] || continue
          echo r$rider,$((1700000000 + second)),$((100 + rider)),$((10 + second % 5)),3
      done
  done
} > gap.csv
head -60 gap.csv > short.csv
cat > street.yaml <<END
{ name: Street, time: { column: at }, columns: [{ name: cars, min: 0, max: 100 }] }
END
printf 'at,cars\n1367366400,500\n' > high.csv
printf 'at,cars\n1367366400,5\n' > counts.csv
echo 'SELECT SUM(cars)' > cars.sql
echo 'SELECT SUM(bikes)' > bikes.sql
alpheus ca init pki
for role in server consumer owner controller board issuer gateway; do
    alpheus ca issue pki --role $role --name $role
done
cp -r pki/consumer damaged && cp junk damaged/tls.pem
cp -r pki turned && alpheus ca rollover turned turned/server
alpheus ca issue turned --role server --name late && cp pki/server/tls.pem turned/late
umask 077
for name in own other; do head -c 32 /dev/urandom | base64 > $name.key; done
cp own.key open.key && chmod 644 open.key
alpheus controller init --identity pki/controller --state run/host --key-file own.key --ca pki
for copy in damaged later; do
    cp -r run/host run/$copy && cp run/host.fence run/$copy.fence
done
echo junk > run/damaged.fence
echo 'alpheus store, format 9' > run/later/FORMAT
for name in first second auditor ada bert cleo; do alpheus board key $name.key > $name.pub; done
cat ada.pub bert.pub cleo.pub > members.txt
alpheus board init board.json --members members.txt --authority pki/ca.pem --writers 3 \
    --epoch 600 --complaints 2 --timeout 60 \
    --first https://localhost:1 --first-key $(cat first.pub) \
    --second https://localhost:2 --second-key $(cat second.pub) \
    --auditor https://localhost:3 --auditor-key $(cat auditor.pub)
of_guide() { sed -n "/^cat > $1/,/^END/p" docs/statistics.md | sed '1d;$d' > $2; }
of_guide road.yaml road.yaml && of_guide define.yaml define.yaml
of_guide speed.csv speed.csv && of_guide source.yaml speed.yaml
sed 's/"operator": "./"operator": "x/' board.json > forged.json
alpheus pass account ada --accounts accounts.txt > ada.secret
alpheus pass init deployment --issuer https://localhost:1 --gateway https://localhost:1 \
    --authority pki/ca.pem --epoch 15
alpheus pass client join --card deployment/card.json --account ada --secret-file ada.secret \
    --pass ada.pass --key-file own.key
alpheus stats init roads --min-accounts 2 --wasteful-accounts 0 --authority pki/ca.pem \
    --registrar https://localhost:1 --aggregator https://localhost:1 \
    --smoother https://localhost:1,https://localhost:1 --smoother https://localhost:1,https://localhost:1 \
    --smoother https://localhost:1,https://localhost:1 --smoother https://localhost:1,https://localhost:1
"#;

/// What is wrong, and what the command says of it.
pub(super) const CASES: &[Case] = &[
    Case("command-line", 2, "alpheus query --wrong", "unexpected argument '--wrong'", ""),
    Case(
        "command-line",
        2,
        "alpheus errors no-such-id",
        "there is no error `no-such-id`",
        "`alpheus errors` lists all",
    ),
    Case(
        "command-line",
        2,
        "alpheus init open.csv --yes --zone Nowhere/Land",
        "--zone: `Nowhere/Land` is neither an offset",
        "",
    ),
    Case(
        "setting-wrong",
        4,
        "alpheus query --config wrong.toml --schema meters.yaml --query 'SHOW SCHEMAS'",
        "wrong.toml:1: unknown setting; expected one of",
        "",
    ),
    Case(
        "setting-missing",
        2,
        "alpheus server",
        "set it as a flag, as a variable or in the --config file",
        "",
    ),
    Case("setting-missing", 2, "alpheus controller run", "the setting identity is missing", ""),
    Case("setting-missing", 2, "alpheus table serve", "the setting identity is missing", ""),
    Case(
        "check-failed",
        1,
        "alpheus ca rollover --finish turned turned/late",
        "the certificate is still from the authority that is being replaced",
        "renew it first: `alpheus ca renew`",
    ),
    Case(
        "interrupted",
        130,
        r#"alpheus demo --check > demo.log 2>&1 &
 until grep -q 'What the service' demo.log; do sleep 0.05; done
 kill -TERM $!
 wait $! || code=$?
 cat demo.log >&2
 exit $code"#,
        "interrupted; nothing is kept",
        "",
    ),
    Case(
        "must-guess",
        6,
        "alpheus init open.csv --yes --output open",
        "2 important questions are open",
        "edit what the questions name in source.yaml",
    ),
    Case(
        "file-missing",
        5,
        "alpheus query --schema none.yaml --query 'SHOW SCHEMAS'",
        "none.yaml: No such file",
        "",
    ),
    Case(
        "file-missing",
        5,
        "alpheus console --identity none --server https://localhost:1",
        "none/tls.pem: No such file",
        "`alpheus ca issue` creates a folder",
    ),
    Case("file-missing", 5, "alpheus init none.csv --yes", "none.csv: No such file", ""),
    Case("file-missing", 5, "alpheus suggest none", "none: No such file", ""),
    Case("file-missing", 5, "alpheus up none", "none: No such file", ""),
    Case(
        "file-missing",
        5,
        "alpheus table query 'SELECT COUNT(*)' --state none",
        "none/table.key: No such file",
        "`alpheus table create` creates such a folder",
    ),
    Case(
        "file-exists",
        5,
        "alpheus init steps.csv --yes --output pki",
        "pki: File exists",
        "remove the folder, or name another one",
    ),
    Case(
        "file-not-permitted",
        5,
        "alpheus generate --schema examples/household/schema.yaml --profile examples/household/profile.yaml --output /sys/out.csv",
        "/sys/out.csv: ",
        "",
    ),
    Case(
        "file-open-to-others",
        4,
        "alpheus controller init --identity pki/controller --state run/open --key-file open.key --ca pki",
        "open.key: other users can read this key file (mode 644): run `chmod 600` on it",
        "",
    ),
    Case(
        "file-not-text",
        4,
        "alpheus query --schema latin.yaml --query 'SHOW SCHEMAS'",
        "latin.yaml: not UTF-8 text",
        "save it as UTF-8",
    ),
    Case("disk-full", 5, "alpheus errors > /dev/full", "No space left on device", ""),
    Case(
        "disk-full",
        5,
        "alpheus generate --schema examples/household/schema.yaml --profile examples/household/profile.yaml --output /dev/full",
        "No space left on device",
        "",
    ),
    Case(
        "io-failed",
        5,
        "alpheus query --schema pki --query 'SHOW SCHEMAS'",
        "pki: Is a directory",
        "",
    ),
    Case("file-invalid", 4, "alpheus check broken.yaml", "1 of 1 files are not valid", ""),
    Case(
        "file-invalid",
        4,
        "alpheus init empty.csv --yes --output none",
        "empty.csv: the file has a header and no row with a reading; give a file with data",
        "",
    ),
    Case(
        "file-invalid",
        4,
        "alpheus init pki --yes --output none",
        "pki: this is a folder",
        "name a file in it",
    ),
    Case(
        "schema-invalid",
        4,
        "alpheus query --schema broken.yaml --query 'SHOW SCHEMAS'",
        "broken.yaml: line 1, column 1: `streamAttributes` is missing",
        "",
    ),
    Case(
        "policies-invalid",
        4,
        "alpheus query --schema meters.yaml --policies broken.yaml --query 'SHOW SCHEMAS'",
        "broken.yaml: line 1, column 7 (name): unknown key `name`",
        "",
    ),
    Case(
        "source-invalid",
        4,
        "alpheus replay --schema meters.yaml --policies crowd.yaml --query sum.sql --output - --source sum.sql --input x.csv",
        "sum.sql: line 1 column 1: expected mapping",
        "",
    ),
    Case(
        "recording-invalid",
        4,
        "alpheus replay --schema meters.yaml --policies crowd.yaml --query sum.sql --output - --source source.yaml --input x.csv",
        "add a header to the input, or map an existing column",
        "",
    ),
    Case(
        "recording-empty",
        4,
        "alpheus replay --schema meters.yaml --policies crowd.yaml --query sum.sql --output - --source source.yaml --input empty.csv",
        "empty.csv: the recording has no row after the header",
        "give a recording with data",
    ),
    Case(
        "contract-invalid",
        4,
        "alpheus import broken.yaml --output imported",
        "not a contract of a known standard; the known standards are",
        "",
    ),
    Case(
        "request-refused",
        3,
        "alpheus init steps.csv --yes --error '1 %' --output none",
        "results with an error of 1 % are not possible",
        "the nearest possible error is",
    ),
    Case(
        "server-unreachable",
        5,
        "alpheus query --server https://localhost:1 --query 'SHOW SCHEMAS' --identity pki/consumer",
        "https://localhost:1: no answer",
        "",
    ),
    Case(
        "role-forbidden",
        4,
        "alpheus query --server https://localhost:1 --query 'SHOW SCHEMAS' --identity pki/owner",
        "the certificate is an owner's, and this command acts as a consumer",
        "",
    ),
    Case(
        "identity-invalid",
        4,
        "alpheus query --server https://localhost:1 --query 'SHOW SCHEMAS' --identity damaged",
        "damaged/tls.pem: the certificate cannot be read",
        "",
    ),
    Case(
        "url-invalid",
        2,
        "alpheus query --server nonsense --query 'SHOW SCHEMAS' --identity pki/consumer",
        "nonsense: an address is `https://host` or `https://host:port`",
        "",
    ),
    Case(
        "address-in-use",
        5,
        "alpheus server --identity pki/server --schema meters.yaml --state run/server --api 192.0.2.1:7400",
        "192.0.2.1:7400: cannot listen at this address",
        "choose another address, or port 0",
    ),
    Case(
        "state-damaged",
        4,
        "alpheus controller run --identity pki/controller --key-file own.key --schema meters.yaml --server https://localhost:1 --state run/damaged",
        "run/damaged.fence is not a fence file",
        "",
    ),
    Case(
        "state-other-format",
        5,
        "alpheus controller run --identity pki/controller --key-file own.key --schema meters.yaml --server https://localhost:1 --state run/later",
        "run/later: the store has format 9, but this version supports format",
        "use the version that wrote it",
    ),
    Case(
        "backup-invalid",
        4,
        "alpheus backup verify junk --key-file own.key",
        "junk: not a backup that `alpheus backup` wrote",
        "",
    ),
    Case(
        "key-wrong",
        4,
        "alpheus controller run --identity pki/controller --key-file other.key --schema meters.yaml --server https://localhost:1 --state run/host",
        "cannot be opened with this key file: use the one that it was created with",
        "",
    ),
    Case("card-invalid", 4, "alpheus board read --card forged.json", "copy the card again", ""),
    Case(
        "demo-unmet",
        1,
        "alpheus demo --check --input gap.csv --owners 20",
        "expected all windows to equal the plaintext",
        "",
    ),
    Case(
        "population-short",
        4,
        "alpheus demo --check --input short.csv --owners 20",
        "the demo needs 100 seconds with 20 people at the same time",
        "",
    ),
    Case(
        "pass-refused",
        3,
        "alpheus pass scan --identity pki/gateway --card deployment/card.json --verifiers https://localhost:1 nonsense",
        "this is not a login code",
        "",
    ),
    Case(
        "pass-missing",
        3,
        "alpheus pass client code --pass ada.pass --key-file own.key",
        "there is no pass for this period; fetch it",
        "",
    ),
    Case(
        "passfile-invalid",
        4,
        "alpheus pass client code --pass ada.pass --key-file other.key",
        "the key file is the wrong one, or the pass file is damaged",
        "",
    ),
    Case(
        "board-message",
        4,
        "echo | alpheus board post --card board.json --key ada.key",
        "the message is empty; give it in a file or on standard input",
        "",
    ),
    Case(
        "stats-smoothers",
        5,
        "alpheus stats define road.yaml --card roads/card.json --key roads/definer.key --timeout-seconds 1",
        "the smoothers have not created the day's key; check their logs",
        "",
    ),
    Case(
        "stats-definition",
        4,
        "alpheus stats define broken.yaml --card roads/card.json --key roads/definer.key",
        "broken.yaml: line 1 column 1: ",
        "",
    ),
    Case(
        "internal-error",
        5,
        r#"alpheus stats replay --input speed.csv --source speed.yaml --define define.yaml \
     --output out.csv 2> replay.log &
 while kill -0 $! 2> /dev/null; do
     for child in $(pgrep -P $!); do kill -TERM $child || true; done
     sleep 0.3
 done
 wait $! || code=$?
 cat replay.log >&2
 exit $code"#,
        "a process of the replay has ended",
        "",
    ),
    Case(
        "table-query",
        4,
        "alpheus table replay --output out.json --schema street.yaml --input counts.csv --query bikes.sql",
        "there is no column `bikes`; the schema has: cars",
        "",
    ),
    Case(
        "table-file",
        4,
        "alpheus table replay --output out.json --schema street.yaml --input high.csv --query cars.sql",
        "outside the schema's bounds 0 to 100; correct the file",
        "",
    ),
    Case(
        "table-schema",
        4,
        "alpheus table replay --output out.json --schema broken.yaml --input counts.csv --query cars.sql",
        "broken.yaml: line 1 column 1: missing field `time`",
        "",
    ),
];
