//! The Open Data Contract Standard, version 3.

use super::{forms, pointer, rules, take_readers, value_sets};
use crate::access::{self, ReaderList};
use crate::contract::{Column, Contract, Limits, Table};
use crate::cursor::{Clause, Cursor};
use crate::error::ImportError;
use crate::readers::{DEEP, MAX_COLUMNS, MAX_DEPTH};
use crate::sensitivity::{Label, labels, texts};

pub(super) fn read(root: &Cursor<'_>) -> Result<Contract, ImportError> {
    let version = root.text("apiVersion").map(|noted| noted.value).unwrap_or_default();
    let number = version.trim_start_matches('v');
    // A draft may state none.
    let is_stated = root.get("apiVersion").is_some();
    if root.get("dataset").is_some() || is_stated && number.split('.').next() != Some("3") {
        let standard = "the Open Data Contract Standard";
        return Err(ImportError::Version { standard, version, instead: "3.x" });
    }
    forms::list(root, "schema", "begin each table with `- name:`")?;
    for object in root.get("schema").iter().flat_map(Cursor::items) {
        check(&object)?;
    }
    let mut contract = Contract {
        standard: format!("Open Data Contract Standard {version}"),
        name: root.text("name").or_else(|| root.text("id")).map(|n| n.value).unwrap_or_default(),
        labels: labels(root),
        house: house(root),
        clocks: clocks(root),
        ..Contract::default()
    };
    contract.readers = readers(root, &mut contract.labels);
    for object in root.get("schema").iter().flat_map(Cursor::items) {
        contract.tables.push(table(&object));
    }
    // With several tables, a rule of the contract would not say which one it counts.
    let only = contract.tables.len() == 1;
    let objects = root.get("schema").map(|schema| schema.items()).unwrap_or_default();
    let tables = objects.first().filter(|_| only).map(names).unwrap_or_default();
    let all = root.get("quality").map(|quality| quality.items()).unwrap_or_default();
    contract.rules.extend(all.iter().map(|rule| rules::quality(rule, &tables)));
    Ok(contract)
}

/// That the properties of a table, and of the objects and lists in it, are lists.
fn check(object: &Cursor<'_>) -> Result<(), ImportError> {
    forms::list(object, "properties", "begin each property with `- name:`")?;
    for property in object.get("properties").iter().flat_map(Cursor::items) {
        check(&property)?;
    }
    object.get("items").map_or(Ok(()), |items| check(&items))
}

/// Roles of the contract and of each server, and other lists.
pub(super) fn readers(root: &Cursor<'_>, labels: &mut Vec<Label>) -> Vec<ReaderList> {
    let servers = root.get("servers").map(|servers| servers.one_or_items()).unwrap_or_default();
    let of_servers = servers.iter().flat_map(|server| match server.get("roles") {
        Some(roles) => vec![roles],
        // In a map, each server has a name.
        None => server.entries().iter().filter_map(|(_, own)| own.get("roles")).collect(),
    });
    let own = root.get("roles");
    let is_own = |list: &ReaderList| own.as_ref().is_some_and(|own| own.path() == list.at);
    let mut lists = take_readers(root, labels);
    lists.retain(|list| !is_own(list));
    let roles: Vec<_> = own.iter().cloned().chain(of_servers).collect();
    lists.splice(0..0, access::of(&roles));
    lists
}

fn house(root: &Cursor<'_>) -> Option<Clause<String>> {
    let team = root.reach(&["team", "name"]).and_then(|name| name.noted());
    team.or_else(|| root.text("tenant")).or_else(|| root.text("domain"))
}

