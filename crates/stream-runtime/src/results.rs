//! Result rows: one for each window and group, opened or not.

use crate::exactness::is_as_exact_as_asked;
use alpheus_encrypted_stream::consumer::{Reader, SealedSum, SealedSumError};
use alpheus_encrypted_stream::coordinator::{
    MemberFaultError, Outcome, UnstatedEdgesError, WindowResult,
};
use alpheus_encrypted_stream::decode::{cells, decode, decode_noisy, decode_signed};
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError};
use alpheus_policy::budget::{NoiseShares, OutputError, Spread, expected_errors};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_policy::query::Accuracy;
use alpheus_time::Window;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::Write;

/// One window of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The query that asked.
    pub query: String,
    /// Start, Unix milliseconds.
    pub window_start: u64,
    /// End, exclusive, Unix milliseconds.
    pub window_end: u64,
    /// The group's columns.
    pub group: Vec<(String, String)>,
    /// The query's columns; null where the window did not open or nobody had data.
    pub outputs: Vec<(String, Value)>,
    /// Owners with data and a complete stream; 0 where the window did not open.
    pub population: u32,
    /// Complete streams without data; 0 where the window did not open.
    pub silent: u32,
    /// Streams that were online but incomplete, or that their controller excluded; 0 where the window
    /// did not open. With the number of all streams it would say how few had data.
    pub excluded: u32,
    /// [`OK`], [`LESS_EXACT`], or the rule that kept the window closed.
    pub status: String,
    /// For a query with noise: each column's standard deviation of the noise, and the margin
    /// that 95 % of results stay within. Null if that depends on more than the result, or if the
    /// window did not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Value>,
    /// For a query with noise: the columns in which that margin exceeds the result itself, so
    /// that it says little more than that there is noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mostly_noise: Option<Vec<String>>,
    /// For running totals: the number of windows in them, including this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<u32>,
    /// With a job: streams that it did not report on in time, offline or not. They are not
    /// in the result and are counted nowhere else. 0 where the window did not open, unless nothing was
    /// reported at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_without_report: Option<u32>,
    /// The plan that it is of; by epochs, the terms of its lists. A row's cost follows from it.
    /// Older rows lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// For a verified or bounded query: the plan, whose members have signed the row if it has a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<PlanId>,
    /// Whether the query is bounded, so that its members also prove that each owner is in bounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bounded: bool,
    /// For a bounded query: the members that its window opened without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<LeftOutMembers>,
    /// For a query with `RELEASE TO`: its consumer, and the sealed result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealedResult>,
}

/// Members of a bounded window without which it opened. Nothing where it did not open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutMembers {
    /// How many.
    pub left_out: Option<u32>,
    /// How many of these because their proofs did not hold; others gave nothing in time.
    pub refused: Option<u32>,
}

/// The sealed result of a row, which only one consumer can read. The columns are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedResult {
    /// The consumer.
    pub to: String,
    /// A [`SealedSum`] in hexadecimal digits; null where the window did not open.
    pub sum: Option<String>,
}

impl SealedResult {
    /// The sealed sum, if the window opened.
    ///
    /// # Errors
    /// [`SealedSumError`] if it is not valid.
    pub fn sum(&self) -> Option<Result<SealedSum, SealedSumError>> {
        let digits = self.sum.as_ref()?.as_bytes();
        let bytes = HEXLOWER.decode(digits).map_err(|_| SealedSumError::Malformed);
        Some(bytes.and_then(|bytes| SealedSum::from_bytes(&bytes)))
    }
}

/// Results in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptResults {
    /// How many there are.
    pub kept: u64,
    /// How many were deleted since the start.
    pub deleted: u64,
}

/// The columns of an opened window.
///
/// # Errors
/// A text for the row's status.
pub fn columns(plan: &Plan, words: &[u64]) -> Result<Vec<Value>, String> {
    let decoded = match plan.privacy {
        Some(_) => decode_noisy(&plan.select, words),
        None if plan.integrity.is_verified() => decode_signed(&plan.select, words),
        None => decode(&plan.select, words),
    };
    let outputs = decoded.map_err(|error| error.to_string())?;
    let value = |output| serde_json::to_value(output).unwrap_or_default();
    Ok(outputs.into_iter().map(value).collect())
}

/// The columns of a sealed window, as its consumer reads them.
///
/// # Errors
/// A text for the row's status.
pub fn opened(reader: &Reader, sum: &SealedSum) -> Result<Vec<Value>, String> {
    let words = reader.open(sum).map_err(|error| error.to_string())?;
    columns(reader.announced().plan(), &words)
}

/// Status of a window that opened.
pub const OK: &str = "ok";
/// Status of a window that opened, with more noise than the query asks for.
pub const LESS_EXACT: &str = "ok: less exact than asked";

