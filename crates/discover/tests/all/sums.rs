//! What would be added up though it must not be: lengths of time as times, sums beside their
//! parts, numbers in two units, marks of sensors that fail, positions.

use crate::doubts::asks;
use crate::{look, unit};
use alpheus_discover::write::{Noise, files};
use alpheus_discover::{Hints, understand};

fn days(header: &str, row: impl Fn(u32, u32) -> String) -> String {
    (0..40 * 12).fold(format!("{header}\n"), |text, n| {
        let (day, own) = (n / 12, n % 12);
        let date = format!("2024-{:02}-{:02}", day / 28 + 1, day % 28 + 1);
        text + &format!("p{own},{date},{}\n", row(day, own))
    })
}

#[test]
fn lengths_of_time_beside_a_date_are_no_times_of_day() {
    let length = |day: u32, own: u32| format!("{}:{:02},{}", 4 + day % 5, own * 5, day % 30);
    for name in ["Worked", "Schlaf", "screen", "asleep", "Hours worked"] {
        let found = look(days(&format!("person,date,{name},pulse"), length));
        assert_eq!((found.time.format().as_str(), &found.questions[..]), ("%Y-%m-%d", &[][..]));
    }
    asks(&days("person,date,varighed,pulse", length), "`varighed` are before 18:00");
    // A time of day with a name, or late in the day.
    let shift = look(days("person,date,from,patients", length));
    assert_eq!((shift.time.columns.len(), shift.questions), (2, vec![]));
    let late = |day: u32, own: u32| format!("{}:{:02},{}", 6 + day % 16, own * 5, day % 30);
    let late = look(days("person,date,klokken,patients", late));
    assert_eq!((late.time.columns.len(), late.questions), (2, vec![]));
}

/// Counts of places side by side, with their sum if it has a name.
fn places(names: &[&str], unit: &str, sum: &str) -> String {
    let header = names.iter().fold("Zeit".to_owned(), |text, own| text + &format!(",{own}{unit}"));
    let sum_name = if sum.is_empty() { String::new() } else { format!(",{sum}{unit}") };
    (0..300u32).fold(format!("{header}{sum_name}\n"), |text, n| {
        let counts: Vec<u32> =
            (0u32..).take(names.len()).map(|own| (n * 7 + own * 31) * (n + 3) % 199).collect();
        let total: u32 = counts.iter().sum();
        let cells: String = counts.iter().map(|own| format!(",{own}")).collect();
        let total = if sum.is_empty() { String::new() } else { format!(",{total}") };
        text + &format!("2024-04-{:02}T{:02}:00:00Z{cells}{total}\n", n / 24 + 1, n % 24)
    })
}

#[test]
fn sums_beside_owners_are_no_owner() {
    const PLACES: [&str; 9] =
        ["Rathaus", "Bahnhof", "Uni", "Hafen", "Markt", "Park", "Schule", "Klinik", "Messe"];
    const STREETS: [&str; 8] =
        ["Main St", "Oak Ave", "Pier 39", "Union Sq", "City Hall", "Depot", "Harbor", "Mill Rd"];
    let owners = |text: &str| look(text).tally.owners;
    assert_eq!(owners(&places(&PLACES, "", "")), 9);
    for (names, unit, sum) in [
        (&PLACES[..], "", "Gesamt"),
        (&PLACES[..], " [Anzahl]", "Gesamt"),
        (&STREETS[..], "", "Total"),
        (&STREETS[..], " [qty]", "All places"),
    ] {
        let text = places(names, unit, sum);
        asks(&text, &format!("`{sum}{unit}` may be the sum"));
        assert_eq!(owners(&text), names.len() as u64, "without the sum");
        let said = Hints { leave_out: vec![format!("{sum}{unit}")], ..Hints::default() };
        let found = understand(text.as_bytes(), &said).unwrap();
        assert_eq!((found.tally.owners, found.questions.len()), (names.len() as u64, 0));
    }
    let found = look(places(&PLACES, " [Anzahl]", ""));
    assert_eq!((found.tally.owners, found.questions.len()), (9, 0), "one unit of all");
}

/// Readings of twelve owners, of whom some write them otherwise.
fn levels(
    name: &str,
    others: u32,
    usual: impl Fn(u32) -> f64,
    other: impl Fn(f64) -> f64,
) -> String {
    (0..600u32).fold(format!("sensor,time,{name}\n"), |text, n| {
        let own = n % 12;
        let value = usual(n);
        let value = if own < others { other(value) } else { value };
        text + &format!("s{own},2024-05-{:02}T{:02}:30:00Z,{value:.1}\n", n / 288 + 1, n / 12 % 24)
    })
}

