//! The files that an understanding becomes: schema, source, policies, query, and a page that
//! explains them.

mod noise;
mod policies;
mod report;
mod schema;
mod source;

pub use noise::{NoiseTerms, noise_terms};
pub use report::{FileReport, UnderstoodAttribute};

use crate::tally::{Tally, Values};
use crate::windows::{DAY, SECOND, USUAL, WINDOWS, Window};
use crate::words::{schema_name, worded};
use crate::{Part, Understanding};

/// Owners that a total is over at least, if there are so many.
pub(crate) const CROWD: u64 = 10;
/// Attributes that the first query asks for.
const ASKED: usize = 6;

/// The texts of all files.
#[derive(Clone, Debug)]
pub struct Files {
    /// `schema.yaml`.
    pub schema: String,
    /// `source.yaml`.
    pub source: String,
    /// `policies.yaml`.
    pub policies: String,
    /// `query.sql`.
    pub query: String,
    /// `README.md`.
    pub readme: String,
    /// The length of the query's windows, as queries say it.
    pub window: &'static str,
    /// So many owners have data in at least half of the windows of the query with noise.
    pub crowd: u64,
    /// The part of the file that a first answer covers, if all of it would take long.
    pub part: Option<Part>,
    /// If windows of no length have data of enough owners: how many that would be, and the most that
    /// any has.
    pub lonely: Option<String>,
    /// That the query does not ask for all columns, if so.
    pub not_asked: Option<String>,
}

/// Results with noise.
#[derive(Clone, Copy, Debug)]
pub struct Noise<'a> {
    /// Their error, such as `5 %`.
    pub error: &'a str,
    /// The least owners of a window, if the error needs more than policies ask for.
    pub least: u64,
    /// Its windows and its limit on events, unless they are the usual ones.
    pub terms: Option<NoiseTerms>,
}

/// What the files have in common.
#[derive(Clone)]
struct Draft<'u> {
    found: &'u Understanding,
    /// The file's name, for people.
    file: &'u str,
    /// The schema's name.
    name: String,
    /// The windows of the query, and of one with noise.
    window: Window,
    noisy: Window,
    /// What all windows are multiples of.
    shortest: Window,
    /// The least population that owners ask for.
    least: u64,
    /// Streams in a window, and events of one, at most.
    population: u64,
    events: u64,
    /// What noise results are to have, if any.
    noise: Option<Noise<'u>>,
    /// Whether exact results are the other choice, so that `--measure` was said of those with noise.
    beside_noise: bool,
}

/// Writes all files for a file of this name. With noise, owners release only such results, and the
/// query asks for its error.
#[must_use]
pub fn files(found: &Understanding, file: &str, noise: Option<Noise<'_>>) -> Files {
    let draft = Draft::of(found, file, noise);
    Files {
        schema: schema::schema(&draft),
        source: source::source(&draft),
        policies: policies::policies(&draft),
        query: policies::queries(&draft),
        readme: report::readme(&draft),
        window: draft.asked_window().sql,
        crowd: found.tally.usual_crowd(noise::length(&draft)),
        part: Part::of(&found.tally.attendance, draft.asked_window().seconds, draft.part()),
        lonely: lonely(&draft),
        not_asked: draft.not_asked(),
    }
}

/// That owners have no window in common, in words.
fn lonely(draft: &Draft<'_>) -> Option<String> {
    let longest = WINDOWS.last()?;
    let crowds = draft.found.tally.crowds.iter();
    let most = crowds.filter_map(|own| own.keys().next_back()).max()?;
    (*most < draft.least).then(|| {
        format!(
            "no window of up to {} has data of {} owners, and none of more than {most}: bring data of more owners at the same time",
            longest.sql.to_lowercase(),
            draft.least
        )
    })
}

