//! What is not certain, in sentences for people.

use crate::attribute::Attribute;
use crate::clock::{Clock, Region, words};
use crate::number::{Decimal, scaled_text};
use crate::plural::{counted, verb};
use crate::profile::{NOTHING, TRACE};
use crate::steps::Course;
use crate::tally::Values;
use crate::times::Zone;
use crate::totals_below;
use crate::understanding::Understanding;
use crate::windows::{DAY, SECOND};
use crate::words::worded;
use crate::write::CROWD;
use std::fmt::Write as _;

/// Rows in a thousand that may be refused before a person should look.
const MAX_REFUSED_PER_MILLE: u64 = 1;

/// Rows without a time that are a title or a sum, however short the file.
const MAX_UNTIMED: u64 = 5;

/// What to say of hours from 1 to 24.
const ENDS_OF_INTERVALS: &str = "Days end with 24:00 and none begins with 0:00, so a time may be the end of the interval that was measured: hour 1 is then the one before 1:00. Each reading counts in the window that begins at its time, which is one interval later. Write the beginning of each interval in the file if that matters, such as 0 for hour 1.";

/// What to do with times that cannot be expressed.
const OUT_OF_RANGE: &str = "Leave such rows out, or shift the years. If the times are only years, `--time-format days` counts each year as a day. If they are days that begin below 0, `--date 2000-01-01` makes that date day 0.";

impl Understanding {
    /// Whether something cannot be known that matters.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether an answer decides whose rows results show, so that a guess may release single owners'.
    #[must_use]
    pub fn asks_whose(&self) -> bool {
        /// What such questions name: the option, the form of a source file, or the release itself.
        const NAMED: [&str; 4] = ["`--owner ", "`wide", "`--wide", "release it all the same"];
        self.questions.iter().any(|asked| NAMED.iter().any(|name| asked.contains(name)))
    }

    /// All that is not certain: what matters first.
    #[must_use]
    pub fn unsure(&self) -> Vec<String> {
        self.questions.iter().chain(&self.notes).cloned().collect()
    }

    /// The zone, in words.
    #[must_use]
    pub fn zone_text(&self) -> String {
        match &self.time.zone {
            Zone::InValue => "offset in the value".to_owned(),
            Zone::Fixed(Region::Fixed(seconds), _) => {
                format!("UTC{}", words::offset_text(*seconds))
            }
            Zone::Fixed(place, _) => place.text(),
            Zone::Unstated => "none stated".to_owned(),
        }
    }

    /// Adds sentences about what was counted.
    pub(crate) fn say(&mut self) {
        self.questions.append(&mut self.time.questions.clone());
        self.notes.append(&mut self.time.notes.clone());
        self.say_rows();
        self.notes.extend(self.tally.interval.and_then(rare));
        self.say_values();
        if self.time.zone == Zone::Unstated && self.time.days {
            self.notes.push("The times are dates without a time of day; they are read as days in UTC, which no zone shifts.".to_owned());
        } else if self.time.zone == Zone::Unstated {
            self.notes.push("The file does not state a time zone, so the times are read as UTC. If they are local times, set `zone` in source.yaml.".to_owned());
        }
        let bare: Vec<&str> = self
            .attributes
            .iter()
            .filter(|a| a.unit.is_none() && a.values == Values::Number)
            .map(|a| a.column.as_str())
            .collect();
        if !bare.is_empty() {
            let more = if bare.len() > 8 { ", and others" } else { "" };
            let names: Vec<String> = bare.iter().take(8).map(|name| format!("`{name}`")).collect();
            self.notes.push(format!("No unit is stated for {}{more}.", names.join(", ")));
        }
    }

    /// Says that policies ask for fewer owners than usual, since there are no more.
    pub(crate) fn say_few_owners(&mut self) {
        let owners = self.tally.owners;
        let named = self.owner.is_some() || self.wide.is_some();
        if !named || !(2..CROWD).contains(&owners) {
            return;
        }
        let risk = match owners {
            2 => "both, and each can work out the other's readings".to_owned(),
            _ => format!("all {owners}, and a total over so few says much about each of them"),
        };
        let says = format!(
            "Only {owners} owners: policies.yaml has `clients: {owners}` instead of {CROWD} or more. Results are of {risk}."
        );
        // What a wide file is stands first.
        self.notes.insert(usize::from(self.wide.is_some()).min(self.notes.len()), says);
    }