/// Part of the status of a window that did not open, if that seems to be because privacy budgets are spent.
pub const BUDGETS_SPENT: &str = ": privacy budgets of owners are spent";

/// Whether a window of this status opened.
#[must_use]
pub fn has_opened(status: &str) -> bool {
    status == OK || status == LESS_EXACT
}

impl Row {
    /// A row without outputs.
    #[must_use]
    pub fn closed(plan: &Plan, window: Window, status: String) -> Row {
        Row {
            query: plan.name.clone(),
            window_start: window.start.0 / 1000,
            window_end: window.end.0 / 1000,
            group: plan.group.clone(),
            outputs: plan
                .select
                .items
                .iter()
                .map(|item| (item.alias.clone(), Value::Null))
                .collect(),
            population: 0,
            silent: 0,
            excluded: 0,
            status,
            noise: plan.privacy.as_ref().map(|_| {
                let items = plan.select.items.iter();
                Value::Object(items.map(|item| (item.alias.clone(), Value::Null)).collect())
            }),
            mostly_noise: plan.privacy.as_ref().map(|_| Vec::new()),
            windows: plan.horizon().map(|_| 0),
            streams_without_report: None,
            plan: Some(plan.family()),
            verified: plan.integrity.is_verified().then(|| plan.id()),
            bounded: plan.integrity.is_bounded(),
            without: plan.integrity.is_bounded().then(LeftOutMembers::default),
            sealed: plan.sealed_to.map(|_| SealedResult { to: plan.consumer.clone(), sum: None }),
        }
    }

    /// The row of a window that ended, of a query that asks for results so exact.
    #[must_use]
    pub fn ended(plan: &Plan, outcome: &Outcome, asked: Option<&Accuracy>) -> Row {
        let status = match &outcome.result {
            Ok(_) => OK.to_owned(),
            Err(failure) => {
                // Each owner may have several streams.
                let each = plan.privacy.as_ref().map_or(1, |own| own.streams_per_owner);
                format!("{failure}{}{}", for_budgets(outcome, each), at_fault(plan, outcome))
            }
        };
        let mut row = Row::closed(plan, outcome.window, status);
        row.streams_without_report = match &outcome.result {
            // All of them, so the number says nothing more.
            Ok(_) | Err(ReleaseError::NothingReported) => outcome.unreported,
            Err(_) => outcome.unreported.map(|_| 0),
        };
        let Ok(opened) = &outcome.result else { return row };
        row.excluded = outcome.excluded.values().sum();
        row.population = opened.population;
        row.silent = opened.silent;
        // Others may have given what holds this time, and are named for an earlier window.
        let is_out = |(id, _): &&(ControllerId, _)| {
            let at = plan.roster.binary_search(id).ok().and_then(|at| u32::try_from(at).ok());
            let set = outcome.opening_set.as_ref();
            !at.zip(set).is_some_and(|(at, set)| set.contains(at))
        };
        let refused = outcome.faults.iter().filter(is_out).count();
        let refused = u32::try_from(refused).unwrap_or(u32::MAX);
        row.without = row.without.map(|_| LeftOutMembers {
            left_out: Some(opened.left_out),
            refused: Some(refused.min(opened.left_out)),
        });
        row.windows = plan.horizon().map(|_| opened.windows);
        // Running totals can hold earlier windows even if this one is empty.
        if opened.population == 0 && opened.windows == 0 {
            return row;
        }
        let (shared, sums) = basis(plan, outcome.window, opened);
        row.noise = noise(plan, shared, &sums);
        match (&mut row.sealed, &opened.sealed) {
            (Some(sealed), Some(sum)) => sealed.sum = Some(HEXLOWER.encode(&sum.to_bytes())),
            _ => row.fill(columns(plan, &opened.outputs)),
        }
        let is_met = |asked| is_as_exact_as_asked(asked, plan, shared, &sums);
        if row.status == OK && !asked.is_none_or(is_met) {
            LESS_EXACT.clone_into(&mut row.status);
        }
        row
    }

    fn fill(&mut self, columns: Result<Vec<Value>, String>) {
        match columns {
            Ok(values) => {
                let cells = self.outputs.iter_mut().map(|(_, cell)| cell);
                cells.zip(values).for_each(|(cell, value)| *cell = value);
                self.mostly_noise = self.noise.as_ref().map(|noise| exceeded(noise, &self.outputs));
            }
            Err(status) => self.status = status,
        }
    }

    /// The row's sealed sum, if there is one.
    ///
    /// # Errors
    /// [`SealedSumError`] if it is not valid.
    #[must_use]
    pub fn sealed_sum(&self) -> Option<Result<SealedSum, SealedSumError>> {
        self.sealed.as_ref()?.sum()
    }

