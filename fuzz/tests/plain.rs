//! Every fuzz target on stable Rust: over its seeds, each prefix of them, and
//! mutations drawn from a fixed seed.

#![expect(clippy::expect_used, reason = "a test's way to fail")]

#[path = "../../crates/policy/tests/all/avro_form.rs"]
mod avro_form;
mod bodies;
mod messages;
mod mutate;
mod short;
mod statistics;

// Only so that the linker finds what libFuzzer would call.
#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::named(data));

use alpheus_crypto::group::Element;
use std::path::{Path, PathBuf};

/// The longest input that a fuzzer starts with: longer ones make each of its steps slow.
const LONGEST: usize = 16 << 10;

/// Writes the seeds into a folder of `ALPHEUS_FUZZ_SEEDS`, for `make fuzz`, if there is that.
fn written(name: &str, seeds: &[Vec<u8>]) -> bool {
    let Some(folder) = std::env::var_os("ALPHEUS_FUZZ_SEEDS") else { return false };
    let folder = Path::new(&folder).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (at, seed) in seeds.iter().filter(|seed| seed.len() <= LONGEST).enumerate() {
        std::fs::write(folder.join(at.to_string()), seed).expect("space");
    }
    true
}

/// Runs `check` over the seeds, their prefixes and mutations.
fn run(check: fn(&[u8]), seeds: &[Vec<u8>]) {
    assert!(!seeds.is_empty(), "a target without seeds tests nothing");
    for seed in seeds {
        check(seed);
        // Long seeds are cut at every position near the start, then at some positions.
        let step = seed.len() / 512 + 1;
        (0..seed.len()).step_by(step).for_each(|end| check(&seed[..end]));
    }
    mutate::each(seeds, 3_000, check);
}

