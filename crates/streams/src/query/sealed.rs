//! Reading rows that are sealed to the consumer that asked for them.

use super::receipts::{QueryReceipts, RefusedRowError, check, open_plan, stated};
use crate::deployment;
use crate::deployment::CONSUMER_SEED;
use crate::deployment::{CONSUMER_CERTIFICATE, from_hex};
use crate::runtime::results::{Sealed, has_opened, opened};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets, Reader, SealedSum};
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::pki::read_seed;
use alpheus_policy::ids::PlanId;
use data_encoding::HEXLOWER;
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
    /// By plan, for verified rows.
    plans: Mutex<HashMap<PlanId, Arc<AnnouncedPlan>>>,
    /// By query.
    receipts: tokio::sync::Mutex<HashMap<String, QueryReceipts>>,
    /// Whether rows that do not say that they are verified are refused.
    requires_verified: bool,
}

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
            requires_verified: false,
        })
    }

    /// Refuses rows that do not say that they are verified.
    pub fn require_verified(&mut self) {
        self.requires_verified = true;
    }

    /// The certificate that is sent with a statement.
    pub fn certificate(&self) -> Option<&str> {
        self.keys.as_ref().map(|(_, text)| text.as_str())
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
        for row in &mut rows.rows {
            self.check(client, name, row).await?;
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
    ) -> Result<(), RequestError> {
        let says_so = row.get("integrity").is_some();
        if !says_so && !self.requires_verified {
            return Ok(());
        }
        let has_result = row.get("status").and_then(Value::as_str).is_some_and(has_opened);
        let checked = match (has_result, stated(row).filter(|_| says_so)) {
            (_, None) => Err(RefusedRowError::Plain),
            (false, Some((plan, _))) => {
                // Its group is shown, if the plan can be read.
                let _ = self.announced(client, name, plan).await?;
                Ok("nothing was signed".to_owned())
            }
            (true, Some(of)) => self.verified(client, name, row, of).await?,
        };
        let said = match checked {
            Ok(said) if has_result => said,
            other => {
                let plan = stated(row).map(|(plan, _)| plan);
                let known = plan.and_then(|plan| self.known_plan(&plan));
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
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(plan).cloned()
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

    /// A plan of a verified query, checked as controllers check it.
    async fn announced(
        &self,
        client: &HttpClient,
        name: &str,
        plan: PlanId,
    ) -> Result<Result<Arc<AnnouncedPlan>, RefusedRowError>, RequestError> {
        if let Some(announced) = self.known_plan(&plan) {
            return Ok(Ok(announced));
        }
        let path = format!("/v1/queries/{name}/plans/{plan}");
        let answer: PlanAnswer = client.get_json(&path, Duration::ZERO).await?;
        let opened = open_plan(&answer.announcement, &self.deployment);
        if let Ok(announced) = &opened {
            let mut known = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(plan, Arc::clone(announced));
        }
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
        let path = format!("/v1/queries/{name}/plans/{}", sum.plan);
        let answer: PlanAnswer = client.get_json(&path, Duration::ZERO).await?;
        let reader = Arc::new(self.agree(&answer.announcement, &sum.plan));
        known().insert(sum.plan, Arc::clone(&reader));
        Ok(reader)
    }

    /// The service is not trusted: the plan is checked as controllers check it.
    fn agree(&self, announcement: &str, plan: &PlanId) -> Result<Reader, String> {
        let (consumer, _) = self.keys.as_ref().ok_or(NO_KEYS)?;
        let bytes = HEXLOWER.decode(announcement.as_bytes()).ok();
        let signed: Option<Signed<Announcement>> =
            bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let signed = signed.ok_or("the service's announcement of the plan cannot be read")?;
        let announced =
            AnnouncedPlan::open(&signed, &self.deployment).map_err(|e| e.to_string())?;
        if announced.id() != *plan {
            return Err("the service announced another plan than the row's".to_owned());
        }
        consumer.reader(&Arc::new(announced)).map_err(|unreadable| unreadable.to_string())
    }
}

/// Takes from a row what nobody has signed: all but its time, group, counts and status.
fn hide(row: &mut Map<String, Value>, announced: Option<&AnnouncedPlan>) {
    const KEPT: [&str; 6] =
        ["window_start", "window_end", "status", "population", "silent", "excluded"];
    row.remove("sealed");
    let groups = announced.map_or(&[][..], |announced| &announced.plan().group);
    for (name, value) in row.iter_mut() {
        let in_group = groups.iter().any(|(group, _)| group == name);
        if !in_group && !KEPT.contains(&name.as_str()) {
            *value = Value::Null;
        }
    }
}

const NO_KEYS: &str = "the row is sealed, and the identity folder has no consumer.txt and \
    consumer.seed: use the identity folder that asked for it";
