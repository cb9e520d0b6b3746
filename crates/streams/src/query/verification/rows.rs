//! The checks of a row.

use super::gaps::{Gap, Run, gaps};
use super::plan_description::meaning;
use super::{Evidence, Trust};
use crate::query::lists::{ReadAt, RowHistory};
use crate::query::noted_queries::NotedQuery;
use crate::query::opener::is_asked_for;
use crate::query::receipts::{
    PlanOfRows, ReadContext, RefusedRowError, check_all, check_without_result, has_result,
    is_in_group, listed_plan, open_plan, stated, window_of,
};
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::receipt::{ReceiptError, WindowReceipt};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_policy::ids::PlanId;
use alpheus_policy::schema::Schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Plans that were checked, and receipts by what they say they are of.
pub struct Verifier<'a> {
    evidence: &'a Evidence,
    /// Whether the consumer's folder says what it has asked for.
    has_statement: bool,
    plans: HashMap<PlanId, Arc<AnnouncedPlan>>,
    /// Plans that are not what the consumer has asked for.
    not_asked: HashMap<PlanId, RefusedRowError>,
    receipts: HashMap<(PlanId, u64), &'a WindowReceipt>,
    revoked: Option<&'a RevokedCertificates>,
    /// Rows of windows that were seen.
    seen: RowHistory,
    /// How many rows with a receipt were checked.
    checked: u64,
    /// The plan whose meaning was stated last, and that meaning.
    said: Option<(PlanId, String)>,
    /// Plans and lists that do not count, in words.
    unusable: Vec<String>,
}

impl<'a> Verifier<'a> {
    /// Takes what a service shows of a query. Nothing of it is checked but plans.
    #[must_use]
    pub fn new(evidence: &'a Evidence, trust: Trust<'a>) -> Self {
        let Trust { deployment, noted, revoked } = trust;
        let (mut plans, mut unusable) = (HashMap::new(), Vec::new());
        for announcement in &evidence.plans {
            // Rows of one that does not open do not hold.
            match open_plan(announcement, deployment) {
                Ok(announced) => drop(plans.insert(announced.id(), announced)),
                Err(error) => unusable.push(format!("a plan of the query does not count: {error}")),
            }
        }
        let mut receipts = HashMap::new();
        for receipt in &evidence.receipts {
            if let Some(listed) = listed_plan(receipt, deployment) {
                match listed {
                    Ok(announced) => drop(plans.insert(announced.id(), announced)),
                    Err(error) => {
                        unusable.push(format!("a list of the query does not count: {error}"));
                    }
                }
            }
            // Only to find it: verification checks the signature.
            if let Some(membership) = receipt.membership().dangerous_unverified() {
                receipts.insert((membership.plan, membership.window.start.0 / 1000), receipt);
            }
        }
        let not_asked = not_asked(&plans, noted.as_ref(), evidence.schema.as_ref());
        Self {
            evidence,
            has_statement: noted.is_some(),
            plans,
            not_asked,
            receipts,
            revoked,
            seen: RowHistory::unbounded(),
            checked: 0,
            said: None,
            unusable,
        }
    }

    /// Plans and lists that do not count, in words.
    #[must_use]
    pub fn unusable(&self) -> &[String] {
        &self.unusable
    }

    /// What a row's receipt shows; nothing of a row without a result.
    ///
    /// # Errors
    /// [`RefusedRowError`] if the row does not hold.
    pub fn verify(&mut self, row: &Map<String, Value>) -> Result<Option<String>, RefusedRowError> {
        let key = stated(row).ok_or(RefusedRowError::Plain)?;
        let announced = self.plans.get(&key.0);
        self.not_asked.get(&key.0).map_or(Ok(()), |refused| Err(refused.clone()))?;
        if !has_result(row) {
            check_without_result(row, announced.map(Arc::as_ref))?;
            return if self.hides_result(row, key)? {
                Err(ReceiptError::OtherRow.into())
            } else {
                Ok(None)
            };
        }
        let announced = announced.ok_or(RefusedRowError::NoReceipt)?;
        let receipt = self.receipts.get(&key).ok_or(RefusedRowError::NoReceipt)?;
        let window = window_of(announced, key.1).ok_or(RefusedRowError::Malformed)?;
        let of = PlanOfRows { announced, schema: self.evidence.schema.as_ref() };
        self.checked += 1;
        let at = ReadAt::only(self.checked);
        let known = ReadContext { revoked: self.revoked, seen: &mut self.seen, at };
        check_all(row, &self.evidence.query, of, (window, receipt), known).map(Some)
    }

