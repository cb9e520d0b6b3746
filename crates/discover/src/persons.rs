//! Whether rows may be persons, and which columns may say whose a row is.

use crate::hints::Hints;
use crate::id_words::is_id;
use crate::owner_words::{NUMBERS, VERSIONS, may_count_people, names_a_number, owner_score};
use crate::profile::{Column, Profile};
use crate::quantities::QUANTITIES;
use crate::times::TimePlan;
use crate::words::{FLAGS, KINDS, MONEY, READINGS, TIMES, has, is, worded};

/// Columns that are offered.
const OFFERED: usize = 3;

/// Names of columns of names.
const NAMES: &[&str] = &[
    "name",
    "names",
    "fullname",
    "surname",
    "lastname",
    "familyname",
    "firstname",
    "givenname",
    "nachname",
    "vorname",
    "nom",
    "prenom",
    "prénom",
    "nombre",
    "apellido",
    "naam",
    "nome",
    "email",
    "mail",
    "phone",
    "telephone",
    "telefon",
    "ssn",
    "passport",
];

/// Names of what differs from person to person, and not from day to day.
const TRAITS: &[&str] = &[
    "sex",
    "gender",
    "geschlecht",
    "sexe",
    "sexo",
    "race",
    "ethnicity",
    "ethnicgroup",
    "religion",
    "nationality",
    "maritalstatus",
    "dob",
    "dateofbirth",
    "birthdate",
    "birthday",
    "birthyear",
    "yearofbirth",
    "geburtsdatum",
    "geburtsjahr",
];

/// Whether a column may say whose a row is: it repeats, and its name says nothing else.
pub(crate) fn may_say_whose(
    (at, column): (usize, &Column),
    profile: &Profile,
    time: &TimePlan,
) -> bool {
    let name = &column.name;
    // A name may lack in some rows, and a number that says whose a row is hardly does.
    let most = !column.is_number() && column.filled * 3 >= profile.rows * 2;
    let full = !column.has_gaps(profile.rows) || most;
    let repeats = column.distinct() > 1 && column.distinct() * 10 <= column.filled * 9;
    let whole = !column.is_number() || column.is_integer();
    let classifies = has(name, FLAGS) || is(name, KINDS) || is(name, TRAITS);
    let classifies = classifies || has(name, VERSIONS);
    let measures = has(name, MONEY) || has(name, READINGS) || has(name, QUANTITIES);
    let moment = time.columns.contains(&at) || is(name, TIMES) || column.times() > 0;
    let flag = is_flag(column);
    full && repeats && whole && !classifies && !measures && !moment && !flag
}

/// Whether a column says yes or no, such as `member` with 0 and 1. Devices and ids may be 0 and 1.
pub(crate) fn is_flag(column: &Column) -> bool {
    let device = matches!(owner_score(&column.name), 60..100) || has(&column.name, NUMBERS);
    column.is_truth() || (column.is_bit() && !device)
}

/// Columns that may say whose a row is, those with the most different values first: whole numbers
/// and texts that repeat. Columns that distinguish hardly any rows are not among them, and neither are amounts.
pub(crate) fn offers(profile: &Profile, time: &TimePlan) -> Vec<usize> {
    /// With fewer values than the best by so much, a column hardly identifies.
    const FEWER: u64 = 20;
    let fits = |(at, column): &(usize, &Column)| may_say_whose((*at, column), profile, time);
    let identifies = |column: &Column| {
        let named = owner_score(&column.name) > 0 || is_id(&column.name);
        named || !column.is_number() || column.is_written_as_code()
    };
    let mut found: Vec<(usize, &Column)> =
        profile.columns.iter().enumerate().filter(fits).collect();
    if !found.iter().any(|(_, column)| identifies(column)) {
        // Of numbers that nothing tells apart, those that name have fewer values.
        found.sort_by_key(|(_, column)| column.distinct());
        return found.into_iter().map(|(at, _)| at).take(OFFERED).collect();
    }
    found.retain(|(_, column)| identifies(column));
    found.sort_by_key(|(_, column)| std::cmp::Reverse(column.distinct()));
    let most = found.first().map_or(0, |(_, column)| column.distinct());
    found.retain(|(_, column)| column.distinct() * FEWER >= most);
    found.into_iter().map(|(at, _)| at).take(OFFERED).collect()
}

