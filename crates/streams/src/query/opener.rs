//! Reading rows: verified ones are checked, and those that are sealed to the consumer are opened.

mod demand;
mod unseal;

use super::begun_query::{BegunQuery, OtherQueryError, check_begun};
use super::lists::{ReadAt, Requests};
use super::noted_queries::{self, NotedQuery, VerifiedQueries};
use super::paths::path_of;
use super::receipts::{
    QueryReceipts, ReadContext, RefusedRowError, announcement, check_apart, check_signed_once,
    check_without_result, has_result, in_order, is_closed, is_in_every_row, listed_plan, open_plan,
    stated,
};
use crate::deployment;
use crate::deployment::CONSUMER_SEED;
use crate::deployment::{CONSUMER_CERTIFICATE, from_hex};
use crate::wire::QueryView;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets, Reader};
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::pki::read_seed;
use alpheus_policy::ids::{PlanId, SchemaId};
use alpheus_policy::planner::check_meaning;
use alpheus_policy::query::{self, parse};
use alpheus_policy::schema::Schema;
use demand::{Demand, PlanKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Readers, or why a plan's rows cannot be read.
    readers: Mutex<HashMap<PlanKey, ReaderOfPlan>>,
    /// Plans, or why one does not check out.
    plans: Mutex<HashMap<PlanKey, Plan>>,
    /// By query.
    receipts: tokio::sync::Mutex<HashMap<String, QueryReceipts>>,
    requests: Requests,
    /// The queries whose rows must be verified or sealed, whatever the service says of them.
    asked: VerifiedQueries,
    /// Those of which it has said so itself.
    declared: Mutex<DeclaredQueries>,
    /// Whether the rows of all queries must be.
    requires_verified: bool,
    /// Certificates that the authority has revoked.
    revoked: Option<RevokedCertificates>,
    /// As the service gave it last. It shows what the statements ask for.
    schema: Mutex<Option<Arc<Schema>>>,
}

/// What opens sealed rows of a plan, or why they cannot be read.
type ReaderOfPlan = Arc<Result<Reader, String>>;

/// The service's statements about queries.
#[derive(Default)]
struct DeclaredQueries {
    verified: HashSet<String>,
    bounded: HashSet<String>,
    sealed: HashSet<String>,
}

/// A plan as it was announced and checked, or why it was refused.
type Plan = Result<Arc<AnnouncedPlan>, RefusedRowError>;