/// The position of the length of the windows of the query without noise, if any fits.
fn length(tally: &Tally, least: u64) -> Option<usize> {
    let span = tally.span.map_or(0, |(first, last)| last - first);
    let share = |at: usize| tally.share_of_crowds(at, least);
    let multiple =
        |at: &usize| tally.shortest.is_none_or(|shortest| WINDOWS[*at].is_multiple_of(shortest));
    // In windows shorter than the time from one reading to the next, most are empty.
    let holds = |at: &usize| {
        let length = WINDOWS[*at].seconds * SECOND;
        tally.interval.is_none_or(|interval| length * 20 >= interval * 19)
    };
    let fits = |at: &usize| WINDOWS[*at].fits(span) && multiple(at) && holds(at);
    let usual: Vec<usize> = (0..=USUAL).filter(fits).collect();
    let longer: Vec<usize> = (USUAL..WINDOWS.len()).filter(multiple).collect();
    // The shortest in most of which there are enough owners, else the one with the most.
    let enough = |at: &usize| share(*at) >= 50;
    let fullest =
        |all: &[usize]| all.iter().copied().max_by_key(|at| (share(*at), std::cmp::Reverse(*at)));
    let opens = |at: &usize| share(*at) > 0;
    usual
        .iter()
        .chain(&longer)
        .copied()
        .find(enough)
        .or_else(|| fullest(&usual).filter(opens))
        .or_else(|| fullest(&longer).filter(opens))
        .or_else(|| fullest(&usual))
}

/// What is noticed and what is asked of attributes of which too few owners have a value in some
/// windows that open: nobody releases them, unless there is no other.
pub(crate) fn withheld(found: &Understanding) -> (Vec<String>, Option<String>) {
    let draft = Draft::of(found, "", None);
    let (window, least) = (draft.window.sql.to_lowercase(), draft.least);
    let withheld: Vec<&crate::Attribute> =
        found.attributes.iter().filter(|own| draft.is_withheld(own)).collect();
    let short = |own: &crate::Attribute| {
        let (windows, fewest) = own.crowd.short_of(draft.length());
        let windows =
            if windows == 1 { "1 window".to_owned() } else { format!("{windows} windows") };
        let owners = if fewest == 1 { "1 has".to_owned() } else { format!("{fewest} have") };
        format!(
            "In {windows} of {window}, at least {least} owners have rows, but as few as {owners} a value of `{}`",
            own.column
        )
    };
    match withheld.first() {
        Some(first) if !draft.spare() => {
            let question = format!(
                "{}. The same is true of each column, and results would be about these owners alone. Remove the rows without a value, or use `--measure {}` to release it all the same.",
                short(first),
                worded(&first.column)
            );
            (Vec::new(), Some(question))
        }
        _ => {
            let note = |own: &&crate::Attribute| {
                let released = match policies::safe(&draft, own) {
                    Some(safe) => format!("it only in windows of {} or longer", safe.name),
                    None => "nothing of it".to_owned(),
                };
                format!(
                    "{}, so the query does not ask for it, and policies.yaml releases {released}. Use `--measure {}` to release it all the same.",
                    short(own),
                    worded(&own.column)
                )
            };
            (withheld.iter().map(note).collect(), None)
        }
    }
}

impl<'u> Draft<'u> {
    fn of(found: &'u Understanding, file: &'u str, noise: Option<Noise<'u>>) -> Draft<'u> {
        let tally = &found.tally;
        let span = tally.span.map_or(0, |(first, last)| last - first);
        let owners = tally.owners.max(1);
        // Until it is known whose the rows are, they may be of many.
        let unknown = found.owner.is_none() && found.wide.is_none() && found.asks_whose();
        let least = if unknown { CROWD } else { owners.min(CROWD) };
        let at = length(tally, least);
        let window = WINDOWS[at.unwrap_or(USUAL)];
        let day = WINDOWS.iter().find(|own| own.seconds == DAY).copied().unwrap_or(window);
        let usual = if window.seconds > DAY { day } else { window };
        let load = |at: usize| tally.loads.get(at).map_or(1, |own| own.most);
        let room = if unknown { tally.rows.clamp(CROWD, 1000) } else { owners };
        let (population, events) =
            capacity(room, load(WINDOWS.len() - 1), load(at.unwrap_or(USUAL)));
        Draft {
            found,
            file,
            name: title(file),
            window,
            noisy: noise
                .and_then(|own| own.terms)
                .map_or_else(|| noise::window(window, span), NoiseTerms::window),
            shortest: tally.shortest.unwrap_or(usual),
            least,
            population,
            events,
            noise,
            beside_noise: false,
        }
    }

    /// The same with exact results.
    fn without_noise(&self) -> Draft<'u> {
        Draft { noise: None, beside_noise: self.noise.is_some(), ..self.clone() }
    }

    /// The position of the length of the windows of the query without noise.
    fn length(&self) -> usize {
        WINDOWS.iter().position(|own| *own == self.window).unwrap_or(0)
    }

    /// Whether an attribute is not released in windows of the query: in some that open, too few
    /// owners have a value of it. A few owners are no crowd in any case, so that of these all is
    /// released if there is nothing else.
    fn is_withheld(&self, own: &crate::Attribute) -> bool {
        self.is_short(own) && (self.spare() || self.least >= CROWD)
    }

