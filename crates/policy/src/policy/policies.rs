//! A file with the choices of many owners, for replays, examples and tests. In a
//! deployment, owners sign their own annotations.

use super::{ResolvedPolicy, Section};
use crate::document::{ContentError, DocumentError, Fields, Node};
use crate::fraction::Fraction;
use crate::ids::labelled_hash;
use crate::schema::{Schema, SchemaError};
use alpheus_time::{Span, Timestamp, calendar};
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

/// From 1970 to 2111, the last full year whose times are all in range.
fn parse_day(text: &str) -> Option<Timestamp> {
    let date = calendar::date(text).filter(|date| (1970..2112).contains(&date.year()))?;
    let days = u64::try_from(calendar::day_number(date)).ok()?;
    Some(Timestamp(days * Span::DAY.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted_to_days_and_checked() {
        let days = |text| parse_day(text).map(|start| start.0 / 86_400_000_000);
        assert_eq!([days("1970-01-01"), days("2026-04-20")], [Some(0), Some(20_563)]);
        assert_eq!(days("2111-12-31"), Some(51_863));
        for text in ["", "2026-4-20", "2025-02-29", "1969-12-31", "2112-01-01"] {
            assert_eq!(parse_day(text), None, "{text}");
        }
    }
}