/// The plan of a row, if it is the query's, and in words what holds of the row.
type RowCheck = (Option<Arc<AnnouncedPlan>>, Result<String, RefusedRowError>);

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
            requests: Requests::default(),
            asked: VerifiedQueries::of(identity),
            declared: Mutex::default(),
            requires_verified: false,
            revoked: identity.revoked().cloned(),
            schema: Mutex::default(),
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

    /// Refuses rows of this query that do not say that they are verified. The service may say that
    /// a query is verified. It may not take that back.
    pub fn declare_verified(&self, query: &str) {
        self.declared().verified.insert(query.to_owned());
    }

    /// The same of all that the service says of a running query: rows that are not verified, bounded or
    /// sealed are refused if it says that they are.
    pub fn declare(&self, query: &QueryView) {
        if query.verified || query.bounded {
            self.declare_verified(&query.name);
        }
        let mut declared = self.declared();
        if query.bounded {
            declared.bounded.insert(query.name.clone());
        }
        if query.sealed {
            declared.sealed.insert(query.name.clone());
        }
    }

    fn declared(&self) -> MutexGuard<'_, DeclaredQueries> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the service has answered to a statement. If it has refused it, the note of it is taken
    /// back.
    ///
    /// # Errors
    /// As `answer`.
    pub fn answered<T>(
        &self,
        sql: &str,
        answer: Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        if let Err(RequestError::Refused(problem)) = &answer
            // An answer that says nothing of the statement leaves the note: the query may run.
            && problem.status < 500
            // Nor does one by which that query or another one runs in its place.
            && !matches!(problem.status, 408 | 409 | 429)
        {
            self.asked.refused(sql);
        }
        answer
    }

    /// To be called once the service has answered a statement, with the query that it says is
    /// running now. A query that does not ask for verified rows may have the name of one that did.
    /// From then on, rows of the query are refused if their plan is none of those that were named now.
    ///
    /// # Errors
    /// A [`Failure`] if the statement begins no query of that name, or several plans of a group. Rows of
    /// another one would be read in its place, and the identity folder has no note of that one.
    pub fn accepted(&self, sql: &str, running: Option<&BegunQuery>) -> Result<(), Failure> {
        let unnamed = running.is_none() && VerifiedQueries::must_name(sql);
        let readable = running.map(BegunQuery::readable);
        let begun = self.asked.after(sql, readable.or_else(|| unnamed.then(Vec::new)))?;
        let checked = if unnamed { Err(OtherQueryError::Groups) } else { Ok(()) };
        let checked = checked.and_then(|()| check_begun(begun.as_deref(), running));
        checked.map_err(|error| {
            Failure::new(Category::Check, error)
                .with_id(ErrorId::CheckFailed)
                .with_help("do not read its rows: the service may have been changed")
        })
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
        let path = path_of(name, &format!("results?after={after}&wait={wait}"));
        let mut rows: Rows = client.get_json(&path, Duration::from_secs(wait)).await?;
        let declared = self.declared().verified.contains(name);
        let required = self.requires_verified || declared || self.asked.has(name);
        // The query may be asked again at any time, so the note holds for this page only.
        let noted = self.asked.noted(name);
        let demand = Demand { name, required, noted: noted.as_ref().map(Option::as_ref) };
        let seal = self.seal_of(name);
        let at = self.requests.read(after, rows.next);
        for row in &mut rows.rows {
            self.check(client, (row, at), demand).await?;
            self.unseal(client, demand, row, &seal).await?;
        }
        Ok(rows)
    }

    /// Checks a row that says it is verified, or must be. One that does not hold loses what it
    /// says.
    async fn check(
        &self,
        client: &HttpClient,
        (row, at): (&mut Map<String, Value>, ReadAt),
        demand: Demand<'_>,
    ) -> Result<(), RequestError> {
        let says_so = row.get("integrity").is_some();
        if !says_so && !demand.required {
            return Ok(());
        }
        let has_result = has_result(row);
        let (plan, checked) = match stated(row).filter(|_| says_so) {
            None => (None, Err(RefusedRowError::Plain)),
            Some(of) if has_result => self.verified(client, (row, at), (of, demand)).await?,
            Some(of) => match self.announced(client, of.0, demand).await? {
                Ok(plan) => {
                    let begun = demand.check_begun(&plan);
                    let checked = begun.and_then(|()| check_without_result(row, Some(&plan)));
                    (Some(plan), checked.map(|()| NOTHING_SIGNED.to_owned()))
                }
                // Without its plan, nothing but the times and the status of a closed row is shown.
                Err(_) if is_closed(row) => (None, Ok(NOTHING_SIGNED.to_owned())),
                Err(refused) => (None, Err(refused)),
            },
        };
        let is_bounded = plan.as_ref().is_some_and(|plan| plan.plan().integrity.is_bounded());
        let checked = match checked {
            Ok(_) if has_result && !is_bounded && self.declared().bounded.contains(demand.name) => {
                Err(RefusedRowError::NotBounded)
            }
            checked => checked,
        };
        if !has_result || checked.is_err() {
            hide(row, plan.as_deref());
        }
        let said = checked.unwrap_or_else(|why| {
            row.insert("status".to_owned(), format!("refused: {why}").into());
            REFUSED.to_owned()
        });
        row.insert("integrity".to_owned(), said.into());
        match plan {
            Some(plan) => *row = in_order(std::mem::take(row), &plan),
            None => drop(row.shift_remove("plan")),
        }
        Ok(())
    }

    /// Checks a row with a result. Returns its plan, if that is the query's, and what the row's receipt
    /// shows.
    async fn verified(
        &self,
        client: &HttpClient,
        (row, at): (&Map<String, Value>, ReadAt),
        (of, demand): ((PlanId, u64), Demand<'_>),
    ) -> Result<RowCheck, RequestError> {
        let taken = {
            let mut receipts = self.receipts.lock().await;
            receipts
                .entry(demand.name.to_owned())
                .or_default()
                .take(client, demand.name, of)
                .await?
        };
        let listed = taken.as_ref().ok().and_then(|(_, own)| listed_plan(own, &self.deployment));
        // By epochs a window's plan is in its receipt. No other window has it.
        let plan = match listed {
            Some(listed) => self.asked_for(client, of.0, listed, demand).await?,
            None => self.announced(client, of.0, demand).await?,
        };
        let plan = plan.and_then(|plan| demand.check_begun(&plan).map(|()| plan));
        // Bounds follow from the schema.
        let schema = match &plan {
            Ok(plan) if plan.plan().integrity.is_bounded() => {
                Some(self.schema(client, plan.plan().schema).await?)
            }
            _ => None,
        };
        Ok(match (plan, taken) {
            (Ok(plan), Ok((window, receipt))) => {
                let receipt = Arc::new(receipt);
                let signed = (window, Arc::clone(&receipt));
                let checked = check_apart(row, demand.name, (&plan, schema), signed).await;
                // Rows of other queries are read meanwhile.
                let mut receipts = self.receipts.lock().await;
                let seen = &mut receipts.entry(demand.name.to_owned()).or_default().lists;
                let known = ReadContext { revoked: self.revoked.as_ref(), seen, at };
                let once =
                    |holds| check_signed_once(&plan, (window, &receipt), known).map(|()| holds);
                let checked = checked.and_then(once);
                drop(receipts);
                (Some(plan), checked)
            }
            (Ok(plan), Err(refused)) => (Some(plan), Err(refused)),
            (Err(RefusedRowError::NoPlan), Err(refused)) | (Err(refused), _) => {
                (None, Err(refused))
            }
        })
    }

    /// A plan that was announced for a query, checked as controllers check it, and that it is what the
    /// consumer asked for. It is fetched once, also if it is refused.
    async fn announced(
        &self,
        client: &HttpClient,
        plan: PlanId,
        demand: Demand<'_>,
    ) -> Result<Plan, RequestError> {
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let of = demand.key(plan);
        if let Some(known) = plans().get(&of) {
            return Ok(known.clone());
        }
        let opened = match announcement(client, demand.name, plan).await? {
            Some(announcement) => open_plan(&announcement, &self.deployment),
            // By epochs the plan of a window that did not open is kept nowhere.
            None => Err(RefusedRowError::NoPlan),
        };
        let opened = self.asked_for(client, plan, opened, demand).await?;
        let mut known = plans();
        if known.len() >= PLANS {
            known.clear();
        }
        known.insert(of, opened.clone());
        Ok(opened)
    }

    /// A plan if it has this id and is of this query, and, of a query that the consumer noted, if it is
    /// what the statement asks for.
    async fn asked_for(
        &self,
        client: &HttpClient,
        plan: PlanId,
        opened: Plan,
        demand: Demand<'_>,
    ) -> Result<Plan, RequestError> {
        let announced = match opened {
            Ok(announced) if announced.id() == plan && announced.plan().name == demand.name => {
                announced
            }
            Ok(_) => return Ok(Err(RefusedRowError::OtherPlan)),
            refused => return Ok(refused),
        };
        let noted = match demand.noted {
            Ok(Some(noted)) => noted,
            Ok(None) => return Ok(Ok(announced)),
            Err(unread) => return Ok(Err(unread.clone())),
        };
        let schema = self.schema(client, announced.plan().schema).await?;
        Ok(is_asked_for(&noted.sql, &schema, &announced).map(|()| announced))
    }

    /// The service's schema. It is fetched again while the known one has another id.
    async fn schema(&self, client: &HttpClient, id: SchemaId) -> Result<Arc<Schema>, RequestError> {
        let known = || self.schema.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known().as_ref().filter(|schema| schema.id() == id) {
            return Ok(Arc::clone(schema));
        }
        let schema: Arc<Schema> = Arc::new(client.get_json("/v1/schema", Duration::ZERO).await?);
        *known() = Some(Arc::clone(&schema));
        Ok(schema)
    }
}

