//! Reading rows that are sealed to the consumer that asked for them.

use super::asked::AskedVerified;
use super::receipts::{QueryReceipts, RefusedRowError, check, open_plan, stated};
use crate::deployment;
use crate::deployment::CONSUMER_SEED;
use crate::deployment::{CONSUMER_CERTIFICATE, from_hex};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets, Reader, SealedSum};
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::pki::read_seed;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::results::{Sealed, has_opened, opened};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A statement as it is sent.
#[derive(Serialize)]
pub struct Statement<'a> {
    /// The statement.
    pub sql: &'a str,
    /// The certificate to which `RELEASE TO` seals results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<&'a str>,
}

/// A page of rows.
#[derive(Serialize, Deserialize)]
pub struct Rows {
    /// The rows, as flat objects.
    pub rows: Vec<Map<String, Value>>,
    /// Where to continue.
    pub next: u64,
}

/// A sealed row's columns by name, or the reason why they cannot be read.
type Columns = Result<Vec<(String, Value)>, String>;

/// A plan as the service announced it.
#[derive(Deserialize)]
pub(super) struct PlanAnswer {
    /// In hexadecimal digits.
    pub(super) announcement: String,
}

/// A consumer's keys, and the checked plans whose rows it reads.
pub struct Opener {
    deployment: Deployment,
    keys: Option<(Consumer, String)>,
    /// By plan, or why its rows cannot be read.
    readers: Mutex<HashMap<PlanId, Arc<Result<Reader, String>>>>,
    /// By plan, or why it does not check out.
    plans: Mutex<HashMap<PlanId, Plan>>,
    /// By query.
    receipts: tokio::sync::Mutex<HashMap<String, QueryReceipts>>,
    /// The queries whose rows must be verified, whatever the service says of them.
    asked: AskedVerified,
    /// Whether the rows of all queries must be.
    requires_verified: bool,
}

/// A plan as it was announced and checked, or why it was refused.
type Plan = Result<Arc<AnnouncedPlan>, RefusedRowError>;

/// Plans that are remembered. A service that names a new one in each row cannot fill the memory.
const PLANS: usize = 64;

/// The keys of an identity folder, with its protocol certificate, also as text.
///
/// # Errors
/// A [`Failure`] that names the file that cannot be used.
pub fn consumer(
    identity: &IdentityFolder,
) -> Result<(Consumer, Signed<Certificate>, String), Failure> {
    let (deployment, path) = (deployment::of(identity)?, identity.path(CONSUMER_CERTIFICATE));
    let text = std::fs::read_to_string(&path).blame_io(&path)?;
    let certificate: Signed<Certificate> = from_hex(&text)
        .ok_or("not a protocol certificate in hexadecimal digits")
        .blame_input(&path)?;
    let secrets = ConsumerSecrets::from_seed(&read_seed(&identity.path(CONSUMER_SEED))?);
    let consumer = secrets.certified(&certificate, &deployment).blame_input(&path)?;
    Ok((consumer, certificate, text.trim().to_owned()))
}

impl Opener {
    /// Loads the keys of an identity folder. Without keys, only unsealed rows can be read.
    ///
    /// # Errors
    /// A [`Failure`] that names the file that cannot be used.
    pub fn new(identity: &IdentityFolder) -> Result<Opener, Failure> {
        let deployment = deployment::of(identity)?;
        let keys = match identity.path(CONSUMER_CERTIFICATE).exists() {
            true => consumer(identity).map(|(consumer, _, text)| Some((consumer, text)))?,
            false => None,
        };
        Ok(Opener {
            deployment,
            keys,
            readers: Mutex::default(),
            plans: Mutex::default(),
            receipts: tokio::sync::Mutex::default(),
            asked: AskedVerified::of(identity),
            requires_verified: false,
        })
    }

    /// Refuses rows that do not say that they are verified, of any query.
    pub fn require_verified(&mut self) {
        self.requires_verified = true;
    }

    /// A statement, to be sent to the service. If it asks for verified rows, the identity folder has
    /// a note of it first: from then on, rows of its query are shown only if they are.
    ///
    /// # Errors
    /// A [`Failure`] if the note cannot be written. Then the statement must not be sent.
    pub fn statement<'a>(&'a self, sql: &'a str) -> Result<Statement<'a>, Failure> {
        self.asked.before(sql)?;
        let certificate = self.keys.as_ref().map(|(_, text)| text.as_str());
        Ok(Statement { sql, certificate })
    }