#[test]
fn owners_in_two_units_are_asked_about() {
    let room = |n: u32| 19.0 + f64::from(n * 7 % 40) / 10.0;
    let fahrenheit = |celsius: f64| celsius * 1.8 + 32.0;
    for others in [2, 6] {
        asks(&levels("temperature", others, room, fahrenheit), "in different units");
        asks(&levels("temp", others, room, fahrenheit), "in different units");
    }
    let weight = |n: u32| 70.0 + f64::from(n * 7 % 130) / 10.0;
    asks(&levels("weight", 5, weight, |kg| kg * 2.2046), "in different units");
    let people = levels("weight", 6, weight, |kg| kg * 1.3);
    assert_eq!(look(people).questions, [""; 0], "two kinds of people");
    let warm = levels("temperature", 6, room, |celsius| celsius + 15.0);
    assert_eq!(look(warm).questions, [""; 0], "two kinds of rooms");
}

#[test]
fn what_a_failed_sensor_writes_is_asked_about() {
    let fridge = |marks: &[&str]| {
        (0..2400u32).fold("device_id,time,temp_c\n".to_owned(), |text, n| {
            let value = match n * 17 % 197 {
                own if (own as usize) < marks.len() => marks[own as usize].to_owned(),
                _ => format!("{}.{}", i64::from(n * 11 % 28) - 22, n % 10),
            };
            text + &format!(
                "d{},2024-06-{:02}T{:02}:00Z,{value}\n",
                n % 10,
                n / 240 + 1,
                n / 10 % 24
            )
        })
    };
    asks(&fridge(&["85.0"]), "`temp_c` has the number 85.0 in");
    let found = look(fridge(&["85.0", "-127.0"]));
    let says = |text: &str| {
        found.questions.iter().any(|own| own.contains(text))
            || found.attributes[0].sentinels.contains_key(text)
    };
    assert!(says("85.0") && says("-127.0"), "{:?}", found.questions);
    assert_eq!(look(fridge(&[])).questions, [""; 0]);
}

#[test]
fn positions_are_not_measured() {
    let text = (0..400u32).fold("car,time,lat,lon,speed\n".to_owned(), |text, n| {
        let (lat, lon) = (48_000_000 + n * 7919 % 999_983, 2_000_000 + n * 104_729 % 999_983);
        text + &format!(
            "car{},2024-01-02T{:02}:{:02}:00Z,{}.{:06},-{}.{:06},{}\n",
            n % 10,
            n / 60 % 24,
            n % 60,
            lat / 1_000_000,
            lat % 1_000_000,
            lon / 1_000_000,
            lon % 1_000_000,
            n * 7 % 120
        )
    });
    let measured = |hints: &Hints| -> Vec<String> {
        let found = understand(text.as_bytes(), hints).unwrap();
        assert_eq!(found.questions, [""; 0]);
        found.attributes.into_iter().map(|own| own.column).collect()
    };
    assert_eq!(measured(&Hints::default()), ["speed"]);
    let said = Hints { measure: vec!["lat".to_owned()], ..Hints::default() };
    assert_eq!(measured(&said), ["lat", "speed"]);
}

#[test]
fn a_plan_is_no_reading_and_a_birth_is_none() {
    let text = |first: &str, second: &str| {
        (0..300u32).fold(format!("patient,{first},{second},mg\n"), |text, n| {
            let time = |day: u32| format!("2024-05-{day:02}T{:02}:{:02}:02Z", n % 24, n * 7 % 60);
            text + &format!(
                "P{},{},{},{}\n",
                n % 10,
                time(n / 30 + 1),
                time(n / 30 + 3),
                n * 7 % 90
            )
        })
    };
    let time = |text: &str| {
        let found = look(text);
        (found.names[found.time.columns[0]].clone(), found.questions.len())
    };
    assert_eq!(time(&text("prescribed_at", "given_at")), ("given_at".to_owned(), 0));
    assert_eq!(time(&text("begin", "ended")), ("begin".to_owned(), 0));
    assert_eq!(time(&text("local", "at")), ("at".to_owned(), 0));
    asks(&text("verordning", "inntak"), "`verordning` and `inntak` both hold times");
    let births = (0..360u32).fold("patient,birth date,visit date,kg\n".to_owned(), |text, n| {
        let (own, day) = (n % 12, n / 12);
        text + &format!(
            "P{own},{}-05-{:02},2024-01-{:02},{}.5\n",
            1950 + own * 3,
            own + 1,
            day + 1,
            60 + n % 30
        )
    });
    assert_eq!(time(&births), ("visit date".to_owned(), 0));
}