/// Whether a plan is what the consumer's own statement asks for. A schema that is not the plan's shows
/// nothing of what its columns mean.
///
/// # Errors
/// [`RefusedRowError`] if it is not, or nobody can say.
pub fn is_asked_for(
    sql: &str,
    schema: &Schema,
    announced: &AnnouncedPlan,
) -> Result<(), RefusedRowError> {
    match parse(sql) {
        Ok(query::Statement::Create(create)) => {
            Ok(check_meaning(&create, schema, announced.plan())?)
        }
        _ => Err(RefusedRowError::Statement),
    }
}

/// The statement that asked for a query whose rows must be verified, as the consumer's identity folder
/// has noted it.
///
/// # Errors
/// [`RefusedRowError::Statement`] if the note cannot be read.
pub fn noted(
    identity: &IdentityFolder,
    query: &str,
) -> Result<Option<NotedQuery>, RefusedRowError> {
    VerifiedQueries::of(identity).noted(query)
}

/// Whether a statement begins a query whose rows are verified.
#[must_use]
pub fn asks_verified(sql: &str) -> bool {
    noted_queries::asks_verified(sql)
}

/// The message about a row without a result.
const NOTHING_SIGNED: &str = "nothing was signed";

/// The message about a row that is not valid.
const REFUSED: &str = "refused";

/// Whether a row that was read here is what controllers have signed.
pub(super) fn is_checked(row: &Map<String, Value>) -> bool {
    let said = row.get("integrity").and_then(Value::as_str);
    has_result(row) && said.is_some_and(|said| said != NOTHING_SIGNED && said != REFUSED)
}

/// Takes from a row what nobody has signed: all but its time, counts and status. Its group is the
/// plan's.
fn hide(row: &mut Map<String, Value>, announced: Option<&AnnouncedPlan>) {
    row.shift_remove("sealed");
    let groups = announced.map_or(&[][..], |announced| &announced.plan().group);
    for (name, value) in row.iter_mut() {
        let group = groups.iter().find(|(group, _)| group == name);
        if let Some((_, own)) = group {
            *value = own.clone().into();
        } else if !is_in_every_row(name) {
            *value = Value::Null;
        }
    }
}