    /// To be called once the service has accepted a statement. A query that does not ask for verified
    /// rows may have the name of one that did.
    pub fn accepted(&self, sql: &str) {
        self.asked.after(sql);
    }

    /// Rows of the consumer's own query after an offset. Verified rows are checked against what
    /// the controllers have signed, and sealed rows are opened. If that fails, a row has no result,
    /// and its status says why.
    ///
    /// # Errors
    /// [`RequestError`] if the service does not answer.
    pub async fn rows(
        &self,
        client: &HttpClient,
        name: &str,
        after: u64,
        wait: u64,
    ) -> Result<Rows, RequestError> {
        let path = format!("/v1/queries/{name}/results?after={after}&wait={wait}");
        let mut rows: Rows = client.get_json(&path, Duration::from_secs(wait)).await?;
        let required = self.requires_verified || self.asked.has(name);
        for row in &mut rows.rows {
            self.check(client, name, row, required).await?;
            let Some(sealed) = row.remove("sealed") else { continue };
            match self.columns(client, name, sealed).await? {
                None => {}
                Some(Ok(columns)) => row.extend(columns),
                Some(Err(status)) => drop(row.insert("status".to_owned(), status.into())),
            }
        }
        Ok(rows)
    }

    /// Checks a row that says it is verified, or must be. One that does not hold loses what it
    /// says.
    async fn check(
        &self,
        client: &HttpClient,
        name: &str,
        row: &mut Map<String, Value>,
        required: bool,
    ) -> Result<(), RequestError> {
        let says_so = row.get("integrity").is_some();
        if !says_so && !required {
            return Ok(());
        }
        let has_result = row.get("status").and_then(Value::as_str).is_some_and(has_opened);
        let checked = match (has_result, stated(row).filter(|_| says_so)) {
            (_, None) => Err(RefusedRowError::Plain),
            (false, Some((plan, _))) => match self.announced(client, name, plan).await? {
                Ok(announced) if announced.plan().name != name => Err(RefusedRowError::OtherPlan),
                _ if is_odd(row) => Err(RefusedRowError::Malformed),
                // Its group is shown, if the plan can be read.
                _ => Ok("nothing was signed".to_owned()),
            },
            (true, Some(of)) => self.verified(client, name, row, of).await?,
        };
        let plan = stated(row).map(|(plan, _)| plan);
        let known = plan.and_then(|plan| self.known_plan(&plan));
        let known = known.filter(|known| known.plan().name == name);
        let said = match checked {
            Ok(said) if has_result => {
                keep(row, known.as_deref());
                said
            }
            other => {
                hide(row, known.as_deref());
                match other {
                    Ok(said) => said,
                    Err(why) => {
                        row.insert("status".to_owned(), format!("refused: {why}").into());
                        "refused".to_owned()
                    }
                }
            }
        };
        row.remove("plan");
        row.insert("integrity".to_owned(), said.into());
        Ok(())
    }

