//! Results with noise: whether the error that is asked for can be had, and which can.

use super::{asking, say};
use alpheus_discover::Understanding;
use alpheus_discover::write::{Files, Noise, files};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::planner::{PlannedQuery, PlanningError};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded::Controllers;
use alpheus_stream_runtime::planning::{QueryContext, plan_query};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_time::Timestamp;
use std::path::Path;
use std::str::FromStr;

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

/// Results with noise cannot be had with the error that is asked for.
#[derive(Debug, thiserror::Error)]
#[error("results with an error of {asked} cannot be had: {why}")]
struct OutOfReachError {
    asked: String,
    why: String,
}

/// Asks whether results are exact, until what is asked for can be had.
pub(super) fn asked(found: &Understanding, name: &str) -> Result<(Files, Vec<String>), Failure> {
    loop {
        let line = asking::line(
            "Exact totals over many owners (empty), or results with noise that hides each owner, and with an error that you accept, such as `10 %`: ",
        )?;
        if line.trim().is_empty() {
            return planned(found, name, None);
        }
        let error = match line.parse() {
            Ok(error) => error,
            Err(wrong) => {
                say(&format!("{wrong}\n"))?;
                continue;
            }
        };
        match planned(found, name, Some(&error)) {
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

/// Plans for an error over as many owners as windows have.
fn attempt(found: &Understanding, name: &str, error: &str) -> Result<Attempt, Failure> {
    let written = files(found, name, Some(Noise { error, least: 0 }));
    let schema = Schema::from_yaml(&written.schema).blame(Category::Check)?;
    let policies = Policies::from_yaml(&written.policies, &schema).blame(Category::Check)?;
    let query = parse(&written.query).blame(Category::Check)?;
    let Statement::Create(create) = query else {
        return Err("the query that was written is none").blame(Category::Check);
    };
    // Not all owners have data in a window, and those who do not add nothing to its result.
    let crowd = u32::try_from(written.crowd.max(1)).unwrap_or(u32::MAX);
    let sample = AssumedOwners::invented(crowd, Controllers::Count(1), &schema, &[])?;
    let catalog = sample.catalog(Path::new("schema.yaml"), schema, &policies)?;
    // A plan that runs gets a fresh nonce. This one never runs.
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    let outcome = plan_query(&create, &catalog, asking, &mut entropy::rng()?);
    Ok(Attempt { outcome, crowd })
}

/// The files, and with an error what the planner promises of each column.
///
/// # Errors
/// [`Category::Refused`] with the nearest error that can be had.
pub(super) fn planned(
    found: &Understanding,
    name: &str,
    error: Option<&ErrorShare>,
) -> Result<(Files, Vec<String>), Failure> {
    let Some(ErrorShare(asked)) = error else {
        return Ok((files(found, name, None), Vec::new()));
    };
    let Attempt { outcome, crowd } = attempt(found, name, asked)?;
    match outcome {
        Ok(planned) => {
            let least = planned.plans.iter().map(|plan| plan.population.min).max().unwrap_or(0);
            let mut said = planned.accuracy;
            said.push(format!(
                "in windows of at least {least} owners; of {}, at least {crowd} have data in half of the windows",
                found.tally.owners
            ));
            let noise = Noise { error: asked, least: least.into() };
            Ok((files(found, name, Some(noise)), said))
        }
        Err(refusal) => {
            let nearest = nearest(found, name);
            Err(out_of_reach(&refusal, (asked, nearest), (name, crowd)))
        }
    }
}

/// The smallest error in whole percent that can be had with all that owners have in a window.
fn nearest(found: &Understanding, name: &str) -> Option<u8> {
    let is_out_of_reach = |percent: &u8| {
        let tried = attempt(found, name, &format!("{percent} %"));
        !tried.is_ok_and(|tried| tried.outcome.is_ok())
    };
    let percents: Vec<u8> = (1..100).collect();
    percents.get(percents.partition_point(is_out_of_reach)).copied()
}

fn out_of_reach(
    refusal: &PlanningError,
    (asked, nearest): (&str, Option<u8>),
    (name, crowd): (&str, u32),
) -> Failure {
    let mut why: Vec<String> = refusal.sentences().into_iter().map(|(_, what)| what).collect();
    why.push(format!("at least {crowd} owners have data in half of the windows"));
    let error = OutOfReachError { asked: asked.to_owned(), why: why.join("; ") };
    let help = match nearest {
        Some(percent) => format!(
            "the nearest is `--error '{percent} %'`. It is smaller with more owners, or with narrower bounds: write the files with that error, and narrow the bounds in schema.yaml. Without --error, results are exact totals"
        ),
        None => "without --error, results are exact totals over many owners".to_owned(),
    };
    Failure::new(Category::Refused, error).at(name.to_owned()).with_help(help)
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
