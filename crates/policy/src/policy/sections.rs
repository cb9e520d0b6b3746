//! The parts of a policies file: who decides for whom, how to change a part, and the file as text.

use super::{AttributePolicy, Policies, ResolvedOption, ResolvedPolicy};
use crate::fraction::Fraction;
use crate::schema::{OptionKind, Schema};
use alpheus_time::{Span, Timestamp, calendar};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// A part of a policies file. All owners in it make the same choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// `default`: owners in no other part.
    Default,
    /// A part of the `mix`, by its position.
    Mix(usize),
    /// An owner with an entry of their own, by its position in the order of names.
    Owner(usize),
}

/// Names of owners are personal data, so none is shown.
impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Section::Default => f.write_str("the owners under `default`"),
            Section::Mix(part) => write!(f, "the owners in part {} of `mix`", part + 1),
            Section::Owner(entry) => {
                write!(f, "the owner of entry {} of `owners`, by name", entry + 1)
            }
        }
    }
}

impl Policies {
    /// The choices of a part of the file. A part that does not exist has those of `default`.
    #[must_use]
    pub fn of_section(&self, section: Section) -> &ResolvedPolicy {
        let own = match section {
            Section::Default => None,
            Section::Mix(part) => self.mix.get(part).map(|(_, policy)| policy),
            Section::Owner(entry) => self.owners.values().nth(entry),
        };
        own.unwrap_or(&self.default)
    }

    /// The policies where the owners of a part also choose this for an attribute.
    #[must_use]
    pub fn with_choice(&self, section: Section, attribute: u16, also: ResolvedOption) -> Policies {
        let mut policies = self.clone();
        let own = match section {
            Section::Default => Some(&mut policies.default),
            Section::Mix(part) => policies.mix.get_mut(part).map(|(_, policy)| policy),
            Section::Owner(entry) => policies.owners.values_mut().nth(entry),
        };
        let chosen = own.and_then(|policy| policy.attributes.get_mut(usize::from(attribute)));
        chosen.into_iter().for_each(|own| own.alternatives.push(also.clone()));
        policies
    }

    /// The file as YAML, without comments. Reading it returns these policies.
    #[must_use]
    pub fn to_yaml(&self, schema: &Schema) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(schema, &mut out);
        out
    }

    fn write(&self, schema: &Schema, out: &mut String) -> fmt::Result {
        writeln!(out, "schema: {}", schema.name)?;
        if !self.service.is_empty() {
            writeln!(out, "service: {}", quoted(&self.service))?;
        }
        if self.valid_from > Timestamp(0) {
            writeln!(out, "validFrom: {}", day(self.valid_from))?;
        }
        if self.valid_to < Timestamp::LIMIT {
            writeln!(out, "validTo: {}", day(self.valid_to))?;
        }
        writeln!(out, "default:")?;
        let private = ResolvedPolicy::private(schema);
        write_choices(out, "  ", &self.default, &private, schema)?;
        if !self.mix.is_empty() {
            writeln!(out, "mix:")?;
        }
        for (Fraction { numerator, denominator }, policy) in &self.mix {
            writeln!(out, "  - share: {numerator}/{denominator}")?;
            writeln!(out, "    policy:")?;
            write_choices(out, "      ", policy, &self.default, schema)?;
        }
        if !self.owners.is_empty() {
            writeln!(out, "owners:")?;
        }
        for (owner, policy) in &self.owners {
            writeln!(out, "  {}:", quoted(owner))?;
            write_choices(out, "    ", policy, &self.default, schema)?;
        }
        Ok(())
    }
}

/// The choices that differ from those that apply anyway.
fn write_choices(
    out: &mut String,
    indent: &str,
    policy: &ResolvedPolicy,
    otherwise: &ResolvedPolicy,
    schema: &Schema,
) -> fmt::Result {
    let mut all = schema.attributes.iter().zip(&policy.attributes).zip(&otherwise.attributes);
    let differs = |((_, own), other): &((_, &AttributePolicy), &AttributePolicy)| own != other;
    let mut written = false;
    for ((attribute, own), _) in all.by_ref().filter(differs) {
        let choices: Vec<String> =
            own.alternatives.iter().map(|chosen| choice(chosen, schema)).collect();
        match choices.as_slice() {
            [one] => writeln!(out, "{indent}{}: {one}", attribute.name)?,
            all => writeln!(out, "{indent}{}: [{}]", attribute.name, all.join(", "))?,
        }
        written = true;
    }
    // A map without entries.
    if written { Ok(()) } else { writeln!(out, "{indent}{{}}") }
}

/// A choice, with the window and population that the option leaves open.
fn choice(chosen: &ResolvedOption, schema: &Schema) -> String {
    let offered = schema.options.iter().find(|option| option.name == chosen.name);
    let mut text = format!("{{ option: {}", chosen.name);
    if offered.is_some_and(|option| option.clients.len() > 1) {
        text.push_str(&format!(", clients: {}", chosen.min_population));
    }
    if offered.is_some_and(|option| option.windows.len() > 1) {
        text.push_str(&format!(", window: {}", chosen.window));
    }
    if chosen.kind == OptionKind::Private { String::new() } else { text + " }" }
}

/// Text between double quotes, in which YAML and JSON have the same escapes.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The day of a time, such as `2026-04-20`.
fn day(time: Timestamp) -> String {
    calendar::day_text(i64::try_from(time.0 / Span::DAY.0).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "\
name: Meters
tick: 1s
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
  - { name: other, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [10, 20], window: [90s, 1h] }
  - { name: one, option: stream-aggregate, to: coach }
  - { name: nothing, option: private }
";
    const POLICIES: &str = "\
schema: Meters
service: 'a: \"b\"'
validFrom: 2024-02-29
validTo: 2111-12-31
default: { reading: [{ option: crowd, clients: 10, window: 90s }, one], other: crowd }
mix:
  - { share: 1/3, policy: { reading: nothing } }
  - { share: 0.25, policy: {} }
owners:
  'x: y': { other: [] }
";

    #[test]
    fn what_is_written_is_read_again() {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let policies = Policies::from_yaml(POLICIES, &schema).unwrap();
        let text = policies.to_yaml(&schema);
        assert_eq!(Policies::from_yaml(&text, &schema).unwrap(), policies, "{text}");
        assert!(text.contains("validFrom: 2024-02-29") && text.contains("window: 90s"), "{text}");
        let nothing = Policies::for_all(ResolvedPolicy::private(&schema));
        let text = nothing.to_yaml(&schema);
        assert_eq!(Policies::from_yaml(&text, &schema).unwrap(), nothing, "{text}");
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for text in ["1970-01-01", "2000-02-29", "2000-03-01", "2024-12-31", "2100-03-01"] {
            let file = format!("validTo: 2111-12-31\nvalidFrom: {text}");
            let schema = Schema::from_yaml(SCHEMA).unwrap();
            let policies = Policies::from_yaml(&file, &schema).unwrap();
            assert_eq!(day(policies.valid_from), text);
        }
    }

    #[test]
    fn a_choice_is_added_to_one_part() {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let policies = Policies::from_yaml(POLICIES, &schema).unwrap();
        assert_eq!(policies.section_of("x: y"), Section::Owner(0));
        let also = schema.choices(1).remove(0);
        let changed = policies.with_choice(Section::Owner(0), 1, also.clone());
        assert_eq!(changed.of_owner("x: y").attributes[1].alternatives, [also]);
        let back = Policies { owners: policies.owners.clone(), ..changed };
        assert_eq!(back, policies);
    }
}