    /// Whether a person said that exact results of it are released all the same.
    fn is_said(&self, own: &crate::Attribute) -> bool {
        own.said && !self.beside_noise
    }

    fn is_short(&self, own: &crate::Attribute) -> bool {
        self.noise.is_none() && !self.is_said(own) && !own.crowd.is_enough(self.length())
    }

    /// Whether enough owners have a value of some attribute.
    fn spare(&self) -> bool {
        self.found.attributes.iter().any(|own| !self.is_short(own))
    }

    /// So many owners that windows open if a first answer is of no more. Some of them may have more
    /// events than a query with noise counts.
    fn part(&self) -> u64 {
        self.noise.map_or(self.least, |own| (own.least + own.least / 5).max(self.least))
    }

    /// The windows that are asked for.
    fn asked_window(&self) -> Window {
        if self.noise.is_some() { self.noisy } else { self.window }
    }

    /// What the first query asks for.
    fn asked(&self) -> impl Iterator<Item = &crate::Attribute> {
        self.askable().take(ASKED)
    }

    /// What a query can ask for: what a person named, then other numbers, and what does not add up
    /// last.
    fn askable(&self) -> impl Iterator<Item = &crate::Attribute> {
        let of = |wanted: fn(&crate::Attribute) -> bool| {
            // If nothing is released, the query asks for it all the same, and is refused.
            let released = |own: &&crate::Attribute| !self.is_withheld(own) || !self.spare();
            self.found.attributes.iter().filter(released).filter(move |own| wanted(own))
        };
        let usual = of(|own| own.values == Values::Number && own.course.adds_up())
            .chain(of(|own| own.values != Values::Number))
            .chain(of(|own| !own.course.adds_up()));
        of(|own| own.said).chain(usual.filter(|own| !own.said))
    }

    /// Says that there are more columns than the query asks for.
    fn not_asked(&self) -> Option<String> {
        let all = self.askable().count();
        (all > ASKED && self.noise.is_none()).then(|| {
            format!(
                "The query asks for {ASKED} of {all} columns. `--measure COLUMN` puts a column first, and query.sql can ask for any of them."
            )
        })
    }
}
/// How many streams a window has at most, and events of one stream in it: generously, but so few
/// that sums fit where they are kept, each half of two words with at most 2^31 values. `most` is
/// what one stream has in the longest window, and `asked` in those of the query.
fn capacity(owners: u64, most: u64, asked: u64) -> (u64, u64) {
    const VALUES: u64 = 1 << 31;
    let tight = (owners.max(10), asked.max(10));
    let wide = [(round_up(owners * 10), round_up(most * 2)), (owners * 2, most * 2)];
    let fits = |(streams, events): &(u64, u64)| streams.saturating_mul(*events) < VALUES;
    wide.into_iter().chain([(owners.max(10), most.max(10))]).find(fits).unwrap_or(tight)
}

/// The next power of ten.
fn round_up(count: u64) -> u64 {
    let mut round = 10;
    while round < count {
        round *= 10;
    }
    round
}

/// A name for a schema from that of a file: `StepsHourly` from `steps-hourly.csv`.
fn title(file: &str) -> String {
    let stem = file.split('.').next().unwrap_or(file);
    let plain = schema_name(stem, &mut Vec::new());
    let word = |word: &str| {
        let mut chars = word.chars();
        chars
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(chars)
            .collect::<String>()
    };
    let joined: String = plain.split('_').map(word).collect();
    format!("{joined}Readings")
}

/// A text in double quotes, as YAML and JSON read it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text on one line of a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_safe() {
        assert_eq!(title("steps-hourly.csv"), "StepsHourlyReadings");
        assert_eq!(title("2024 data.csv.gz"), "C2024DataReadings");
        assert_eq!(quoted("a\"b\\c\td\n"), "\"a\\\"b\\\\c\\td\\u000a\"");
        assert_eq!(round_up(101), 1000);
    }

    #[test]
    fn capacities_are_generous_as_far_as_sums_fit() {
        assert_eq!(capacity(12, 24, 1), (1000, 100));
        assert_eq!(capacity(374, 66_000, 900), (748, 132_000));
        assert_eq!(capacity(20_000, 80_000, 9000), (20_000, 80_000));
        assert_eq!(capacity(100_000, 80_000, 9000), (100_000, 9000));
    }
}
