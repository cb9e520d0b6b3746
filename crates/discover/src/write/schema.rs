//! `schema.yaml`: what can be measured, within which bounds, and what owners may choose.

use super::policies::clients;
use super::{Draft, comment, noise, quoted};
use crate::Attribute;
use crate::bounds::Bounds;
use crate::number::Decimal;
use crate::steps::Course;
use crate::tally::Values;
use crate::windows::WINDOWS;
use std::fmt::Write as _;

pub(super) fn schema(draft: &Draft<'_>) -> String {
    let (tick, least) = (draft.shortest, draft.least);
    let mut text = format!(
        "# What {file} holds, as `alpheus init` understood it. Bounds are a guess: twice what the\n# file has, rounded up, without values far from all others. A value outside its bounds is refused, so check them.\nname: {name}\nversion: 1\n# Every window is a multiple of this. It follows from the time between readings.\ntick: {tick}\n# The maximum number of streams in a window, and of events of one stream in it.\ncapacity: {{ population: {population}, events: {events} }}\n\nstreamAttributes:\n",
        file = comment(draft.file),
        name = draft.name,
        tick = tick.name,
        population = draft.population,
        events = draft.events,
    );
    for attribute in &draft.found.attributes {
        text.push_str(&self::attribute(draft, attribute));
    }
    let windows: Vec<&str> =
        WINDOWS.iter().filter(|other| other.is_multiple_of(tick)).map(|other| other.name).collect();
    let windows = windows.join(", ");
    let clients: Vec<String> = clients(draft).iter().map(u64::to_string).collect();
    let clients = clients.join(", ");
    // With so few owners, none of them may be missing, and none is expected to collude.
    let few = match least {
        ..10 => {
            "    # With so few owners, none of them may be missing, and none is expected to collude.\n    alpha: 0\n    dropout: 0\n"
        }
        _ => "",
    };
    let _ = write!(
        text,
        "\nstreamPolicyOptions:\n  # Totals over at least this many owners, in windows of at least this length.\n  - name: crowd\n    option: aggregate\n    clients: [{clients}]\n    window: [{windows}]\n{few}  # The same with noise (differential privacy). The budget is a choice: a smaller ε hides each\n  # owner better, and makes results less exact.\n  - name: noisy\n    option: dp-aggregate\n    clients: [{clients}]\n    window: [{windows}]\n{few}    budget: {{ perWindow: {}, total: {}, unit: person-per-window }}\n  # Nothing at all.\n  - {{ name: nothing, option: private }}\n",
        noise::EPSILON,
        noise::TOTAL_EPSILON,
    );
    text
}

fn attribute(draft: &Draft<'_>, own: &Attribute) -> String {
    let mut text =
        format!("  # Column {}.\n  - name: {}\n", comment(&quoted(&own.column)), own.name);
    match own.values {
        Values::Boolean => text.push_str(
            "    # Yes is 1 and no is 0: the sum is the number of yes, and the mean their share.\n    type: integer\n    min: 0\n    max: 1\n",
        ),
        Values::Text => {
            let _ = write!(
                text,
                "    type: string\n    maxBytes: {}\n",
                (own.total.longest * 2).clamp(16, 65_535)
            );
        }
        Values::Number => text.push_str(&number(own)),
    }
    if own.total.count < draft.found.tally.rows {
        text.push_str("    optional: true\n");
    }
    if own.values == Values::Number {
        let _ = writeln!(
            text,
            "    # MEDIAN, MIN, MAX and HISTOGRAM need bins, and are as precise as a bin is wide. Add to the list\n    # below: {}",
            own.bounds().histogram(own.usual_range())
        );
    }
    let _ = writeln!(text, "    aggregations: [{}]", statistics(draft, own));
    text
}

fn number(own: &Attribute) -> String {
    let bounds = own.bounds();
    let (min, max) = bounds.texts();
    let mut text = String::new();
    text.push_str(match own.course {
        Course::Any => "",
        Course::Rises => {
            "    # It only rises, like a meter reading: its sum and its mean have no meaning. Measure the\n    # difference from the previous reading instead.\n"
        }
        Course::Stands => {
            "    # It is what is left after each row, like a balance: its sum has no meaning.\n"
        }
        Course::StartsAgain => {
            "    # It rises and starts again, like the running total of a day: its sum and its mean have no\n    # meaning. Measure the difference from the previous reading instead.\n"
        }
    });
    if bounds.scale == 0 {
        text.push_str("    type: integer\n");
    } else {
        let _ = write!(text, "    type: decimal\n    scale: {}\n", bounds.scale);
    }
    if let Some(unit) = &own.unit {
        let _ = writeln!(text, "    unit: {}", quoted(unit));
    }
    let _ = write!(text, "    min: {min}\n    max: {max}\n");
    text
}

/// What can be asked of an attribute.
fn statistics(draft: &Draft<'_>, own: &Attribute) -> &'static str {
    let values = draft.population.saturating_mul(draft.events);
    match own.values {
        Values::Number if own.bounds().squares_fit(values) => "count, sum, mean, var",
        Values::Number | Values::Boolean => "count, sum, mean",
        Values::Text => "count",
    }
}

impl Attribute {
    /// The bounds that the schema gets.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds::of(self.usual_range(), self.total.places, self.unit.as_deref())
    }

    /// The least and the greatest number, without those far from all others.
    fn usual_range(&self) -> Option<(Decimal, Decimal)> {
        self.outliers.range.filter(|_| self.outliers.count > 0).or(self.total.range)
    }

    /// Whether the bounds hold all numbers but those far from all others.
    pub(crate) fn fits(&self) -> bool {
        let bounds = self.bounds();
        let own = |digits| Decimal { digits, places: bounds.scale };
        let range = self.total.range.filter(|_| self.outliers.count == 0);
        range.is_none_or(|(lo, hi)| lo >= own(bounds.min) && hi <= own(bounds.max))
    }
}
