//! Examples that do not run here, and why; and who runs the commands of the guides.

/// Beginnings of examples, and why they do not run.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("alpheus demo", "it waits for its reader at each step; with --check it runs without"),
    ("alpheus up --stay", "it goes on until Ctrl-C; `up.rs` ends it"),
    ("alpheus up my-data --owners 40", "it starts 40 devices; `up.rs` starts 14"),
    ("alpheus up", "`up.rs` runs it, and ends it"),
    (
        "alpheus server --config server.toml --engine job",
        "it needs Kafka and Flink; `flink.rs` runs it",
    ),
    ("alpheus worker --identity pki/service", "it needs Kafka; `worker.rs` runs it"),
    ("alpheus worker --config worker.toml", "it needs Kafka; `worker.rs` runs it"),
    (
        "alpheus private-copy",
        "it copies what is mounted at /from in a container; its own tests copy such folders",
    ),
    (
        "alpheus doctor --config /etc/alpheus",
        "it reads the settings that packages install; `doctor` runs it with settings of its own",
    ),
    (
        "alpheus owner move",
        "it needs a second host; `moves.rs` moves streams, also from a lost one",
    ),
    ("alpheus verify", "the commands of the guide docs/integrity.md, which `verified.rs` runs"),
    ("alpheus evidence", "the commands of the guide docs/standards.md, which `evidence` runs"),
    (
        "alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats --verified",
        "it needs a verified query; `verified.rs` has one, and a service that cheats",
    ),
    (
        "alpheus otlp --identity",
        "the guide docs/standards.md has it, which `otlp` runs with a service of a program's own schema",
    ),
    ("alpheus otlp capture", "it goes on until Ctrl-C; `otlp` runs it, and ends it"),
    ("alpheus console --statistics", "it needs an aggregator; `console/statistics.rs` runs it"),
    ("alpheus manual", "it writes to the system's folders; packages run it as they are built"),
    ("alpheus pass", "the commands of the guide docs/pass.md, which `pass` runs as a whole"),
    ("zbarcam", "it needs a camera; `pass/gates.rs` pipes in codes that were read"),
    ("(umask 077; head -c 32", "the guide docs/pass.md has it, which `pass` runs as a whole"),
    (
        "alpheus board",
        "the commands of the guide docs/board.md, which `board/guide.rs` runs as a whole",
    ),
    ("echo 'Hello' | alpheus board", "the guide docs/board.md has it, which `board/guide.rs` runs"),
    ("alpheus stats", "the commands of the guide docs/statistics.md, which `stats/guide.rs` runs"),
    ("speedometer |", "it needs a speedometer; `stats/clients.rs` pipes in readings"),
    (
        "curl",
        "it needs an aggregator; the guide docs/statistics.md has it, which `stats/guide.rs` runs",
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
    ("docs/board.md", "alpheus board member", Err("it goes on; `board/day.rs` runs such members")),
    (
        "docs/board.md",
        "echo 'Hello' |",
        Err("it needs that member; `board/day.rs` queues for some"),
    ),
    ("docs/board.md", "alpheus board queue", Err("it needs that member; `board/day.rs` has some")),
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