    /// Fills the columns as the consumer, so that the row is no longer sealed.
    pub fn open(&mut self, reader: &Reader, sum: &SealedSum) {
        self.fill(opened(reader, sum));
        self.sealed = None;
    }

    fn columns(&self) -> impl Iterator<Item = (&str, Value)> {
        let times =
            [("window_start", self.window_start.into()), ("window_end", self.window_end.into())];
        let group =
            self.group.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        let outputs = self.outputs.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let noise = self.noise.iter().map(|noise| ("noise", noise.clone()));
        let mostly = self.mostly_noise.iter();
        let mostly = mostly.map(|names| ("mostly_noise", Value::from(names.as_slice())));
        let sealed = |sealed| ("sealed", serde_json::to_value(sealed).unwrap_or_default());
        let sealed = self.sealed.iter().map(sealed);
        let counts: [(&str, Value); 4] = [
            ("population", self.population.into()),
            ("silent", self.silent.into()),
            ("excluded", self.excluded.into()),
            ("status", self.status.as_str().into()),
        ];
        let windows = self.windows.iter().map(|windows| ("windows", Value::from(*windows)));
        let unreported = self.streams_without_report.iter();
        let unreported = unreported.map(|n| ("streams_without_report", Value::from(*n)));
        let verified = self.verified.iter().flat_map(|plan| {
            let word = if self.bounded { "bounded" } else { "verified" };
            [("integrity", Value::from(word)), ("plan", Value::from(plan.to_string()))]
        });
        let without = self.without.iter().flat_map(|own| {
            let value = |number: Option<u32>| number.map_or(Value::Null, Value::from);
            [("members_left_out", value(own.left_out)), ("members_refused", value(own.refused))]
        });
        let optional = windows.chain(unreported).chain(noise).chain(mostly);
        let optional = optional.chain(verified).chain(without).chain(sealed);
        times.into_iter().chain(group).chain(outputs).chain(counts).chain(optional)
    }

    /// The row as one flat JSON object, in the order of its columns.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        self.columns().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// That budgets seem to be the reason: with the owners left out for that, there would be enough. It is computed
/// from counts that controllers report, as if each owner had the most streams that one has, so it may be missing. It
/// may also stand where controllers that could be absent would have kept the window shut anyway.
fn for_budgets(outcome: &Outcome, streams_per_owner: u32) -> &'static str {
    let Err(ReleaseError::PopulationTooSmall { counted, needed }) = outcome.result else {
        return "";
    };
    let spent = outcome.excluded.get(&ExclusionError::BudgetSpent).copied().unwrap_or(0);
    let owners = spent / streams_per_owner.max(1);
    if owners > 0 && counted.saturating_add(owners) >= needed { BUDGETS_SPENT } else { "" }
}

/// Who has ruined a bounded window, and how: positions in the plan's roster, as receipts have them. It is the
/// service's word, which no receipt proves, and says so. Those that were silent may have, and are not named for it.
fn at_fault(plan: &Plan, outcome: &Outcome) -> String {
    let position = |id: &ControllerId| plan.roster.binary_search(id).ok();
    let named = |(id, why): &(ControllerId, MemberFaultError)| {
        Some(format!("; the service names controller {}: {why}", position(id)?))
    };
    let silent = |(id, why): &(ControllerId, UnstatedEdgesError)| {
        Some(format!("; controller {} is not named, but {why}", position(id)?))
    };
    let named = outcome.faults.iter().filter_map(named);
    named.chain(outcome.silent.iter().filter_map(silent)).collect()
}

/// From what the noise of a window follows: how many controllers opened it, and its sums, which a
/// sealed row does not show. For running totals it counts all controllers, present or not, and the
/// noise left over from failed windows.
fn basis(plan: &Plan, window: Window, opened: &WindowResult) -> (NoiseShares, Vec<f64>) {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = plan.index_in_totals(window);
    let members = if place.is_some() { narrow(plan.roster.len()) } else { opened.members };
    let honest = members.saturating_sub(plan.discounted());
    let windows = place.map_or(1, |place| place.saturating_add(1));
    let shared = NoiseShares { honest, members, windows, lost: opened.lost };
    let known =
        if opened.sealed.is_some() { None } else { cells(&plan.select, &opened.outputs).ok() };
    (shared, known.into_iter().flatten().map(|sum| sum as f64).collect())
}

/// The expected error from noise in each column of a window. Errors that depend on the data are
/// computed from the released sums, if they are known.
fn noise(plan: &Plan, shared: NoiseShares, sums: &[f64]) -> Option<Value> {
    let privacy = plan.privacy.as_ref()?;
    let errors = expected_errors(&plan.select, &privacy.noise, shared, sums);
    let column = |OutputError { alias, spread, .. }| {
        let error = spread.map_or(
            Value::Null,
            |Spread { deviation, within }| json!({ "deviation": deviation, "margin_95": within }),
        );
        (alias, error)
    };
    Some(Value::Object(errors.into_iter().map(column).collect()))
}

