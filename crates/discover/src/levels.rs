//! Owners whose levels differ as units do: some write mmol/L and others mg/dL.

use crate::attribute::Attribute;
use crate::form::{Form, MissingTexts};
use crate::hash::{Hashes, Map};
use crate::hints::Hints;
use crate::number::{Decimal, scaled_text};
use crate::scan::{ScannedRow, scan};
use crate::tally::{CountedColumn, Values};
use crate::words::{has, worded};

/// Rows that are read.
const SAMPLE: u64 = 300_000;
/// Owners of each group who prove it; fewer do if none of their readings is near those of so many
/// others.
const MIN_OWNERS: usize = 3;
const MIN_OTHERS: usize = 5;
/// Decimal places of means.
const PLACES: u8 = 6;
/// What one unit is in another, in thousandths: of glucose, of cholesterol, of creatinine, a share
/// in percent, and a thousand.
const RATIOS: [i128; 5] = [18_016, 38_670, 88_400, 100_000, 1_000_000];

/// Asks about a column in which the means of some owners are as many times those of all others as
/// one unit is another, with none between.
pub(crate) fn asked(
    (text, form): (&str, &Form),
    owner: Option<usize>,
    (attributes, wanted): (&[Attribute], &[CountedColumn]),
    hints: &Hints,
) -> Option<String> {
    let owner = owner?;
    let open = |(own, _): &(&Attribute, &CountedColumn)| {
        own.values == Values::Number && !hints.measure.contains(&own.column)
    };
    let tried: Vec<(&Attribute, &CountedColumn)> =
        attributes.iter().zip(wanted).filter(open).collect();
    let hashes = Hashes::default();
    let marks = form.marks();
    let usual = MissingTexts::of(&form.missing);
    let missing: Vec<MissingTexts> =
        tried.iter().map(|(_, own)| MissingTexts::of(&own.missing)).collect();
    let mut levels: Vec<Map<u64, Level>> = vec![Map::default(); tried.len()];
    let mut rows = 0;
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        let whose = hashes.of(cell(owner));
        rows += 1;
        for (((_, wanted), missing), levels) in tried.iter().zip(&missing).zip(&mut levels) {
            let cell = cell(wanted.column);
            let empty = cell.is_empty() || usual.contains(cell) || missing.contains(cell);
            if !empty && let Some(value) = marks.plain(cell).and_then(|own| Decimal::read(&own)) {
                levels.entry(whose).or_default().add(millionths(value));
            }
        }
        rows < SAMPLE
    });
    let mut all = tried.iter().zip(levels);
    all.find_map(|((own, _), levels)| {
        let levels: Vec<Level> = levels.into_values().collect();
        let found = groups(levels.clone()).or_else(|| of_named_units(own, levels));
        found.map(|found| question(&own.column, found))
    })
}

/// The readings of one owner, in millionths.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    count: i128,
    sum: i128,
    least: i128,
    most: i128,
}

impl Level {
    fn add(&mut self, value: i128) {
        let first = self.count == 0;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.least = if first { value } else { self.least.min(value) };
        self.most = if first { value } else { self.most.max(value) };
    }

    fn mean(&self) -> i128 {
        self.sum / self.count.max(1)
    }
}

/// A number in millionths.
fn millionths(value: Decimal) -> i128 {
    let power = |places: u8| 10i128.saturating_pow(u32::from(places));
    match value.places <= PLACES {
        true => value.digits.saturating_mul(power(PLACES - value.places)),
        false => value.digits / power(value.places - PLACES),
    }
}

/// The number of means and their middle, of each of two groups.
type Groups = [(usize, i128); 2];

/// Two groups of owners with a gap between their means, and a ratio of two units.
fn groups(mut levels: Vec<Level>) -> Option<Groups> {
    levels.sort_unstable_by_key(Level::mean);
    if levels.len() <= MIN_OTHERS || levels.iter().any(|own| own.mean() <= 0) {
        return None;
    }
    // The widest gap, by ratio.
    let gap = |at: &usize| levels[*at].mean().saturating_mul(1000) / levels[*at - 1].mean();
    let at = (1..levels.len()).max_by_key(gap)?;
    let (low, high) = levels.split_at(at);
    let few = low.len().min(high.len()) < MIN_OWNERS;
    let apart = low.iter().map(|own| own.most).max() < high.iter().map(|own| own.least).min();
    let many = low.len().max(high.len()) >= MIN_OTHERS && apart;
    // Those of one unit are nearer to each other than to the rest.
    let wide = |own: &[Level]| own[own.len() - 1].mean() > own[0].mean().saturating_mul(3);
    if (few && !many) || wide(low) || wide(high) || gap(&at) < 6000 {
        return None;
    }
    let middle = |own: &[Level]| own[own.len() / 2].mean();
    let ratio = middle(high).saturating_mul(1000) / middle(low);
    let near = |known: &i128| (ratio - known).abs() * 5 <= *known;
    RATIOS.iter().any(near).then(|| [(low.len(), middle(low)), (high.len(), middle(high))])
}

