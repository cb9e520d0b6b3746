//! Quality rules that sums can answer: how many rows there are, how many have a value, a mean and a
//! sum. They become one query for each table.

use crate::contract::{Contract, Demand, Rule, Table};
use crate::draft::{Attribute, Draft};
use crate::inventory::Inventory;
use crate::options::Offer;
use alpheus_policy::query::parse;

const COMPARED: &str = "not carried into a query: compare the released figure with it";
const HIDDEN: &str = "its property is not released";
const UNCOUNTED: &str = "no released property has a value in each row, so rows cannot be counted";
const NO_QUERY: &str =
    "its property's name is a word of the query language, so no query can ask for it";
const TOGETHER: &str =
    "its property is released under a different option from most, and a query uses only one";
const UNBOUNDED: &str = "its limits could not be used as bounds";

/// The query that answers the rules of a table, if any can be answered.
pub fn of(
    table: &Table,
    draft: &Draft,
    offers: &[Offer],
    contract: &Contract,
    inventory: &mut Inventory,
) -> Option<String> {
    let offer =
        offers.iter().filter(|offer| offer.by_default).max_by_key(|offer| offer.attributes.len());
    let mut query = Query { draft, offer, columns: Vec::new() };
    // A check of the whole contract is about the table that it names, or about the only one.
    let alone = contract.tables.len() == 1;
    let is_own = |rule: &&Rule| match &rule.about {
        Some(about) => is_name_of(about, &table.name.value),
        None => alone,
    };
    let shared = contract.rules.iter().filter(is_own);
    for rule in table.rules.iter().chain(shared) {
        query.judge(rule, None, inventory);
    }
    for column in &table.columns {
        let own = draft.attributes.iter().find(|attribute| attribute.column == column.name.value);
        if let Some(attribute) = own {
            column.rules.iter().for_each(|rule| query.judge(rule, Some(attribute), inventory));
        }
    }
    query.text()
}

/// Whether `about`, perhaps with a schema before it, is a table's name.
fn is_name_of(about: &str, table: &str) -> bool {
    let is = |name: &str| !table.is_empty() && name.eq_ignore_ascii_case(table);
    is(about) || about.rsplit('.').next().is_some_and(is)
}

/// Rules of the whole contract that no table took.
pub fn leave_others(contract: &Contract, inventory: &mut Inventory) {
    for rule in &contract.rules {
        if let Demand::Other(why) = rule.demand {
            settle(rule, Err(why), inventory);
        }
        inventory.leave_unless_carried(&rule.at, "it names no table of this contract");
    }
}

struct Query<'a> {
    draft: &'a Draft,
    offer: Option<&'a Offer>,
    columns: Vec<String>,
}

impl Query<'_> {
    fn judge(&mut self, rule: &Rule, own: Option<&Attribute>, inventory: &mut Inventory) {
        let named = |name: &String| {
            let folded = name.to_ascii_lowercase();
            self.draft.attributes.iter().find(|other| other.column.to_ascii_lowercase() == folded)
        };
        let answer = match &rule.demand {
            Demand::Mandatory | Demand::Labelled => return,
            Demand::Other(why) => Err(*why),
            Demand::Rows => self.rows(),
            Demand::Present(None) => own.ok_or(HIDDEN).and_then(|own| self.present(own)),
            Demand::Present(Some(name)) => {
                named(name).ok_or(HIDDEN).and_then(|own| self.present(own))
            }
            Demand::Mean(name) => {
                named(name).ok_or(HIDDEN).and_then(|own| self.of_values(own, "AVG"))
            }
            Demand::Sum(name) => {
                named(name).ok_or(HIDDEN).and_then(|own| self.of_values(own, "SUM"))
            }
            Demand::Range if inventory.carries_below(&rule.at) => Ok(Vec::new()),
            Demand::Range => Err(UNBOUNDED),
        };
        match answer {
            Ok(columns) => {
                for column in columns {
                    if !self.columns.contains(&column) {
                        self.columns.push(column);
                    }
                }
                settle(rule, Ok(self.carried(&rule.demand)), inventory);
            }
            Err(why) => settle(rule, Err(why), inventory),
        }
    }

    fn carried(&self, demand: &Demand) -> &'static str {
        match demand {
            Demand::Rows => "`COUNT` in the quality query: rows in each window",
            Demand::Present(_) => {
                "`COUNT` in the quality query: values as well as rows in each window"
            }
            Demand::Mean(_) => "`AVG` in the quality query",
            Demand::Sum(_) => "`SUM` in the quality query: the values of each window",
            _ => "the bounds of the attribute: a value outside is refused where it is written",
        }
    }

    /// `COUNT` of an attribute that every row has.
    fn rows(&self) -> Result<Vec<String>, &'static str> {
        let offered =
            |attribute: &&Attribute| !attribute.optional && self.asks(attribute, "COUNT").is_ok();
        let counter = self.draft.attributes.iter().find(offered).ok_or(UNCOUNTED)?;
        Ok(vec![format!("COUNT({})", counter.name)])
    }

    /// `COUNT` of an attribute, beside that of all rows.
    fn present(&self, own: &Attribute) -> Result<Vec<String>, &'static str> {
        let mut columns = self.rows()?;
        columns.push(self.asks(own, "COUNT")?);
        Ok(columns)
    }

    fn of_values(&self, own: &Attribute, function: &str) -> Result<Vec<String>, &'static str> {
        if own.counted_only { Err(HIDDEN) } else { Ok(vec![self.asks(own, function)?]) }
    }

    /// A call that the offered option allows and the query language can say.
    fn asks(&self, own: &Attribute, function: &str) -> Result<String, &'static str> {
        let offer = self.offer.ok_or(HIDDEN)?;
        if !offer.attributes.contains(&own.name) {
            let released = crate::options::name(own.audience).is_some();
            return Err(if released { TOGETHER } else { HIDDEN });
        }
        let call = format!("{function}({})", own.name);
        let sentence = self.sentence(std::slice::from_ref(&call), offer);
        if parse(&sentence).is_ok() { Ok(call) } else { Err(NO_QUERY) }
    }

    fn sentence(&self, columns: &[String], offer: &Offer) -> String {
        let (name, least) = (&self.draft.name, offer.clients.first().unwrap_or(&1000));
        let name_of = format!("{}_quality", name.chars().take(50).collect::<String>());
        let mut text = format!(
            "CREATE STREAM {name_of} AS\nSELECT {}\nWINDOW TUMBLING (SIZE 1 DAY)\nFROM {name} BETWEEN {least} AND 10000",
            columns.join(", ")
        );
        if let Some(reader) = offer.to.first() {
            text.push_str(&format!("\nRELEASE TO '{}'", reader.replace('\'', "''")));
        }
        text + ";\n"
    }

    fn text(&self) -> Option<String> {
        let offer = self.offer.filter(|_| !self.columns.is_empty())?;
        let comment = "-- What the contract's quality rules ask for, as far as sums answer it.\n";
        Some(format!("{comment}{}", self.sentence(&self.columns, offer)))
    }
}

/// The verdict on a rule: on the rule itself, on the part that says which it is, and on the
/// rest of its parts.
fn settle(rule: &Rule, answer: Result<&str, &str>, inventory: &mut Inventory) {
    match answer {
        Ok(why) => {
            inventory.leave_rest(&rule.at, COMPARED);
            inventory.carry(&rule.at, why);
            rule.kind.iter().for_each(|kind| inventory.carry(kind, why));
        }
        Err(why) => {
            inventory.leave_rest(&rule.at, why);
            inventory.leave(&rule.at, why);
        }
    }
}