/// The columns whose margin exceeds the result: the number, or the largest of several.
fn exceeded(noise: &Value, outputs: &[(String, Value)]) -> Vec<String> {
    let exceeds = |(name, value): &&(String, Value)| {
        let margin = noise.get(name).and_then(|own| own.get("margin_95")).and_then(Value::as_f64);
        // Nothing is written where no data could have such sums.
        magnitude(value).is_none_or(|size| margin.is_some_and(|margin| margin > size))
    };
    outputs.iter().filter(exceeds).map(|(name, _)| name.clone()).collect()
}

/// The largest magnitude of the numbers in a value, if there are any.
fn magnitude(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().map(f64::abs),
        Value::String(text) => text.parse().ok().map(f64::abs),
        Value::Array(all) => all.iter().filter_map(magnitude).reduce(f64::max),
        Value::Object(all) => all.values().filter_map(magnitude).reduce(f64::max),
        Value::Null | Value::Bool(_) => None,
    }
}

/// Sorts rows as results are read: by window, then group.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        (a.window_start, a.window_end, &a.group).cmp(&(b.window_start, b.window_end, &b.group))
    });
}

/// Writes rows as a JSON array, one row per line.
///
/// # Errors
/// The writer's error.
pub fn write_json(rows: &[Row], mut output: impl Write) -> std::io::Result<()> {
    output.write_all(b"[")?;
    for (index, row) in rows.iter().enumerate() {
        output.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut output, &row.to_json())?;
    }
    output.write_all(b"\n]\n")?;
    output.flush()
}

/// Writes rows as CSV with a header. Null is an empty cell, arrays and objects
/// are JSON text.
///
/// # Errors
/// The writer's error.
pub fn write_csv(rows: &[Row], output: impl Write) -> std::io::Result<()> {
    let mut csv = csv::Writer::from_writer(output);
    if let Some(first) = rows.first() {
        csv.write_record(first.columns().map(|(name, _)| name))?;
    }
    for row in rows {
        csv.write_record(row.columns().map(|(_, value)| cell(value)))?;
    }
    csv.flush()
}

/// A value as text in a cell.
#[must_use]
pub fn cell(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Timestamp;
    use std::collections::BTreeMap;

    /// With fewer owners, the status would say how few had data.
    #[test]
    fn spent_budgets_are_named_only_where_enough_owners_had_data() {
        let ended = |result, why, streams| Outcome {
            window: Window { start: Timestamp(0), end: Timestamp(1) },
            result,
            excluded: BTreeMap::from([(why, streams)]),
            unreported: None,
            refused: BTreeMap::new(),
            unopened: Vec::new(),
            opening_set: None,
            faults: Vec::new(),
            silent: Vec::new(),
        };
        let few = || Err(ReleaseError::PopulationTooSmall { counted: 3, needed: 10 });
        let of = |spent, each| for_budgets(&ended(few(), ExclusionError::BudgetSpent, spent), each);
        assert_eq!(
            [of(6, 1), of(7, 1), of(13, 2), of(14, 2)],
            ["", BUDGETS_SPENT, "", BUDGETS_SPENT]
        );
        assert_eq!(for_budgets(&ended(few(), ExclusionError::Policy, 7), 1), "");
        let lost = Err(ReleaseError::QuorumLost { held: 1, needed: 2 });
        assert_eq!(for_budgets(&ended(lost, ExclusionError::BudgetSpent, 7), 1), "");
    }

    #[test]
    fn columns_whose_margin_exceeds_the_result_are_named() {
        let margin = |margin: f64| json!({ "deviation": 1.0, "margin_95": margin });
        let noise = json!({
            "below": margin(4.9), "above": margin(5.1), "equal": margin(5.0), "negative": margin(5.1),
            "text": margin(0.6), "bins": margin(7.0), "widest": margin(6.9), "unknown": null,
            "nothing": margin(0.1),
        });
        let outputs = [
            ("below", json!(5)),
            ("above", json!(5)),
            ("equal", json!(5)),
            ("negative", json!(-5)),
            ("text", json!("0.5")),
            ("bins", json!([1, -6, 2])),
            ("widest", json!({ "a": 7, "b": 1 })),
            ("unknown", json!(5)),
            ("nothing", Value::Null),
            ("exact", json!(0)),
        ];
        let outputs = outputs.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(exceeded(&noise, &outputs), ["above", "negative", "text", "bins", "nothing"]);
    }
}
