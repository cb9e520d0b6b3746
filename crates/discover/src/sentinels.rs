//! Numbers that stand for a missing one, such as -999: their form and their distance set them
//! apart from real ones.

use crate::number::Decimal;
use crate::profile::Column;
use crate::words::{MONEY, has, is_money};
use std::collections::BTreeMap;

/// One number in so many leaves no doubt that it stands for a missing one, if it stands out.
const OFTEN: u64 = 50;

/// What a column's suspects are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Texts that stand for a missing number, each with its count.
    pub left_out: BTreeMap<String, u64>,
    /// Texts that are taken as numbers, though they look odd.
    pub odd: Vec<String>,
    /// Texts that may be either, each with its count, and whether they are left out.
    pub open: Vec<(String, u64, bool)>,
}

/// Decides for all columns: what one column proves counts as a hint in the others.
pub(crate) fn judge(columns: &[&Column]) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = columns.iter().map(|column| alone(column)).collect();
    let proven: Vec<Decimal> = columns
        .iter()
        .zip(&verdicts)
        .flat_map(|(column, verdict)| {
            let is_open = |text: &String| verdict.open.iter().any(|(open, ..)| open == text);
            let sure = verdict.left_out.keys().filter(move |text| !is_open(text));
            sure.filter_map(|text| column.suspects.get(text))
        })
        .map(|(value, _)| *value)
        .collect();
    for (column, verdict) in columns.iter().zip(&mut verdicts) {
        for (text, (value, count)) in &column.suspects {
            let hinted = proven.contains(value) && is_outside(column, *value);
            if hinted && !verdict.left_out.contains_key(text) {
                verdict.left_out.insert(text.clone(), *count);
                verdict.odd.retain(|odd| odd != text);
                verdict.open.retain(|(open, ..)| open != text);
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
fn far(column: &Column) -> Vec<(String, u64)> {
    /// Different numbers of a column that measures.
    const MIN_DISTINCT: u64 = 10;
    let measures = column.distinct() > MIN_DISTINCT;
    if measures { column.extremes.far(column.numbers) } else { Vec::new() }
}

/// Whether any number may be an amount that somebody paid.
fn counts_money(column: &Column) -> bool {
    has(&column.name, MONEY) || column.written.around.keys().any(|around| is_money(around))
}

/// Whether people choose such a number as a mark: 99 in front, or the most that some bits hold.
fn is_usual_mark(text: &str) -> bool {
    const ALL_BITS: &[&str] = &["127", "255", "511", "1023", "2047", "4095", "32767", "65535"];
    text.trim_start_matches('-').starts_with("99") || ALL_BITS.contains(&text)
}

fn alone(column: &Column) -> Verdict {
    let is_mark = |text: &str| !counts_money(column) && is_usual_mark(text);
    let mut verdict = Verdict::default();
    for (text, count) in far(column) {
        if is_mark(&text) {
            verdict.left_out.insert(text, count);
        } else {
            verdict.open.push((text, count, false));
        }
    }
    let real = column.range;
    for (text, (value, count)) in &column.suspects {
        if verdict.left_out.contains_key(text) {
            continue;
        }
        let Some((lo, hi)) = real else {
            // A column without any other number says nothing about its own.
            if *value < Decimal::ZERO && text != "-1" && column.suspects.len() == 1 && *count > 1 {
                verdict.left_out.insert(text.clone(), *count);
            }
            continue;
        };
        let below = *value < lo;
        let above = *value > hi;
        if !below && !above {
            continue;
        }
        let span = hi.minus(lo);
        let money = counts_money(column);
        let gap = if below { lo.minus(*value) } else { value.minus(hi) };
        let nines = has_three_nines(text);
        let negative = *value < Decimal::ZERO;
        let far = gap > span;
        let stands_out = match text.as_str() {
            "-1" => false,
            _ if negative && nines => lo >= Decimal::ZERO || far,
            _ if negative => far && *count > 1,
            // Two nines are more often a real number.
            _ if !nines => gap > span.times(2) && *count > 1,
            _ => far && *count > 1,
        };
        let often = *count * OFTEN >= column.numbers;
        let is_sure = !money && (negative || often || (nines && gap > span.times(10)));
        if stands_out && is_sure {
            verdict.left_out.insert(text.clone(), *count);
        } else if stands_out {
            let left_out = !money;
            verdict.left_out.extend(left_out.then(|| (text.clone(), *count)));
            verdict.open.push((text.clone(), *count, left_out));
        } else if negative && text != "-1" && *count > 1 && (nines || lo >= Decimal::ZERO) {
            verdict.open.push((text.clone(), *count, false));
        } else if (negative && lo >= Decimal::ZERO) || gap.times(2) > span {
            verdict.odd.push(text.clone());
        }
    }
    verdict
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
                .map(|(text, count)| ((*text).to_owned(), (Decimal::read(text).unwrap(), *count)))
                .collect(),
            ..Column::default()
        }
    }

    #[test]
    fn what_may_be_either_is_asked() {
        let open = |column: Column| {
            let verdict = judge(&[&column]).remove(0);
            (verdict.left_out.len(), verdict.open)
        };
        let price = Column { name: "price".to_owned(), ..column(Some((1, 30)), &[("99.99", 2)]) };
        assert_eq!(open(price), (0, vec![("99.99".to_owned(), 2, false)]));
        // A payment of 999 among others of up to 800.
        let paid = column(Some((-800, 500)), &[("-999", 2)]);
        assert_eq!(open(paid), (0, vec![("-999".to_owned(), 2, false)]));
        let rare = Column { numbers: 1000, ..column(Some((1, 30)), &[("99", 2)]) };
        assert_eq!(open(rare), (1, vec![("99".to_owned(), 2, true)]));
        assert_eq!(open(column(Some((1, 30)), &[("9999", 2)])).1, []);
    }

    #[test]
    fn distance_and_form_decide() {
        let sure = column(Some((0, 12)), &[("-200", 50)]);
        let wide = column(Some((2, 340)), &[("-200", 40)]);
        let cold = column(Some((-40, 30)), &[("99", 3), ("-1", 7)]);
        let counted = column(Some((0, 1500)), &[("999", 2), ("-1", 7)]);
        let verdicts = judge(&[&sure, &wide, &cold, &counted]);
        assert_eq!(verdicts[0].left_out.get("-200"), Some(&50));
        assert_eq!(verdicts[1].left_out.get("-200"), Some(&40));
        assert!(verdicts[2].left_out.is_empty() && verdicts[3].left_out.is_empty());
        assert_eq!(verdicts[3].odd, ["-1"]);
        let alone = judge(&[&column(Some((2, 340)), &[("-200", 40)])]);
        assert!(alone[0].left_out.is_empty());
        assert_eq!(alone[0].open, [("-200".to_owned(), 40, false)]);
    }
}
