//! Reads the policy options of a schema from a document.

use super::attributes::ascending;
use super::read::{Sizes, items};
use super::{
    Aggregation, AttributeKind, Budget, CoarseBuckets, Generalisation, OptionKind, PolicyOption,
    PrivacyUnit, Schema,
};
use crate::document::{ContentError, DocumentError, Fields, Node};
use crate::fraction::Fraction;
use crate::ids::ControllerId;
use crate::membership::DEFAULT_COLLUDERS;
use alpheus_time::Span;

pub(crate) const KEYS: &[&str] = &[
    "name",
    "option",
    "attributes",
    "window",
    "windows",
    "clients",
    "minimumPopulation",
    "generalise",
    "budget",
    "to",
    "alpha",
    "colluders",
    "dropout",
    "missingTicks",
    "splitPopulations",
    "trusted",
    "integrity",
];

pub(crate) const KINDS: &[&str] =
    &["private", "public", "stream-aggregate", "aggregate", "dp-aggregate"];
pub(crate) const INTEGRITY: &[&str] = &["allowed", "none"];
pub(crate) const UNITS: &[&str] = &["event", "person-per-window", "person-per-period"];

/// The minimum population of an aggregate whose option names none.
const DEFAULT_SIZE: &str = "small";

/// The largest fraction: everything.
const ALL: Fraction = Fraction { numerator: 1, denominator: 1 };

/// Reads the list of options.
pub(super) fn read(
    node: &Node,
    schema: &Schema,
    sizes: &Sizes,
) -> Result<Vec<PolicyOption>, DocumentError> {
    let mut options: Vec<PolicyOption> = Vec::new();
    for item in items(node)? {
        let option = Reader { fields: Fields::of(item, KEYS)?, schema, sizes }.option()?;
        if options.iter().any(|other| other.name == option.name) {
            return Err(item.error(ContentError::DuplicateName { name: option.name }));
        }
        options.push(option);
    }
    Ok(options)
}

struct Reader<'a> {
    fields: Fields<'a>,
    schema: &'a Schema,
    sizes: &'a Sizes,
}

