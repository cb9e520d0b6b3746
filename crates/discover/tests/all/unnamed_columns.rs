//! What no name says: columns that are owners, numbers that name, sums beside their parts; and what
//! a first answer covers.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::write::files;
use alpheus_discover::{Cut, Hints, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn time(n: u32) -> String {
    format!("2024-03-{:02} {:02}:{:02}:00", n / 1440 + 1, n / 60 % 24, n % 60)
}

#[test]
fn columns_with_names_of_people_are_owners() {
    let people = "Alice,Bob,Carla,Dmitri,Eve,Farid,Gina,Hugo";
    let of = |names: &str| {
        rows(&format!("Date,{names}"), 60, |n| {
            let steps: Vec<String> =
                (0..8).map(|at| (5000 + (n * 733 + at * 991) % 9000).to_string()).collect();
            format!("2024-{:02}-{:02},{}", n / 28 + 1, n % 28 + 1, steps.join(","))
        })
    };
    let text = of(people);
    let found = look(&text);
    assert_eq!((found.questions.as_slice(), found.tally.owners), (&[][..], 8));
    assert!(
        found.notes[0].starts_with("The 8 columns `Alice` to `Hugo` are alike"),
        "{:?}",
        found.notes
    );
    let said = Hints { measure: vec!["Alice".to_owned()], ..Hints::default() };
    let one = understand(text.as_bytes(), &said).unwrap();
    assert!(one.questions.is_empty() && one.wide.is_none());
    for others in ["Temperature,Humidity,Pressure,Noise,Rain,Wind,Power,Gas", "a,b,c,d,e,f,g,h"] {
        let one = look(of(others));
        assert!(one.questions.is_empty() && one.wide.is_none(), "{others}");
    }
    // One that is no person's beside them, and one of another size.
    asks(&of("Alice,Bob,Carla,Dmitri,Eve,Farid,Gina,Temperature"), "`--leave-out Temperature`");
    let sizes = rows(&format!("Date,{people}"), 60, |n| {
        format!("2024-{:02}-{:02},{n},{n},{n},{n},{n},{n},{n},{}", n / 28 + 1, n % 28 + 1, n * 100)
    });
    asks(&sizes, "`Alice` and 7 other columns");
    assert!(look(sizes).wide.is_none());
}

#[test]
fn few_whole_numbers_without_a_name_are_asked_about() {
    let text = (0..900u32).fold(String::new(), |text, n| {
        let time = 1_330_100_000_000u64 + u64::from(n) * 1000;
        text + &format!("{time} {} {} {}.{}\n", n / 100 + 1, 60 + n * 7 % 90, 30 + n % 3, n % 10)
    });
    asks(&text, "`column 2` holds 9 different whole numbers and seems to name something");
    let said = Hints { owner: Some("column 2".to_owned()), ..Hints::default() };
    assert_eq!(understand(text.as_bytes(), &said).unwrap().questions, [""; 0]);
}

#[test]
fn numbers_that_go_round_are_asked_about() {
    let of = |number: fn(u32) -> u32| {
        rows("time,weight,ww", 300, |n| format!("{},{},{}", time(n), 200 + n * 37 % 800, number(n)))
    };
    let text = of(|n| n % 15 + 1);
    asks(&text, "The numbers of `ww` go from 1 to 15 again and again");
    for said in [
        Hints { owner: Some("ww".to_owned()), ..Hints::default() },
        Hints { owner: Some("none".to_owned()), ..Hints::default() },
        Hints { measure: vec!["ww".to_owned()], ..Hints::default() },
        Hints { leave_out: vec!["ww".to_owned()], ..Hints::default() },
    ] {
        assert_eq!(understand(text.as_bytes(), &said).unwrap().questions, [""; 0]);
    }
    assert_eq!(look(of(|n| n * 7 % 15 + 1)).questions, [""; 0]);
}

#[test]
fn sums_of_days_beside_their_hours_are_asked_about() {
    let of = |interval: fn(u32) -> &'static str| {
        let mut text = "meter,interval,start,kwh\n".to_owned();
        for n in 0..60 {
            let (meter, day) = (n % 3, n / 3 + 1);
            text += &format!("m{meter},{},2024-03-{day:02} 00:00:00,240.0\n", interval(n));
            for hour in 0..24 {
                text += &format!("m{meter},hour,2024-03-{day:02} {hour:02}:00:00,10.{n}\n");
            }
        }
        text
    };
    asks(&of(|_| "day"), "which `interval` tells apart (2 different values)");
    // Some rows at one time, of whatever kind.
    let mixed = of(|n| ["day", "week", "month", "year", "total day"][n as usize % 5]);
    let is_asked =
        |text: &String| look(text).questions.iter().any(|own| own.contains("tells apart"));
    assert!(!is_asked(&mixed));
}

