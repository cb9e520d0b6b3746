//! Columns whose names say that each row is a reading of another kind, such as `test` beside `value`.

use crate::attribute::Attribute;
use crate::form::Form;
use crate::hash::Map;
use crate::number::Decimal;
use crate::profile::Profile;
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::tally::Values;
use crate::units;
use crate::words::{has, words};
use std::collections::BTreeSet;

/// Words of what is measured, where a column names several of it.
const MEASURED: &[&str] = &[
    "analyse",
    "analyte",
    "analyt",
    "assay",
    "biomarker",
    "characteristic",
    "characteristics",
    "contaminant",
    "examination",
    "grandeur",
    "grandezza",
    "grootheid",
    "indicador",
    "indicateur",
    "indicator",
    "indikator",
    "item",
    "kenngröße",
    "kenngroesse",
    "kennzahl",
    "kpi",
    "laborwert",
    "marker",
    "measurand",
    "measure",
    "medida",
    "merkmal",
    "messart",
    "messgröße",
    "messgroesse",
    "mesure",
    "metric",
    "metrik",
    "param",
    "paramcd",
    "parameter",
    "parametro",
    "paramètre",
    "parámetro",
    "pollutant",
    "polluant",
    "schadstoff",
    "signal",
    "statistic",
    "test",
    "tests",
    "untersuchung",
    "var",
    "variable",
];

/// Words behind these, which say how they are named.
const NAMES: &[&str] = &[
    "abbreviation",
    "bezeichnung",
    "cd",
    "code",
    "desc",
    "description",
    "id",
    "key",
    "kind",
    "label",
    "name",
    "short",
    "type",
];

/// Words of numbers that may be of any kind.
const VALUES: &[&str] = &[
    "aval",
    "ergebnis",
    "measurement",
    "messwert",
    "number",
    "obs",
    "observation",
    "observed",
    "reading",
    "result",
    "resultado",
    "resultat",
    "results",
    "résultat",
    "val",
    "valeur",
    "valor",
    "valore",
    "value",
    "values",
    "waarde",
    "wert",
    "werte",
];

/// Whether a column's name says that it tells what each number beside it measures. The last word counts:
/// `test_group` names groups.
pub(crate) fn names_kinds(name: &str) -> bool {
    let mut all = words(name);
    while all.len() > 1 && all.last().is_some_and(|word| NAMES.contains(&word.as_str())) {
        all.pop();
    }
    has(name, &["vital", "vitals"]) || all.last().is_some_and(|word| MEASURED.contains(&&**word))
}

/// The first column of numbers whose name does not say what they measure.
pub(crate) fn values(attributes: &[Attribute]) -> Option<&str> {
    let open = |own: &&Attribute| {
        let name = &own.column;
        own.values == Values::Number && has(name, VALUES) && units::of_name(name).is_none()
    };
    Some(&attributes.iter().find(open)?.column)
}

/// Whether the numbers of each kind are about as large as those of any other, as results of one test
/// taken several times are: kinds that are only numbered may differ by more.
pub(crate) fn are_alike(
    (text, form): (&str, &Form),
    profile: &Profile,
    (value, kind): (&str, &str),
) -> bool {
    const NUMBERED: i128 = 10;
    const NAMED: i128 = 2;
    let place = |name: &str| profile.columns.iter().position(|own| own.name == name);
    let (Some(value), Some(kind)) = (place(value), place(kind)) else { return true };
    let (mut kinds, mut rows): (Map<String, Vec<Decimal>>, u64) = (Map::default(), 0);
    let marks = form.marks();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |column: usize| row.get(column).map_or("", AsRef::as_ref);
        let number = marks.plain(cell(value)).and_then(|plain| Decimal::read(&plain));
        if let Some(number) = number.filter(|_| !form.is_missing(cell(kind))) {
            let size = number.max(Decimal::ZERO.minus(number));
            kinds.entry(cell(kind).to_owned()).or_default().push(size);
        }
        rows += 1;
        rows < SAMPLE
    });
    let stem = |text: &String| stem(text).to_owned();
    let stems: BTreeSet<String> = kinds.keys().map(stem).collect();
    let within = if stems.len() == 1 { NUMBERED } else { NAMED };
    let sizes = || kinds.values().map(|own| upper(own));
    let (least, most) = (sizes().min(), sizes().max());
    least.zip(most).is_none_or(|(least, most)| least.times(within) >= most)
}

/// A text without its number, or without the one letter at its end: `Test` of `Test 2` and of `Test B`.
fn stem(text: &str) -> &str {
    let (before, last) = text.rsplit_once([' ', '_', '-']).unwrap_or(("", text));
    let one = last.chars().count() == 1;
    let text = if one { before } else { text };
    text.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '_' | '-'))
}

/// The size that three in four numbers do not exceed.
fn upper(sizes: &[Decimal]) -> Decimal {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.get(sizes.len() * 3 / 4).copied().unwrap_or(Decimal::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_and_numbered_kinds_are_known() {
        for name in ["test", "Lab Test", "test_name", "ParameterCode", "vital sign", "PARAMCD"] {
            assert!(names_kinds(name), "{name}");
        }
        for name in ["test_group", "sex", "region", "device", "item_count", "name", "code", "type"]
        {
            assert!(!names_kinds(name), "{name}");
        }
        for text in ["Test 2", "Test B", "Test", "Test_12"] {
            assert_eq!(stem(text), "Test");
        }
    }
}
