//! Numbers that stand for a missing one, such as -999: their form and their distance set them
//! apart from real ones.

use crate::extremes::{Cells, Far};
use crate::legend::Legend;
use crate::number::Decimal;
use crate::profile::Column;
use crate::words::{MONEY, has, is_money};
use std::collections::BTreeMap;

/// No temperature of the air is lower.
const COLDEST: Decimal = Decimal { digits: -90, places: 0 };
/// One number in so many leaves no doubt that it stands for a missing one, if it stands out.
const OFTEN: u64 = 50;

/// What a column's suspects are. Texts of numbers have a point and no marks; cells are as in the
/// file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Texts that stand for a missing number, with their cells.
    pub left_out: BTreeMap<String, Cells>,
    /// Texts that are taken as numbers, though they look odd.
    pub odd: Vec<String>,
    /// Texts that may be either.
    pub open: Vec<Open>,
}

/// A number that a person may keep or leave out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// Its text.
    pub text: String,
    /// Its cells.
    pub cells: Cells,
    /// Whether it is left out if the person says nothing.
    pub left_out: bool,
    /// Whether the person is asked.
    pub asked: bool,
}

impl Verdict {
    fn leave_open(&mut self, text: &str, cells: &Cells, (left_out, asked): (bool, bool)) {
        if left_out {
            self.left_out.insert(text.to_owned(), cells.clone());
        }
        self.open.push(Open { text: text.to_owned(), cells: cells.clone(), left_out, asked });
    }
}

/// Decides for all columns: what one column proves counts as a hint in the others, and so does what
/// lines above the table say.
pub(crate) fn judge(columns: &[&Column], units: &[Option<&str>], above: &[String]) -> Vec<Verdict> {
    let legend = Legend::of(above);
    let unit = |at: usize| units.get(at).copied().flatten();
    let each = columns.iter().enumerate();
    let mut verdicts: Vec<Verdict> =
        each.map(|(at, column)| alone((column, unit(at)), &legend)).collect();
    let proven: Vec<Decimal> = columns
        .iter()
        .zip(&verdicts)
        .flat_map(|(column, verdict)| {
            let is_open = |text: &String| verdict.open.iter().any(|open| open.text == *text);
            let sure = verdict.left_out.keys().filter(move |text| !is_open(text));
            sure.filter_map(|text| column.suspects.get(text))
        })
        .map(|(value, _)| *value)
        .collect();
    for (column, verdict) in columns.iter().zip(&mut verdicts) {
        for (text, (value, cells)) in &column.suspects {
            let hinted = proven.contains(value) && is_outside(column, *value);
            if hinted && !verdict.left_out.contains_key(text) {
                verdict.left_out.insert(text.clone(), cells.clone());
                verdict.odd.retain(|odd| odd != text);
                verdict.open.retain(|open| open.text != *text);
            }
        }
    }
    verdicts
}

/// Whether a number lies below or above all ordinary ones of its column. A negative one among
/// numbers that are never negative does.
fn is_outside(column: &Column, value: Decimal) -> bool {
    match column.range {
        None => true,
        Some((lo, hi)) => value < lo || value > hi,
    }
}

/// Numbers of any form that repeat far from all others.
fn far(column: &Column) -> Vec<Far> {
    /// Different numbers of a column that measures.
    const MIN_DISTINCT: u64 = 10;
    let measures = column.distinct() > MIN_DISTINCT;
    let mut found = if measures { column.extremes.far(column.numbers) } else { Vec::new() };
    // Of an account: a salary is far from all purchases, and no mark.
    let both_signs = column.whole_range().is_some_and(|(lo, hi)| lo.digits < 0 && hi.digits > 0);
    if both_signs && counts_money(column) {
        found.retain(|far| has_three_nines(&far.text) || is_usual_mark(&far.text));
    }
    found
}

/// Whether any number may be an amount that somebody paid.
pub(crate) fn counts_money(column: &Column) -> bool {
    has(&column.name, MONEY) || column.written.around.keys().any(|around| is_money(around))
}

