//! Resolves an owner's choice, in the form of the paper's figure 3, to numbers.

use super::{AttributePolicy, MAX_SETS_PER_DAY, ResolvedOption, ResolvedPolicy};
use crate::document::{ContentError, DocumentError, Fields, Node, Value};
use crate::schema::{OptionKind, PolicyOption, Schema};
use alpheus_time::Span;

/// The key for all attributes that are not named.
const OTHERS: &str = "*";

impl ResolvedPolicy {
    /// The policy that shares nothing.
    #[must_use]
    pub fn private(schema: &Schema) -> ResolvedPolicy {
        ResolvedPolicy { attributes: vec![AttributePolicy::default(); schema.attributes.len()] }
    }

    /// For each attribute, the most private choice of the first option that the schema offers
    /// for it.
    #[must_use]
    pub fn first_offered(schema: &Schema) -> ResolvedPolicy {
        let mut policy = ResolvedPolicy::private(schema);
        for (position, own) in (0u16..).zip(&mut policy.attributes) {
            let first = schema.options.iter().find(|option| option.attributes.contains(&position));
            own.alternatives = first.into_iter().filter_map(most_private).collect();
        }
        policy
    }

    /// Reads choices and applies them to this policy. Choices are a map of
    /// `attribute: choice`, or a list of such maps. A choice is an option's name, a map with
    /// `option` and the values that the option leaves open, or a list of these.
    pub(super) fn with_choices(
        &self,
        node: &Node,
        schema: &Schema,
    ) -> Result<ResolvedPolicy, DocumentError> {
        let mut policy = self.clone();
        let mut named = vec![false; policy.attributes.len()];
        let mut others = None;
        for (name, chosen) in entries(node)? {
            if name == OTHERS {
                others = Some(chosen);
                continue;
            }
            let unknown = || chosen.error(ContentError::UnknownAttribute { name: name.clone() });
            let position = schema.position(name).ok_or_else(unknown)?;
            let read = choices(chosen, position, schema)?;
            let index = usize::from(position);
            if let (Some(own), Some(named)) =
                (policy.attributes.get_mut(index), named.get_mut(index))
            {
                if std::mem::replace(named, true) {
                    return Err(chosen.error(ContentError::DuplicateName { name: name.clone() }));
                }
                *own = read;
            }
        }
        if let Some(chosen) = others {
            for ((position, own), named) in (0u16..).zip(&mut policy.attributes).zip(named) {
                if !named {
                    *own = choices(chosen, position, schema)?;
                }
            }
        }
        Ok(policy)
    }
}

/// The entries of a map, or of a list of maps.
fn entries(node: &Node) -> Result<Vec<&(String, Node)>, DocumentError> {
    match &node.value {
        Value::List(items) => {
            let maps = items.iter().map(Node::map).collect::<Result<Vec<_>, _>>()?;
            Ok(maps.into_iter().flatten().collect())
        }
        _ => Ok(node.map()?.iter().collect()),
    }
}

fn choices(node: &Node, position: u16, schema: &Schema) -> Result<AttributePolicy, DocumentError> {
    let mut alternatives = Vec::new();
    for item in node.one_or_list() {
        alternatives.extend(choice(item, position, schema)?);
    }
    Ok(AttributePolicy { alternatives })
}

/// A chosen option, or `None` if it shares nothing.
fn choice(
    item: &Node,
    position: u16,
    schema: &Schema,
) -> Result<Option<ResolvedOption>, DocumentError> {
    if item.text().is_ok() {
        return Ok(most_private(offered(item, position, schema)?));
    }
    let fields = Fields::of(item, &["option", "clients", "window", "setsPerDay"])?;
    let option = offered(fields.required("option")?, position, schema)?;
    let Some(mut resolved) = most_private(option) else {
        fields.refuse("clients", "a private option; remove it")?;
        fields.refuse("window", "a private option; remove it")?;
        fields.refuse("setsPerDay", "a private option; remove it")?;
        return Ok(None);
    };
    if let Some(node) = fields.get("clients") {
        resolved.min_population = chosen_clients(node, option)?;
    }
    if let Some(node) = fields.get("window") {
        resolved.window = chosen_window(node, option)?;
    }
    if let Some(node) = fields.get("setsPerDay") {
        resolved.sets_per_day = Some(node.integer(1, MAX_SETS_PER_DAY)?);
    }
    Ok(Some(resolved))
}

/// The option that a node names, which must be offered for the attribute.
fn offered<'a>(
    node: &Node,
    position: u16,
    schema: &'a Schema,
) -> Result<&'a PolicyOption, DocumentError> {
    let name = node.text()?;
    let unknown = || node.error(ContentError::UnknownOption { name: name.to_owned() });
    let option = schema.options.iter().find(|option| option.name == name).ok_or_else(unknown)?;
    if option.attributes.contains(&position) {
        return Ok(option);
    }
    let attribute = schema.name_of(position).to_owned();
    Err(node.error(ContentError::NotOffered { option: name.to_owned(), attribute }))
}

impl Schema {
    /// Everything that owners can choose for an attribute, with each window and population.
    #[must_use]
    pub fn choices(&self, attribute: u16) -> Vec<ResolvedOption> {
        let offered = self.options.iter().filter(|own| own.attributes.contains(&attribute));
        let mut choices = Vec::new();
        for option in offered.filter(|own| own.kind != OptionKind::Private) {
            for window in &option.windows {
                choices.extend(option.clients.iter().map(|least| chosen(option, *window, *least)));
            }
        }
        choices
    }
}

/// An option with the largest window and population that it offers.
fn most_private(option: &PolicyOption) -> Option<ResolvedOption> {
    if option.kind == OptionKind::Private {
        return None;
    }
    Some(chosen(option, *option.windows.last()?, *option.clients.last()?))
}

fn chosen(option: &PolicyOption, window: Span, min_population: u32) -> ResolvedOption {
    ResolvedOption {
        name: option.name.clone(),
        kind: option.kind,
        window,
        min_population,
        generalise: option.generalise.clone(),
        budget: option.budget,
        to: option.to.clone(),
        alpha: option.alpha,
        colluders: option.colluders,
        dropout: option.dropout,
        missing_ticks: option.missing_ticks,
        split_populations: option.split_populations,
        trusted: option.trusted.clone(),
        verified: option.verified,
        sets_per_day: None,
    }
}

fn chosen_clients(node: &Node, option: &PolicyOption) -> Result<u32, DocumentError> {
    let text = node.text()?;
    let named = option.named_clients.iter().find(|(name, _)| name == text);
    let chosen = match named {
        Some((_, size)) => *size,
        None => node.integer(1, u32::MAX)?,
    };
    if option.clients.contains(&chosen) {
        return Ok(chosen);
    }
    let offered = option.clients.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(node.error(ContentError::NoSuchChoice { offered }))
}

fn chosen_window(node: &Node, option: &PolicyOption) -> Result<Span, DocumentError> {
    let chosen = node.duration()?;
    if option.windows.contains(&chosen) {
        return Ok(chosen);
    }
    let offered = option.windows.iter().map(Span::to_string).collect::<Vec<_>>().join(", ");
    Err(node.error(ContentError::NoSuchChoice { offered }))
}
