//! Plans of counts: files with a location, times and `release: count`.

use super::{Plan, PlanError, parse_span};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::Location;
use alpheus_accountable_statistics::tally::TallyDefinition;
use alpheus_input::source::parser_message;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::read_text;
use alpheus_time::{Span, Timestamp};
use serde::Deserialize;
use std::path::Path;

/// The content of a plan file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PlanFile {
    place: String,
    every: String,
    /// The kind of plan.
    #[serde(rename = "release")]
    _release: Release,
    fewest: u64,
    after: Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Release {
    Count,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Times {
    close: String,
}

/// A plan of a count.
#[derive(Clone, Debug)]
pub struct CountPlan {
    /// The location.
    pub place: Location,
    /// The duration of a count.
    pub every: Span,
    /// How long after its end clients may send, at random times.
    close: Span,
    /// The minimum count: below it nothing is published.
    fewest: u64,
}

/// A plan of either kind.
pub enum AnyPlan {
    /// Sums of samples.
    Sums(Box<Plan>),
    /// A count.
    Count(CountPlan),
}

impl AnyPlan {
    /// Reads a plan of either kind.
    ///
    /// # Errors
    /// If the file cannot be read, or the plan is invalid.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path)?;
        if is_count(&text) {
            return CountPlan::parse(&text).map(Self::Count).blame_input(path);
        }
        Plan::parse(&text).map(|plan| Self::Sums(Box::new(plan))).blame_input(path)
    }
}

/// Whether a plan is a count; checks nothing else.
fn is_count(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "release")]
        _release: Release,
    }
    serde_saphyr::from_str::<Kind>(text).is_ok()
}

impl CountPlan {
    /// Reads a plan's text.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let file: PlanFile = serde_saphyr::from_str(text)
            .map_err(|error| PlanError::Syntax(parser_message(&error)))?;
        Ok(Self {
            place: Location::try_from(file.place)?,
            every: parse_span(&file.every, "every")?,
            close: parse_span(&file.after.close, "after.close")?,
            fewest: file.fewest,
        })
    }

    /// The definition of the count that begins at a time.
    #[must_use]
    pub fn question(&self, pinned: &Pinned, start: Timestamp) -> TallyDefinition {
        let end = Timestamp(start.0.saturating_add(self.every.0));
        let closes = Timestamp(end.0.saturating_add(self.close.0));
        let (deployment, location) = (pinned.fingerprint(), self.place.clone());
        TallyDefinition { deployment, location, start, end, closes, min_count: self.fewest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATE: &str = "\
place: park/gate
every: 1hr
release: count
fewest: 5
after: { close: 10min }
";

    #[test]
    fn a_count_is_distinguished_from_sums_and_invalid_fields_are_rejected() {
        assert!(is_count(GATE) && CountPlan::parse(GATE).is_ok());
        assert!(!is_count("release: full\n") && !is_count("release: { mean: 5 }\n"));
        for (from, to, why) in [
            ("fewest: 5\n", "", "fewest"),
            ("every: 1hr", "every: often", "`every`"),
            ("close: 10min", "close: 0s", "`after.close`"),
            ("park/gate", "Park/Gate", "lower-case letters"),
            ("fewest: 5", "fewest: 5\nquota: 3", "quota"),
        ] {
            let said = CountPlan::parse(&GATE.replace(from, to)).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