/// Elements that service levels measure time by.
fn clocks(root: &Cursor<'_>) -> Vec<Clause<String>> {
    const TIMES: &[&str] = &["latency", "ly", "freshness", "fy", "frequency", "fr"];
    let mut found = Vec::new();
    for level in root.get("slaProperties").iter().flat_map(Cursor::items) {
        let named = level.text("property").map(|noted| noted.value.to_ascii_lowercase());
        if named.is_some_and(|name| TIMES.contains(&name.as_str())) {
            found.extend(level.text("element"));
        }
    }
    found.extend(root.text("slaDefaultElement"));
    found
}

fn table(object: &Cursor<'_>) -> Table {
    let mut table = Table {
        at: object.path().to_owned(),
        name: object.first(&["name", "physicalName"]).and_then(|n| n.noted()).unwrap_or_default(),
        labels: labels(object)
            .into_iter()
            .chain(object.get("$ref").map(|at| pointer::unknown(&at)))
            .collect(),
        ..Table::default()
    };
    table.readers = take_readers(object, &mut table.labels);
    let above = Above { tables: names(object), ..Above::default() };
    let all = object.get("quality").map(|quality| quality.items()).unwrap_or_default();
    table.rules.extend(all.iter().map(|rule| rules::quality(rule, &above.tables)));
    for property in object.get("properties").iter().flat_map(Cursor::items) {
        columns(&property, &above, &mut table.columns);
    }
    table
}

/// The names that queries may use for a table.
fn names(object: &Cursor<'_>) -> Vec<String> {
    let keys = ["name", "physicalName", "id"].iter();
    keys.filter_map(|key| object.text(key)).map(|name| name.value).collect()
}

/// What a part of an object inherits.
#[derive(Clone, Default)]
struct Above {
    name: String,
    many: bool,
    optional: bool,
    labels: Vec<Label>,
    /// The table's names.
    tables: Vec<String>,
    depth: usize,
}

/// The column at a property, and those of its parts.
fn columns(property: &Cursor<'_>, above: &Above, found: &mut Vec<Column>) {
    let named = property.first(&["name", "physicalName"]).and_then(|name| name.noted());
    let mut name = named.unwrap_or_default();
    if !above.name.is_empty() {
        name.value = format!("{}.{}", above.name, name.value).trim_end_matches('.').to_owned();
    }
    if found.len() >= MAX_COLUMNS {
        return;
    }
    let mut labels = labels(property);
    labels.extend(above.labels.iter().cloned());
    // The standard has no references, so nobody knows what is said there.
    labels.extend(property.get("$ref").map(|at| pointer::unknown(&at)));
    let required = property.flag("required");
    let below = Above {
        name: name.value.clone(),
        many: above.many,
        optional: above.optional || required.as_ref().is_none_or(|required| !required.value),
        labels: labels.clone(),
        tables: above.tables.clone(),
        depth: above.depth + 1,
    };
    let mut limits = own_limits(property);
    let checks = property.get("quality").map(|quality| quality.items()).unwrap_or_default();
    let rules =
        checks.iter().map(|rule| value_sets::rule(rule, &above.tables, &mut limits)).collect();
    found.push(Column {
        at: property.path().to_owned(),
        name,
        types: ["logicalType", "physicalType"]
            .iter()
            .filter_map(|key| property.text(key))
            .collect(),
        limits,
        is_measure: is_measure(property),
        unread: (below.depth >= MAX_DEPTH && has_parts(property)).then_some(DEEP),
        required,
        in_optional: above.optional,
        key: property.flag("primaryKey"),
        unit: unit(property),
        labels,
        tags: property.get("tags").map(|tags| texts(&tags)).unwrap_or_default(),
        rules,
        many: above.many,
        ..Column::default()
    });
    if below.depth < MAX_DEPTH {
        parts(property, below, found);
    }
}

/// Whether a property is computed from all rows of the table, so that no row has it.
fn is_measure(property: &Cursor<'_>) -> bool {
    const AGGREGATES: &[&str] = &["sum", "count", "avg", "min", "max", "median"];
    let logic = property.text("transformLogic").map(|noted| noted.value.to_ascii_lowercase());
    let function = logic.as_deref().and_then(|logic| Some(logic.split_once('(')?.0.trim()));
    property.text("semanticType").is_some_and(|kind| kind.value.eq_ignore_ascii_case("measure"))
        || function.is_some_and(|function| AGGREGATES.contains(&function))
}

