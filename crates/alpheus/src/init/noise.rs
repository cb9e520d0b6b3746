//! Results with noise: whether the requested error is possible, and which one is.

use super::{questions, say};
use alpheus_discover::write::{Files, Noise, NoiseTerms, files, noise_terms};
use alpheus_discover::{Attribute, Understanding};
use alpheus_input::rows::read;
use alpheus_input::source::Source;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::planner::{PlannedQuery, PlanningError};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded_deployment::Controllers;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_streams::replay::bounds;
use alpheus_time::Timestamp;
use std::path::Path;
use std::str::FromStr;

/// More owners than these are not thought of.
const MAX_OWNERS: u32 = 20_000;

/// The error of results, as a percentage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorShare(String);

impl FromStr for ErrorShare {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "expected a percentage above 0 % and below 100 %, such as 5 %";
        let number = text.trim().strip_suffix('%').ok_or(WRONG)?.trim();
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let good = |own: &f64| plain && number.len() <= 8 && *own > 0.0 && *own < 100.0;
        number.parse().ok().filter(good).ok_or(WRONG)?;
        Ok(Self(format!("{number} %")))
    }
}

/// Results with noise are not possible with the requested error.
#[derive(Debug, thiserror::Error)]
#[error("results with an error of {asked} are not possible:\n{why}")]
struct OutOfReachError {
    asked: String,
    why: String,
}

/// Asks whether results are exact, until the requested error is possible.
pub(super) fn asked(
    found: &Understanding,
    (name, bytes): (&str, &[u8]),
) -> Result<(Files, Vec<String>), Failure> {
    loop {
        let line = questions::line(
            "Press Enter for exact totals over many owners. For results with noise that hides each owner, type the error that you accept, such as `10 %`: ",
        )?;
        if line.trim().is_empty() {
            return planned(found, (name, bytes), None);
        }
        let error = match line.parse() {
            Ok(error) => error,
            Err(wrong) => {
                say(&format!("{wrong}\n"))?;
                continue;
            }
        };
        match planned(found, (name, bytes), Some(&error)) {
            Err(failure) if failure.category() == Category::Refused => {
                say(&format!("{failure}\n"))?;
            }
            other => return other,
        }
    }
}

/// What the planner says of a query.
struct Attempt {
    outcome: Result<PlannedQuery, PlanningError>,
    /// How many owners half of the windows have at least.
    crowd: u32,
}

/// Asks the planner for an error with each of some terms.
struct Asker<'a> {
    found: &'a Understanding,
    name: &'a str,
}

impl Asker<'_> {
    /// Plans for an error over as many owners as windows have, or over `crowd` of them.
    fn attempt(
        &self,
        (error, terms): (&str, NoiseTerms),
        crowd: Option<u32>,
    ) -> Result<Attempt, Failure> {
        let noise = Noise { error, least: 0, terms: Some(terms) };
        let written = files(self.found, self.name, Some(noise));
        let schema = Schema::from_yaml(&written.schema).blame(Category::Check)?;
        let policies = Policies::from_yaml(&written.policies, &schema).blame(Category::Check)?;
        let query = parse(&written.query).blame(Category::Check)?;
        let Statement::Create(create) = query else {
            return Err("the query that was written is none").blame(Category::Check);
        };
        // Not all owners have data in a window, and those who do not add nothing to its result.
        let mut usual = u32::try_from(written.crowd.max(1)).unwrap_or(u32::MAX);
        if terms.left_out().is_some() {
            // One in twenty readings is of owners who are left out, so at most as many owners are.
            usual -= usual.div_ceil(20);
        }
        let crowd = crowd.unwrap_or(usual);
        let sample = AssumedOwners::invented(crowd, Controllers::Count(1), &schema, &[])?;
        let catalog = sample.catalog(Path::new("schema.yaml"), schema, &policies)?;
        // A plan that runs gets a fresh nonce. This one never runs.
        let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
        let outcome = plan_query(&create, &catalog, asking, &mut entropy::rng()?);
        Ok(Attempt { outcome, crowd })
    }

    fn is_possible(&self, percent: u8, terms: NoiseTerms, crowd: Option<u32>) -> bool {
        let tried = self.attempt((&format!("{percent} %"), terms), crowd);
        tried.is_ok_and(|tried| tried.outcome.is_ok())
    }

    /// The smallest error in whole percent that is possible with all that owners have in a window,
    /// and its terms: of equally small ones the first.
    fn nearest(&self, all: &[NoiseTerms]) -> Option<(u8, NoiseTerms)> {
        let mut best: Option<(u8, NoiseTerms)> = None;
        for terms in all {
            let most = best.map_or(99, |(percent, _)| percent.saturating_sub(1));
            if most == 0 || !self.is_possible(most, *terms, None) {
                continue;
            }
            let percents: Vec<u8> = (1..most).collect();
            let least =
                percents.partition_point(|percent| !self.is_possible(*percent, *terms, None));
            best = Some((percents.get(least).copied().unwrap_or(most), *terms));
        }
        best
    }

    /// About how many owners a window would need for an error: twice as many at a time.
    fn enough_owners(&self, (error, terms): (&str, NoiseTerms), crowd: u32) -> Option<u32> {
        let fits = |owners: u32| {
            let tried = self.attempt((error, terms), Some(owners));
            tried.is_ok_and(|tried| tried.outcome.is_ok())
        };
        let (mut few, mut many) = (crowd, crowd.max(5).saturating_mul(2));
        while !fits(many) {
            (few, many) = (many, many.saturating_mul(2));
            if many > MAX_OWNERS {
                return None;
            }
        }
        // To a tenth.
        while few + few / 10 < many {
            let middle = few.midpoint(many);
            if fits(middle) { many = middle } else { few = middle }
        }
        Some(many)
    }
}