/// What one unit is in the other: so many thousandths of it, and so many thousandths more.
type Conversion = (i128, i128);

/// Words of quantities that some measure in one unit and others in another, with the units and how
/// the numbers of one become those of the other: degrees Celsius and Fahrenheit, kilograms and
/// pounds, kilometres and miles, metres and feet, centimetres and inches, litres and gallons.
const NAMED: &[(&[&str], &[&str], &[Conversion])] = &[
    (
        &["temperature", "temp", "temperatur", "température", "temperatura", "t"],
        &["°c", "°f", "degc", "degf", "c", "f", "celsius"],
        &[(1800, 32_000)],
    ),
    (
        &["weight", "gewicht", "mass", "poids", "peso", "bodyweight"],
        &["kg", "lb", "lbs"],
        &[(2205, 0)],
    ),
    (
        &["distance", "strecke", "speed", "km", "miles", "elevation", "altitude"],
        &["km", "mi", "miles", "km/h", "mph", "m", "ft"],
        &[(1609, 0), (3281, 0)],
    ),
    (
        &["height", "size", "length", "groesse", "größe", "taille", "waist"],
        &["cm", "in", "inch", "inches", "m", "ft"],
        &[(2540, 0), (3281, 0)],
    ),
    (&["volume", "fuel", "water", "wasser"], &["l", "gal"], &[(3785, 0)]),
];

/// Two groups of owners whose readings lie as far apart as in two units of what is measured, with
/// no reading of one group among those of the other.
fn of_named_units(own: &Attribute, mut levels: Vec<Level>) -> Option<Groups> {
    let unit = own.unit.as_deref().unwrap_or_default().to_lowercase();
    let named = |(words, units, _): &&(&[&str], &[&str], &[Conversion])| {
        has(&own.column, words) || units.contains(&unit.as_str())
    };
    let (.., conversions) = NAMED.iter().find(named)?;
    levels.sort_unstable_by_key(Level::mean);
    if levels.len() <= MIN_OTHERS {
        return None;
    }
    let step = |at: &usize| levels[*at].mean() - levels[*at - 1].mean();
    let at = (1..levels.len()).max_by_key(step)?;
    let (low, high) = levels.split_at(at);
    let apart = low.iter().map(|own| own.most).max() < high.iter().map(|own| own.least).min();
    let enough = low.len().max(high.len()) >= MIN_OTHERS;
    let middle = |own: &[Level]| own[own.len() / 2].mean();
    let (less, more) = (middle(low), middle(high));
    let near = |(ratio, shift): &Conversion| {
        let expected = less.saturating_mul(*ratio) / 1000 + shift * 1000;
        expected > 0 && (more - expected).abs() * 100 <= expected * 12
    };
    (apart && enough && conversions.iter().any(near))
        .then_some([(low.len(), less), (high.len(), more)])
}

fn question(name: &str, [(few, low), (many, high)]: Groups) -> String {
    let number = |millionths: i128| {
        let text = scaled_text(&(millionths / 10_000).to_string(), 2);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let word = worded(name);
    format!(
        "The means of `{name}` are near {} for {few} of its owners and near {} for the other {many}, with none between, so they may be in different units, such as mmol/L and mg/dL, or °C and °F. A sum would mix these. Convert them, or use `--measure {word}` if all are in one unit.",
        number(low),
        number(high)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_in_two_units_are_two_groups() {
        let of = |low: &[i128], high: &[i128]| {
            let level = |own: &i128| {
                let mut level = Level::default();
                [own * 80_000, own * 120_000].into_iter().for_each(|value| level.add(value));
                level
            };
            groups(low.iter().chain(high).map(level).collect())
        };
        let found = of(&[52, 61, 58, 70], &[940, 1100, 1260]);
        assert_eq!(found.map(|[low, high]| (low.0, high.0)), Some((4, 3)));
        let one = of(&[52, 61, 58, 70, 66], &[1100]);
        assert_eq!(one.map(|[low, high]| (low.0, high.0)), Some((5, 1)));
        assert!(of(&[52, 61, 58], &[940, 1100]).is_none(), "too few");
        assert!(of(&[52, 61, 58], &[620, 650, 700]).is_none(), "another ratio");
        assert!(of(&[52, 61, 58, 70, 66], &[620]).is_none(), "another ratio");
        assert!(of(&[52, 61, 58, 300], &[940, 1100, 1260]).is_none(), "one between");
        assert!(of(&[0, 61, 58], &[940, 1100, 1260]).is_none());
    }
}
