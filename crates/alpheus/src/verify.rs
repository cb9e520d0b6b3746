//! `alpheus verify`: checks what the controllers of a query's windows have signed, against the rows
//! that its service has published.

use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::revoked::Revoked;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::results::has_opened;
use alpheus_streams::deployment;
use alpheus_streams::links;
use alpheus_streams::query::lists::SeenLists;
use alpheus_streams::query::receipts::{
    RefusedRowError, all_receipts, check_all, check_without_result, listed_plan, open_plan, stated,
    window_of,
};
use alpheus_streams::query::sealed::Rows;
use alpheus_streams::revocations::open_consumer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats
  alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats \\
      --save stats.receipts.json
  alpheus verify --identity pki/analyst stats.receipts.json

Rows of a query with `integrity = 'verified'` are signed by the controllers of their windows. A row
that holds is what these controllers have signed; any of them could have changed it. The identity
folder says whom to trust: it has the authority's and the service's keys. If a row does not hold,
or no row has a result, the exit code is not 0.";

/// Arguments of `alpheus verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file that --save has written
    #[arg(value_name = "FILE", required_unless_present = "server", conflicts_with = "server")]
    pub file: Option<PathBuf>,
    /// The running service at this URL
    #[arg(long, value_name = "URL", requires = "query")]
    pub server: Option<String>,
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// The consumer's own query
    #[arg(long, value_name = "NAME", requires = "server")]
    pub query: Option<String>,
    /// Also write plans, receipts and rows to this file, to be verified elsewhere
    #[arg(long, value_name = "FILE", requires = "server")]
    pub save: Option<PathBuf>,
}

/// Version of the files.
const FORMAT: u32 = 1;

/// What is verified.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Evidence {
    format: u32,
    /// The query.
    query: String,
    /// Announcements of its plans, in hexadecimal digits.
    plans: Vec<String>,
    /// Receipts. In the file they are hexadecimal digits.
    #[serde(with = "digits")]
    receipts: Vec<Receipt>,
    /// Rows as the service has published them.
    rows: Vec<Map<String, Value>>,
}

/// Receipts as text.
mod digits {
    use alpheus_encrypted_stream::receipt::Receipt;
    use data_encoding::HEXLOWER;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(all: &[Receipt], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|receipt| HEXLOWER.encode(&receipt.to_bytes())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Receipt>, D::Error> {
        let read = |digits: String| {
            let bytes = HEXLOWER.decode(digits.as_bytes()).map_err(D::Error::custom)?;
            Receipt::from_bytes(&bytes).map_err(D::Error::custom)
        };
        Vec::<String>::deserialize(from)?.into_iter().map(read).collect()
    }
}

/// Rows differ from what the controllers have signed, or there are none.
#[derive(Debug, thiserror::Error)]
pub enum UnverifiedRowsError {
    /// Some differ.
    #[error("{refused} of {all} rows do not hold")]
    Refused {
        /// How many do.
        refused: usize,
        /// How many were checked.
        all: usize,
    },
    /// Nothing was checked.
    #[error("no row of {query} has a result, so nothing was checked")]
    NoResult {
        /// The query.
        query: String,
    },
}

/// Runs the command.
///
/// # Errors
/// [`Category::Check`] if a row does not hold, [`Category::Input`] if a file cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let identity = open_consumer(args.identity.as_ref(), globals)?;
    let deployment = deployment::of(&identity)?;
    let evidence = match (&args.file, &args.server, &args.query) {
        (Some(file), ..) => {
            let text = std::fs::read_to_string(file).blame_io(file)?;
            let evidence: Evidence = serde_json::from_str(&text).blame_input(file)?;
            if evidence.format != FORMAT {
                let known = format!("the file has format {}, not {FORMAT}", evidence.format);
                return Err(Failure::new(Category::Input, known).at(file.display().to_string()));
            }
            evidence
        }
        (None, Some(server), Some(query)) => {
            let client = links::service(server, &identity)?;
            client.block_on(gather(&client, query))?
        }
        _ => return Err("give a file, or --server and --query").blame(Category::Usage),
    };
    if let Some(path) = &args.save {
        let text = serde_json::to_string(&evidence).blame(Category::Io)?;
        std::fs::write(path, text).blame_io(path)?;
    }
    report(&evidence, &deployment, identity.revoked())
}

