//! The policy options that the written schema offers: one for each level, none wider than what
//! the contract says.

use crate::access::ReaderList;
use crate::contract::{Contract, Table};
use crate::draft::{Audience, Draft};
use crate::inventory::Inventory;
use crate::reasons::ACCESS;
use crate::sensitivity::Level;
use std::collections::HashSet;

/// An option of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// What the contract says of its attributes, as a sentence.
    pub says: &'static str,
    /// Minimum populations to choose from.
    pub clients: &'static [u32],
    /// Whether owners take part without choosing to.
    pub by_default: bool,
    /// Who may receive results; anyone if empty.
    pub to: Vec<String>,
    /// Names of its attributes.
    pub attributes: Vec<String>,
}

/// The name of the option that releases nothing.
pub const PRIVATE: &str = "private";

/// Who receives what is internal, if the contract names nobody.
const HOUSE: &str = "internal";

/// Longest name of a receiver.
const MAX_NAME: usize = 256;

/// The option that an attribute with this audience is offered under; none if it is not
/// released.
#[must_use]
pub fn name(audience: Audience) -> Option<&'static str> {
    match (audience.level, audience.is_internal) {
        (Some(Level::Public), _) => Some("open"),
        (None, _) => Some("crowd"),
        (Some(Level::Internal), _) => Some("house"),
        (Some(Level::Personal), false) => Some("large-crowd"),
        (Some(Level::Personal), true) => Some("large-house"),
        (Some(Level::Restricted), _) => None,
    }
}

/// All audiences that something is released to.
const AUDIENCES: &[Audience] = &[
    Audience { level: Some(Level::Public), is_internal: false },
    Audience { level: None, is_internal: false },
    Audience { level: Some(Level::Internal), is_internal: true },
    Audience { level: Some(Level::Personal), is_internal: false },
    Audience { level: Some(Level::Personal), is_internal: true },
];

/// The options for a draft, those without attributes left out.
pub fn of(
    draft: &Draft,
    table: &Table,
    contract: &Contract,
    inventory: &mut Inventory,
) -> Vec<Offer> {
    let lists: Vec<&ReaderList> = contract.readers.iter().chain(&table.readers).collect();
    let mut offers = Vec::new();
    for audience in AUDIENCES {
        offers.extend(offer(*audience, draft, &lists, contract, inventory));
    }
    offers
}

fn offer(
    audience: Audience,
    draft: &Draft,
    lists: &[&ReaderList],
    contract: &Contract,
    inventory: &mut Inventory,
) -> Option<Offer> {
    let own = draft.attributes.iter().filter(|attribute| attribute.audience == audience);
    let attributes: Vec<String> = own.map(|attribute| attribute.name.clone()).collect();
    let name = name(audience)?;
    if attributes.is_empty() {
        return None;
    }
    let (clients, says): (&[u32], _) = match audience.level {
        Some(Level::Public) => (&[10, 100, 1000], "Public, says the contract."),
        Some(Level::Personal) => (&[1000], "About persons, says the contract."),
        Some(_) => (&[100, 1000], "Internal, says the contract."),
        None => (&[100, 1000], "The contract says nothing about who may learn these."),
    };
    let to = receivers(audience.is_internal, lists, contract, inventory);
    let by_default = audience.level != Some(Level::Personal);
    Some(Offer { name, says, clients, by_default, to, attributes })
}

const NO_READER: &str =
    "names nobody who reads and can be named here, so results go to the house alone";

const NO_COMMON: &str = "no reader is in all lists, so results go to the house alone";

/// Those whom all lists let read. If there is nobody, or for what is internal without a list, it is
/// the house.
fn receivers(
    is_internal: bool,
    lists: &[&ReaderList],
    contract: &Contract,
    inventory: &mut Inventory,
) -> Vec<String> {
    let mut all = lists.iter().map(|list| {
        let names = list.names.iter().map(|name| name.value.as_str());
        names.filter(|name| is_name(name)).collect::<HashSet<_>>()
    });
    let mut common = all.next().unwrap_or_default();
    all.for_each(|names| common.retain(|name| names.contains(name)));
    let mut to: Vec<String> = common.iter().map(|name| (*name).to_owned()).collect();
    to.sort();
    let names = || lists.iter().flat_map(|list| &list.names);
    for reader in names().filter(|own| common.contains(own.value.as_str())) {
        inventory.carry(&reader.at, "may receive results: a consumer with this name");
    }
    // The value of a property of the contract's own, which is known here.
    for list in lists.iter().filter(|list| list.at.ends_with(".value")) {
        inventory.leave_rest(&list.at, ACCESS);
    }
    // Readers whose names cannot be used are no reason to let everybody read.
    if !to.is_empty() || !is_internal && lists.is_empty() {
        return to;
    }
    for list in lists {
        let is_usable = list.names.iter().any(|name| is_name(&name.value));
        let why = if is_usable { NO_COMMON } else { NO_READER };
        inventory.leave_rest(&list.at, why);
    }
    match contract.house.as_ref().filter(|house| is_name(&house.value)) {
        Some(house) => {
            inventory.carry(&house.at, "receives what is internal: a consumer with this name");
            vec![house.value.clone()]
        }
        None => vec![HOUSE.to_owned()],
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control)
}
