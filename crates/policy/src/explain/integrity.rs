//! Who decides what rows say, what that shows and what it costs.

use crate::bounded_terms::{BoundedCell, BoundedTerms};
use crate::catalog::CatalogSchema;
use crate::layout::FieldStatistic;
use crate::plan::Plan;
use crate::planner::in_words;
use crate::query::QuerySpan;
use crate::schema::Schema;
use alpheus_time::Span;

/// Bytes of a member's token, opening and key for pads beside its sums, about: signatures, digests, the rest.
const MEMBER_BYTES: usize = 3 * 64 + 7 * 32 + 53;

/// Bytes of one number of a sum, about. Each is in a token and in an opening.
const NUMBER_BYTES: usize = 10;

/// Bytes of M and S beside what they have of each member, about.
const WINDOW_BYTES: usize = 300;

/// Bytes of a controller's entry in an epoch's list, and of its certificate, about.
const LISTED_BYTES: usize = 330;

/// What it means that the members of a window decide what its row says.
pub(super) fn of(plan: &Plan, schema: &CatalogSchema, by_epochs: bool) -> Option<String> {
    if !plan.integrity.is_verified() {
        return None;
    }
    let verified = verified(plan, schema.schema.frames.anchor(), by_epochs);
    let terms = plan.bounded_terms(&schema.schema, &schema.layout).ok().flatten();
    Some(terms.map_or(verified.clone(), |terms| bounded(plan, schema, &terms) + &verified))
}

/// Milliseconds of one thread to make, and to check in batches, the proof of an owner's 256 bits
/// (`bounded-influence` has the figures).
const PROOF_MILLISECONDS: [f64; 2] = [18.3, 0.4];

/// What is proven, what that shows, and what it costs.
fn bounded(plan: &Plan, schema: &CatalogSchema, terms: &BoundedTerms) -> String {
    let cell = |cell: &BoundedCell| {
        let (what, scale) = in_numbers(&schema.schema, cell.statistic);
        let [lowest, highest] = [cell.lowest, cell.highest].map(|bound| format_wide(bound, scale));
        format!("{what} between {lowest} and {highest}")
    };
    let cells: Vec<String> = terms.cells.iter().map(cell).collect();
    let of = |milliseconds: f64| milliseconds * f64::from(terms.proof_bits()) / 256.0;
    let [make, check] = PROOF_MILLISECONDS.map(of);
    let owners: u32 = plan.owners_per_controller().iter().sum();
    let cut = match plan.privacy {
        Some(_) => " Noise beyond its range is cut off, which the guarantee accounts for.",
        None => "",
    };
    let shared = match plan.max_streams_per_owner() {
        0 | 1 => String::new(),
        most => format!(
            " These bounds are those of an owner with {most} streams, the most that one has in this query, and hold for each owner however few it has."
        ),
    };
    let shown = match plan.privacy {
        Some(_) => "",
        None => {
            " Receipts name streams whose owner is out of bounds. So where an owner may have more events than the query's `events`, they show that it had."
        }
    };
    format!(
        "bounded: for each owner's window, controllers prove: {}. So no owner can shift a row further, and no controller can beyond its listed owners and its noise. The proofs show that this holds, and how many owners with data each controller has.{shared}{shown} For each owner they take about {make:.0} ms at its controller, {check:.2} ms at the service and at each reader, who check them, and {} bytes; for {owners} owners they take {} kB per window.{cut} If a row does not hold, its window is lost, and its controllers are asked what they share. One that lied and answers is named, or else it and one that contradicts it share nothing from then on, which it can do a few times before it is named. One that does not answer is not named, since that proves nothing: it is left out of later windows where they can open without it. As in a verified query: ",
        cells.join(", "),
        terms.owner_bytes(),
        (u64::from(owners) * u64::from(terms.owner_bytes())).div_ceil(1000),
    )
}

/// A statistic in words, and the decimal places of its sums.
fn in_numbers(schema: &Schema, statistic: FieldStatistic) -> (String, u32) {
    let places = match statistic {
        FieldStatistic::Sum(a) => schema.scale_of(a).into(),
        FieldStatistic::SumOfSquares(a) => 2 * u32::from(schema.scale_of(a)),
        _ => 0,
    };
    (in_words(schema, statistic), places)
}

/// A number of 10^-scale, without zeros at its end.
fn format_wide(number: i128, scale: u32) -> String {
    let unit = 10_u128.saturating_pow(scale);
    let (whole, part) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
    let sign = if number < 0 { "-" } else { "" };
    let part = format!("{part:0width$}", width = scale as usize);
    match part.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        part => format!("{sign}{whole}.{part}"),
    }
}

/// Bytes of a receipt of a verified plan, about.
#[must_use]
pub fn receipt_bytes(plan: &Plan, by_epochs: bool) -> usize {
    let (controllers, outputs) = (plan.roster.len(), plan.release.outputs());
    let list = if by_epochs { controllers * LISTED_BYTES + plan.streams.len() * 52 } else { 0 };
    WINDOW_BYTES + controllers * (2 * NUMBER_BYTES * outputs + MEMBER_BYTES) + list
}

/// What holds of any row that the members of its window decide.
fn verified(plan: &Plan, anchor: Option<Span>, by_epochs: bool) -> String {
    let signers = match plan.roster.len() {
        1 => "by 1 controller, which could change it".to_owned(),
        n if plan.integrity.is_bounded() => {
            format!("by up to {n} controllers, each of which could change it by its owners' bounds")
        }
        n => format!("by up to {n} controllers, any of which could change it"),
    };
    let anchor = QuerySpan(anchor.unwrap_or(plan.window));
    let kilobytes = receipt_bytes(plan, by_epochs).div_ceil(1000);
    let who = if by_epochs { ", and which owners took part in each window" } else { "" };
    format!(
        "verified: each row is signed {signers}; the service alone cannot. Controllers also see each of their streams' sums since the last multiple of {anchor}, in blocks of up to 8 words of one attribute, and the first window begins at such a multiple. Receipts of about {kilobytes} kB per window show readers which controllers were present and how many owners each had{who}."
    )
}