/// Everything that the service has of a query.
async fn gather(client: &BlockingClient, query: &str) -> Result<Evidence, RequestError> {
    let (http, mut rows, mut after) = (client.http(), Vec::new(), 0);
    loop {
        let path = format!("/v1/queries/{query}/results?after={after}&wait=0");
        let page: Rows = http.get_json(&path, Duration::ZERO).await?;
        let done = page.rows.is_empty() && page.next <= after;
        rows.extend(page.rows);
        after = page.next;
        if done {
            break;
        }
    }
    let (receipts, plans) = all_receipts(http, query).await?;
    Ok(Evidence {
        format: FORMAT,
        query: query.to_owned(),
        plans: plans.into_values().collect(),
        receipts: receipts.into_iter().filter_map(|(.., receipt)| receipt.ok()).collect(),
        rows,
    })
}

/// Says of each row whether it holds.
fn report(
    evidence: &Evidence,
    deployment: &Deployment,
    revoked: Option<&Revoked>,
) -> Result<(), Failure> {
    let (mut refused, mut held) = (0, 0);
    let mut verifier = Verifier::new(evidence, deployment, revoked)?;
    let mut out = std::io::stdout().lock();
    for row in &evidence.rows {
        let text = |name: &str| row.get(name).map_or_else(String::new, ToString::to_string);
        let window = format!("{} – {}", text("window_start"), text("window_end"));
        let said = match verifier.verify(row) {
            Ok(Some(holds)) => {
                held += 1;
                format!("{window}: {holds}")
            }
            Ok(None) => format!("{window}: no result: {}", text("status")),
            Err(why) => {
                refused += 1;
                format!("{window}: does not hold: {why}")
            }
        };
        if printed(writeln!(out, "{said}"))?.is_break() {
            break;
        }
    }
    let failure = |error| {
        Err(Failure::new(Category::Check, error).with_id(ErrorId::CheckFailed).with_help(
            "the service has published something else than what the controllers signed, or nothing",
        ))
    };
    match (refused, held) {
        (0, 0) => failure(UnverifiedRowsError::NoResult { query: evidence.query.clone() }),
        (0, _) => Ok(()),
        (refused, held) => failure(UnverifiedRowsError::Refused { refused, all: refused + held }),
    }
}

/// Plans that were checked, and receipts by what they say they are of.
struct Verifier<'a> {
    query: &'a str,
    plans: HashMap<PlanId, Arc<AnnouncedPlan>>,
    receipts: HashMap<(PlanId, u64), &'a Receipt>,
    revoked: Option<&'a Revoked>,
    /// By epochs: which list has signed each window.
    lists: SeenLists,
}

impl<'a> Verifier<'a> {
    fn new(
        evidence: &'a Evidence,
        deployment: &Deployment,
        revoked: Option<&'a Revoked>,
    ) -> Result<Self, Failure> {
        let mut plans = HashMap::new();
        for announcement in &evidence.plans {
            let announced = open_plan(announcement, deployment).blame(Category::Check)?;
            plans.insert(announced.id(), announced);
        }
        let mut receipts = HashMap::new();
        for receipt in &evidence.receipts {
            if let Some(listed) = listed_plan(receipt, deployment) {
                let announced = listed.blame(Category::Check)?;
                plans.insert(announced.id(), announced);
            }
            // Only to find it: verification checks the signature.
            if let Some(membership) = receipt.membership.dangerous_unverified() {
                receipts.insert((membership.plan, membership.window.start.0 / 1000), receipt);
            }
        }
        let (query, lists) = (&evidence.query, SeenLists::default());
        Ok(Self { query, plans, receipts, revoked, lists })
    }

    /// What a row's receipt shows; nothing of a row without a result.
    fn verify(&mut self, row: &Map<String, Value>) -> Result<Option<String>, RefusedRowError> {
        let key = stated(row).ok_or(RefusedRowError::Plain)?;
        let announced = self.plans.get(&key.0);
        if !row.get("status").and_then(Value::as_str).is_some_and(has_opened) {
            return check_without_result(row, announced.map(Arc::as_ref)).map(|()| None);
        }
        let announced = announced.ok_or(RefusedRowError::NoReceipt)?;
        let receipt = self.receipts.get(&key).ok_or(RefusedRowError::NoReceipt)?;
        let window = window_of(announced, key.1).ok_or(RefusedRowError::Malformed)?;
        let seen = (self.revoked, &mut self.lists);
        check_all(row, self.query, announced, (window, receipt), seen).map(Some)
    }
}
