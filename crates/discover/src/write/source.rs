//! `source.yaml`: how the file's rows become events.

use super::{Draft, comment, quoted};
use crate::clock::{Clock, Format, Unit};
use crate::decimal_mark;
use crate::encoding::Encoding;
use crate::form::Form;
use crate::times::{TimePlan, Zone};
use std::fmt::Write as _;

pub(super) fn source(draft: &Draft<'_>) -> String {
    let mut text = format!(
        "# How the rows of {} become events, as `alpheus init` understood them.\nschema: {}\n",
        comment(draft.file),
        draft.name
    );
    text.push_str(&form(draft.found.wide.as_ref().map_or(&draft.found.form, |wide| &wide.form)));
    text.push_str(&time(draft));
    text.push_str(&columns(draft));
    let missing =
        draft.found.attributes.iter().filter(|a| !a.sentinels.is_empty() || !a.texts.is_empty());
    let mut missing = missing.peekable();
    if missing.peek().is_some() {
        text.push_str("# Texts that stand for a missing value, by attribute.\nmissing:\n");
    }
    for attribute in missing {
        let texts =
            attribute.sentinels.keys().chain(attribute.texts.keys()).map(|text| quoted(text));
        let _ = writeln!(text, "  {}: [{}]", attribute.name, texts.collect::<Vec<_>>().join(", "));
    }
    text
}

/// Whose a reading is, and of what.
fn columns(draft: &Draft<'_>) -> String {
    let found = draft.found;
    let mut text = match (&found.wide, &found.owner) {
        (Some(wide), _) => {
            let value = found.attributes.first().map_or("", |own| own.name.as_str());
            let others: Vec<String> = wide.others.iter().map(|name| quoted(name)).collect();
            return format!(
                "# Each column is one owner's, except the time and the columns that are left out.\nwide:\n  attribute: {value}\n  columns: streams\n  leaveOut: [{}]\n",
                others.join(", ")
            );
        }
        (None, Some(owner)) => format!("# The owner of a reading.\nstream: {}\n", quoted(owner)),
        (None, None) => {
            "# The whole file is one stream, of this name.\nsingle: everything\n".to_owned()
        }
    };
    text.push_str("# Attribute of the schema: column of the file.\nattributes:\n");
    for attribute in &found.attributes {
        let _ = writeln!(text, "  {}: {}", attribute.name, quoted(&attribute.column));
    }
    text
}

/// How the file is written. Defaults are left out.
fn form(form: &Form) -> String {
    let mut text = String::from("# How the file is written.\nfile:\n");
    let mut line = |key: &str, value: &str, says: &str| {
        let _ =
            writeln!(text, "  {key}: {value}{}{says}", if says.is_empty() { "" } else { " # " });
    };
    line("delimiter", &quoted(form.delimiter.name()), "");
    if form.encoding != Encoding::Utf8 {
        line("encoding", form.encoding.name(), "");
    }
    if form.skip > 0 {
        let above = if form.columns.is_empty() {
            "lines above the header"
        } else {
            "lines above the first row"
        };
        line("skip", &form.skip.to_string(), above);
    }
    if form.below > 0 {
        line("below", &form.below.to_string(), "lines between the header and the first row");
    }
    if !form.columns.is_empty() {
        let columns: Vec<String> = form.columns.iter().map(|name| quoted(name)).collect();
        line("columns", &format!("[{}]", columns.join(", ")), "");
    }
    if let Some(mark) = form.comment {
        line("comment", &quoted(&mark.to_string()), "rows that begin with it are skipped");
    }
    if form.decimal != '.' {
        line("decimal", &quoted(&decimal_mark::text(form.decimal)), "");
    }
    if let Some(mark) = form.thousands {
        line("thousands", &quoted(&mark.to_string()), "");
    }
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("[{}]", texts.join(", "))
    };
    if !form.around.is_empty() {
        line("around", &list(&form.around), "marks around numbers");
    }
    line("missing", &list(&form.missing), "");
    if !form.totals.is_empty() {
        let lines: Vec<String> = form.totals.iter().map(ToString::to_string).collect();
        line("totals", &format!("[{}]", lines.join(", ")), "lines that are left out");
    }
    text.push_str(&switches(form));
    text
}

/// What is not so in usual files.
fn switches(form: &Form) -> String {
    let mut text = String::new();
    for (key, set, says) in [
        ("multiline", form.multiline, "quoted cells span several lines"),
        ("ragged", form.ragged, "cells may be missing at the end of a row"),
        ("untimed", form.untimed, "rows without a time are left out"),
    ] {
        if set {
            let _ = writeln!(text, "  {key}: true # {says}");
        }
    }
    text
}

fn time(draft: &Draft<'_>) -> String {
    let plan = &draft.found.time;
    let names: Vec<String> = plan
        .columns
        .iter()
        .map(|at| quoted(draft.found.names.get(*at).map_or("", String::as_str)))
        .collect();
    let mut text = String::from("# When a reading was taken.\ntime:\n");
    match names.as_slice() {
        [name] => {
            let _ = writeln!(text, "  column: {name}");
        }
        several => {
            let _ = writeln!(text, "  columns: [{}] # joined with spaces", several.join(", "));
        }
    }
    if let Some(date) = &plan.date {
        let counted = matches!(plan.clock, Clock::DaysSince(_));
        let says = if counted { "day 0" } else { "of all rows" };
        let _ = writeln!(text, "  date: {} # {says}", quoted(date));
    }
    match &plan.clock {
        Clock::Count(unit, _) => {
            let _ = writeln!(text, "  unit: {}", unit.name());
        }
        Clock::DaysSince(_) => {
            let _ = writeln!(text, "  unit: {}", Unit::Days.name());
        }
        Clock::Formats(formats, _) => {
            let formats: Vec<String> = formats.iter().map(|f| quoted(Format::text(f))).collect();
            let _ = writeln!(text, "  format: [{}]", formats.join(", "));
        }
    }
    text + &zone(plan)
}

/// The line of the zone, if times have one.
fn zone(plan: &TimePlan) -> String {
    match (&plan.zone, &plan.clock) {
        (
            Zone::Fixed(region, says),
            Clock::Formats(..) | Clock::Count(Unit::SpreadsheetDays, _),
        ) => {
            format!("  zone: {} # {says}\n", quoted(&region.text()))
        }
        (Zone::Unstated, _) if plan.days => {
            "  zone: \"+00:00\" # dates are days in UTC; another zone would shift them\n".to_owned()
        }
        (Zone::Unstated, Clock::Formats(..) | Clock::Count(Unit::SpreadsheetDays, _)) => {
            "  zone: \"+00:00\" # the file does not state it; set the offset of local times\n"
                .to_owned()
        }
        _ => String::new(),
    }
}