    fn known_plan(&self, plan: &PlanId) -> Option<Arc<AnnouncedPlan>> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.get(plan).and_then(|known| known.as_ref().ok()).cloned()
    }

    async fn verified(
        &self,
        client: &HttpClient,
        name: &str,
        row: &Map<String, Value>,
        of: (PlanId, u64),
    ) -> Result<Result<String, RefusedRowError>, RequestError> {
        let announced = match self.announced(client, name, of.0).await? {
            Ok(announced) => announced,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut receipts = self.receipts.lock().await;
        let receipts = receipts.entry(name.to_owned()).or_default();
        Ok(match receipts.take(client, name, of).await? {
            Ok((window, receipt)) => check(row, name, &announced, (window, &receipt)),
            Err(refused) => Err(refused),
        })
    }

    /// A plan of a query, checked as controllers check it. It is fetched once, also if it is refused.
    async fn announced(
        &self,
        client: &HttpClient,
        name: &str,
        plan: PlanId,
    ) -> Result<Plan, RequestError> {
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans().get(&plan) {
            return Ok(known.clone());
        }
        let path = format!("/v1/queries/{name}/plans/{plan}");
        let answer: PlanAnswer = client.get_json(&path, Duration::ZERO).await?;
        let opened = open_plan(&answer.announcement, &self.deployment).and_then(|announced| {
            let same = announced.id() == plan;
            same.then_some(announced).ok_or(RefusedRowError::OtherPlan)
        });
        let mut known = plans();
        if known.len() >= PLANS {
            known.clear();
        }
        known.insert(plan, opened.clone());
        Ok(opened)
    }

    /// The columns of a sealed row, by name, or why they cannot be read; nothing if
    /// the window did not open.
    async fn columns(
        &self,
        client: &HttpClient,
        name: &str,
        sealed: Value,
    ) -> Result<Option<Columns>, RequestError> {
        let Ok(sealed) = serde_json::from_value::<Sealed>(sealed) else {
            return Ok(Some(Err(
                "the sealed row has a format that this version does not know".into()
            )));
        };
        let sum = match sealed.sum() {
            None => return Ok(None),
            Some(Err(none)) => return Ok(Some(Err(none.to_string()))),
            Some(Ok(sum)) => sum,
        };
        let reader = self.reader(client, name, &sum).await?;
        Ok(Some(match &*reader {
            Err(status) => Err(status.clone()),
            Ok(reader) => opened(reader, &sum).map(|values| {
                let items = reader.announced().plan().select.items.iter();
                items.map(|item| item.alias.clone()).zip(values).collect()
            }),
        }))
    }

    async fn reader(
        &self,
        client: &HttpClient,
        name: &str,
        sum: &SealedSum,
    ) -> Result<Arc<Result<Reader, String>>, RequestError> {
        let known = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = known().get(&sum.plan) {
            return Ok(Arc::clone(reader));
        }
        let announced = match &self.keys {
            Some(_) => self.announced(client, name, sum.plan).await?.map_err(|why| why.to_string()),
            None => Err(NO_KEYS.to_owned()),
        };
        let reader = Arc::new(announced.and_then(|announced| self.agree(&announced)));
        let mut readers = known();
        if readers.len() >= PLANS {
            readers.clear();
        }
        readers.insert(sum.plan, Arc::clone(&reader));
        drop(readers);
        Ok(reader)
    }

    fn agree(&self, announced: &Arc<AnnouncedPlan>) -> Result<Reader, String> {
        let (consumer, _) = self.keys.as_ref().ok_or(NO_KEYS)?;
        consumer.reader(announced).map_err(|unreadable| unreadable.to_string())
    }
}

/// What the service says of every row.
const STATED: [&str; 6] =
    ["window_start", "window_end", "status", "population", "silent", "excluded"];
/// What it says of a row with a result beside that.
const STATED_OF_RESULTS: [&str; 6] =
    ["noise", "mostly_noise", "windows", "streams_without_report", "sealed", "integrity"];

/// Whether a status begins as those of results do, and is none of them.
fn is_odd(row: &Map<String, Value>) -> bool {
    let status = row.get("status").and_then(Value::as_str);
    status.is_none_or(|status| status.starts_with("ok"))
}

/// Takes from a row that holds what its plan does not know.
fn keep(row: &mut Map<String, Value>, announced: Option<&AnnouncedPlan>) {
    let Some(plan) = announced.map(AnnouncedPlan::plan) else { return };
    let in_plan = |name: &String| {
        plan.group.iter().any(|(group, _)| group == name)
            || plan.select.items.iter().any(|item| item.alias == *name)
    };
    let stated = |name: &str| STATED.contains(&name) || STATED_OF_RESULTS.contains(&name);
    row.retain(|name, _| stated(name) || in_plan(name));
}

/// Takes from a row what nobody has signed: all but its time, counts and status. Its group is the
/// plan's.
fn hide(row: &mut Map<String, Value>, announced: Option<&AnnouncedPlan>) {
    row.remove("sealed");
    let groups = announced.map_or(&[][..], |announced| &announced.plan().group);
    for (name, value) in row.iter_mut() {
        let group = groups.iter().find(|(group, _)| group == name);
        if let Some((_, own)) = group {
            *value = own.clone().into();
        } else if !STATED.contains(&name.as_str()) {
            *value = Value::Null;
        }
    }
}

const NO_KEYS: &str = "the row is sealed, and the identity folder has no consumer.txt and \
    consumer.seed: use the identity folder that asked for it";
