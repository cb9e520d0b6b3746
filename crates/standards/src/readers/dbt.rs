//! dbt's properties files: models, sources, seeds and snapshots.

use super::versions::{self, Version};
use super::{forms, odcs, rules, take_readers, value_sets};
use crate::contract::{Column, Contract, Demand, Limits, Rule, Table};
use crate::cursor::{Clause, Cursor};
use crate::error::ImportError;
use crate::sensitivity::{labels, texts};
use crate::tree::Tree;

/// Keys whose lists have columns.
const RELATIONS: &[&str] = &["models", "seeds", "snapshots"];
/// Keys of other lists in such a file.
const OTHERS: &[&str] = &["sources", "exposures", "metrics", "semantic_models", "unit_tests"];

pub(super) fn is_one(root: &Cursor<'_>) -> bool {
    let is_list = |key: &&str| matches!(root.tree().get(key), Some(Tree::List(_)));
    RELATIONS.iter().chain(OTHERS).any(is_list)
}

/// That the columns of a relation, and of its versions, are lists.
fn check(relation: &Cursor<'_>) -> Result<(), ImportError> {
    const NAMED: &str = "begin each column with `- name:`";
    forms::list(relation, "columns", NAMED)?;
    forms::list(relation, "versions", "begin each version with `- v:`")?;
    let versions = relation.get("versions").map(|list| list.items()).unwrap_or_default();
    versions.iter().try_for_each(|version| forms::list(version, "columns", NAMED))
}

pub(super) fn read(root: &Cursor<'_>) -> Result<Contract, ImportError> {
    let mut contract = Contract { standard: "dbt properties".to_owned(), ..Contract::default() };
    for key in RELATIONS {
        for relation in root.get(key).iter().flat_map(Cursor::items) {
            check(&relation)?;
            let table = table(&relation, &mut contract);
            contract.tables.push(table);
        }
    }
    for source in root.get("sources").iter().flat_map(Cursor::items) {
        let mut above = labels(&source);
        let readers = take_readers(&source, &mut above);
        for relation in source.get("tables").iter().flat_map(Cursor::items) {
            check(&relation)?;
            let mut table = table(&relation, &mut contract);
            table.labels.extend(above.iter().cloned());
            table.readers.extend(readers.iter().cloned());
            contract.tables.push(table);
        }
    }
    contract.name =
        contract.tables.first().map(|table| table.name.value.clone()).unwrap_or_default();
    Ok(contract)
}

fn table(relation: &Cursor<'_>, contract: &mut Contract) -> Table {
    let mut table = Table {
        at: relation.path().to_owned(),
        name: relation.text("name").unwrap_or_default(),
        labels: labels(relation),
        rules: tests(relation).iter().map(rule).collect(),
        ..Table::default()
    };
    table.readers = take_readers(relation, &mut table.labels);
    for column in relation.get("columns").iter().flat_map(Cursor::items) {
        table.columns.push(self::column(&column));
    }
    constraints(relation, &mut table);
    let versions = relation.get("versions").map(|list| list.items()).unwrap_or_default();
    for version in &versions {
        table.rules.extend(tests(version).iter().map(rule));
        constraints(version, &mut table);
    }
    versions::join(&mut table.columns, versions.iter().map(self::version).collect());
    for keys in [&["event_time"][..], &["config", "event_time"]] {
        contract.event_times.extend(relation.reach(keys).and_then(|time| time.noted()));
    }
    contract.clocks.extend(relation.text("loaded_at_field"));
    table
}

fn version<'a>(at: &Cursor<'a>) -> Version<'a> {
    let list = at.get("columns").map(|list| list.items()).unwrap_or_default();
    // `include: all` is no column.
    let named = list.iter().filter(|item| item.get("name").is_some());
    Version { columns: named.map(column).collect(), list }
}

/// The rules and keys that the constraints of a relation are.
fn constraints(relation: &Cursor<'_>, table: &mut Table) {
    for constraint in relation.get("constraints").iter().flat_map(Cursor::items) {
        let is_key = constraint.text("type").is_some_and(|kind| kind.value == "primary_key");
        if is_key {
            table
                .keys
                .extend(constraint.get("columns").map(|list| texts(&list)).unwrap_or_default());
        }
        table.rules.push(rule(&constraint));
    }
}