/// The files for a file of this name and content, and with an error what the planner promises of each
/// column.
///
/// # Errors
/// [`Category::Refused`] with the nearest error that is possible.
pub(super) fn planned(
    found: &Understanding,
    (name, bytes): (&str, &[u8]),
    error: Option<&ErrorShare>,
) -> Result<(Files, Vec<String>), Failure> {
    let Some(ErrorShare(asked)) = error else {
        return Ok((files(found, name, None), Vec::new()));
    };
    let (asker, all) = (Asker { found, name }, noise_terms(found));
    let mut refused = None;
    for terms in &all {
        let Attempt { outcome, crowd } = asker.attempt((asked, *terms), None)?;
        match outcome {
            Ok(planned) => {
                let least = planned.plans.iter().map(|plan| plan.population.min).max().unwrap_or(0);
                let (cost, one) = (planned.cost(), one_of_many(found, &planned));
                let mut said = planned.accuracy;
                said.extend(one);
                said.extend(cost);
                said.extend(terms.left_out());
                said.push(format!(
                    "in windows of {} with at least {least} owners; of {} owners, at least {crowd} have data in half of the windows",
                    terms.length(),
                    found.tally.owners
                ));
                let noise = Noise { error: asked, least: least.into(), terms: Some(*terms) };
                return Ok((files(found, name, Some(noise)), said));
            }
            Err(refusal) if refused.is_none() => refused = Some((refusal, crowd, *terms)),
            Err(_) => {}
        }
    }
    let nothing = "there are no windows to ask for";
    let (refusal, crowd, terms) = refused.ok_or(nothing).blame(Category::Check)?;
    let help = match asker.nearest(&all) {
        Some((percent, nearest)) => said_nearest(percent, nearest),
        None => said_out_of_reach(asked, crowd, asker.enough_owners((asked, terms), crowd)),
    };
    let help = match next_column((found, name), (asked, terms)) {
        Some(next) => format!("{help}. {next}"),
        None => help,
    };
    let noise = Noise { error: asked, least: 0, terms: Some(terms) };
    let beyond = beyond(&files(found, name, Some(noise)), bytes, &refusal);
    let why = why(&refusal, terms, crowd, &beyond);
    let error = OutOfReachError { asked: asked.to_owned(), why };
    Err(Failure::new(Category::Refused, error).at(name.to_owned()).with_help(help))
}

