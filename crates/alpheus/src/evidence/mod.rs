//! `alpheus evidence`: a pack for a data protection impact assessment. `docs/wire-formats.md`
//! describes the file, [`lineage`] what OpenLineage makes of it, and `docs/evidence/check.py` checks it without any code of ours.

mod lineage;

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::evidence::{EvidenceSeal, exhibit};
use alpheus_input::calendar::Day;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Category, Failure, printed};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_stream_runtime::results::has_opened;
use alpheus_streams::query::open_consumer;
use alpheus_streams::query::paths::path_of;
use alpheus_streams::query::receipts::all_receipts;
use alpheus_streams::server::evidence::EvidenceAnswer;
use alpheus_streams::{deployment, links};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus evidence --server https://localhost:7400 --identity pki/analyst \\
      --from 2026-01-01 --until 2026-12-31 --output evidence.jsonl
  alpheus evidence --server https://localhost:7400 --identity pki/analyst \\
      --from 2026-01-01 --until 2026-12-31 --openlineage lineage.jsonl

The file contains facts, not conclusions: who could learn what, current policies, each row of the
consumer's queries with its receipt and its cost, withdrawals, revocations, software and keys. The
service signs them. docs/evidence/check.py recomputes them from plans and receipts, which are also
in the file. It needs Python with the package `cryptography`, and no part of Alpheus.";

/// Milliseconds in a day.
const DAY: u64 = 86_400_000;
/// How long the service may take to write the statement.
const PATIENCE: Duration = Duration::from_secs(300);

/// Arguments of `alpheus evidence`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The running service at this URL
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// The first day, UTC
    #[arg(long, value_name = "DAY")]
    pub from: Day,
    /// The last day, UTC
    #[arg(long, value_name = "DAY")]
    pub until: Day,
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE", default_value = "evidence.jsonl")]
    pub output: PathBuf,
    /// Also write released windows as OpenLineage events, one per line, to this file, which must
    /// not exist
    #[arg(long, value_name = "FILE")]
    pub openlineage: Option<PathBuf>,
}

/// The service's answer is not what it signed.
#[derive(Debug, thiserror::Error)]
#[error("the service has not signed these lines")]
struct UnsignedError;

/// A plan, as far as its exhibit is fetched by it.
#[derive(Deserialize)]
struct PlanAnswer {
    announcement: String,
}

/// Runs the command.
///
/// # Errors
/// If the service does not answer, has not signed its statement, or the file cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let identity = open_consumer(args.identity.as_ref(), globals)?;
    let deployment = deployment::of(&identity)?;
    let client = links::service(&args.server, &identity)?;
    let until = args.until.0.saturating_add(1).saturating_mul(DAY);
    let span = (args.from.0.saturating_mul(DAY), until);
    let answer = client.block_on(statement(client.http(), span))?;
    let lines = signed_lines(&answer, &deployment).ok_or_else(|| {
        Failure::new(Category::Check, UnsignedError).with_id(ErrorId::CheckFailed)
    })?;
    let pack = Pack::read(&answer.text);
    let exhibits = client.block_on(pack.exhibits(client.http()))?;
    let signature = json!({ "kind": "signature", "lines": lines, "signed": answer.signed });
    let mut text = format!("{}{signature}\n", answer.text);
    exhibits.iter().for_each(|exhibit| text.push_str(&format!("{exhibit}\n")));
    write_new(&args.output, text.as_bytes(), Readers::Owner)?;
    if let Some(path) = &args.openlineage {
        let events = lineage::lines(&pack, &exhibits, &args.server, &deployment);
        write_new(path, events.as_bytes(), Readers::Owner)?;
    }
    let said = format!(
        "{}: {} rows of {} plans, with {} receipts and announcements\n",
        args.output.display(),
        pack.releases,
        pack.plans.len(),
        exhibits.len()
    );
    let mut out = std::io::stdout().lock();
    printed(out.write_all(said.as_bytes()).and_then(|()| out.flush())).map(drop)
}

async fn statement(
    client: &HttpClient,
    (from, until): (u64, u64),
) -> Result<EvidenceAnswer, RequestError> {
    client.get_json(&format!("/v1/evidence?from={from}&until={until}"), PATIENCE).await
}

/// How many lines there are, if the service has signed them.
fn signed_lines(answer: &EvidenceAnswer, deployment: &Deployment) -> Option<u64> {
    let bytes = HEXLOWER.decode(answer.signed.as_bytes()).ok()?;
    let signed: Signed<EvidenceSeal> = postcard::from_bytes(&bytes).ok()?;
    let (stated, found) = (signed.open(deployment.service()).ok()?, EvidenceSeal::of(&answer.text));
    (*stated == found).then_some(found.lines)
}

/// The plan and the times of a release, in milliseconds, if it has a result.
fn opened(release: &Value) -> Option<(String, u64, u64)> {
    let row = release.get("row").filter(|row| row["status"].as_str().is_some_and(has_opened))?;
    let time = |name: &str| row.get(name).and_then(Value::as_u64);
    Some((release.get("plan")?.as_str()?.to_owned(), time("window_start")?, time("window_end")?))
}

/// What a statement names.
#[derive(Default)]
struct Pack {
    /// Plans with the query that each is of, if the service has announced it.
    plans: Vec<(String, Option<String>)>,
    /// Queries with receipts.
    verified: BTreeSet<String>,
    /// Digests of announcements and receipts.
    named: BTreeSet<String>,
    releases: usize,
    schema: Option<Value>,
    /// Windows with a result: plan, start and end in milliseconds.
    opened: Vec<(String, u64, u64)>,
}

impl Pack {
    fn read(text: &str) -> Pack {
        let mut pack = Pack::default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let own = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
            match own("kind").as_deref() {
                Some("plan") => {
                    let announcement = own("announcement");
                    let query = own("query").filter(|_| announcement.is_some());
                    pack.named.extend(announcement);
                    pack.plans.extend(own("id").map(|id| (id, query)));
                }
                Some("schema") => pack.schema = line.get("schema").cloned(),
                Some("release") => {
                    pack.releases += 1;
                    pack.opened.extend(opened(&line));
                    if let Some(receipt) = own("receipt") {
                        pack.named.insert(receipt);
                        pack.verified.extend(own("query"));
                    }
                }
                _ => {}
            }
        }
        pack
    }

    /// Announcements and receipts that the statement names, as lines.
    async fn exhibits(&self, client: &HttpClient) -> Result<Vec<Value>, RequestError> {
        let mut exhibits = Vec::new();
        for (id, query) in &self.plans {
            let Some(query) = query else { continue };
            let path = path_of(query, &format!("plans/{id}"));
            let answer: PlanAnswer = client.get_json(&path, Duration::ZERO).await?;
            exhibits.extend(self.exhibit("announcement", answer.announcement));
        }
        for query in &self.verified {
            let (receipts, _) = all_receipts(client, query).await?;
            for receipt in receipts.into_iter().filter_map(|(.., receipt)| receipt.ok()) {
                let digits = HEXLOWER.encode(&receipt.to_bytes());
                exhibits.extend(self.exhibit("receipt", digits));
            }
        }
        Ok(exhibits)
    }

    /// A line with these bytes, if the statement names them.
    fn exhibit(&self, kind: &str, digits: String) -> Option<Value> {
        let bytes = HEXLOWER.decode(digits.as_bytes()).ok()?;
        let named = self.named.contains(&exhibit(&bytes).to_string());
        named.then(|| json!({ "kind": kind, "bytes": digits }))
    }
}
