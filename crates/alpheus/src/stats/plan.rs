//! What is to be measured, as a file says it: place, interval, quota, times. Definitions
//! are made of it, one for each interval of time.

use crate::failure::{Blame, Failure};
use crate::replay::inputs::read_text;
use crate::replay::source::said;
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::{
    After, BadDefinition, BadPlace, Definition, Place, Rule,
};
use alpheus_accountable_statistics::error::BadInterval;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::group::Element;
use alpheus_policy::time::Span;
use serde::Deserialize;
use std::path::Path;

/// The file as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
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

/// A plan that was read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What, where.
    pub place: Place,
    /// The attribute of a recording.
    pub attribute: String,
    /// What values may be.
    pub interval: Interval,
    /// A step is 10^-decimals of the unit.
    pub decimals: u8,
    /// The length of an aggregate.
    pub every: Span,
    quota: Limit,
    rule: Rule,
    /// What comes after an aggregate's end.
    pub after: After,
    /// Turns of an aggregate's time.
    pub during: u16,
    written: Written,
}

/// A plan that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// No YAML of this shape.
    #[error("{0}")]
    Syntax(String),
    /// No length of time.
    #[error("`{0}` is not a length of time such as `10s`, `5min` or `1hr`")]
    Time(&'static str),
    /// No interval of values.
    #[error("`interval`: {0}")]
    Interval(#[from] BadInterval),
    /// Too many decimals.
    #[error("`interval`: at most 9 decimals, and bounds that fit in 64 bits with them")]
    Decimals,
    /// No place.
    #[error("`place`: {0}")]
    Place(#[from] BadPlace),
    /// No quota.
    #[error("`quota`: at least 1, and no more than credentials can count")]
    Quota,
}

/// A length of time as a plan says it.
///
/// # Errors
/// [`BadPlan::Time`].
pub fn time(text: &str, name: &'static str) -> Result<Span, BadPlan> {
    let span = alpheus_policy::document::parse_duration(text).filter(|span| span.0 > 0);
    span.ok_or(BadPlan::Time(name))
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the file cannot be read, or the plan not be used.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::parse(&read_text(path)?).blame_input(path)
    }

    /// Reads a plan's text.
    ///
    /// # Errors
    /// [`BadPlan`].
    pub fn parse(text: &str) -> Result<Self, BadPlan> {
        let written: Written =
            serde_saphyr::from_str(text).map_err(|error| BadPlan::Syntax(said(&error)))?;
        let Values { lowest, highest, decimals } = written.interval;
        let unit = (decimals <= 9).then(|| 10_i64.pow(decimals.into())).ok_or(BadPlan::Decimals)?;
        let steps = |value: i64| value.checked_mul(unit).ok_or(BadPlan::Decimals);
        let interval = Interval::new(steps(lowest)?, steps(highest)?, written.deviation)?;
        let rule = match written.release {
            Release::Full => Rule::Full,
            Release::Mean(grain) => Rule::Mean { grain },
        };
        let after = After {
            turn: time(&written.after.turn, "after.turn")?.0,
            turns: written.after.turns,
            settling: time(&written.after.settling, "after.settling")?.0,
            patience: time(&written.after.patience, "after.patience")?.0,
        };
        Ok(Self {
            place: Place::try_from(written.place.clone())?,
            attribute: written.attribute.clone(),
            interval,
            decimals,
            every: time(&written.every, "every")?,
            quota: Limit::try_from(written.quota).map_err(|_| BadPlan::Quota)?,
            rule,
            after,
            during: written.during,
            written,
        })
    }

    /// Whether a deployment's smoothers would sign the aggregate that starts at a time,
    /// whatever its key is.
    ///
    /// # Errors
    /// [`BadDefinition`].
    pub fn check(&self, pinned: &Pinned, start: Time) -> Result<(), BadDefinition> {
        let any = ThresholdKey(Element::second_base());
        self.definition(pinned, start, any).map(drop)
    }

    /// The definition of the aggregate that starts at a time, under a key.
    ///
    /// # Errors
    /// [`BadDefinition`].
    pub fn definition(
        &self,
        pinned: &Pinned,
        start: Time,
        key: ThresholdKey,
    ) -> Result<Definition, BadDefinition> {
        let Written { accounts, slots, expected, clients, .. } = self.written;
        let definition = Definition {
            deployment: pinned.fingerprint(),
            place: self.place.clone(),
            start,
            end: Time(start.0.saturating_add(self.every.0)),
            during: self.during,
            quota: self.quota,
            accounts,
            interval: self.interval,
            slots,
            expected,
            clients,
            key_epoch: pinned.key_epoch(start).ok_or(BadDefinition::Time)?,
            key,
            rule: self.rule,
            after: self.after,
        };
        definition.check(pinned)?;
        Ok(definition)
    }
}