/// Whether numbers may lie below zero on a cold day, though nearly none does.
fn may_be_cold(column: &Column, unit: Option<&str>) -> bool {
    const NAMES: &[&str] = &["temp", "temps", "temperature", "temperatures", "temperatur", "t"];
    const UNITS: &[&str] =
        &["°c", "°f", "degc", "degf", "deg c", "deg f", "c", "f", "celsius", "fahrenheit"];
    let of_unit = unit.is_some_and(|unit| UNITS.contains(&unit.to_lowercase().as_str()));
    let name = column.name.to_lowercase();
    of_unit
        || has(&name, NAMES)
        || ["temperat", "température", "°c", "°f"].iter().any(|part| name.contains(part))
}

/// Whether people choose such a number as a mark and nothing measures it: 990, as of winds that
/// turn. All nines are suspects by their form. All bits of a byte and the like are not here: an
/// instrument at its end shows them too.
fn is_usual_mark(text: &str) -> bool {
    text == "990"
}

fn alone((column, unit): (&Column, Option<&str>), legend: &Legend) -> Verdict {
    let mut verdict = Verdict::default();
    let cold = may_be_cold(column, unit);
    let money = counts_money(column);
    for far in far(column) {
        let one_form = far.cells.len() == 1;
        let sure = far.apart && one_form && !money && is_usual_mark(&far.text);
        verdict.leave_open(&far.text, &far.cells, (sure, !sure));
    }
    for (text, (value, cells)) in &column.suspects {
        match column.range {
            Some(range) => verdict.weigh((column, range, cold), legend, (text, *value, cells)),
            None => {
                // A column without any other number says nothing about its own.
                let marks = (*value < Decimal::ZERO && text != "-1") || has_three_nines(text);
                if marks && column.suspects.len() == 1 && cells.values().sum::<u64>() > 1 {
                    verdict.left_out.insert(text.clone(), cells.clone());
                }
            }
        }
    }
    verdict
}

impl Verdict {
    /// Decides about a suspect of a column whose ordinary numbers have a least and a greatest.
    fn weigh(
        &mut self,
        (column, (lo, hi), cold): (&Column, (Decimal, Decimal), bool),
        legend: &Legend,
        (text, value, cells): (&str, Decimal, &Cells),
    ) {
        let count: u64 = cells.values().sum();
        let money = counts_money(column);
        let (below, above, negative) = (value < lo, value > hi, value < Decimal::ZERO);
        let named = legend.names(value) || (negative && legend.names_negative());
        if !below && !above {
            if legend.names(value) {
                self.leave_open(text, cells, (false, true));
            }
            return;
        }
        let span = hi.minus(lo);
        let gap = if below { lo.minus(value) } else { value.minus(hi) };
        let nines = has_three_nines(text);
        let far = gap > span;
        let lone_nines = negative && lo >= Decimal::ZERO && has_nines_alone(text);
        let stands_out = match text {
            "-1" => false,
            _ if negative && nines => lo >= Decimal::ZERO || far,
            _ if lone_nines => far,
            _ if negative => far && count > 1,
            // Two nines are more often a real number.
            _ if !nines => gap > span.times(2) && count > 1,
            _ => far && count > 1,
        };
        // A single -1 may be a number too, unless nothing is near it.
        let often_or_apart = count > 1 || (column.is_integer() && gap.times(2) > span);
        let often = count * OFTEN >= column.numbers;
        let is_cold = cold && negative && value > COLDEST;
        let is_sure = !money && (negative || often || (nines && gap > span.times(10)));
        if named {
            let apart = far || (negative && lo >= Decimal::ZERO);
            self.leave_open(text, cells, (apart, money || !apart));
        } else if stands_out && is_sure && lone_nines && !nines {
            self.leave_open(text, cells, (!is_cold, is_cold));
        } else if stands_out && is_sure && !is_cold {
            self.left_out.insert(text.to_owned(), cells.clone());
        } else if stands_out {
            self.leave_open(text, cells, (!money && !is_cold, true));
        } else if lone_nines || (negative && often_or_apart && (nines || is_never_near(lo, text))) {
            self.leave_open(text, cells, (false, true));
        } else if (negative && lo >= Decimal::ZERO) || gap.times(2) > span {
            self.odd.push(text.to_owned());
        }
    }
}