/// The column with another number in each row whose name says that it names people, and what to ask. It
/// may as well only number the rows.
pub(crate) fn in_each_row(
    profile: &Profile,
    time: &TimePlan,
    hints: &Hints,
) -> Option<(usize, String)> {
    /// The score of words for people.
    const PEOPLE: u32 = 100;
    let fits = |(at, own): &(usize, &Column)| {
        let each = own.is_integer() && own.filled == profile.rows && own.distinct() == own.filled;
        let people = owner_score(&own.name) == PEOPLE && names_a_number(&own.name);
        let said = hints.measure.contains(&own.name) || hints.leave_out.contains(&own.name);
        let open = !time.columns.contains(at) && !said;
        each && people && open && own.filled > 2 && !may_count_people(&own.name)
    };
    let (at, own) = profile.columns.iter().enumerate().find(fits)?;
    Some((at, differs(&own.name)))
}

fn differs(name: &str) -> String {
    let word = worded(name);
    format!(
        "`{name}` differs from row to row and may name people. Each row may then be about a different person, and results would show individuals. Use `--owner {word}` if it names the owner of a row, or `--owner none` if all rows belong to one owner."
    )
}

/// Asks about rows that may each be a person's, in a file in which no column says whose a row is.
pub(crate) fn in_rows(profile: &Profile, time: &TimePlan) -> Option<String> {
    let columns = || {
        let all = profile.columns.iter().enumerate();
        all.filter(|(at, _)| !time.columns.contains(at)).map(|(_, column)| column)
    };
    if let Some(column) = columns().find(|column| names_each_row(column)) {
        return Some(differs(&column.name));
    }
    let names = |column: &&Column| {
        let texts = column.numbers * 2 < column.filled && column.distinct() > 1;
        texts && is(&column.name, NAMES)
    };
    let names: Vec<&Column> = columns().filter(names).collect();
    match names.as_slice() {
        [] => {}
        [one] => {
            let (name, word) = (&one.name, worded(&one.name));
            return Some(format!(
                "`{name}` may name people, so rows seem to be about several. Use `--owner {word}` if it names the owner of a row, or `--owner none` if all rows belong to one owner."
            ));
        }
        [one, other, ..] => {
            let (name, word) = (&one.name, worded(&one.name));
            return Some(format!(
                "`{name}` and `{}` may name people together, and an owner is one column. Join them in one column of the file and name that with `--owner COLUMN`; or use `--owner {word}` if `{name}` alone names the owner, or `--owner none` if all rows belong to one owner.",
                other.name
            ));
        }
    }
    let trait_of = columns().find(|column| is(&column.name, TRAITS) && column.distinct() > 1)?;
    let name = &trait_of.name;
    Some(format!(
        "`{name}` differs from row to row, so rows seem to be about several people, but no column names them, and results would show individuals. Add such a column and name it with `--owner COLUMN`; or use `--owner none` if all rows belong to one owner."
    ))
}

/// Asks about a column of addresses that differ only since each has a port behind it, as logs of
/// connections do.
pub(crate) fn with_ports(profile: &Profile) -> Option<String> {
    let address = |text: &String| {
        let own = text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        own.is_some_and(|(own, _)| {
            own.split('.').filter(|part| part.parse::<u8>().is_ok()).count() == 4
        })
    };
    let fits = |column: &&Column| {
        let all = !column.texts.is_empty() && column.texts.keys().all(address);
        all && column.distinct() > 1 && column.numbers == 0
    };
    let name = &profile.columns.iter().find(fits)?.name;
    Some(format!(
        "`{name}` has network addresses with ports, and an address may be the owner of a row while a port is not. Write the address in a column of its own and name that with `--owner COLUMN`, or use `--owner none` if all rows belong to one owner."
    ))
}

/// Whether a column has another text in most rows, and its name or its texts are those of people.
fn names_each_row(column: &Column) -> bool {
    let texts = column.numbers * 2 < column.filled && column.times() * 2 < column.filled;
    let differs = column.filled > 1 && column.distinct() * 2 > column.filled;
    let named = is(&column.name, NAMES) || owner_score(&column.name) >= 80;
    let people = || {
        let alike = column.texts.keys().filter(|text| is_persons_name(text)).count();
        alike * 10 >= column.texts.len() * 9 && alike > 1
    };
    texts && differs && (named || people())
}

/// Whether a text is two to four words with a capital letter each, as `Anna Berg` or
/// `Anderson, Margaret J.`.
pub(crate) fn is_persons_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = |c: char| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | ',');
    let word = |word: &&str| word.starts_with(char::is_uppercase) && word.chars().all(plain);
    (2..=4).contains(&words.len()) && words.iter().all(word)
}
