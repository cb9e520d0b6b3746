//! What was once guessed in silence: it is right, noted, or asked.

use crate::doubts::asks;
use crate::{look, unit};
use alpheus_discover::clock::Region;
use alpheus_discover::{
    DiscoverError, Hints, OutlierTreatment, Sureness, Understanding, Watch, decimal_mark,
    understand, understand_watched,
};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

/// A time every hour, so many hours later.
fn hour(n: u32, later: u32) -> String {
    let n = n + later;
    format!("2024-03-{:02}T{:02}:00:00", n / 24 + 1, n % 24)
}

fn notes(text: &str, about: &str) {
    let found = look(text);
    assert!(found.notes.iter().any(|note| note.contains(about)), "{:?}", found.notes);
}

fn with(text: &str, hints: &Hints) -> Understanding {
    understand(text.as_bytes(), hints).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn hours_from_1_to_24_are_noted() {
    let of = |first: u32| {
        rows("date,hour,v", 96, |n| {
            format!("2024-03-{:02},{},{}", n / 24 + 1, n % 24 + first, n * 7 % 90)
        })
    };
    notes(&of(1), "Days end with 24:00 and none begins with 0:00");
    let quarters = rows("time,v", 192, |n| {
        let (day, n) = (n / 96 + 1, n % 96 + 1);
        format!("2024-03-{day:02} {:02}:{:02},{}", n / 4, n % 4 * 15, n * 7 % 90)
    });
    notes(&quarters, "Days end with 24:00");
    assert!(!look(of(0)).notes.iter().any(|note| note.contains("24:00")));
}

#[test]
fn of_a_local_time_with_a_false_zone_and_a_true_one_is_asked() {
    let text = rows("user,start_local,start,v", 90, |n| {
        format!("u{},{}Z,{}Z,{}", n % 9, hour(n, 10), hour(n, 0), n * 7 % 50)
    });
    asks(&text, "differ by 10 hours in all rows");
    let found = look(&text);
    assert_eq!(found.names[found.time.columns[0]], "start", "the best guess");
    let said = Hints { time: vec!["start_local".to_owned()], ..Hints::default() };
    assert_eq!(with(&text, &said).questions, [""; 0]);
    // Over a change of the clocks, and without a zone.
    let text = rows("user,recorded,measured,v", 90, |n| {
        let later = if n < 40 { 1 } else { 2 };
        format!("u{},{},{},{}", n % 9, hour(n, 0), hour(n, later), n * 7 % 50)
    });
    asks(&text, "differ by 1 hour or 2 hours");
}

#[test]
fn other_times_beside_the_time_are_not_asked_about() {
    let none = |text: &str, time: &str| {
        let found = look(text);
        assert_eq!(found.questions, [""; 0]);
        assert_eq!(found.names[found.time.columns[0]], time);
    };
    // From and until, one with its zone and one local, the same twice, and another time.
    for (header, zones, later) in [
        ("user,interval_start,interval_end,v", ["", ""], 1),
        ("user,time,time_utc,v", ["", ""], 5),
        ("user,time,stamp,v", ["", "Z"], 5),
        ("user,time,sent,v", ["", ""], 0),
    ] {
        let text = rows(header, 90, |n| {
            let (first, second) = (hour(n, 0), hour(n, later));
            format!("u{},{first}{},{second}{},{}", n % 9, zones[0], zones[1], n * 7 % 50)
        });
        let taken = if later == 5 { 2 } else { 1 };
        none(&text, header.split(',').nth(taken).unwrap());
    }
    let stays = rows("user,time,left,v", 90, |n| {
        format!("u{},{},{},{}", n % 9, hour(n, 0), hour(n, n * 5 % 11), n * 7 % 50)
    });
    none(&stays, "time");
}

#[test]
fn a_zone_above_the_table_is_taken_or_asked_about() {
    let of = |line: &str| {
        format!("{line}\n{}", rows("user,time,v", 60, |n| format!("u{},{},{n}", n % 6, hour(n, 0))))
    };
    for (line, zone) in [
        ("# Netz: Nord, Zeit: MEZ", "UTC+01:00"),
        ("# Alle Zeiten in MEZ", "UTC+01:00"),
        ("# Zeit: UTC+1", "UTC+01:00"),
        ("# All times are Europe/Vienna", "Europe/Vienna"),
    ] {
        let found = look(of(line));
        assert_eq!((found.zone_text().as_str(), found.questions.len()), (zone, 0), "{line}");
    }
    let local = of("# Times are local");
    asks(&local, "times are local, but not where");
    let said = Hints { zone: Region::parse("Europe/Berlin"), ..Hints::default() };
    assert_eq!(with(&local, &said).questions, [""; 0]);
    asks(&of("# Time of report UTC, time UTC: 2024-03-09 10:00"), "beside a time");
    assert_eq!(look(of("# Report of 2024-03-09 10:00")).zone_text(), "none stated");
    // Dates have no zone, and a value's own is right.
    let days = rows("user,date,v", 60, |n| format!("u{},2024-03-{:02},{n}", n % 6, n / 6 + 1));
    assert_eq!(look(format!("# Times are local\n{days}")).questions, [""; 0]);
    let own = of("# Times are local").replace(":00:00,", ":00:00Z,");
    assert_eq!(look(own).questions, [""; 0]);
}

#[test]
fn a_column_of_places_is_the_zone() {
    let of = |place: fn(u32) -> &'static str| {
        rows("user,time,timezone,v", 60, |n| format!("u{},{},{},{n}", n % 6, hour(n, 0), place(n)))
    };
    assert_eq!(look(of(|_| "Europe/Berlin")).zone_text(), "Europe/Berlin");
    let two = of(|n| ["Europe/Berlin", "America/New_York"][n as usize % 2]);
    asks(&two, "`timezone` has 2 different zones");
}