/// A column of a relation, or of a version of one.
fn column(at: &Cursor<'_>) -> Column {
    let mut column = Column {
        at: at.path().to_owned(),
        name: at.text("name").unwrap_or_default(),
        types: at.text("data_type").into_iter().collect(),
        unit: odcs::unit(at),
        labels: labels(at),
        tags: at.get("tags").map(|tags| texts(&tags)).unwrap_or_default(),
        ..Column::default()
    };
    let (mut mandatory, mut unique) = (None, false);
    let constraints = at.get("constraints").map(|list| list.items()).unwrap_or_default();
    for test in tests(at).iter().chain(&constraints) {
        let mut rule = rule(test);
        let kind = rule.kind.clone().unwrap_or_else(|| rule.at.clone());
        match rule.demand {
            Demand::Mandatory => mandatory = Some(Clause { value: true, at: kind }),
            Demand::Range => range(test, &mut column.limits),
            Demand::Other(rules::SET) => {
                let values =
                    places(test).iter().find_map(|place| place.first(&["values", "value_set"]));
                let own = value_sets::bounds(&values.map(|v| v.items()).unwrap_or_default());
                if !own.min.is_empty() {
                    column.limits = column.limits.and(own);
                    rule.demand = Demand::Range;
                }
            }
            Demand::Other(rules::DISTINCT) => unique = true,
            _ => {}
        }
        column.rules.push(rule);
    }
    // What is unique and always there identifies a row.
    column.key = mandatory
        .as_ref()
        .filter(|_| unique)
        .map(|noted| Clause { value: true, at: noted.at.clone() });
    column.required = mandatory;
    column
}

fn tests<'a>(at: &Cursor<'a>) -> Vec<Cursor<'a>> {
    let lists = ["data_tests", "tests"].iter().filter_map(|key| at.get(key));
    lists.flat_map(|list| list.items()).collect()
}

/// A test by name, a test with arguments, or a constraint.
fn rule(test: &Cursor<'_>) -> Rule {
    let named = name(test);
    let word =
        named.as_ref().map(|noted| noted.value.rsplit('.').next().unwrap_or_default().to_owned());
    let demand = match word.as_deref() {
        Some("primary_key") => Demand::Other(rules::DISTINCT),
        Some(word) => rules::metric(word).unwrap_or(Demand::Other(rules::ENGINE)),
        None => Demand::Other(rules::ENGINE),
    };
    let demand = exception(test, &demand).map_or(demand, Demand::Other);
    let kind = named.map(|noted| noted.at).filter(|at| at != test.path());
    Rule { at: test.path().to_owned(), kind, about: None, demand }
}

/// Why a test refuses no single value: it holds for some rows, it is off, or it only warns.
fn exception(test: &Cursor<'_>, demand: &Demand) -> Option<&'static str> {
    const PARTIAL: &[&str] = &["where", "row_condition", "group_by_columns"];
    let mut places = places(test);
    places.extend(places.clone().iter().filter_map(|place| place.get("config")));
    let stated = |key: &str| places.iter().find_map(|place| place.text(key));
    if places.iter().any(|place| place.first(PARTIAL).is_some()) {
        return Some(rules::SOME);
    }
    if stated("enabled").is_some_and(|enabled| enabled.value != "true") {
        return Some(rules::OFF);
    }
    let is_soft = stated("mostly").is_some_and(|part| part.value.parse() != Ok(1.0f64))
        || stated("severity").is_some_and(|word| !word.value.eq_ignore_ascii_case("error"))
        || stated("error_if").is_some_and(|limit| !NONE_FAILS.contains(&&*limit.value));
    let is_hard = matches!(demand, Demand::Mandatory | Demand::Range | Demand::Other(rules::SET));
    (is_soft && is_hard).then_some(rules::SOFT)
}

/// Conditions that a single row fails.
const NONE_FAILS: &[&str] = &["!=0", "!= 0", ">0", "> 0", ">=1", ">= 1"];

/// The name of a test: the text itself, `test_name`, `type`, or the only key.
fn name(test: &Cursor<'_>) -> Option<Clause<String>> {
    let named = test.noted().or_else(|| test.text("test_name")).or_else(|| test.text("type"));
    named.or_else(|| {
        let (key, value) = test.entries().into_iter().next()?;
        Some(Clause { value: key.to_owned(), at: value.path().to_owned() })
    })
}

/// Where a test's arguments may stand: beside its name or under it, or under `arguments`.
fn places<'a>(test: &Cursor<'a>) -> Vec<Cursor<'a>> {
    let inner = test.entries().into_iter().next().map(|(_, inner)| inner);
    let mut places = vec![test.clone()];
    places.extend(inner);
    places.extend(places.clone().iter().filter_map(|place| place.get("arguments")));
    places
}

/// `min_value` and `max_value`. Ranges of several tests all hold.
fn range(test: &Cursor<'_>, limits: &mut Limits) {
    let places = places(test);
    let (min, max) = (
        places.iter().find_map(|place| place.text("min_value")),
        places.iter().find_map(|place| place.text("max_value")),
    );
    let flags = |key| places.iter().find_map(|place| place.flag(key));
    let exclusive = flags("inclusive").is_some_and(|noted| !noted.value)
        || flags("strictly").is_some_and(|noted| noted.value);
    if exclusive {
        limits.above.extend(min);
        limits.below.extend(max);
    } else {
        limits.min.extend(min);
        limits.max.extend(max);
    }
}