impl Reader<'_> {
    fn option(&self) -> Result<PolicyOption, DocumentError> {
        use OptionKind::{Aggregate, DpAggregate, Private, Public, StreamAggregate};
        let kinds = [Private, Public, StreamAggregate, Aggregate, DpAggregate];
        let fields = &self.fields;
        let kind = fields.required("option")?.word(KINDS, &kinds)?;
        self.refuse_others(kind)?;
        let many = matches!(kind, Aggregate | DpAggregate);
        let (alpha, dropout) =
            if many { (Fraction::THIRD, Fraction::FIFTH) } else { (Fraction::ZERO, ALL) };
        let alpha = fields.read_or("alpha", alpha, Node::fraction)?;
        // Who expects no collusion at all expects none of a number either.
        let colluders = if alpha.numerator == 0 { 0 } else { DEFAULT_COLLUDERS };
        Ok(PolicyOption {
            name: fields.required("name")?.name()?.to_owned(),
            kind,
            attributes: self.attributes()?,
            windows: self.windows()?,
            clients: if many { self.clients()? } else { vec![1] },
            named_clients: self.named_clients()?,
            generalise: self.generalise()?,
            budget: if kind == DpAggregate { Some(self.budget()?) } else { None },
            to: fields.read_or("to", Vec::new(), consumers)?,
            alpha,
            colluders: fields.read_or("colluders", colluders, |node| node.integer(0, u32::MAX))?,
            dropout: fields.read_or("dropout", dropout, Node::fraction)?,
            missing_ticks: fields.read_or("missingTicks", 0, |node| node.integer(0, u32::MAX))?,
            split_populations: fields.read_or("splitPopulations", false, one_population)?,
            trusted: fields.read_or("trusted", Vec::new(), fingerprints)?,
            verified: fields
                .read_or("integrity", true, |node| node.word(INTEGRITY, &[true, false]))?,
        })
    }

    /// Constraints that have no meaning for this kind are mistakes, so they are errors.
    fn refuse_others(&self, kind: OptionKind) -> Result<(), DocumentError> {
        const POPULATION: &[&str] = &[
            "clients",
            "minimumPopulation",
            "splitPopulations",
            "trusted",
            "alpha",
            "colluders",
            "dropout",
        ];
        const REST: &[&str] =
            &["window", "windows", "generalise", "to", "missingTicks", "integrity"];
        let refuse = |keys: &[&'static str], with| {
            keys.iter().try_for_each(|key| self.fields.refuse(key, with))
        };
        match kind {
            OptionKind::Private => {
                refuse(POPULATION, "option `private`, which allows nothing; remove it")?;
                refuse(REST, "option `private`, which allows nothing; remove it")?;
            }
            OptionKind::Public => {
                refuse(POPULATION, "option `public`, which allows everything; remove it")?;
                refuse(
                    &["window", "windows", "generalise"],
                    "option `public`; remove it or use `stream-aggregate`",
                )?;
            }
            OptionKind::StreamAggregate => {
                refuse(
                    POPULATION,
                    "option `stream-aggregate`, which releases one stream; remove it",
                )?;
            }
            OptionKind::Aggregate | OptionKind::DpAggregate => {}
        }
        match kind {
            OptionKind::DpAggregate => Ok(()),
            _ => refuse(&["budget"], "an option without noise; remove it or use `dp-aggregate`"),
        }
    }

    fn attributes(&self) -> Result<Vec<u16>, DocumentError> {
        let Some(list) = self.fields.get("attributes") else {
            return Ok((0u16..)
                .zip(&self.schema.attributes)
                .map(|(position, _)| position)
                .collect());
        };
        let read = list.one_or_list().iter().map(|item| self.position(item));
        let mut positions = read.collect::<Result<Vec<_>, _>>()?;
        positions.sort_unstable();
        positions.dedup();
        if positions.is_empty() { Err(list.error(ContentError::EmptyList)) } else { Ok(positions) }
    }

    fn position(&self, node: &Node) -> Result<u16, DocumentError> {
        let name = node.name()?;
        let unknown = || node.error(ContentError::UnknownAttribute { name: name.to_owned() });
        self.schema.position(name).ok_or_else(unknown)
    }

    /// The value of a key with two spellings.
    fn either(
        &self,
        one: &'static str,
        other: &'static str,
    ) -> Result<Option<&Node>, DocumentError> {
        if self.fields.get(one).is_some() {
            self.fields.refuse(other, "its other spelling; remove one of them")?;
        }
        Ok(self.fields.get(one).or_else(|| self.fields.get(other)))
    }

    fn windows(&self) -> Result<Vec<Span>, DocumentError> {
        let Some(list) = self.either("window", "windows")? else {
            return Ok(vec![self.schema.tick]);
        };
        let mut windows = Vec::new();
        for item in list.one_or_list() {
            let window = item.duration()?;
            if !window.0.is_multiple_of(self.schema.tick.0) {
                let tick = self.schema.tick;
                let nearest = Span(window.0.next_multiple_of(tick.0));
                return Err(item.error(ContentError::NotMultipleOfTick { window, tick, nearest }));
            }
            windows.push(window);
        }
        sorted(list, windows)
    }

    fn clients(&self) -> Result<Vec<u32>, DocumentError> {
        let Some(list) = self.either("clients", "minimumPopulation")? else {
            return Ok(self.sizes.get(DEFAULT_SIZE).map_or_else(|| vec![10], |size| vec![*size]));
        };
        let read = list.one_or_list().iter().map(|item| population(item, self.sizes));
        sorted(list, read.collect::<Result<_, _>>()?)
    }

    /// The named sizes among the minimum populations.
    fn named_clients(&self) -> Result<Vec<(String, u32)>, DocumentError> {
        let listed = self.either("clients", "minimumPopulation")?.map(Node::one_or_list);
        let texts = listed.into_iter().flatten().filter_map(|item| item.text().ok());
        let named = texts.filter_map(|name| Some((name.to_owned(), *self.sizes.get(name)?)));
        let mut all: Vec<_> = named.collect();
        all.sort();
        all.dedup();
        Ok(all)
    }

    fn generalise(&self) -> Result<Vec<Generalisation>, DocumentError> {
        let Some(list) = self.fields.get("generalise") else { return Ok(Vec::new()) };
        list.one_or_list().iter().map(|item| self.generalise_one(item)).collect()
    }

    fn generalise_one(&self, item: &Node) -> Result<Generalisation, DocumentError> {
        let fields = Fields::of(item, &["attribute", "width", "edges"])?;
        let named = fields.required("attribute")?;
        let attribute = self.position(named)?;
        let own = self.schema.attributes.get(usize::from(attribute));
        let Some(AttributeKind::Number { scale, .. }) = own.map(|own| &own.kind) else {
            return Err(named.expected("a numeric attribute"));
        };
        let to = match fields.get("edges") {
            Some(edges) => {
                fields.refuse("width", "`edges`; remove one of them")?;
                CoarseBuckets::Edges(ascending(edges, *scale)?)
            }
            None => CoarseBuckets::Width(fields.required("width")?.decimal(*scale)?),
        };
        let generalise = Generalisation { attribute, to };
        self.lies_on_all_grids(named, item, &generalise)?;
        Ok(generalise)
    }

    /// The buckets must fit every grid over the attribute, and there must be such a grid.
    fn lies_on_all_grids(
        &self,
        named: &Node,
        item: &Node,
        generalise: &Generalisation,
    ) -> Result<(), DocumentError> {
        let mut found = false;
        for (position, attribute) in (0u16..).zip(&self.schema.attributes) {
            for aggregation in &attribute.aggregations {
                let (grid, name) = match aggregation {
                    Aggregation::Histogram(grid) if position == generalise.attribute => {
                        (grid, "histogram")
                    }
                    Aggregation::By { attribute: by, edges, .. } if *by == generalise.attribute => {
                        (edges, "by")
                    }
                    _ => continue,
                };
                found = true;
                if generalise.groups(grid).is_none() {
                    let aggregation = format!("{}.{name}", attribute.name);
                    return Err(item.error(ContentError::OffGrid { aggregation }));
                }
            }
        }
        let attribute = named.text()?.to_owned();
        if found {
            Ok(())
        } else {
            Err(named.error(ContentError::NothingToGeneralise { attribute }))
        }
    }

    fn budget(&self) -> Result<Budget, DocumentError> {
        let node = self.fields.required("budget")?;
        let fields = Fields::of(node, &["perWindow", "total", "delta", "unit", "period"])?;
        let epsilon = |key| positive(fields.required(key)?, 6);
        let (window, total) = (epsilon("perWindow")?, epsilon("total")?);
        if window > total {
            let problem = ContentError::OutOfRange { range: "at most `total`".to_owned() };
            return Err(fields.required("perWindow")?.error(problem));
        }
        let delta = fields.read_or("delta", 0, |node| positive(node, 18))?;
        let units = [Some(PrivacyUnit::Event), Some(PrivacyUnit::PersonPerWindow), None];
        let unit = match fields.required("unit")?.word(UNITS, &units)? {
            Some(unit) => {
                fields.refuse("period", "this unit; remove it or use `person-per-period`")?;
                unit
            }
            None => PrivacyUnit::PersonPerPeriod(fields.required("period")?.duration()?),
        };
        Ok(Budget {
            window_micro_epsilon: window,
            total_micro_epsilon: total,
            atto_delta: delta,
            unit,
        })
    }
}