#[test]
fn callers_and_callees_are_two_ends() {
    let calls = |names: &str| {
        rows(names, 300, |n| {
            format!(
                "{},+4915100{:02},+4915100{:02},{}",
                hour(n, 0),
                n * 7 % 30,
                n * 11 % 29,
                n % 50
            )
        })
    };
    asks(&calls("time,caller,callee,seconds"), "the two ends of what each row describes");
    asks(&calls("time,user_id,contact,seconds"), "`user_id` and `contact` seem to be the two ends");
    let said = Hints { owner: Some("user_id".to_owned()), ..Hints::default() };
    let said = with(&calls("time,user_id,contact,seconds"), &said);
    assert_eq!(said.owner.as_deref(), Some("user_id"));
    // A copy of the owner, and numbers of the same size.
    let copy = rows("time,user,login,v", 300, |n| {
        let user = n * 7 % 30;
        format!("{},u{user},u{user},{}", hour(n, 0), n % 50)
    });
    assert_eq!(look(copy).questions, [""; 0]);
    let numbers = rows("time,user,floors,v", 300, |n| {
        format!("{},{},{},{}", hour(n, 0), n * 7 % 30 + 1, n * 11 % 29, n % 50)
    });
    assert_eq!(look(numbers).questions, [""; 0]);
}

#[test]
fn persons_who_are_numbered_in_each_household_are_named_by_two_columns() {
    let of = |header: &str| {
        rows(header, 240, |n| {
            let household = n * 7 % 30;
            format!("{},{},{},{}.5", 100 + household, n / 30 % 3 + 1, hour(n, 0), n * 13 % 50)
        })
    };
    for header in ["household_no,person_no,time,km", "hh_id,member_no,time,km"] {
        asks(&of(header), "begins again in each");
    }
    let said = Hints { owner: Some("household_no".to_owned()), ..Hints::default() };
    let found = with(&of("household_no,person_no,time,km"), &said);
    assert!(!found.questions.iter().any(|own| own.contains("begins again")));
    let own = rows("household,person_id,time,km", 240, |n| {
        format!("h{},{},{},{}.5", n % 60 / 3, n % 60 + 1, hour(n, 0), n * 13 % 50)
    });
    assert!(!look(own).questions.iter().any(|own| own.contains("begins again")));
}

#[test]
fn units_in_a_column_and_levels_of_owners_are_asked_about() {
    let unit_column = |header: &str, units: [&'static str; 2]| {
        rows(header, 240, |n| {
            let unit = units[(n % 8 / 5) as usize];
            format!("p{},{},{}.5,{unit},{}", n % 8, hour(n, 0), 50 + n * 7 % 50, n * 11 % 90)
        })
    };
    asks(
        &unit_column("patient,time,weight,uom,pulse", ["kg", "lb"]),
        "several units beside `weight`",
    );
    asks(
        &unit_column("patient,time,glucose,unit,pulse", ["mmol/L", "mg/dL"]),
        "several units beside `glucose`: mg/dL, mmol/L",
    );
    let text = unit_column("patient,time,weight,uom,pulse", ["kg", "lb"]);
    let said = Hints { measure: vec!["weight".to_owned()], ..Hints::default() };
    assert_eq!(with(&text, &said).questions, [""; 0]);
    assert_eq!(look(unit_column("patient,time,weight,sex,pulse", ["m", "f"])).questions, [""; 0]);
    let levels = |factor: u32| {
        rows("patient,time,glucose", 240, |n| {
            let times = if n % 8 == 5 { factor } else { 1 };
            format!("p{},{},{}", n % 8, hour(n, 0), (5 + n / 8 % 4) * times)
        })
    };
    asks(
        &levels(18),
        "The means of `glucose` are near 6.43 for 7 of its owners and near 115.8 for the other 1",
    );
    let said = Hints { measure: vec!["glucose".to_owned()], ..Hints::default() };
    assert_eq!(with(&levels(18), &said).questions, [""; 0]);
    assert_eq!(look(levels(9)).questions, [""; 0]);
}