/// Of two times, the one of a plan or a change to the record is still the row's, where the other is
/// missing or is the end of something.
#[test]
fn a_time_with_gaps_does_not_replace_one_beside_it() {
    let text = |first: &str, second: &str, gaps: bool| {
        (0..300u32).fold(format!("customer,{first},{second},eur\n"), |text, n| {
            let time = |day: u32| format!("2024-05-{day:02}T{:02}:{:02}:02Z", n % 24, n * 7 % 60);
            let other = if gaps && n % 5 < 2 { String::new() } else { time(n / 30 + 3) };
            text + &format!("C{},{},{other},{}\n", n % 10, time(n / 30 + 1), n * 7 % 90)
        })
    };
    let found = look(text("ordered_at", "shipped_at", true));
    assert_eq!(found.names[found.time.columns[0]], "ordered_at");
    let found = look(text("ordered_at", "shipped_at", false));
    assert_eq!(found.names[found.time.columns[0]], "shipped_at");
    assert!(found.notes.iter().any(|note| note.contains("`ordered_at` holds times too")));
    asks(&text("updated_at", "due_date", false), "`due_date` and `updated_at` both hold times");
}

/// A name such as `passenger_num` may be a count: it is not left out in silence.
#[test]
fn numbers_of_something_that_may_be_counted_are_asked_about() {
    let text = |name: &str, ms: &str| {
        (0..300u32).fold(format!("driver,time,{name},{ms}\n"), |text, n| {
            let time = format!("2024-05-{:02}T{:02}:{:02}:02Z", n / 30 + 1, n % 24, n * 7 % 60);
            text + &format!("D{},{time},{},{}\n", n % 10, n * 7 % 6 + 1, n * 13 % 170)
        })
    };
    asks(&text("passenger_num", "km"), "`passenger_num`");
    // A delay is no latitude.
    let found = look(text("km", "lat_ms"));
    assert!(found.attributes.iter().any(|own| own.column == "lat_ms"), "{:?}", found.left_out);
    let found = look(text("km", "Longitude (x)"));
    assert!(found.attributes.iter().all(|own| own.column == "km"), "{:?}", found.attributes);
}

#[test]
fn a_unit_beside_the_numbers_is_theirs() {
    let text = (0..100u32).fold("source,start,end,unit,value\n".to_owned(), |text, n| {
        let time = |m: u32| format!("2024-05-{:02} {:02}:{m:02}:00 +0200", n / 24 + 1, n % 24);
        text + &format!("phone,{},{},count,{}\n", time(0), time(5), n * 37 % 499)
    });
    assert_eq!(unit(&look(text), "value"), Some("count"));
}

/// A query asks for six columns. One that a person named is among them.
#[test]
fn a_column_that_is_named_is_asked_for_first() {
    let names: Vec<String> = (0..9).map(|at| format!("m{at}")).collect();
    let row = |n: u32| {
        let cells = (0..9).map(|at| format!("{}.5", (n * 7 + at * 13) % 90));
        let cells: Vec<String> = cells.collect();
        format!("p{},2024-03-{:02},{}\n", n % 12, n / 12 + 1, cells.join(","))
    };
    let text: String = (0..240).map(row).collect();
    let text = format!("person,date,{}\n{text}", names.join(","));
    let said = Hints { measure: vec!["m8".to_owned()], ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    for noise in [None, Some(Noise { error: "20 %", least: 0, terms: None })] {
        let written = files(&found, "readings.csv", noise);
        let asked = written.query.split_once("SELECT ").unwrap().1;
        let first = if noise.is_some() { "AVG(m8)" } else { "COUNT(m8), SUM(m8), AVG(m8)" };
        assert!(asked.starts_with(first), "{asked}");
        let rest = written.not_asked.unwrap_or_default();
        assert_eq!(
            rest.starts_with("The query asks for 6 of 9 columns"),
            noise.is_none(),
            "{rest}"
        );
    }
}