    fn say_rows(&mut self) {
        let tally = &self.tally;
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                self.notes.push(format!("{} {what}.", counted(count, "row")));
            }
        };
        say(tally.untimed, "without a time left out");
        say(tally.blank, "with only empty cells skipped");
        say(
            tally.unnamed,
            "with a text such as `NA` for the owner, who may be several people; they count as one owner, unless you remove these rows",
        );
        let repeats = match (tally.repeats_a_part(), tally.duplicates) {
            (true, _) => {
                "equal an earlier row in every cell, in the same order, so a part of the file may be in it twice; all are kept and count twice, unless you remove one of the parts"
            }
            (false, 1) => "equals an earlier row in every cell; it is kept",
            (false, _) => "equal an earlier row in every cell; all are kept",
        };
        say(tally.duplicates, repeats);
        let late = match tally.out_of_order {
            1 => "lies before an earlier row of its owner; it is kept, and rows are sorted",
            _ => "lie before an earlier row of their owner; all are kept and sorted",
        };
        say(tally.out_of_order, late);
        let at_once = match tally.same_time {
            1 => "has the time of an earlier row of its owner; it is kept",
            _ => "have the time of an earlier row of their owner; all are kept",
        };
        say(tally.same_time, at_once);
        say(
            tally.skipped,
            "at local times that a clock change skips; they are moved forward by the length of the change",
        );
        say(
            tally.repeated,
            "at local times that a clock change repeats; the file does not say which of the two hours each belongs to, so all are in the first, and none in the second",
        );
        if tally.midnights.are_ends() {
            self.notes.push(ENDS_OF_INTERVALS.to_owned());
        }
        self.notes.extend(totals_below::notes(&self.form.totals));
        self.say_refused();
    }

    /// Says which rows cannot be used, and asks if they are many.
    fn say_refused(&mut self) {
        let tally = &self.tally;
        let bad = tally.bad_time + tally.bad_width + tally.broken + tally.no_owner;
        if bad > 0 {
            let mut text = format!("{} cannot be used:", counted(bad, "row"));
            for (count, why) in [
                (tally.bad_time - tally.headers, "no readable time"),
                (tally.headers, "the names of the header again"),
                (tally.bad_width, "another number of cells than the header"),
                (tally.broken, "unbalanced quotes"),
                (tally.no_owner, "no owner"),
            ] {
                let have = verb(count, "has", "have");
                if count > 0 {
                    let _ = write!(text, " {count} {have} {why},");
                }
            }
            let lines: Vec<String> = tally.refused_lines.iter().map(ToString::to_string).collect();
            let _ = write!(text, " first in line {}.", lines.join(", "));
            let matters = bad * 1000 > (tally.rows + bad) * MAX_REFUSED_PER_MILLE;
            if matters {
                text.push_str(" Correct these lines in the file, or remove them.");
            }
            if matters { &mut self.questions } else { &mut self.notes }.push(text);
        }
        if tally.out_of_range > 0 {
            let remedy = match self.time.clock {
                Clock::DaysSince(_) => "Leave such rows out, or use another `--date`.",
                _ => OUT_OF_RANGE,
            };
            self.questions.push(format!(
                "{} of {} {} before 1970 or after 2112, which encrypted streams cannot express; {} would be refused. {remedy}",
                tally.out_of_range,
                counted(tally.rows, "row"),
                verb(tally.out_of_range, "is", "are"),
                verb(tally.out_of_range, "it", "they")
            ));
        }
        if tally.untimed > MAX_UNTIMED && tally.untimed * 10 > tally.rows + tally.untimed {
            self.questions.push(format!(
                "Only {} of {} rows {} a time. The others are left out. If a time also applies to the rows below it, write it in each of them.",
                tally.rows,
                tally.rows + tally.untimed,
                verb(tally.rows, "has", "have")
            ));
        }
    }

    fn say_values(&mut self) {
        let (mut matters, mut notes) = (Vec::new(), Vec::new());
        for attribute in &self.attributes {
            let column = &attribute.column;
            notes.extend(left_out(attribute));
            if let Some((sentence, open)) = texts(attribute) {
                if open { &mut matters } else { &mut notes }.push(sentence);
            }
            notes.extend(course(column, attribute.course, attribute.total.steps.falls()));
            if attribute.course == Course::Any
                && !attribute.said
                && attribute.total.steps.may_count_up()
            {
                notes.push(format!("`{column}` never falls from one reading of an owner to the next, but most owners have few. If it counts up, such as a meter, its sum and its mean have no meaning: measure the difference from the previous reading instead, and use `--leave-out {}`.", worded(column)));
            }
            if attribute.outliers.count > 0 {
                let (min, max) = attribute.bounds().texts();
                let count = attribute.outliers.count;
                let (values, rows) =
                    (counted(count, "value"), verb(count, "its row", "their rows"));
                let listed = listed(attribute.outliers.texts.iter().map(|(text, _)| text));
                matters.push(format!("`{column}` has {values} far from all others: {listed}. The bounds, {min} to {max}, leave them out, so {rows} would be refused. Use `--outliers keep` for bounds that include all values, or `--outliers leave-out` if they stand for missing ones."));
            }
            let said = format!("`{column}` has the number ");
            let known = self.notes.iter().any(|own| own.starts_with(&said));
            if attribute.outliers.count == 0 && !known {
                notes.extend(alone(attribute));
            }
            let scale = attribute.bounds().scale;
            if scale < attribute.total.places {
                notes.push(format!("`{column}` has up to {} decimal places; encrypted streams round it to {scale}, so their sums may differ from the exact one in the last places.", attribute.total.places));
            }
            if !attribute.fits() {
                matters.push(format!("`{column}` has numbers beyond what encrypted streams can express, which end at 9·10^18 in units of the last decimal place; they would be refused. Use larger units, or `--leave-out {}` to leave the column out.", worded(column)));
            }
            if attribute.total.unread > 0 {
                matters.push(format!(
                    "{} of `{column}` cannot be read and would be refused. Correct them in the file, or use `--leave-out {}` to leave the column out.",
                    counted(attribute.total.unread, "cell"),
                    worded(column)
                ));
            }
        }
        self.questions.append(&mut matters);
        self.notes.append(&mut notes);
    }
}