/// Whether numbers from a least one on are so high that a negative one is no slip: a -1 may be one of
/// what is nearly zero.
fn is_never_near(least: Decimal, negative: &str) -> bool {
    const FAR: Decimal = Decimal { digits: 2, places: 0 };
    least >= if negative == "-1" { FAR } else { Decimal::ZERO }
}

/// Whether all digits are nines, as in -9.99 and -99.
fn has_nines_alone(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0');
    let digits: Vec<u8> = digits.collect();
    digits.len() >= 2 && digits.iter().all(|digit| *digit == b'9')
}

/// Whether three digits before the point are nines.
fn has_three_nines(text: &str) -> bool {
    let whole = text.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit);
    whole.filter(|byte| *byte == b'9').count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(range: Option<(i128, i128)>, suspects: &[(&str, u64)]) -> Column {
        let number = |digits| Decimal { digits, places: 0 };
        Column {
            range: range.map(|(lo, hi)| (number(lo), number(hi))),
            suspects: suspects
                .iter()
                .map(|(text, count)| {
                    let cells = Cells::from([((*text).to_owned(), *count)]);
                    ((*text).to_owned(), (Decimal::read(text).unwrap(), cells))
                })
                .collect(),
            ..Column::default()
        }
    }

    #[test]
    fn what_may_be_either_is_asked() {
        let open = |column: Column| {
            let verdict = judge(&[&column], &[], &[]).remove(0);
            let open = verdict.open.into_iter();
            let open = open.map(|open| (open.text, open.cells.values().sum(), open.left_out));
            (verdict.left_out.len(), open.collect::<Vec<(String, u64, bool)>>())
        };
        let price = Column { name: "price".to_owned(), ..column(Some((1, 30)), &[("99.99", 2)]) };
        assert_eq!(open(price), (0, vec![("99.99".to_owned(), 2, false)]));
        // A payment of 999 among others of up to 800.
        let paid = column(Some((-800, 500)), &[("-999", 2)]);
        assert_eq!(open(paid), (0, vec![("-999".to_owned(), 2, false)]));
        let rare = Column { numbers: 1000, ..column(Some((1, 30)), &[("99", 2)]) };
        assert_eq!(open(rare), (1, vec![("99".to_owned(), 2, true)]));
        assert_eq!(open(column(Some((1, 30)), &[("9999", 2)])).1, []);
        let pulse = column(Some((52, 150)), &[("-1", 581)]);
        assert_eq!(open(pulse), (0, vec![("-1".to_owned(), 581, false)]));
        let breaths = column(Some((8, 40)), &[("-1", 9)]);
        assert_eq!(open(breaths), (0, vec![("-1".to_owned(), 9, false)]));
        assert_eq!(open(column(Some((0, 150)), &[("-1", 581)])).1, []);
    }

    #[test]
    fn distance_and_form_decide() {
        let sure = column(Some((0, 12)), &[("-200", 50)]);
        let wide = column(Some((2, 340)), &[("-200", 40)]);
        let cold = column(Some((-40, 30)), &[("99", 3), ("-1", 7)]);
        let counted = column(Some((0, 1500)), &[("999", 2), ("-1", 7)]);
        let verdicts = judge(&[&sure, &wide, &cold, &counted], &[], &[]);
        assert_eq!(verdicts[0].left_out["-200"]["-200"], 50);
        assert_eq!(verdicts[1].left_out["-200"]["-200"], 40);
        assert!(verdicts[2].left_out.is_empty() && verdicts[3].left_out.is_empty());
        assert_eq!(verdicts[3].odd, ["-1"]);
        let alone = judge(&[&column(Some((2, 340)), &[("-200", 40)])], &[], &[]);
        assert!(alone[0].left_out.is_empty());
        let open = &alone[0].open[0];
        assert_eq!((open.cells["-200"], open.left_out, open.asked), (40, false, true));
    }
}
