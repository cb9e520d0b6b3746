//! The Data Contract Specification of datacontract.com, versions 0.9 to 1.2.

use super::{
    MAX_COLUMNS, MAX_DEPTH, forms, odcs, pointer, rules, take_readers, unread, value_sets,
};
use crate::contract::{Column, Contract, Demand, Limits, Rule, Table};
use crate::cursor::{Clause, Cursor};
use crate::error::ImportError;
use crate::sensitivity::{Label, labels, labels_of, texts};

pub(super) fn read(root: &Cursor<'_>) -> Result<Contract, ImportError> {
    let version =
        root.text("dataContractSpecification").map(|noted| noted.value).unwrap_or_default();
    let number = version.trim_start_matches('v');
    if number.split('.').next() != Some("1") && !number.starts_with("0.9") {
        let standard = "the Data Contract Specification";
        return Err(ImportError::Version { standard, version, instead: "1.2" });
    }
    check(root)?;
    let title = root.reach(&["info", "title"]).and_then(|title| title.noted());
    let mut contract = Contract {
        standard: format!("Data Contract Specification {version}"),
        name: title.or_else(|| root.text("id")).map(|noted| noted.value).unwrap_or_default(),
        labels: labels(root),
        house: root.reach(&["info", "owner"]).and_then(|owner| owner.noted()),
        clocks: clocks(root),
        rules: checks(root),
        ..Contract::default()
    };
    contract.readers = odcs::readers(root, &mut contract.labels);
    for part in ["info", "terms"].iter().filter_map(|key| root.get(key)) {
        contract.labels.extend(labels_of(&part));
    }
    for (name, model) in root.get("models").iter().flat_map(Cursor::entries) {
        contract.tables.push(table(root, name, &model));
    }
    Ok(contract)
}

/// That tables and their fields are where they are read.
fn check(root: &Cursor<'_>) -> Result<(), ImportError> {
    forms::map(root, "models", "write each table as `NAME:` with its `fields:`")?;
    let models = root.get("models");
    if let Some(schema) = root.get("schema").filter(|own| models.is_none() && !own.tree().is_leaf())
    {
        return Err(ImportError::Form {
            path: schema.path().to_owned(),
            form: "under `models`",
            instead: "write the tables there, or import the file that it holds",
        });
    }
    let models = models.map(|models| models.entries()).unwrap_or_default();
    models.iter().try_for_each(|(_, model)| fields(model))
}

/// That the fields of a table, and of the objects and lists in it, are maps.
fn fields(part: &Cursor<'_>) -> Result<(), ImportError> {
    forms::map(part, "fields", "write each field as `NAME:` with its `type:`")?;
    for (_, field) in part.get("fields").iter().flat_map(Cursor::entries) {
        fields(&field)?;
    }
    part.get("items").map_or(Ok(()), |items| fields(&items))
}

fn clocks(root: &Cursor<'_>) -> Vec<Clause<String>> {
    const FIELDS: &[&[&str]] = &[
        &["latency", "sourceTimestampField"],
        &["freshness", "timestampField"],
        &["retention", "timestampField"],
    ];
    let levels = root.get("servicelevels");
    let field = |keys: &&[&str]| levels.as_ref()?.reach(keys)?.noted();
    FIELDS.iter().filter_map(field).collect()
}

/// Checks of the whole contract, in the language SodaCL.
fn checks(root: &Cursor<'_>) -> Vec<Rule> {
    let specification = root.get("quality").and_then(|quality| quality.get("specification"));
    let mut found = Vec::new();
    for (key, checks) in specification.iter().flat_map(Cursor::entries) {
        let (about, is_partial) = rules::soda_table(key).unzip();
        for check in checks.items() {
            let text = match check.entries().as_slice() {
                [(name, _)] => Some((*name).to_owned()),
                _ => check.noted().map(|noted| noted.value),
            };
            let demand = match is_partial {
                Some(true) => Demand::Other(rules::SOME),
                _ => rules::soda(&text.unwrap_or_default()),
            };
            let (at, about) = (check.path().to_owned(), about.clone());
            found.push(Rule { at, kind: None, about, demand });
        }
    }
    found
}

fn table(root: &Cursor<'_>, name: &str, model: &Cursor<'_>) -> Table {
    let (sources, labels) = with_definitions(root, model);
    let mut table = Table {
        at: model.path().to_owned(),
        name: Clause { value: name.to_owned(), at: "?".to_owned() },
        labels,
        keys: model.get("primaryKey").map(|keys| texts(&keys)).unwrap_or_default(),
        ..Table::default()
    };
    let lists = sources.iter().flat_map(|at| take_readers(at, &mut table.labels));
    table.readers = lists.collect();
    let title = model.text("title").map(|title| title.value);
    let tables: Vec<String> = std::iter::once(name.to_owned()).chain(title).collect();
    let all = model.get("quality").map(|quality| quality.items()).unwrap_or_default();
    table.rules.extend(all.iter().map(|rule| rules::quality(rule, &tables)));
    let above = Above {
        root,
        tables: &tables,
        name: "",
        many: false,
        optional: false,
        labels: &[],
        within: &[],
        depth: 0,
    };
    let fields = sources.iter().filter_map(|at| at.get("fields"));
    for (name, field) in fields.flat_map(|fields| fields.entries()) {
        columns(name, &field, &above, &mut table.columns);
    }
    table
}