/// What to say of texts among numbers, and whether it matters.
fn texts(attribute: &Attribute) -> Option<(String, bool)> {
    let column = &attribute.column;
    let texts: u64 = attribute.texts.values().sum();
    let marked = attribute.texts.keys().all(|text| text == NOTHING);
    let many = (texts * 20 > attribute.total.count && !marked) || attribute.numeric_texts > 0;
    let open = many && !attribute.said && !attribute.leaves_out;
    let digits = match attribute.numeric_texts {
        0 if open => format!(
            ". Use `--outliers leave-out` if that is right, or `--leave-out {}` if it holds no measurements",
            worded(column)
        ),
        0 => String::new(),
        1 => ", though 1 has digits. Write it as a number, or use `--outliers leave-out` if it may be left out".to_owned(),
        some => format!(
            ", though {some} have digits. Write those as numbers, or use `--outliers leave-out` if they may be left out"
        ),
    };
    let different = counted(attribute.texts.len() as u64, "different text");
    let sentence = match texts {
        1 => format!(
            "`{column}` has 1 cell that is not a number; it is treated as a missing value and left out{digits}."
        ),
        _ => format!(
            "`{column}` has {texts} cells that are not numbers ({different}); they are treated as missing values and left out{digits}."
        ),
    };
    let trace = " `T` may stand for a trace, too little to measure: write 0 if it counts as none.";
    let trace = if attribute.texts.contains_key(TRACE) { trace } else { "" };
    (texts > 0).then_some((sentence + trace, open))
}

/// A few texts, one after the other.
fn listed<'t>(texts: impl Iterator<Item = &'t String> + Clone) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = texts.clone().take(SHOWN).map(String::as_str).collect();
    let more = if texts.count() > SHOWN { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// What to say of one or two numbers far from all others that bounds take in.
fn alone(attribute: &Attribute) -> Option<String> {
    let (texts, (least, most)) = attribute.total.spread.alone()?;
    let text = |own: Decimal| scaled_text(&own.digits.to_string(), usize::from(own.places));
    let (column, numbers) = (&attribute.column, texts.join(" and "));
    Some(format!(
        "`{column}` has {numbers}, far from all others, which are {} to {}. They count as numbers and widen the bounds. Correct them in the file if they are mistakes.",
        text(least),
        text(most)
    ))
}

/// What to say of readings that are months or years apart, which no window is.
fn rare(interval: i64) -> Option<String> {
    match interval / (DAY * SECOND) {
        27..=32 => Some("Readings of an owner are a month apart. Windows are a fixed number of days, and months are not, so some windows have more readings of an owner than others; those of 84 days have two or three.".to_owned()),
        300..=400 => Some("Readings of an owner are a year apart. A replay takes time for each day between two readings, so a replay of all rows takes long. If the time is only a year, `--time-format days` counts each year as one day: 1984 is then day 1984 since 1970, which is 1975-06-08, and a window of 1 DAY is exactly one year. A replay of all rows is then fast.".to_owned()),
        _ => None,
    }
}

/// What to say of numbers that stand for a missing one.
fn left_out(attribute: &Attribute) -> Vec<String> {
    let column = &attribute.column;
    let says = |(text, count): (&String, &u64)| {
        let may_be = attribute.marks.contains(text);
        let more = if may_be { " Use `--outliers keep` if it is a number." } else { "" };
        format!(
            "`{column}` has {text} in {}, which is treated as a missing value and left out.{more}",
            counted(*count, "cell")
        )
    };
    attribute.sentinels.iter().map(says).collect()
}

/// What to say of numbers that do not add up.
fn course(column: &str, course: Course, falls: u64) -> Option<String> {
    let (how, of) = match course {
        Course::Any => return None,
        Course::Rises if falls > 0 => (
            "hardly ever falls from one reading of an owner to the next, like the reading of a meter that is replaced",
            "meter readings",
        ),
        Course::Rises => (
            "never falls from one reading of an owner to the next, like a meter reading",
            "meter readings",
        ),
        Course::StartsAgain => (
            "rises from one reading of an owner to the next and falls only to start again near zero, like the running total of a day or a trip",
            "running totals",
        ),
        Course::Stands => {
            ("holds what is left after each row, like the balance of an account", "balances")
        }
    };
    let word = worded(column);
    Some(format!(
        "`{column}` {how}. A sum or a mean of {of} has no meaning, so the query does not ask for it. Add a column with the difference from the previous reading, and measure that; or use `--measure {word}` if its numbers may be added up."
    ))
}
