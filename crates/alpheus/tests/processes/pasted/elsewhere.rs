//! Examples that do not run here, and why; and who runs the commands of the guides.

/// Examples, by their beginnings, and the guide that has them and is run; or why none runs here.
pub(super) const EXAMPLES: &[(&str, Result<&str, &str>)] = &[
    ("alpheus demo", Err("it waits for its reader at each step; with --check it runs here")),
    ("alpheus up --stay", Err("it goes on until Ctrl-C; `up.rs` ends it so")),
    ("alpheus up my-data --owners 40", Err("it starts 40 devices; `up.rs` starts 14")),
    ("alpheus up", Err("it cleans up when it is ended by Ctrl-C; `up.rs` ends it so")),
    (
        "alpheus server --config server.toml --engine job",
        Err("it needs Kafka and Flink; `flink.rs` runs it"),
    ),
    ("alpheus worker --identity pki/service", Err("it needs Kafka; `worker.rs` runs it")),
    ("alpheus worker --config worker.toml", Err("it needs Kafka; `worker.rs` runs it")),
    (
        "alpheus private-copy",
        Err("it copies what is mounted at /from in a container; its own tests copy such folders"),
    ),
    (
        "alpheus doctor --config /etc/alpheus",
        Err("it reads the settings that packages install; `doctor` runs it with its own"),
    ),
    ("alpheus otlp --identity", Ok("docs/standards.md")),
    (
        "alpheus otlp capture",
        Err("others may use its two ports; `otlp` runs it on free ones, and ends it"),
    ),
    ("alpheus manual", Err("it writes to the system's folders; packages run it as they are built")),
    (
        "alpheus pass issuer --identity pki/issuer --deployment deployment --oidc-provider",
        Err("it asks login.example; `pass/identities.rs` has a provider of its own"),
    ),
    (
        "alpheus stats replay --input speed.csv --source source.yaml --define define.yaml",
        Ok("docs/statistics.md"),
    ),
    (
        "alpheus stats replay --from 2012-03-01T06:00",
        Err("it needs a recording that is no part of the repository; `stats/real.rs` replays it"),
    ),
];

/// Guides with commands, and the test that runs them, or why none does.
pub(super) const GUIDES: &[(&str, Result<&str, &str>)] = &[
    ("README.md", Ok("examples.rs")),
    ("examples/car-maintenance/README.md", Ok("examples.rs")),
    ("examples/fitness/README.md", Ok("examples.rs")),
    ("examples/household/README.md", Ok("examples.rs")),
    ("examples/web-analytics/README.md", Ok("examples.rs")),
    (
        "examples/real/README.md",
        Err("it needs recordings that are no part of the repository; `real_data.rs` replays them"),
    ),
    ("docs/board.md", Ok("board/guide.rs")),
    ("docs/board-passes.md", Ok("board/guide.rs")),
    ("docs/bring-your-data.md", Ok("init.rs")),
    ("docs/pass.md", Ok("pass/nginx.rs")),
    ("docs/scale.md", Err("it needs Kafka and Flink; `make scale-demo` runs its blocks")),
    ("docs/standards.md", Ok("import/mod.rs")),
    ("docs/statistics.md", Ok("stats/guide.rs")),
    ("docs/tables.md", Ok("table/guide.rs")),
    ("docs/tour.md", Ok("tour.rs")),
];

/// Commands in blocks of a terminal that no group runs: the page, how they begin, and the test that runs
/// them as the page has them, or why none does.
pub(super) const TERMINALS: &[(&str, &str, Result<&str, &str>)] = &[
    ("README.md", "apt install", Err("it installs a package; `drills/packages.sh` does")),
    ("README.md", "make demo", Err("it builds and runs the demo; `demo.rs` runs that")),
    ("README.md", "make test", Err("it runs every test, and this one")),
    ("CONTRIBUTING.md", "", Err("it builds, tests or measures code; it uses no program of ours")),
    ("bindings/c/README.md", "", Err("it builds a binding; `make c` and `make dist` try it")),
    ("bindings/js/README.md", "", Err("it installs what `make dist` builds and tries")),
    ("bindings/python/README.md", "", Err("it installs what `make dist` builds and tries")),
    ("docs/decisions/0022-paillier-as-a-baseline.md", "", Err("it measures for minutes")),
    ("docs/integrity.md", "", Ok("verified.rs")),
    ("docs/operating.md", "ssh-keygen", Err("it needs a signed release, and who signed it")),
    (
        "docs/operating.md",
        "sha256sum",
        Err("it needs a release; `drills/packages.sh` verifies one"),
    ),
    ("docs/operating.md", "apt install", Err("it installs packages; `drills/packages.sh` does")),
    ("docs/scale.md", "make scale-demo", Err("it needs Kafka and Flink, and runs the page")),
    ("docs/scale.md", "alpheus worker", Err("it needs Kafka; `worker.rs` runs workers")),
    ("docs/standards.md", "alpheus otlp", Ok("otlp/mod.rs")),
    ("docs/standards.md", "alpheus evidence", Ok("evidence/mod.rs")),
    ("docs/standards.md", "python3 docs/evidence", Ok("evidence/mod.rs")),
    ("docs/standards.md", "", Err("it needs PostgreSQL's client and dbt; `make interop` runs it")),
];
