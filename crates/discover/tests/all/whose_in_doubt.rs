//! Files in which a wrong owner would be easy to take, and is asked about.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, Understanding, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

/// A time every ten minutes.
fn time(n: u32) -> String {
    format!("2024-03-{:02} {:02}:{}0", n / 144 + 1, n / 6 % 24, n % 6)
}

/// A number that follows no order.
fn mixed(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) >> 16
}

fn with(text: &str, said: &Hints) -> Understanding {
    understand(text.as_bytes(), said).unwrap_or_else(|error| panic!("{error}"))
}

fn owner(name: &str) -> Hints {
    Hints { owner: Some(name.to_owned()), ..Hints::default() }
}

/// The temperature of one of several at each time.
fn round(name: &str, number: impl Fn(u32) -> u32) -> String {
    let header = format!("time,{name},temp");
    rows(&header, 400, |n| format!("{},{},{}.5", time(n), number(n), 36 + mixed(n) % 4))
}

/// Up and back by one, from a number, with rows in a row at each.
fn snake(first: u32, values: u32, rows: u32) -> impl Fn(u32) -> u32 {
    move |n| first + (n / rows % (2 * values - 2)).abs_diff(values - 1)
}

#[test]
fn those_who_are_visited_up_and_back_are_asked_about() {
    for (first, values) in [(11, 8), (101, 6), (101, 20)] {
        for each in [1, 2] {
            for name in ["bed", "besoek"] {
                let visits = snake(first, values, each);
                let text = round(name, move |n| 100 + visits(n));
                asks(&text, &format!("`{name}` has {values} different values that repeat"));
            }
        }
    }
    // Before the time, numbers of any width may be names.
    let text = rows("bed,time,temp", 400, |n| {
        format!("{},{},{}.5", snake(11, 8, 1)(n), time(n), 36 + mixed(n) % 4)
    });
    asks(&text, "`bed` has 8 different values that repeat");
    // The other side of the ward on the way back.
    let sides = |n: u32| 101 + 2 * (n % 38).abs_diff(19) + u32::from(n % 38 < 19);
    assert!(look(round("besoek", sides)).asks_whose());
    // Nearly in order.
    let order = |n: u32| 101 + ((n ^ 1) % 60).abs_diff(30);
    assert!(look(round("besoek", order)).asks_whose());
}

#[test]
fn a_place_is_asked_about_whatever_its_numbers_do() {
    // They move as a pressure does.
    let slow = |n: u32| 920 + (n % 120).abs_diff(60) / 4 + (n % 14).abs_diff(7) / 3;
    for name in ["bed", "room_no", "parking bay", "Seat"] {
        assert_eq!(look(round(name, slow)).owner.as_deref(), Some(name));
    }
}

#[test]
fn each_row_of_an_event_is_asked_about() {
    let of = |name: &str, time: &dyn Fn(u32) -> String| {
        rows(&format!("{name},read_at,km"), 12, |n| {
            format!("T{},{},{}.5", 490_000 + n * 7919 % 90_001, time(n), n * 13 % 40)
        })
    };
    let one_day = |_: u32| "2024-03-14".to_owned();
    let one_hour = |n: u32| format!("2024-03-14 12:{:02}:{:02}", n * 17 % 50, n * 7 % 60);
    for name in ["trip_id", "trip", "TripID", "sample_id", "car trip no", "call_id"] {
        for times in [&one_day as &dyn Fn(u32) -> String, &one_hour] {
            let text = of(name, times);
            asks(&text, &format!("`{name}` differs in each row"));
            assert_eq!(with(&text, &owner(name)).questions, [""; 0], "{name}");
        }
    }
    // Of one hour, a card is another's, and of one day it may be the same person's.
    for name in ["badge", "device", "shop"] {
        asks(&of(name, &one_day), &format!("`{name}` differs in each row"));
        let found = look(of(name, &one_hour));
        assert_eq!((found.owner.as_deref(), found.questions), (Some(name), vec![]));
    }
}

