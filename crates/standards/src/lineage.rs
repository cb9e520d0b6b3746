//! Windows of a plan as runs of OpenLineage (spec 2-0-2): from which attributes each column was added up.
//!
//! # Privacy
//! An event names attributes and columns. It holds no value of a row, and names no owner.

use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use alpheus_policy::select::{Bins, CellRef, Statistic, SumLocation};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Who says so.
const PRODUCER: &str = concat!("urn:alpheus:", env!("CARGO_PKG_VERSION"));
const RUN_EVENT: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
const COLUMN_LINEAGE: &str = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet";
const NOMINAL_TIME: &str =
    "https://openlineage.io/spec/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet";

/// A window of a plan that was released. Times are as RFC 3339 writes them.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Of the datasets and jobs: the service's address.
    pub namespace: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// Its schema.
    pub schema: &'a Schema,
    /// How the schema's events are laid out.
    pub layout: &'a Layout,
    /// The window's start, Unix milliseconds.
    pub start: u64,
    /// The same.
    pub from: &'a str,
    /// The window's end.
    pub until: &'a str,
}

/// The events of a run: that it began, and that it is complete, both at the window's end.
#[must_use]
pub fn events(run: &Run<'_>) -> [Value; 2] {
    ["START", "COMPLETE"].map(|state| event(run, state))
}

fn event(run: &Run<'_>, state: &str) -> Value {
    let Run { namespace, plan, schema, .. } = run;
    let facet = |schema_url: &str, name: &str, value: Value| json!({ "_producer": PRODUCER, "_schemaURL": schema_url, name: value });
    let mut nominal = facet(NOMINAL_TIME, "nominalStartTime", run.from.into());
    if let Some(nominal) = nominal.as_object_mut() {
        nominal.insert("nominalEndTime".to_owned(), run.until.into());
    }
    let fields =
        plan.select.items.iter().map(|item| (item.alias.clone(), inputs(run, &item.statistic)));
    let fields: Map<String, Value> = fields.collect();
    let lineage = facet(COLUMN_LINEAGE, "fields", fields.into());
    json!({
        "eventType": state,
        "eventTime": run.until,
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
        "run": { "runId": run_id(run), "facets": { "nominalTime": nominal } },
        "job": { "namespace": namespace, "name": plan.name },
        "inputs": [{ "namespace": namespace, "name": schema.name }],
        "outputs": [{
            "namespace": namespace,
            "name": plan.name,
            "facets": { "columnLineage": lineage },
        }],
    })
}

/// The attributes that a column is computed from. Aggregation masks them: no value of one owner
/// is in the column.
fn inputs(run: &Run<'_>, statistic: &Statistic) -> Value {
    let own = cells(statistic).into_iter().flat_map(|cell| attributes(run, cell));
    let own: BTreeSet<u16> = own.collect();
    let name = |at: u16| Some(run.schema.attributes.get(usize::from(at))?.name.as_str());
    let how =
        json!([{ "type": "DIRECT", "subtype": "AGGREGATION", "description": "", "masking": true }]);
    let field = |field: &str| json!({ "namespace": run.namespace, "name": run.schema.name, "field": field, "transformations": how });
    let fields: Vec<Value> = own.into_iter().filter_map(name).map(field).collect();
    json!({ "inputFields": fields })
}

/// The attributes that a cell sums: none for the number of events.
fn attributes(run: &Run<'_>, cell: CellRef) -> Vec<u16> {
    let statistic = || {
        let (SumLocation::Whole { row }
        | SumLocation::Digit { row, .. }
        | SumLocation::Limbs { low: row, .. }) = run.plan.select.cells.get(usize::from(cell))?;
        let word = run.plan.release.rows.get(usize::from(*row))?.first()?;
        Some(run.layout.field_at(*word)?.statistic)
    };
    statistic().into_iter().flat_map(|found| found.attributes()).collect()
}

/// The cells that a statistic reads.
fn cells(statistic: &Statistic) -> Vec<CellRef> {
    let of_bins = |bins: &Bins| bins.cells.concat();
    let several = |some: &Option<Vec<Vec<CellRef>>>| -> Vec<CellRef> {
        some.iter().flatten().flatten().copied().collect()
    };
    match statistic {
        Statistic::Sum { sum, count, .. } => [Some(*sum), *count].into_iter().flatten().collect(),
        Statistic::SideSum { sum, count, .. } => vec![*sum, *count],
        Statistic::Count { count, of } => [Some(*count), *of].into_iter().flatten().collect(),
        Statistic::Moments { count, sum, squares, .. } => {
            [Some(*count), Some(*sum), *squares].into_iter().flatten().collect()
        }
        Statistic::Histogram { bins, .. } => of_bins(bins),
        Statistic::Regression { count, x, y, xy, .. } => vec![*count, *x, *y, *xy],
        Statistic::By { counts, sums, squares, .. } => {
            [of_bins(counts), several(sums), several(squares)].concat()
        }
        Statistic::Any { cell } | Statistic::All { cell } => vec![*cell],
        Statistic::Distinct { cells } | Statistic::Frequency { cells } => cells.clone(),
    }
}

/// The same for the same window of the same plan, as a UUID of version 8.
fn run_id(run: &Run<'_>) -> String {
    let id = run.plan.id().0;
    let mut bytes = [0; 16];
    for (at, (byte, own)) in bytes.iter_mut().zip(id).enumerate() {
        let start = run.start.to_be_bytes();
        *byte = own ^ at.checked_sub(8).and_then(|at| start.get(at)).copied().unwrap_or(0);
    }
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}
