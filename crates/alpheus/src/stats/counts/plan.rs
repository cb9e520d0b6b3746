//! What is to be counted, as a file says it: place and times, with `release: count`.

use crate::failure::{Blame, Failure};
use crate::replay::inputs::read_text;
use crate::replay::source::said;
use crate::stats::plan::{BadPlan, Plan, time};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::Place;
use alpheus_accountable_statistics::tally::Question;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_policy::time::Span;
use serde::Deserialize;
use std::path::Path;

/// The file as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    place: String,
    every: String,
    /// It says which kind of plan this is.
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
pub struct Count {
    /// Where.
    pub place: Place,
    /// How long somebody may be there to count.
    pub every: Span,
    /// For so long after it clients send, at drawn times.
    close: Span,
    /// With fewer nothing is published.
    fewest: u64,
}

/// Either kind of plan.
pub enum Planned {
    /// Sums of samples.
    Sums(Box<Plan>),
    /// A count.
    Count(Count),
}

impl Planned {
    /// Reads a plan of either kind.
    ///
    /// # Errors
    /// If the file cannot be read, or the plan not be used.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path)?;
        if is_count(&text) {
            return Count::parse(&text).map(Self::Count).blame_input(path);
        }
        Plan::parse(&text).map(|plan| Self::Sums(Box::new(plan))).blame_input(path)
    }
}

/// Which kind a plan is, whatever else it says.
fn is_count(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "release")]
        _release: Release,
    }
    serde_saphyr::from_str::<Kind>(text).is_ok()
}

impl Count {
    /// Reads a plan's text.
    ///
    /// # Errors
    /// [`BadPlan`].
    pub fn parse(text: &str) -> Result<Self, BadPlan> {
        let written: Written =
            serde_saphyr::from_str(text).map_err(|error| BadPlan::Syntax(said(&error)))?;
        Ok(Self {
            place: Place::try_from(written.place)?,
            every: time(&written.every, "every")?,
            close: time(&written.after.close, "after.close")?,
            fewest: written.fewest,
        })
    }

    /// The question that begins at a time.
    #[must_use]
    pub fn question(&self, pinned: &Pinned, start: Time) -> Question {
        let end = Time(start.0.saturating_add(self.every.0));
        let closes = Time(end.0.saturating_add(self.close.0));
        let (deployment, place) = (pinned.fingerprint(), self.place.clone());
        Question { deployment, place, start, end, closes, fewest: self.fewest }
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
    fn a_count_is_told_from_sums_and_refused_for_what_it_lacks() {
        assert!(is_count(GATE) && Count::parse(GATE).is_ok());
        assert!(!is_count("release: full\n") && !is_count("release: { mean: 5 }\n"));
        for (from, to, why) in [
            ("fewest: 5\n", "", "fewest"),
            ("every: 1hr", "every: often", "`every`"),
            ("close: 10min", "close: 0s", "`after.close`"),
            ("park/gate", "Park/Gate", "small letters"),
            ("fewest: 5", "fewest: 5\nquota: 3", "quota"),
        ] {
            let said = Count::parse(&GATE.replace(from, to)).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
