//! The files that are written: a schema and policies in YAML, with comments that say why.

use crate::bounds::{Bounds, ScaleOrigin};
use crate::draft::{Attribute, Draft, Values};
use crate::options::{self, Offer, PRIVATE};
use crate::tree::Tree;

/// The schema of a draft.
#[must_use]
pub fn schema(draft: &Draft, offers: &[Offer], standard: &str) -> String {
    let mut text = header(draft, standard);
    text.push_str(&format!("name: {}\nversion: 1\ntick: 1m\n", word(&draft.name)));
    text.push_str("streamAttributes:\n");
    if draft.attributes.is_empty() {
        text.push_str("  # The contract names nothing that can be an attribute.\n");
        text.push_str(
            "  - { name: events, type: boolean, optional: true, aggregations: [count] }\n",
        );
    }
    for attribute in &draft.attributes {
        text.push_str(&self::attribute(attribute));
    }
    text.push_str("streamPolicyOptions:\n");
    for offer in offers {
        text.push_str(&option(offer));
    }
    text.push_str("  # Nothing at all.\n");
    text.push_str(&format!("  - {{ name: {PRIVATE}, option: private }}\n"));
    text
}

fn header(draft: &Draft, standard: &str) -> String {
    let table = comment(&draft.table);
    format!(
        "# A draft by `alpheus import` from a contract: {}, table {table}.\n# import.json lists each part of the contract, and what became of it.\n",
        comment(standard)
    )
}

fn attribute(own: &Attribute) -> String {
    let mut text = format!("  - name: {}\n", word(&own.name));
    match &own.values {
        Values::Boolean => text.push_str("    type: boolean\n"),
        Values::Text(length) => {
            text.push_str("    type: string\n");
            if let Some(bytes) = length {
                text.push_str(&format!("    maxBytes: {bytes}\n"));
            }
        }
        Values::Number(bounds) => text.push_str(&number(bounds, own.unit.as_deref())),
    }
    if own.optional {
        text.push_str("    optional: true\n");
    }
    let statistics = if own.counted_only { "count" } else { "mean" };
    text.push_str(&format!("    aggregations: [{statistics}]\n"));
    text
}

/// The type, the unit and the bounds of a number, with comments about those that nobody states.
fn number(bounds: &Bounds, unit: Option<&str>) -> String {
    let rounds = match bounds.places {
        ScaleOrigin::Stated => "",
        ScaleOrigin::Usual => " # the contract states no places: further digits are rounded",
        ScaleOrigin::Fewer => {
            " # fewer places than the contract's, so that the bounds fit: further digits are rounded"
        }
    };
    let mut text = match bounds.scale {
        None => "    type: integer\n".to_owned(),
        Some(scale) => format!("    type: decimal\n    scale: {scale}{rounds}\n"),
    };
    if let Some(unit) = unit {
        text.push_str(&format!("    unit: {}\n", Tree::quoted(unit)));
    }
    let open = |stated: bool| match (stated, bounds.places) {
        (true, _) => "",
        (false, ScaleOrigin::Fewer) => " # the type allows more than 64 bits hold: narrow it",
        (false, _) => " # the contract sets no bound: narrow it",
    };
    text.push_str(&format!("    min: {}{}\n", bounds.min_text(), open(bounds.min_is_stated)));
    text.push_str(&format!("    max: {}{}\n", bounds.max_text(), open(bounds.max_is_stated)));
    text
}

fn option(offer: &Offer) -> String {
    let clients = list(offer.clients.iter().map(u32::to_string));
    let mut text = format!("  # {}\n", offer.says);
    text.push_str(&format!("  - name: {}\n    option: aggregate\n", offer.name));
    text.push_str(&format!("    clients: {clients}\n    window: [1hr, 1d]\n"));
    if !offer.to.is_empty() {
        text.push_str(&format!("    to: {}\n", list(offer.to.iter().map(|to| Tree::quoted(to)))));
    }
    let attributes = list(offer.attributes.iter().map(|name| word(name)));
    text.push_str(&format!("    attributes: {attributes}\n"));
    text
}

/// The choices of owners who have not chosen themselves.
#[must_use]
pub fn policies(draft: &Draft, offers: &[Offer], standard: &str) -> String {
    let mut text = header(draft, standard);
    text.push_str(
        "# What is released for owners who have not chosen themselves: no more than the contract says.\n",
    );
    text.push_str(&format!("schema: {}\ndefault:\n", word(&draft.name)));
    for own in &draft.attributes {
        let named = options::name(own.audience);
        let offer = offers.iter().find(|offer| Some(offer.name) == named && offer.by_default);
        let chosen = match offer {
            Some(offer) => {
                let least = offer.clients.first().unwrap_or(&1000);
                format!("{{ option: {}, clients: {least}, window: 1hr }}", offer.name)
            }
            None => PRIVATE.to_owned(),
        };
        text.push_str(&format!("  {}: {chosen}\n", word(&own.name)));
    }
    text.push_str(&format!("  \"*\": {PRIVATE}\n"));
    text
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A name, in quotes if YAML would read something else.
fn word(name: &str) -> String {
    let special = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_special = special.contains(&name.to_ascii_lowercase().as_str());
    if is_special || name.starts_with('-') { Tree::quoted(name) } else { name.to_owned() }
}

/// A text on one line of a comment.
fn comment(text: &str) -> String {
    let flat = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    flat.filter(|c| !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')).take(100).collect()
}