/// Files under the repository's root with this ending.
fn files(directory: &str, suffix: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: Vec<PathBuf> = Vec::new();
    let mut waiting = vec![root.join(directory)];
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

macro_rules! plain {
    ($name:ident, $($seeds:expr),+ $(,)?) => {
        #[test]
        fn $name() {
            let mut seeds: Vec<Vec<u8>> = files(concat!("fuzz/seeds/", stringify!($name)), "");
            $(seeds.extend($seeds);)+
            if !written(stringify!($name), &seeds) {
                run(alpheus_fuzz::$name, &seeds);
            }
        }
    };
}

plain!(frame, mutate::frames());
plain!(tick_frame, mutate::tick_frames());
plain!(document_yaml, files("examples", ".yaml"));
plain!(document_json, files("vectors", ".json"));
plain!(query, files("examples", ".sql"));
plain!(schema_yaml, files("examples", "schema.yaml"));
plain!(schema_avsc, avsc(&files("examples", "schema.yaml")));
plain!(policies, files("examples/fitness", "policies.yaml"));
plain!(discover, files("fuzz/seeds/discover", ""));
plain!(contract, files("examples/fitness", ".yaml"));
plain!(metrics, vec![b"{}".to_vec()]);
plain!(annotation, mutate::annotations());
plain!(messages, messages::one_of_each());
plain!(raw_access, mutate::frames(), mutate::raw_access());
plain!(backup, bodies::of_backups());
plain!(saved_write, bodies::of_saved_writes());
plain!(id_token, files("fuzz/seeds/id_token", ""));
plain!(sealed_sum, vectors("consumer", "encoded"));
plain!(receipt, vectors("receipts", "receipt"));
plain!(signed_row, vectors("receipts", "receipt"));
plain!(verification, alpheus_fuzz::verifications());
plain!(bounded, vectors("bounded", "encoded"));
plain!(job_message, vectors("jvm-job", "encoded"));
plain!(stream_bodies, bodies::of_streams());
plain!(table_bodies, bodies::of_tables());
plain!(peer_bodies, bodies::of_peers(), messages::one_of_each());
plain!(certificate, vec![vec![0x30, 3, 2, 1, 0]]);
plain!(rows, files("crates/input/tests", ".parquet"), bodies::lines());
plain!(board, vectors("anonymous-board", "row two three payload word parts answers"));
plain!(credential, vectors("anonymous-credential", "request login response re_up"));
plain!(access_pass, pass_messages());
plain!(statistics, statistics::one_of_each(), tuples());
plain!(table, table_messages());
plain!(pairing_table, pairing_messages());
plain!(proof, vec![Element::base().as_bytes().repeat(2), vec![2; 64]]);

/// Tuples, dealings and partial decryptions, including invalid ones.
fn tuples() -> Vec<Vec<u8>> {
    vectors("accountable-statistics", "tuple partial dealing")
}

/// Stamps, and messages of each length.
fn pass_messages() -> Vec<Vec<u8>> {
    let texts = files("vectors/access-pass", "request.json");
    let texts = texts.into_iter().filter_map(|text| String::from_utf8(text).ok());
    let stamps: Vec<Vec<u8>> = texts
        .flat_map(|text| {
            let stamps = text.split("\"stamp\": \"").skip(1);
            let stamps = stamps.filter_map(|rest| rest.split('"').next());
            stamps.map(|stamp| stamp.as_bytes().to_vec()).collect::<Vec<_>>()
        })
        .collect();
    let logins =
        vectors("anonymous-credential", "login").into_iter().filter(|login| login.len() == 392);
    let base = Element::base().as_bytes().repeat(4);
    let codes = logins.map(|login| [login, base.clone()].concat());
    let lengths = [24, 33, 40, 96, 160].map(|length| vec![7; length]);
    stamps.into_iter().chain(codes).chain(lengths).collect()
}

/// Every message with this name in a protocol's vectors, including invalid ones.
fn vectors(protocol: &str, names: &str) -> Vec<Vec<u8>> {
    let texts = files(&format!("vectors/{protocol}"), ".json");
    let texts: Vec<String> =
        texts.into_iter().filter_map(|text| String::from_utf8(text).ok()).collect();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for name in names.split(' ') {
        let opening = format!("\"{name}\": \"");
        let values = texts.iter().flat_map(|text| text.split(opening.as_str()).skip(1));
        let digits = values.filter_map(|rest| rest.split('"').next());
        found.extend(digits.filter(|digits| !digits.is_empty()).map(bytes).take(12));
    }
    found
}

fn bytes(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs.filter_map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

/// Schemas in YAML as Avro's JSON.
fn avsc(schemas: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let texts = schemas.iter().filter_map(|schema| std::str::from_utf8(schema).ok());
    texts.filter_map(|text| avro_form::avsc_of_yaml(text).map(String::into_bytes)).collect()
}

/// The harness itself must detect a decoder that fails on its seeds.
#[test]
#[should_panic(expected = "deep")]
fn a_decoder_that_breaks_on_nesting_is_seen() {
    let breaks = |data: &[u8]| assert!(!data.windows(8).any(|w| w == b"[[[[[[[["), "too deep");
    run(breaks, &[b"a: [1, 2]".to_vec()]);
}

/// A block, its answer, and a request for it.
fn table_messages() -> Vec<Vec<u8>> {
    use alpheus_verifiable_table::TableKey;
    use alpheus_verifiable_table::label::Order;
    use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, Moment};
    use alpheus_verifiable_table::owner::Owner;
    use alpheus_verifiable_table::parameters::Set;
    use alpheus_verifiable_table::server::Sum;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    let mut rng = ChaCha20Rng::from_seed([6; 32]);
    let mut ledger = std::collections::BTreeMap::new();
    let column = ColumnDeclaration { min: 0, max: 9, optional: false, squares: true };
    let layout = Layout::new(vec![column], &[]).expect("a column");
    let key = TableKey::random(&mut rng);
    let owner = Owner::create(&key, Set::L128, Order::ONE, layout, &mut rng);
    let mut owner = owner.commit(&mut ledger).expect("memory");
    let rows = vec![vec![Some(7)]; 4096];
    let step = owner.append(&rows, &mut rng).expect("rows within bounds");
    let block = step.commit(&mut ledger).expect("memory").pop().expect("a full block");
    let plan = owner.plan(Moment::Sum(0), 0, 4096).expect("a sum");
    let request = plan.question().expect("a whole block").request().clone();
    let mut sum = Sum::new(owner.manifest(), &request).expect("a good request");
    sum.add(&block).expect("a good block");
    let asked = postcard::to_allocvec(&request).expect("a request");
    let manifest = postcard::to_allocvec(owner.manifest()).expect("a manifest");
    let answer = sum.answer().to_bytes(owner.manifest().ring());
    vec![block.as_bytes().to_vec(), answer, asked, manifest]
}

/// The tags at the end of a block and of answers of both degrees, and a function.
fn pairing_messages() -> Vec<Vec<u8>> {
    use alpheus_fuzz::PAIRING;
    use alpheus_pairing_table::messages::{Function, Statistic};
    use alpheus_pairing_table::{owner::Owner, server::Evaluation};
    use alpheus_verifiable_table::TableKey;
    use alpheus_verifiable_table::label::Column;
    use alpheus_verifiable_table::messages::Weights;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    let mut rng = ChaCha20Rng::from_seed([6; 32]);
    let mut owner = Owner::begin(&TableKey::random(&mut rng), PAIRING, &mut rng).expect("a shape");
    let block = owner.seal(&[vec![7; 9]], &mut rng).expect("items within bounds");
    let end = |bytes: &[u8], length| bytes[bytes.len() - length..].to_vec();
    let mut seeds = vec![end(&block.to_bytes(), 288 + 64)];
    let column = Column(0);
    for of in
        [Statistic::Sum(column, Weights::Ones), Statistic::Products(column, column, Weights::Ones)]
    {
        let function = Function { of, from: 0, to: 1 };
        let mut evaluation = Evaluation::new(&PAIRING, &function).expect("a good function");
        evaluation.add(&block).expect("its block");
        let tag = if function.degree() == 1 { 96 } else { 3 * 576 };
        seeds.push(end(&evaluation.answer().expect("all blocks").to_bytes(), tag + 32));
        seeds.push(postcard::to_allocvec(&function).expect("a function"));
    }
    seeds
}
