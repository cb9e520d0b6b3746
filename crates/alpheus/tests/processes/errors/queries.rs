//! Queries that are refused, each for another reason.

use super::walk::Case;

/// The schema, and a file of policies for each of its options.
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
  - { name: minute, option: aggregate, clients: [10], window: 1min, alpha: 0, dropout: 0 }
  - { name: coarse, option: aggregate, clients: [10], window: 10s, generalise: { attribute: reading, width: 200 } }
  - { name: sealed, option: aggregate, clients: [10], window: 10s, to: hospital }
  - { name: noisy, option: dp-aggregate, clients: [10], window: 10s, budget: { perWindow: 1, total: 10, unit: person-per-window } }
  - { name: hidden, option: private }
  - { name: large, option: aggregate, clients: [10, 100], window: [10s, 1hr], alpha: 0, dropout: 0 }
END
for option in crowd minute coarse sealed noisy hidden large; do
    echo "{ schema: Meters, service: analyst, default: { reading: $option } }" > $option.yaml
done
cat > stated.yaml <<END
schema: Meters
service: analyst
default:
  reading: { option: large, clients: 100, window: 10s }
END
cat > ask <<'END'
#!/bin/bash
sql="SELECT $2 WINDOW TUMBLING (SIZE ${3:-10} SECONDS) FROM Meters $4"
exec alpheus query --schema meters.yaml --policies "$1.yaml" --query "$sql" --owners "${5:-20}"
END
chmod +x ask
"#;

/// The arguments of `ask` are the policy, what is asked, the window, further clauses, and how many owners
/// there are.
pub(super) const CASES: &[Case] = &[
    Case("query-syntax", 4, "./ask crowd 'SUM(reading'", "1 | SELECT SUM(reading WINDOW", ""),
    Case("query-unknown-name", 4, "./ask crowd 'SUM(raeding)'", "did you mean `reading`?", ""),
    Case(
        "query-unknown-name",
        4,
        "alpheus query --schema meters.yaml --query 'DESCRIBE Nobody'",
        "there is no schema or running query named `Nobody`",
        "",
    ),
    Case(
        "query-not-offered",
        4,
        "./ask crowd 'VAR(reading)'",
        "it supports SUM(reading), COUNT(reading),",
        "",
    ),
    Case("query-bins", 4, "./ask crowd 'HISTOGRAM(reading, 0, 70, 5)'", "bins cannot be split", ""),
    Case("query-window", 4, "./ask crowd 'SUM(reading)' 7", "write `SIZE 10 SECONDS`", ""),
    Case(
        "query-noise",
        3,
        "./ask crowd 'SUM(reading)' 10 'WITH (delta = 1e-9)'",
        "set epsilon as well, as in `WITH (epsilon = 0.5",
        "",
    ),
    Case(
        "query-no-streams",
        4,
        "alpheus query --schema examples/fitness/schema.yaml --policies examples/fitness/policies.yaml --query \"SELECT AVG(speed) WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker WHERE region = 'Atlantis'\"",
        "no stream of FitnessTracker matches the conditions on metadata",
        "",
    ),
    Case(
        "query-too-large",
        4,
        "./ask crowd 'SUM(reading)' 10 'BETWEEN 200 AND 300' 300",
        "exceeds the schema's capacity of 100 streams",
        "",
    ),
    Case(
        "policy-forbids-private",
        3,
        "./ask hidden 'SUM(reading)'",
        "their owners keep `reading` private",
        "",
    ),
    Case(
        "policy-forbids-window",
        3,
        "./ask minute 'SUM(reading)'",
        "only in windows that are multiples of 1 MINUTE",
        "minute.yaml, line 1, chooses `minute`, which the schema offers with `window: 1min` alone",
    ),
    Case("policy-forbids-precision", 3, "./ask coarse 'SUM(reading)'", "only in buckets of", ""),
    Case(
        "policy-forbids-consumer",
        3,
        "./ask sealed 'SUM(reading)'",
        "only to hospital, sealed to its key; add RELEASE TO",
        "",
    ),
    Case(
        "policy-forbids-population",
        3,
        "./ask crowd 'SUM(reading)' 10 '' 5",
        "at least 10 owners with data are required, and there are 5",
        "crowd.yaml, line 1, chooses `crowd`, which the schema offers with `clients: 10` alone",
    ),
    Case(
        "policy-forbids-maximum",
        3,
        "./ask crowd 'SUM(reading)' 10 'BETWEEN 1 AND 5'",
        "require at least 10 owners, but the query allows at most 5",
        "crowd.yaml, line 1, chooses `crowd`, which the schema offers with `clients: 10` alone",
    ),
    Case(
        "policy-forbids-epsilon",
        3,
        "./ask noisy 'SUM(reading)' 10 'WITH (epsilon = 2)'",
        "allows at most ε = 1 per window",
        "",
    ),
    Case(
        "policy-requires-noise",
        3,
        "./ask noisy 'SUM(reading)' 10 '' 5",
        "only with noise; add WITH (epsilon = …)",
        "noisy.yaml, line 1, chooses `noisy`, which the schema offers with `clients: 10` alone",
    ),
    Case(
        "policy-forbids",
        3,
        "./ask noisy 'SUM(reading)' 10 'WITHIN 1 OF 95 %'",
        "  asked: ±1 in 95 of 100 windows\n  best: ±",
        "planned for 20 owners with one stream each, at one controller; --owners ",
    ),
    Case(
        "policy-forbids-window",
        3,
        "./ask large 'SUM(reading)'",
        "",
        "large.yaml, line 1, leaves `window` open, so 1h applies; the schema offers 10s, 1h for `large`",
    ),
    Case(
        "policy-forbids-population",
        3,
        "./ask large 'SUM(reading)' 3600",
        "at least 100 owners",
        "large.yaml, line 1, leaves `clients` open, so 100 applies; the schema offers 10, 100 for `large`",
    ),
    Case(
        "policy-forbids-population",
        3,
        "./ask stated 'SUM(reading)'",
        "at least 100 owners",
        "stated.yaml, line 4, sets `clients: 100` for `large`",
    ),
];
