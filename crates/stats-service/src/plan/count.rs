//! Plans of counts: files with a location, times and `release: count`.

use super::{Plan, PlanError, parse_span};
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
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
        Self::parse(&read_text(path)?).blame_input(path)
    }

    /// Reads the text of a plan of either kind.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        if is_count(text) {
            return CountPlan::parse(text).map(Self::Count);
        }
        Plan::parse(text).map(|plan| Self::Sums(Box::new(plan)))
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
    pub fn question(&self, pinned: &PinnedConfiguration, start: Timestamp) -> TallyDefinition {
        let end = Timestamp(start.0.saturating_add(self.every.0));
        let closes = Timestamp(end.0.saturating_add(self.close.0));
        let (deployment, location) = (pinned.fingerprint(), self.place.clone());
        TallyDefinition { deployment, location, start, end, closes, min_count: self.fewest }
    }
}

impl CountPlan {
    /// Whether a definition is this plan's, at one of the times at which everybody expects one. If
    /// its start could be anything, each client could be shown a count of its own, and be recognised
    /// by it.
    #[must_use]
    pub fn asks(&self, tally: &TallyDefinition, pinned: &PinnedConfiguration) -> bool {
        let on_time = tally.start.0.checked_rem(self.every.0) == Some(0);
        on_time && *tally == self.question(pinned, tally.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_deployment::TestDeployment;

    /// Two clients of one plan are never shown different counts of one hour.
    #[test]
    fn a_count_of_a_plan_is_determined_by_its_hour() {
        const HOUR: u64 = 3_600_000_000;
        let (plan, place) = (CountPlan::parse(GATE).unwrap(), TestDeployment::new());
        let pinned = &place.card.pinned;
        let asks = |tally: &TallyDefinition| plan.asks(tally, pinned);
        let on_time = plan.question(pinned, Timestamp(7 * HOUR));
        assert!(asks(&on_time));
        for off in [1, HOUR / 2, HOUR - 1] {
            assert!(!asks(&plan.question(pinned, Timestamp(7 * HOUR + off))));
        }
        let later = |at: Timestamp| Timestamp(at.0 + 1);
        let end = TallyDefinition { end: later(on_time.end), ..on_time.clone() };
        let closes = TallyDefinition { closes: later(on_time.closes), ..on_time.clone() };
        let fewer = TallyDefinition { min_count: 4, ..on_time.clone() };
        let deployment = alpheus_crypto::hash::Digest([1; 32]);
        let elsewhere = TallyDefinition { deployment, ..on_time };
        assert!([end, closes, fewer, elsewhere].iter().all(|other| !asks(other)));
    }

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