/// Whether a property is an object, or a list of objects.
fn has_parts(property: &Cursor<'_>) -> bool {
    let inner = property.get("items").and_then(|items| items.get("properties"));
    property.get("properties").or(inner).is_some()
}

/// Columns of the parts of an object, or of the objects in a list.
fn parts(property: &Cursor<'_>, below: Above, found: &mut Vec<Column>) {
    for part in property.get("properties").iter().flat_map(Cursor::items) {
        columns(&part, &below, found);
    }
    let below = Above { many: true, ..below };
    let inner = property.get("items").and_then(|items| items.get("properties"));
    for part in inner.iter().flat_map(Cursor::items) {
        columns(&part, &below, found);
    }
}

/// Limits among the options of a property's type, and those beside them.
fn own_limits(property: &Cursor<'_>) -> Limits {
    let options = property.get("logicalTypeOptions");
    let stated = options.map(|options| limits(&options)).unwrap_or_default().and(limits(property));
    let custom = |key| own_property(property, key);
    let (precision, scale) = (custom("precision"), custom("scale"));
    stated.and(Limits { precision, scale, ..Limits::default() })
}

/// The value of a property of the contract's own.
fn own_property(property: &Cursor<'_>, key: &str) -> Option<Clause<String>> {
    property.get("customProperties").iter().flat_map(Cursor::items).find_map(|own| {
        let is_it = own.text("property").is_some_and(|noted| noted.value == key);
        if is_it { own.text("value") } else { None }
    })
}

/// Limits under the names of JSON Schema.
pub(super) fn limits(at: &Cursor<'_>) -> Limits {
    let stated = |key| Vec::from_iter(at.text(key));
    let (mut min, mut max) = (stated("minimum"), stated("maximum"));
    let (mut above, mut below) = (stated("exclusiveMinimum"), stated("exclusiveMaximum"));
    // The names of older versions of the Data Contract Specification.
    above.extend(stated("minimumExclusive"));
    below.extend(stated("maximumExclusive"));
    // In older drafts these two are flags beside the limits.
    let is_flag = |noted: &[Clause<String>], word| noted.iter().any(|noted| noted.value == word);
    if is_flag(&above, "true") {
        above = std::mem::take(&mut min);
    }
    if is_flag(&below, "true") {
        below = std::mem::take(&mut max);
    }
    above.retain(|noted| noted.value != "false");
    below.retain(|noted| noted.value != "false");
    Limits {
        above,
        below,
        min,
        max,
        precision: at.text("precision"),
        scale: at.text("scale"),
        length: at.text("maxLength"),
        width: ["format", "connect.type"].iter().find_map(|key| width(at.text(key)?)),
    }
    .and(value_sets::stated(at))
}

/// A width such as `i32`, which other standards call `int32`.
fn width(format: Clause<String>) -> Option<Clause<String>> {
    let word = format.value.trim();
    let bits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letter = match word.strip_suffix(bits)? {
        "i" | "int" => 'i',
        "u" | "uint" => 'u',
        _ => return None,
    };
    bits.parse::<u16>().is_ok().then(|| Clause { value: format!("{letter}{bits}"), at: format.at })
}

/// A unit among a property's own properties.
pub(super) fn unit(property: &Cursor<'_>) -> Option<Clause<String>> {
    let listed = own_property(property, "unit");
    let in_meta = || property.reach(&["config", "meta"]).and_then(|meta| meta.text("unit"));
    let meta = || property.reach(&["meta", "unit"]).and_then(|unit| unit.noted());
    listed.or_else(|| property.text("unit")).or_else(meta).or_else(in_meta)
}