/// A minimum population: a number or a named size.
fn population(item: &Node, sizes: &Sizes) -> Result<u32, DocumentError> {
    match sizes.get(item.text()?) {
        Some(size) => Ok(*size),
        None => item.integer(1, u32::MAX),
    }
}

/// A number above 0 in units of `10^-scale`. With 18 places it is a δ, below 1.
fn positive(node: &Node, scale: u8) -> Result<u64, DocumentError> {
    let number = node.decimal(scale)?;
    let max = if scale == 18 { 999_999_999_999_999_999 } else { i64::MAX };
    match u64::try_from(number) {
        Ok(positive) if positive > 0 && number <= max => Ok(positive),
        _ if scale == 18 => {
            Err(node.error(ContentError::OutOfRange { range: "above 0 and below 1".to_owned() }))
        }
        _ => Err(node.error(ContentError::OutOfRange {
            range: "above 0 and at most 9 × 10^12".to_owned(),
        })),
    }
}

fn sorted<T: Ord>(list: &Node, mut all: Vec<T>) -> Result<Vec<T>, DocumentError> {
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { Err(list.error(ContentError::EmptyList)) } else { Ok(all) }
}

/// One set of a window is opened, and its quorum is of all members. With several, members would have to
/// answer more than once, so no option promises that.
fn one_population(node: &Node) -> Result<bool, DocumentError> {
    if node.boolean()? { Err(node.error(ContentError::SplitPopulations)) } else { Ok(false) }
}

fn consumers(node: &Node) -> Result<Vec<String>, DocumentError> {
    let read = node.one_or_list().iter().map(|item| item.text().map(str::to_owned));
    sorted(node, read.collect::<Result<_, _>>()?)
}

fn fingerprints(node: &Node) -> Result<Vec<ControllerId>, DocumentError> {
    sorted(node, node.one_or_list().iter().map(fingerprint).collect::<Result<_, _>>()?)
}

fn fingerprint(item: &Node) -> Result<ControllerId, DocumentError> {
    let bad = || item.error(ContentError::BadFingerprint);
    let text = item.text()?;
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        let digits = text.get(at..at + 2).ok_or_else(bad)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
    }
    Ok(ControllerId(bytes))
}