/// What a part of an object inherits, and the contract with the definitions.
#[derive(Clone, Copy)]
struct Above<'a> {
    root: &'a Cursor<'a>,
    /// The table's names.
    tables: &'a [String],
    name: &'a str,
    many: bool,
    optional: bool,
    labels: &'a [Label],
    /// Definitions that it stands in.
    within: &'a [String],
    depth: usize,
}

/// The column at a field, and those of its parts.
fn columns(name: &str, field: &Cursor<'_>, above: &Above<'_>, found: &mut Vec<Column>) {
    if found.len() >= MAX_COLUMNS {
        return;
    }
    let name =
        if above.name.is_empty() { name.to_owned() } else { format!("{}.{name}", above.name) };
    let (sources, mut labels) = with_definitions(above.root, field);
    labels.extend_from_slice(above.labels);
    let required =
        sources.iter().find_map(|at| at.flag("required").or_else(|| denied(at.flag("nullable"))));
    let optional = above.optional || required.as_ref().is_none_or(|required| !required.value);
    let mut limits = sources.iter().map(odcs::limits).fold(Limits::default(), Limits::and);
    let checks = sources.iter().filter_map(|at| at.get("quality")).flat_map(|q| q.items());
    let rules = checks.map(|rule| value_sets::rule(&rule, above.tables, &mut limits)).collect();
    let within = entered(&sources, above);
    let reason = unread(within.is_none(), above.depth);
    let has_parts = || sources.iter().any(|at| at.first(&["fields", "items"]).is_some());
    found.push(Column {
        at: field.path().to_owned(),
        name: Clause { value: name.clone(), at: "?".to_owned() },
        unread: reason.filter(|_| has_parts()),
        types: types(&sources),
        limits,
        required,
        in_optional: above.optional,
        links: sources
            .iter()
            .skip(1)
            .zip(&sources)
            .filter_map(|(_, from)| from.text("$ref"))
            .collect(),
        key: sources.iter().find_map(|at| at.flag("primaryKey").or_else(|| at.flag("primary"))),
        unit: sources.iter().find_map(odcs::unit),
        tags: sources
            .iter()
            .filter_map(|at| at.get("tags"))
            .flat_map(|tags| texts(&tags))
            .collect(),
        rules,
        labels: labels.clone(),
        many: above.many,
        ..Column::default()
    });
    if let Some(within) = within.filter(|_| above.depth < MAX_DEPTH) {
        let (within, depth) = (within.as_slice(), above.depth + 1);
        let below = Above { name: &name, optional, labels: &labels, within, depth, ..*above };
        parts(&sources, &below, found);
    }
}

/// The definitions that parts of a field stand in; none if it would be part of itself.
fn entered(sources: &[Cursor<'_>], above: &Above<'_>) -> Option<Vec<String>> {
    let own = || sources.iter().skip(1).map(|source| source.path().to_owned());
    let is_endless = own().any(|path| above.within.contains(&path));
    (!is_endless).then(|| above.within.iter().cloned().chain(own()).collect())
}

/// Columns of the parts of an object, or of the objects in a list.
fn parts(sources: &[Cursor<'_>], below: &Above<'_>, found: &mut Vec<Column>) {
    let fields = sources.iter().filter_map(|at| at.get("fields"));
    for (name, part) in fields.flat_map(|fields| fields.entries()) {
        columns(name, &part, below, found);
    }
    for items in sources.iter().filter_map(|at| at.get("items")) {
        let (items, _) = with_definitions(below.root, &items);
        let Some(within) = entered(&items, below) else { continue };
        let below = Above { many: true, within: &within, ..*below };
        let fields: Vec<Cursor<'_>> = items.iter().filter_map(|at| at.get("fields")).collect();
        for (name, part) in fields.iter().flat_map(Cursor::entries) {
            columns(name, &part, &below, found);
        }
    }
}

fn denied(nullable: Option<Clause<bool>>) -> Option<Clause<bool>> {
    nullable.map(|noted| Clause { value: !noted.value, at: noted.at })
}

/// A field, and the definitions that it refers to, which say what it leaves open; and what is said
/// about all of them.
fn with_definitions<'a>(root: &Cursor<'a>, field: &Cursor<'a>) -> (Vec<Cursor<'a>>, Vec<Label>) {
    let (mut found, mut said) = (vec![field.clone()], labels(field));
    while let Some(link) = found.last().and_then(|at| at.get("$ref")) {
        match pointer::follow(root, &link) {
            Ok((target, around)) if found.len() < MAX_DEPTH => {
                said.extend(labels(&target).into_iter().chain(around));
                found.push(target);
            }
            other => {
                said.push(other.map_or_else(|label| label, |_| pointer::unknown(&link)));
                break;
            }
        }
    }
    (found, said)
}

fn types(sources: &[Cursor<'_>]) -> Vec<Clause<String>> {
    let typed = |at: &Cursor<'_>| at.text("type");
    let config = |at: &Cursor<'_>| {
        let config = at.get("config")?;
        let own = config.entries().into_iter().find(|(key, _)| key.ends_with("Type"));
        own.and_then(|(_, value)| value.noted())
    };
    sources.iter().find_map(typed).into_iter().chain(sources.iter().find_map(config)).collect()
}