#[test]
fn numbers_of_slots_may_be_places() {
    let of = |name: &str, slots: u32| {
        rows(&format!("date,{name},kwh"), slots * 8, |n| {
            let (day, slot) = (n / slots + 1, n % slots + 1);
            format!("2024-03-{day:02},{slot},{}.5", n * 37 % 499)
        })
    };
    for slots in [24, 48] {
        for name in ["slot", "charging interval", "Period"] {
            let said = owner(name);
            let found = with(&of(name, slots), &said);
            assert_eq!((found.owner.as_deref(), found.tally.owners), (Some(name), slots.into()));
            let remedy = match name {
                "charging interval" => "`--owner 'charging interval'`".to_owned(),
                name => format!("`--owner {name}`"),
            };
            match understand(of(name, slots).as_bytes(), &Hints::default()) {
                Ok(found) => {
                    let remedies =
                        |own: &String| own.contains(&remedy) && own.contains("on each day");
                    assert!(found.questions.iter().any(remedies), "{:?}", found.questions);
                }
                Err(error) => {
                    assert_eq!((slots, name), (48, "Period"));
                    assert!(error.to_string().contains(&remedy), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_day_of_25_hours_is_asked_about() {
    // The sixth day has an hour twice.
    let text = rows("date,period,load", 10 * 24 + 1, |n| {
        let (day, hour) = match n {
            0..144 => (n / 24, n % 24),
            144 => (5, 24),
            _ => ((n - 1) / 24, (n - 1) % 24),
        };
        format!("2024-03-{:02},{},{}.5", day + 1, hour + 1, n * 37 % 499)
    });
    let found = look(&text);
    assert_eq!((found.time.columns.len(), found.tally.rows), (1, 241));
    asks(&text, "to 25");
    asks(&text, "`--owner period`");
}

#[test]
fn what_separates_no_better_than_a_kind_is_asked_about() {
    let of = |columns: &str, first: [&str; 2], second: [&str; 2]| {
        rows(&format!("time,{columns},kwh"), 600, |n| {
            let own = n as usize % 2;
            format!("{},{},{},0.{}", time(n / 2), first[own], second[own], mixed(n) % 90 + 10)
        })
    };
    let said = Hints { measure: vec!["kwh".to_owned()], ..Hints::default() };
    let (kinds, versions) = (["heat", "water"], ["v1.2.0", "v1.3.1"]);
    for columns in ["type,firmware", "type,strang", "kind,sw version"] {
        let found = with(&of(columns, kinds, versions), &said);
        assert!(found.asks_whose(), "{columns}: {:?}", found.owner);
    }
    for columns in ["firmware,lot", "fw,lot", "sw_version,lot", "firmware_id,lot"] {
        let found = with(&of(columns, versions, ["ok", "ok"]), &said);
        assert!(found.asks_whose(), "{columns}: {:?}", found.owner);
        assert_eq!(found.owner, None);
        let offered = found.questions.iter().any(|own| own.contains("It may be "));
        assert!(!offered, "{:?}", found.questions);
    }
}

#[test]
fn a_trip_of_several_rows_is_asked_about() {
    for name in ["trip_id", "TripID", "visit_id", "call id"] {
        for each in [2, 20] {
            let text = rows(&format!("{name},time,km"), 240, |n| {
                format!("T{},{},{}.5", 490_000 + n / each * 7919 % 90_001, time(n), n * 13 % 40)
            });
            asks(&text, &format!("`{name}` numbers what somebody does"));
            assert_eq!(with(&text, &owner(name)).questions, [""; 0], "{name}");
        }
    }
    // The place of a sample is none.
    let text = rows("sample_site_id,time,level", 240, |n| {
        format!("S{},{},{}.5", n % 12, time(n), n * 13 % 40)
    });
    let found = look(text);
    assert_eq!((found.owner.as_deref(), found.questions), (Some("sample_site_id"), vec![]));
}