#[test]
fn units_in_cells_that_differ_are_asked_about_and_read() {
    let of = |each: u32, unit: &str| {
        rows("user;time;way", 240, |n| {
            let (way, unit) = if n % each == 0 { (2 + n % 7, unit) } else { (n % 9, " km") };
            format!("m{};{};{way},{:02}{unit}", n % 8, hour(n, 0), n % 90)
        })
    };
    for (each, unit, says) in
        [(20, " m", "12 with `m`"), (4, " m", "60 with `m`"), (4, "", "60 without")]
    {
        let text = of(each, unit);
        asks(&text, says);
        let found = look(&text);
        let own = &found.attributes[0];
        assert_eq!((own.column.as_str(), own.total.count), ("way", 240));
        // m0 is no number of meters.
        assert_eq!(found.owner.as_deref(), Some("user"));
        let said = Hints { measure: vec!["way".to_owned()], ..Hints::default() };
        assert_eq!(with(&text, &said).questions, [""; 0]);
    }
    let pounds = rows("patient,time,weight", 240, |n| {
        let unit = if n % 5 == 0 { " lb" } else { "" };
        format!("p{},{},{}.9{unit}", n % 8, hour(n, 0), 150 + n * 7 % 50)
    });
    asks(&pounds, "48 with `lb`, 192 without");
    let slip = rows("patient,time,weight", 240, |n| {
        let unit = if n == 5 { "" } else { " lb" };
        format!("p{},{},{}.9{unit}", n % 8, hour(n, 0), 150 + n * 7 % 50)
    });
    let found = look(slip);
    assert_eq!((found.questions.len(), unit(&found, "weight")), (0, Some("lb")));
}

#[test]
fn one_or_two_numbers_far_from_all_others_are_noted_with_their_values() {
    let of = |far: &'static [u32]| {
        rows("user,time,pulse", 240, |n| {
            let pulse = far.get(n as usize / 7).filter(|_| n % 7 == 5);
            format!("u{},{},{}", n % 8, hour(n, 0), pulse.unwrap_or(&(60 + n * 7 % 41)))
        })
    };
    asks(&of(&[1_000_000]), "`pulse` has 1 value far from all others: 1000000.");
    notes(
        &of(&[1_000_000, 990_000]),
        "`pulse` has 1000000 and 990000, far from all others, which are 60 to 100",
    );
    notes(&of(&[700]), "`pulse` has 700, far from all others");
    assert!(!look(of(&[130])).notes.iter().any(|note| note.contains("far from")));
}

#[test]
fn points_beside_commas_may_be_decimals() {
    let text = rows("user;time;kwh;eur", 240, |n| {
        format!("u{};{};{}.{};{},5", n % 8, hour(n, 0), n % 9 + 1, 100 + n, n % 70)
    });
    asks(&text, "or `--decimal both` if they are decimals");
    let said = Hints { decimal: decimal_mark::read("both"), ..Hints::default() };
    let found = with(&text, &said);
    assert_eq!(found.questions, [""; 0]);
    let sums: Vec<String> = found.attributes.iter().map(|own| own.total.sum.text()).collect();
    assert_eq!(sums, ["1243.680", "7800.0"]);
    let source = alpheus_discover::write::files(&found, "a.csv", None).source;
    assert!(source.contains("decimal: \"both\""), "{source}");
}

#[test]
fn what_was_a_dead_end_has_an_answer() {
    let ids = rows("subject_id,time,crp", 240, |n| {
        let crp = if n % 6 == 0 { "<0.5".to_owned() } else { format!("{}.5", n % 70) };
        format!("{}.0,{},{crp}", 100 + n % 8, hour(n, 0))
    });
    asks(&ids, "use `--outliers leave-out` if they may be left out");
    let found =
        with(&ids, &Hints { outliers: Some(OutlierTreatment::LeaveOut), ..Hints::default() });
    assert_eq!((found.owner.as_deref(), found.questions.len()), (Some("subject_id"), 0));
    assert_eq!(found.attributes[0].total.count, 200);
    let padded = rows("card_no;time;kwh", 240, |n| {
        format!("{};{};{},5", ["007", "7", "0007", "12"][n as usize % 4], hour(n, 0), n % 70)
    });
    asks(&padded, "has 4 names, but only 2");
    let iso = rows("member_id,date,minutes", 240, |n| {
        format!("m{},24-{:02}-{:02},{}", n % 12, n / 12 / 12 + 1, n / 12 % 12 + 1, n % 70)
    });
    let found = look(&iso);
    assert_eq!((found.time.format().as_str(), found.questions.len()), ("%y-%m-%d", 0));
    for name in ["Karte", "Card No", "RFID"] {
        let text = rows(&format!("{name};time;kwh"), 240, |n| {
            format!("{:05};{};{},5", n % 12, hour(n, 0), n % 70)
        });
        assert_eq!(look(text).owner.as_deref(), Some(name));
    }
    let at = rows("user,at,v", 60, |n| format!("u{},{},{n}", n % 6, 1_717_200_000 + n * 29));
    assert_eq!(look(&at).time.format(), "epoch seconds");
    let said = Hints { owner: Some("usr".to_owned()), ..Hints::default() };
    let error = understand(at.as_bytes(), &said).unwrap_err();
    assert!(matches!(error, DiscoverError::NoColumn { .. }));
    assert!(error.to_string().contains("no column \"usr\": did you mean `user`?"), "{error}");
}