/// Which of several columns an error was tried for, and how to try another.
fn next_column(
    (found, name): (&Understanding, &str),
    (error, terms): (&str, NoiseTerms),
) -> Option<String> {
    let query = files(found, name, Some(Noise { error, least: 0, terms: Some(terms) })).query;
    // The query without noise stands there as a comment.
    let selected = query.lines().find(|line| line.starts_with("SELECT "))?;
    let is_asked = |own: &&Attribute| selected == format!("SELECT AVG({})", own.name);
    let column = &found.attributes.iter().find(is_asked)?.column;
    (found.attributes.len() > 1).then(|| {
        format!(
            "Only `{column}` was tried; `--measure` with the name of another column tries that one"
        )
    })
}

/// That the query has one of several columns.
fn one_of_many(found: &Understanding, planned: &PlannedQuery) -> Option<String> {
    let column = &planned.plans.first()?.select.items.first()?.alias;
    let many = found.attributes.len();
    (many > 1).then(|| {
        format!(
            "of {many} measured columns, the query has only `{column}`, since several would share ε; for another, edit query.sql"
        )
    })
}

/// Whether an answer takes minutes: each owner that a window needs has a session on each of its days.
pub(super) fn takes_long(written: &Files) -> bool {
    /// Some forty seconds.
    const MAX_SESSIONS: u64 = 200_000;
    let days = written.window.strip_suffix(" DAYS").and_then(|days| days.parse().ok());
    let least = written.query.split("BETWEEN ").nth(1);
    let least = least.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
    written.part.is_some() && least.saturating_mul(days.unwrap_or(1)) > MAX_SESSIONS
}

/// Which share of the file's readings the bounds that the planner offers would refuse. Without bounds,
/// the file is not read again.
fn beyond(written: &Files, bytes: &[u8], refusal: &PlanningError) -> Vec<String> {
    if !bounds::are_offered(refusal) {
        return Vec::new();
    }
    let said = || {
        let schema = Schema::from_yaml(&written.schema).ok()?;
        let source = Source::parse(&written.source, &schema).ok()?;
        let recording = read(bytes, &source, &schema, schema.tick).ok()?;
        Some(bounds::beyond(refusal, &schema, &recording))
    };
    said().unwrap_or_default()
}

/// Why an error is not possible with these terms.
fn why(refusal: &PlanningError, terms: NoiseTerms, crowd: u32, beyond: &[String]) -> String {
    // The query is written here, so what it says of noise is nothing that a person could change. The help says
    // which error is possible in which windows.
    const OF_QUERY: [&str; 2] = ["set epsilon as well", "  possible with `error = "];
    let own = |line: &&str| !OF_QUERY.iter().any(|part| line.contains(part));
    let sentences: Vec<String> = refusal.sentences().into_iter().map(|(_, what)| what).collect();
    let mut why: Vec<&str> = sentences.iter().flat_map(|what| what.lines()).filter(own).collect();
    let beyond: Vec<String> = beyond.iter().map(|what| format!("  {what}")).collect();
    why.extend(beyond.iter().map(String::as_str));
    let half =
        format!("  at least {crowd} owners have data in half of the windows of {}", terms.length());
    why.push(&half);
    why.join("\n")
}

fn said_nearest(percent: u8, terms: NoiseTerms) -> String {
    let limit = terms.left_out().map_or_else(String::new, |out| format!(" ({out})"));
    format!(
        "the nearest possible error is `--error '{percent} %'`, in windows of {}{limit}. More owners or narrower bounds make it smaller: write the files with that error, then narrow the bounds in schema.yaml. Without --error, results are exact totals",
        terms.length()
    )
}

fn said_out_of_reach(asked: &str, crowd: u32, enough: Option<u32>) -> String {
    let enough = enough.map_or_else(String::new, |owners| {
        format!("; {asked} takes about {owners} owners with data in a window")
    });
    format!(
        "with the bounds of all values in the file, no error below 100 % is possible with {crowd} owners in a window, whatever its length{enough}. Without --error, results are exact totals over many owners"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_percentage() {
        for (text, read) in [("5 %", "5 %"), (" 0.5%\n", "0.5 %")] {
            assert_eq!(text.parse(), Ok(ErrorShare(read.to_owned())));
        }
        for wrong in ["5", "0 %", "100 %", "1e1 %", "x %", "%", "inf %"] {
            assert!(wrong.parse::<ErrorShare>().is_err(), "{wrong}");
        }
    }
}