    /// Whether there is a receipt of a row's window that holds, and shows that it has a result.
    fn hides_result(
        &self,
        row: &Map<String, Value>,
        key: (PlanId, u64),
    ) -> Result<bool, RefusedRowError> {
        let (announced, receipt) = (self.plans.get(&key.0), self.receipts.get(&key));
        let (Some(announced), Some(receipt)) = (announced, receipt) else { return Ok(false) };
        let window = window_of(announced, key.1).ok_or(RefusedRowError::Malformed)?;
        let of = PlanOfRows { announced, schema: self.evidence.schema.as_ref() };
        of.hides_result(row, (window, receipt))
    }

    /// Without a statement: what a row that holds says, if it is not what the row before it says.
    pub fn new_meaning(&mut self, row: &Map<String, Value>) -> Option<String> {
        let plan = stated(row)?.0;
        if self.has_statement || self.said.as_ref().is_some_and(|(said, _)| *said == plan) {
            return None;
        }
        let words = meaning(self.plans.get(&plan)?.plan(), self.evidence.schema.as_ref());
        let (_, before) = self.said.replace((plan, words.clone())).unzip();
        (before.as_ref() != Some(&words)).then_some(words)
    }

    /// Windows of which the service shows no row.
    #[must_use]
    pub fn withheld(&self) -> Vec<Gap> {
        let mut runs: BTreeMap<PlanId, Run> = BTreeMap::new();
        let theirs = |plan: &PlanId| {
            let announced = self.plans.get(plan)?;
            let is_ours = announced.plan().name == self.evidence.query;
            (is_ours && !self.not_asked.contains_key(plan)).then_some(announced)
        };
        let mut loose = Vec::new();
        for row in &self.evidence.rows {
            match stated(row) {
                Some((plan, start)) if self.plans.contains_key(&plan) => {
                    let Some(announced) = theirs(&plan) else { continue };
                    runs.entry(announced.plan().family())
                        .or_insert_with(|| Run::of(announced))
                        .row(start);
                }
                _ => loose.push(row),
            }
        }
        // A receipt that cannot be read shows all the same that there was one.
        for (plan, start) in self.receipts.keys().chain(&self.evidence.unreadable) {
            let Some(announced) = theirs(plan) else { continue };
            runs.entry(announced.plan().family())
                .or_insert_with(|| Run::of(announced))
                .receipt(*start);
        }
        // By epochs the plan of a window that did not open is known to nobody.
        for row in loose {
            let Some(start) = row.get("window_start").and_then(Value::as_u64) else { continue };
            let of_group = runs.values_mut().filter(|run| is_in_group(row, run.plan()));
            of_group.for_each(|run| run.may_have(start));
        }
        let shown = runs.values().filter(|run| self.has_statement || run.has_rows());
        shown.flat_map(|run| gaps(run, self.evidence.read, self.evidence.running)).collect()
    }
}

/// The plans that are not what a statement asks for, if it is there, or that were not begun for it.
fn not_asked(
    plans: &HashMap<PlanId, Arc<AnnouncedPlan>>,
    noted: Option<&NotedQuery>,
    schema: Option<&Schema>,
) -> HashMap<PlanId, RefusedRowError> {
    let Some(noted) = noted else { return HashMap::new() };
    let compared = plans.iter().filter_map(|(id, announced)| {
        // Who gives a file away could have left the schema out.
        let asked = schema.ok_or(RefusedRowError::NoSchema);
        let asked = asked.and_then(|schema| is_asked_for(&noted.sql, schema, announced));
        let asked = asked.and_then(|()| noted.check_begun(announced.plan()));
        Some((*id, asked.err()?))
    });
    compared.collect()
}