#[test]
fn names_with_an_exponent_are_asked_about() {
    let text = rows("konto_id;time;eur", 240, |n| {
        format!("{};{};{},5", ["1E3", "1000", "1E4", "77"][n as usize % 4], hour(n, 0), n % 70)
    });
    asks(&text, "of `konto_id` have an exponent");
}

/// How sure owner, time, zone and the first attribute are.
fn sure(found: &Understanding) -> [Sureness; 4] {
    let first = found.sure_of_attribute(&found.attributes[0].column);
    [found.sure_of_owner(), found.sure_of_time(), found.sure_of_zone(), first]
}

#[test]
fn each_finding_says_how_sure_it_is() {
    use Sureness::{Certain, Guess, Likely};
    let of = |header: &str, time: &dyn Fn(u32) -> String| {
        rows(header, 96, |n| format!("p{},{},{}", n % 4, time(n), n * 7 % 90 + 1))
    };
    let iso = |n| hour(n, 0);
    let bare = of("person,time,v", &iso);
    assert_eq!(sure(&look(&bare)), [Likely, Certain, Guess, Likely]);
    let stated = of("person,time (UTC+1),power [W]", &iso);
    assert_eq!(sure(&look(&stated)), [Likely, Certain, Certain, Certain]);
    let zoned = of("person,time,v", &|n| hour(n, 0) + "+01:00");
    assert_eq!(sure(&look(&zoned))[2], Certain);
    // A day that no month has says which one comes first, but not the file.
    let days = of("person,time,v", &|n| format!("{:02}/03/2024 {:02}:00", n / 24 + 12, n % 24));
    assert_eq!(sure(&look(&days))[1], Likely);
    let open = of("person,time,v", &|n| format!("0{}/04/2024 {:02}:00", 3 + n / 48 * 2, n % 24));
    assert_eq!(sure(&look(&open))[1], Guess);
    let hints = Hints {
        owner: Some("person".to_owned()),
        day_first: Some(true),
        zone: Some(Region::default()),
        measure: vec!["v".to_owned()],
        ..Hints::default()
    };
    assert_eq!(sure(&with(&open, &hints)), [Certain; 4]);
    // What is asked about is a guess: marks of missing values, and whose rows are.
    let odd = rows("person,time,v", 96, |n| {
        let value = if n % 12 == 5 { "<5".to_owned() } else { (n * 7 % 90 + 1).to_string() };
        format!("p{},{},{value}", n % 4, hour(n, 0))
    });
    assert_eq!(sure(&look(&odd))[3], Guess);
    let nobody = rows("time,v", 96, |n| format!("{},{}", hour(n, 0), n * 7 % 90 + 1));
    assert_eq!(sure(&look(&nobody))[0], Guess);
}

/// All bytes that are announced are passed over, and no more.
#[test]
fn who_watches_hears_of_all_bytes() {
    #[derive(Default)]
    struct ByteCounts {
        expected: u64,
        passed: Vec<u64>,
    }
    impl Watch for ByteCounts {
        fn expects(&mut self, bytes: u64) {
            self.expected += bytes;
        }
        fn passed(&mut self, bytes: u64) {
            self.passed.push(bytes);
        }
    }
    let text = rows("person,time,v", 20_000, |n| {
        format!("p{},2024-03-{:02}T{:02}:00:00,{}", n % 4, n / 24 % 28 + 1, n % 24, n % 90)
    });
    let mut heard = ByteCounts::default();
    understand_watched(text.as_bytes(), &Hints::default(), &mut heard).unwrap();
    let all: u64 = heard.passed.iter().sum();
    assert_eq!((heard.expected, all), (2 * text.len() as u64, heard.expected));
    assert!(heard.passed.len() > 8, "{:?}", heard.passed);
}