#[test]
fn the_second_and_the_minute_of_the_day_are_parts_of_the_time() {
    let text = rows("time,load,nsm,mod", 200, |n| {
        let at = n * 15;
        format!("{},{}.5,{},{}", time(at), n * 7 % 90, at % 1440 * 60, at % 1440)
    });
    let found = look(text);
    let names: Vec<&str> = found.attributes.iter().map(|own| own.column.as_str()).collect();
    assert_eq!(names, ["load"]);
    let whys: Vec<&str> = found.left_out.iter().map(|(_, why)| why.as_str()).collect();
    assert!(whys.contains(&"it is the second of the day of the row's time"), "{whys:?}");
    assert!(whys.contains(&"it is the minute of the day of the row's time"), "{whys:?}");
}

#[test]
fn lists_in_cells_and_names_in_two_spellings_are_asked_about() {
    let lists = rows("start,duration,value", 300, |n| {
        format!("{},\"[60]\",\"[{}]\"", time(n * 10), 60 + n * 7 % 40)
    });
    asks(&lists, "`value` holds texts that look like numbers");
    let of = |upper: u32| {
        rows("User,Date,Steps", 240, |n| {
            let first = if n < upper && n % 2 == 0 { "B" } else { "b" };
            format!("{first}ob{},{},{}", n % 12 / 2, time(n), n * 37 % 900)
        })
    };
    asks(
        &of(240),
        "`User` has 12 names, but only 6 if capital letters, spaces and leading zeros do not matter",
    );
    assert_eq!(look(of(0)).questions, [""; 0]);
}

#[test]
fn windows_are_not_shorter_than_the_usual_time_between_readings() {
    let window = |each: u32, count: u32| {
        let text = rows("meter,date,kwh", count * 12, |n| {
            let day = n / 12 * each;
            format!("m{},{},{}", n % 12, 20_000 + day, n * 7 % 90).replacen(
                &format!(",{},", 20_000 + day),
                &format!(",20{:02}-{:02}-{:02},", 20 + day / 336, day / 28 % 12 + 1, day % 28 + 1),
                1,
            )
        });
        files(&look(text), "meters.csv", None).window
    };
    assert_eq!((window(1, 40), window(7, 40), window(28, 24)), ("1 DAY", "7 DAYS", "28 DAYS"));
}

/// 60 people, each with a reading now and then over six years, and more in one month.
fn sparse() -> String {
    rows("user;time;level", 3000, |n| {
        let (year, month) = if n % 3 == 0 { (2019, 5) } else { (2018 + n % 7 % 6, n * 7 % 12 + 1) };
        format!(
            "u{};{year}-{month:02}-{:02} 12:00:00;\"{},5\"",
            n * 7 % 300,
            n % 28 + 1,
            n * 7 % 90
        )
    })
}

#[test]
fn a_first_answer_covers_the_days_with_the_most_rows() {
    let text = sparse();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let cuts: Vec<Cut> = [text.as_bytes(), utf16.as_slice()]
        .into_iter()
        .map(|bytes| {
            let found = look(bytes);
            let part = files(&found, "sparse.csv", None).part.unwrap();
            let (first, last) = part.days();
            assert!(
                first.as_str() <= "2019-05-01" && last.as_str() >= "2019-05-28",
                "{first} {last}"
            );
            part.cut(bytes, &found, &mut ())
        })
        .collect();
    assert_eq!(cuts[0], cuts[1]);
    let again = look(&cuts[0].text);
    assert_eq!((again.tally.rows, again.tally.owners), (cuts[0].rows, cuts[0].owners));
    assert!((1000..3000).contains(&cuts[0].rows), "{}", cuts[0].rows);
    // Counts and sums are of all rows, and a short file is answered as a whole.
    assert_eq!(look(text).attributes[0].total.count, 3000);
    assert_eq!(files(&again, "part.csv", None).part, None);
}
