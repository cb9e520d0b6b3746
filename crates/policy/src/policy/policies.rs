//! A file with the choices of many owners, for replays, examples and tests. In a
//! deployment, owners sign their own annotations.

use super::{ResolvedPolicy, Section};
use crate::document::{ContentError, DocumentError, Fields, Node};
use crate::fraction::Fraction;
use crate::ids::labelled_hash;
use crate::schema::{Schema, SchemaError};
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

pub(crate) const KEYS: &[&str] =
    &["schema", "service", "validFrom", "validTo", "default", "mix", "owners"];

/// The policies of many owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The service that annotations from this file name.
    pub service: String,
    /// Start of the annotations' validity.
    pub valid_from: Timestamp,
    /// End of the annotations' validity.
    pub valid_to: Timestamp,
    pub(super) default: ResolvedPolicy,
    pub(super) mix: Vec<(Fraction, ResolvedPolicy)>,
    pub(super) owners: BTreeMap<String, ResolvedPolicy>,
}

impl Policies {
    /// Reads a policies file against its schema.
    ///
    /// # Errors
    /// If the file is invalid. The error has line and column, the cause, and the fix.
    pub fn from_yaml(text: &str, schema: &Schema) -> Result<Policies, SchemaError> {
        read(&Node::from_yaml(text)?, schema)
    }

    /// The same choice for every owner, without an end.
    #[must_use]
    pub fn for_all(policy: ResolvedPolicy) -> Policies {
        Policies {
            service: String::new(),
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            default: policy,
            mix: Vec::new(),
            owners: BTreeMap::new(),
        }
    }

    /// The owners with their own entry.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.owners.keys().map(String::as_str)
    }

    /// The policy of the owner with this name: their own entry, else the part of the mix that
    /// the hash of the name selects, else the default.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> &ResolvedPolicy {
        self.owners.get(owner).unwrap_or_else(|| self.of_section(self.mixed(owner)))
    }

    /// The part of the file that decides for the owner with this name.
    #[must_use]
    pub fn section_of(&self, owner: &str) -> Section {
        // Of many owners few are named.
        match self.owners.contains_key(owner) {
            true => {
                Section::Owner(self.owners.keys().take_while(|name| name.as_str() < owner).count())
            }
            false => self.mixed(owner),
        }
    }

    fn mixed(&self, owner: &str) -> Section {
        let hash = labelled_hash("alpheus/policy-mix/v1", &[owner.as_bytes()]);
        let [a, b, c, d, ..] = hash;
        // The owner's point in [0, 1), and the end of each part.
        let (point, mut end) = (f64::from(u32::from_be_bytes([a, b, c, d])), 0.0);
        for (part, (share, _)) in self.mix.iter().enumerate() {
            end += f64::from(share.numerator) / f64::from(share.denominator) * 4_294_967_296.0;
            if point < end {
                return Section::Mix(part);
            }
        }
        Section::Default
    }
}

fn read(root: &Node, schema: &Schema) -> Result<Policies, DocumentError> {
    let fields = Fields::of(root, KEYS)?;
    if let Some(node) = fields.get("schema") {
        let (found, expected) = (node.text()?.to_owned(), schema.name.clone());
        if found != expected {
            return Err(node.error(ContentError::OtherSchema { found, expected }));
        }
    }
    let private = ResolvedPolicy::private(schema);
    let default =
        fields.read_or("default", private.clone(), |node| private.with_choices(node, schema))?;
    let (valid_from, valid_to) = validity(&fields)?;
    Ok(Policies {
        service: fields.read_or("service", "", Node::text)?.to_owned(),
        valid_from,
        valid_to,
        mix: fields.read_or("mix", Vec::new(), |node| mix(node, &default, schema))?,
        owners: fields.read_or("owners", BTreeMap::new(), |node| owners(node, &default, schema))?,
        default,
    })
}

/// `validFrom` and `validTo`, each the start of a day.
fn validity(fields: &Fields<'_>) -> Result<(Timestamp, Timestamp), DocumentError> {
    let from = fields.read_or("validFrom", Timestamp(0), day)?;
    let to = fields.read_or("validTo", Timestamp::LIMIT, day)?;
    match fields.get("validTo") {
        Some(node) if to <= from => Err(node.error(ContentError::EmptyValidity)),
        _ => Ok((from, to)),
    }
}

fn mix(
    node: &Node,
    default: &ResolvedPolicy,
    schema: &Schema,
) -> Result<Vec<(Fraction, ResolvedPolicy)>, DocumentError> {
    let (mut parts, mut total) = (Vec::new(), 0.0);
    for item in node.list()? {
        let fields = Fields::of(item, &["share", "policy"])?;
        let named = fields.required("share")?;
        let share = named.fraction()?;
        total += f64::from(share.numerator) / f64::from(share.denominator);
        if total > 1.0 + 1e-9 {
            return Err(named.error(ContentError::SharesAboveOne));
        }
        parts.push((share, default.with_choices(fields.required("policy")?, schema)?));
    }
    Ok(parts)
}

fn owners(
    node: &Node,
    default: &ResolvedPolicy,
    schema: &Schema,
) -> Result<BTreeMap<String, ResolvedPolicy>, DocumentError> {
    let entries = node.map()?.iter();
    entries
        .map(|(owner, chosen)| {
            let chosen = default.with_choices(chosen, schema);
            Ok((owner.clone(), chosen.map_err(|error| unnamed(error, owner))?))
        })
        .collect()
}

/// Owners' names are personal data, so the path omits them. The line identifies the entry.
fn unnamed(mut error: DocumentError, owner: &str) -> DocumentError {
    if let Some(rest) = error.at.path.strip_prefix("owners.").and_then(|p| p.strip_prefix(owner)) {
        error.at.path = format!("owners.…{rest}");
    }
    error
}

/// The start of a day such as `2026-04-20`, in UTC.
fn day(node: &Node) -> Result<Timestamp, DocumentError> {
    parse_day(node.text()?).ok_or_else(|| node.error(ContentError::BadDate))
}

fn parse_day(text: &str) -> Option<Timestamp> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(digits(year) && digits(month) && digits(day)) {
        return None;
    }
    let days = days_since_epoch(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    Some(Timestamp(days * 86_400_000_000))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar up to 2111.
fn days_since_epoch(year: u64, month: usize, day: u64) -> Option<u64> {
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = u64::from(is_leap(year));
    let length =
        |index: usize| LENGTHS.get(index).map(|days| days + if index == 1 { february } else { 0 });
    if !(1970..2112).contains(&year) || day == 0 || day > length(month.checked_sub(1)?)? {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let months: u64 = (0..month - 1).filter_map(length).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted_to_days_and_checked() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1970-12-31", 364),
            ("2000-02-29", 11016),
            ("2000-03-01", 11017),
            ("2026-04-20", 20563),
            ("2100-03-01", 47541),
        ] {
            assert_eq!(parse_day(text), Some(Timestamp(days * 86_400_000_000)), "{text}");
        }
        for text in [
            "",
            "2026-4-20",
            "2025-02-29",
            "2100-02-29",
            "1969-12-31",
            "2026-13-01",
            "2026-00-01",
            "+026-01-01",
        ] {
            assert_eq!(parse_day(text), None, "{text}");
        }
    }
}
