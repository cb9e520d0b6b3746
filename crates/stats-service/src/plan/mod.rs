//! Plans: files that describe a measurement by location, interval, quota and times. Each time
//! interval of a plan becomes one definition.

pub mod count;

use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::definition::{
    ClosingSchedule, Definition, DefinitionError, Location, LocationError, ReleaseRule,
};
use alpheus_accountable_statistics::error::IntervalError;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::group::Element;
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
    attribute: String,
    interval: Values,
    #[serde(default)]
    deviation: bool,
    every: String,
    during: u16,
    quota: u32,
    accounts: u32,
    slots: u32,
    expected: u32,
    clients: u32,
    release: Release,
    after: Times,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Values {
    lowest: i64,
    highest: i64,
    #[serde(default)]
    decimals: u8,
    #[serde(default = "one")]
    resolution: u32,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Release {
    Full,
    Mean(u32),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Times {
    turn: String,
    turns: u16,
    settling: String,
    patience: String,
}

/// A validated plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The location.
    pub place: Location,
    /// The attribute in a recording.
    pub attribute: String,
    /// The interval of values.
    pub interval: Interval,
    /// A step is 10^-decimals of the unit.
    pub decimals: u8,
    /// The length of an aggregate.
    pub every: Span,
    quota: Limit,
    /// What is published.
    pub rule: ReleaseRule,
    /// The schedule after an aggregate's end.
    pub after: ClosingSchedule,
    /// The number of turns during an aggregate.
    pub during: u16,
    file: PlanFile,
}

/// A plan is invalid.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The YAML is invalid.
    #[error("{0}")]
    Syntax(String),
    /// A duration is invalid.
    #[error("`{0}` must be a duration such as `10s`, `5min` or `1hr`")]
    Time(&'static str),
    /// The interval of values is invalid.
    #[error("`interval`: {0}")]
    Interval(#[from] IntervalError),
    /// Too many decimals.
    #[error("`interval`: use at most 9 decimals, and bounds that fit in 64 bits in steps")]
    Decimals,
    /// The location is invalid.
    #[error("`place`: {0}")]
    TestDeployment(#[from] LocationError),
    /// The quota is invalid.
    #[error("`quota`: give at least 1, and no more than credentials can count")]
    Quota,
}

/// Parses a duration of a plan.
///
/// # Errors
/// [`PlanError::Time`].
pub fn parse_span(text: &str, name: &'static str) -> Result<Span, PlanError> {
    let span = alpheus_policy::document::parse_duration(text).filter(|span| span.0 > 0);
    span.ok_or(PlanError::Time(name))
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the file cannot be read, or the plan is invalid.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::parse(&read_text(path)?).blame_input(path)
    }

    /// Reads a plan's text.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let file: PlanFile = serde_saphyr::from_str(text)
            .map_err(|error| PlanError::Syntax(parser_message(&error)))?;
        let Values { lowest, highest, decimals, resolution } = file.interval;
        let unit =
            (decimals <= 9).then(|| 10_i64.pow(decimals.into())).ok_or(PlanError::Decimals)?;
        let steps = |value: i64| value.checked_mul(unit).ok_or(PlanError::Decimals);
        let interval = Interval::new(steps(lowest)?, steps(highest)?, file.deviation)?;
        let rule = match file.release {
            Release::Full => ReleaseRule::Full,
            Release::Mean(grain) => ReleaseRule::Mean { grain, resolution },
        };
        let after = ClosingSchedule {
            turn: parse_span(&file.after.turn, "after.turn")?,
            turns: file.after.turns,
            settling: parse_span(&file.after.settling, "after.settling")?,
            patience: parse_span(&file.after.patience, "after.patience")?,
        };
        Ok(Self {
            place: Location::try_from(file.place.clone())?,
            attribute: file.attribute.clone(),
            interval,
            decimals,
            every: parse_span(&file.every, "every")?,
            quota: Limit::try_from(file.quota).map_err(|_| PlanError::Quota)?,
            rule,
            after,
            during: file.during,
            file,
        })
    }

    /// Checks whether a deployment's smoothers would sign the aggregate that starts at a time, under
    /// any key.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn check(
        &self,
        pinned: &PinnedConfiguration,
        start: Timestamp,
    ) -> Result<(), DefinitionError> {
        let any = ThresholdKey(Element::second_base());
        self.definition(pinned, start, any).map(drop)
    }

    /// The definition of the aggregate that starts at a time, under a key.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn definition(
        &self,
        pinned: &PinnedConfiguration,
        start: Timestamp,
        key: ThresholdKey,
    ) -> Result<Definition, DefinitionError> {
        let PlanFile { accounts, slots, expected, clients, .. } = self.file;
        let definition = Definition {
            deployment: pinned.fingerprint(),
            location: self.place.clone(),
            start,
            end: Timestamp(start.0.saturating_add(self.every.0)),
            during: self.during,
            quota: self.quota,
            accounts,
            interval: self.interval,
            slots,
            expected,
            clients,
            key_epoch: pinned.key_epoch(start).ok_or(DefinitionError::Time)?,
            key,
            rule: self.rule,
            closing: self.after,
        };
        definition.check(pinned)?;
        Ok(definition)
    }
}
