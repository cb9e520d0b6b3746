//! Whose a row is, where no name says it for sure, and what tells apart rows of one owner.

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

#[test]
fn the_two_ends_of_a_trip_are_no_owner() {
    let stations = rows("ride,started,start_station_name,end_station_name,min", 300, |n| {
        format!("R{n}X,{},St {},St {},{}", time(n), n * 7 % 30, n * 11 % 30, n * 13 % 40)
    });
    asks(&stations, "the two ends of what each row describes");
    let said = Hints { owner: Some("start_station_name".to_owned()), ..Hints::default() };
    assert_eq!(understand(stations.as_bytes(), &said).unwrap().questions, [""; 0]);
    let vague = rows("VendorID,pickup,RatecodeID,fare", 300, |n| {
        format!("{},{},{},{}.5", n % 2 + 1, time(n), n * 7 % 5, n * 13 % 40)
    });
    asks(&vague, "`VendorID` is taken as the owner; `RatecodeID` could be meant too");
    asks(&vague, "use `--owner VendorID` if that is right, or `--owner none`");
    let cases = rows("Case Number,Date,District,Fine", 300, |n| {
        format!("HY{},{},d{},{}.5", 7919 * n % 9973, time(n), n * 7 % 20, n * 13 % 40)
    });
    asks(&cases, "Each row has a different `Case Number`");
    let sensors = rows("id,time,Device ID,level", 300, |n| {
        format!("{n},{},d{},{}.5", time(n), n * 7 % 20, n * 13 % 40)
    });
    assert_eq!(look(sensors).owner.as_deref(), Some("Device ID"));
}

#[test]
fn series_one_below_the_other_are_asked_about() {
    let below = rows("column,time,lon,lat", 400, |n| {
        format!(
            "{},2008-02-02 {:02}:{:02}:1{},116.{},39.{}",
            n / 40 + 1,
            n % 40 / 2,
            n % 2 * 30,
            n / 40,
            n * 7 % 90,
            n * 11 % 90
        )
    });
    asks(&below, "Times go back 9 times, and only where `column` changes");
    let turns = rows("unit,time,conc,flux", 240, |n| {
        format!("P{},{},{}.5,{}.25", n % 12, time(n), n * 7 % 90, n * 11 % 90)
    });
    asks(&turns, "`unit` has 12 names that repeat");
    let words = rows("meal,time,kcal", 240, |n| {
        let meal = ["Breakfast", "Lunch", "Dinner"][n as usize % 3];
        format!("{meal},2024-0{}-{:02},{}", n / 81 + 1, n / 3 % 27 + 1, n * 7 % 90)
    });
    asks(&words, "It may be `meal`");
    assert_eq!(look(&words).owner.as_deref(), Some("meal"), "the best guess");
    let wide = rows("time,MT_001,MT_002,MT_003,MT_004,MT_005,MT_006,MT_007,MT_008", 60, |n| {
        (1..9).fold(time(n), |text, k| text + &format!(",{}.5", n * 7 * k % 90))
    });
    asks(&wide, "Use `--wide NAME`");
}

#[test]
fn what_tells_apart_rows_of_one_owner_and_time_is_asked_about() {
    let both = rows("zone,time,kind,mw", 400, |n| {
        let kind = ["forecast", "actual"][n as usize % 2];
        format!("z{},{},{kind},{}", n / 2 % 4, time(n / 8), 300 + n * 7 % 90)
    });
    asks(&both, "which `kind` tells apart");
    let named = both.replace("zone,time,kind,mw", "zone,time,status,mw");
    asks(&named, "which `status` tells apart");
    let said = |measure: &[&str], leave_out: &[&str]| {
        let [measure, leave_out] =
            [measure, leave_out].map(|names| names.iter().map(|own| (*own).to_owned()).collect());
        let said = Hints { measure, leave_out, ..Hints::default() };
        understand(named.as_bytes(), &said).unwrap().questions.len()
    };
    // What was said of another question does not answer it.
    assert_eq!([said(&["mw"], &[]), said(&[], &["status"])], [1, 0]);
    // Purchases of a day are of other products each time.
    let bought = rows("customer,date,product,quantity", 900, |n| {
        let (day, product) = (n / 30 + 1, n % 13);
        // Every tenth row has the customer and the day of the row above.
        let own = if n % 10 == 1 { n - 1 } else { n };
        format!("c{},2024-03-{day:02},p{product},{}", own * 7 % 60, n * 11 % 9 + 1)
    });
    assert_eq!(look(bought).questions, [""; 0]);
    // Rows of one time that nothing tells apart are only many.
    let many = rows("host,time,verb,bytes", 400, |n| {
        format!(
            "h{},{},{},{}",
            n % 4,
            time(n * n % 97),
            ["GET", "POST"][n as usize * 7 % 3 / 2],
            n * 7 % 90
        )
    });
    assert_eq!(look(many).questions, [""; 0]);
    let money = rows("customer,time,amount,currency", 400, |n| {
        format!(
            "c{},{},{}.5,{}",
            n * 7 % 40,
            time(n),
            n * 11 % 90,
            ["EUR", "USD", "JPY"][n as usize % 3]
        )
    });
    asks(&money, "3 kinds of readings, which `currency` names");
}

#[test]
fn numbers_that_are_an_owners_name_are_not_measured() {
    let text = |name: &str| {
        rows(&format!("patient,time,{name},size,ward"), 600, |n| {
            let own = n * 7 % 30;
            format!("p{own},{},{},{},{}", time(n), 80_000 + own * 13, 150 + own % 9, n * 11 % 90)
        })
    };
    let is_measured =
        |found: &Understanding, name: &str| found.attributes.iter().any(|own| own.column == name);
    for name in ["record id", "record number"] {
        let found = look(text(name));
        assert_eq!((is_measured(&found, name), found.questions.len()), (false, 0), "{name}");
    }
    // One number for each owner may be a measurement.
    for name in ["population", "record"] {
        let text = text(name);
        asks(&text, &format!("Use `--measure {name}` if they are measurements"));
        let said = Hints { measure: vec![name.to_owned()], ..Hints::default() };
        let found = understand(text.as_bytes(), &said).unwrap();
        assert_eq!((is_measured(&found, name), found.questions.len()), (true, 0), "{name}");
    }
    for name in ["salary", "area [m2]"] {
        let found = look(text(name));
        assert_eq!((is_measured(&found, name), found.questions.len()), (true, 0), "{name}");
    }
}

/// A text that follows no order.
fn code(n: u32) -> u32 {
    10_000 + n * 7919 % 90_001
}

#[test]
fn flags_are_no_owner() {
    for flag in ["is_owner", "owner", "hasUser", "Member"] {
        let text = rows(&format!("time,{flag},level"), 60, |n| {
            format!("{},{},{}.5", time(n), ["True", "False"][n as usize * 7 % 3 / 2], n * 13 % 40)
        });
        assert_eq!(look(&text).owner, None, "{flag}");
        assert_eq!(look(text.replace("True", "False")).owner, None, "{flag}");
    }
    let yes = rows("time,user,level", 60, |n| {
        format!("{},{},{}.5", time(n), ["sam", "kim"][n as usize * 7 % 3 / 2], n * 13 % 40)
    });
    assert_eq!(look(yes).owner.as_deref(), Some("user"));
}

#[test]
fn each_row_of_a_snapshot_is_another_owners() {
    // All but two are of one hour, in no order.
    let seen = |n: u32| match n {
        4 | 9 => time(n),
        n => format!("2024-04-01 12:{:02}:{:02}", n * 17 % 50, n * 7 % 60),
    };
    let text = |header: &str, time: &dyn Fn(u32) -> String| {
        rows(header, 24, |n| format!("{},place {n},{}.5,{},False", code(n), n * 13 % 40, time(n)))
    };
    let snapshot = text("id,label,level,last_seen,is_owner", &seen);
    let found = look(&snapshot);
    assert_eq!((found.owner.as_deref(), found.questions), (Some("id"), vec![]));
    assert!(found.notes.iter().any(|note| note.contains("`id` differs in each row")));
    let same = |header: &str| text(header, &|_| "2024-04-01".to_owned());
    let found = look(same("sensor_id,label,level,read_at,flag"));
    assert_eq!((found.owner.as_deref(), found.questions), (Some("sensor_id"), vec![]));
    // Rows of one day, or of money, may be what one person did.
    asks(&same("id,label,level,read_at,flag"), "`id` differs in each row");
    asks(&text("id,label,price,last_seen,flag", &seen), "`id` differs in each row");
    // An order of events, or one beside an area, may be anybody's.
    let vague = text("order_id,label,level,last_seen,is_owner", &seen);
    asks(&vague, "`order_id` differs in each row");
    let areas = rows("id,county,level,last_seen", 24, |n| {
        format!("{},county {},{}.5,{}", code(n), n % 5, n * 13 % 40, seen(n))
    });
    asks(&areas, "`id` differs in each row");
    // Over days, in no order.
    let days = text("id,label,level,last_seen,is_owner", &|n| time(n * 577 % 4000));
    asks(&days, "Use `--owner id` if it names the owner of a row");
    // A series has an order, and numbers of its records name nobody.
    for order in [|n: u32| n, |n: u32| 23 - n] {
        let series = text("id,label,level,last_seen,is_owner", &|n| time(order(n)));
        let found = look(series);
        assert_eq!((found.owner, found.questions), (None, vec![]));
    }
}

#[test]
fn what_a_row_is_about_is_no_owner_though_it_makes_times_unique() {
    const SKIES: [&str; 12] = [
        "Sunny", "Rainy", "Snowy", "Foggy", "Misty", "Hazy", "Icy", "Wet", "Stormy", "Smoky",
        "Dusty", "Windy",
    ];
    // Every fifth hour has a second row, of another sky.
    let skies = |name: &str| {
        rows(&format!("{name},temp,clouds_all,time,cars"), 600, |n| {
            let (hour, second) = (n * 5 / 6, u32::from(n % 6 == 1));
            let sky = SKIES[(hour as usize / 7 + second as usize * 3) % 12];
            let clouds = n * 7 % 40 * 2 + 20;
            format!("{sky},{}.5,{clouds},{},{}", 10 + n * 7 % 19, time(hour), n * n % 4999)
        })
    };
    let found = look(skies("weather_now"));
    assert_eq!((found.owner, found.questions), (None, vec![]));
    assert_eq!(found.categories, [("weather_now".to_owned(), 12)]);
    asks(&skies("himmel"), "It may be `himmel`");
    let bookings = rows("Date,Action,Amount", 12, |n| {
        let (day, what) = (20 - n * 2 / 3, n * 5 % 9);
        format!("2024-03-{day:02},PAYMENT {what} (cash),{}.25", 10 + n * 37 % 90)
    });
    assert_eq!(look(&bookings).owner, None);
    assert_eq!(look(&bookings).questions, [""; 0]);
    asks(&bookings.replace("Action", "Besked"), "It may be `Besked`");
}

#[test]
fn why_a_column_is_taken_as_the_owner_is_true() {
    // A box writes twice in its hour once.
    let boxes = |twice: Option<u32>| {
        rows("time,box,level", 400, |n| {
            let own = if Some(n) == twice { n - 1 } else { n };
            format!("{},B-{}x,{}", time(n / 8), own % 8, 300 + n * 7 % 90)
        })
    };
    for (twice, says) in [(None, "with it no two rows"), (Some(101), "with it hardly any two rows")]
    {
        let found = look(boxes(twice));
        assert_eq!(found.owner.as_deref(), Some("box"));
        assert!(found.notes.iter().any(|own| own.contains(says)), "{:?}", found.notes);
    }
}

#[test]
fn an_id_with_one_value_names_the_one_owner() {
    let of = |name: &str, own: &str| {
        rows(&format!("Device,{name},time,glucose"), 90, |n| {
            format!("Acme 3,{own},{},{}", time(n), 90 + n * 7 % 90)
        })
    };
    for name in
        ["id", "Device ID", "Serial Number", "Numero de serie", "N° de série", "Seriennummer"]
    {
        for own in ["Kim 1", "40017"] {
            let found = look(of(name, own));
            assert_eq!((found.owner.as_deref(), found.questions), (Some(name), vec![]), "{name}");
            assert!(!found.notes.iter().any(|own| own.contains("No column says which owner")));
            assert!(found.notes[0].contains("the same value in all rows"), "{:?}", found.notes);
            assert!(!found.categories.iter().any(|(own, _)| own == name));
        }
    }
    // What is no owner's, and a name beside it.
    for name in ["tax code", "firmware version", "serie"] {
        assert_eq!(look(of(name, "K-1")).owner, None, "{name}");
    }
    let people = rows("id,name,time,kcal", 90, |n| {
        format!("K1,{},{},{}", ["zoe", "max", "kim"][n as usize * 7 % 3], time(n), n * 7 % 90)
    });
    assert!(look(people).questions[0].contains("`name`"));
}

#[test]
fn days_and_visits_of_one_person_are_not_several_owners_in_silence() {
    let of = |header: &str, own: fn(u32) -> String| {
        rows(&format!("{header},time,glucose"), 720, |n| {
            format!("{},{},{}", own(n), time(n), 90 + n * 7 % 90)
        })
    };
    asks(&of("id", |n| format!("Kim 4 day {:02}", n / 144 + 1)), "one person may count as several");
    asks(&of("subject", |n| format!("P{}_Visit-{}", n % 3, n / 144 + 1)), "use `--owner subject`");
    for own in [|n| format!("Kim day {}", n / 900), |n| format!("Holiday{}", n % 5)] {
        assert_eq!(look(of("id", own)).questions, [""; 0]);
    }
}

#[test]
fn stations_side_by_side_are_asked_about() {
    let of = |first: &str, second: &str| {
        rows(&format!("time,{first},{first}_notes,{second}"), 300, |n| {
            format!("{},{}.25,ok,{}.5", time(n), 10 + n * n % 83, 12 + n * n % 71)
        })
    };
    let asked = |first: &str, second: &str| {
        let found = look(of(first, second)).questions;
        found.iter().any(|own| own.contains("and 1 other column") && own.contains("`--wide NAME`"))
    };
    assert!(asked("NET:04410010:00060", "NET:04410022:00060"));
    assert!(asked("AB_1160815", "C_09447000"));
    assert!(asked("station 4", "station 9") && asked("Pegel3", "Pegel4"));
    // One station, and two ends of a device.
    assert!(!asked("NET:04410010:00060", "NET:04410010:00065"));
    assert!(!asked("channel 4", "channel 9") && !asked("t_1", "t_2"));
    // One logger with two probes.
    assert!(!asked("Pres (LGR S/N: 20417733)", "Temp (LGR S/N: 20417733 SEN S/N: 20417791)"));
    assert!(!asked("temp_20417733", "pressure_20417791"));
    let said = Hints { wide: Some("flow".to_owned()), ..Hints::default() };
    let found = understand(of("AB_1160815", "C_09447000").as_bytes(), &said).unwrap();
    assert_eq!((found.tally.owners, found.questions.len()), (2, 0));
    let said = Hints { measure: vec!["AB_1160815".to_owned()], ..Hints::default() };
    let found = understand(of("AB_1160815", "C_09447000").as_bytes(), &said).unwrap();
    assert_eq!((found.tally.owners, found.questions.len()), (1, 0));
}

#[test]
fn papers_with_a_price_of_each_day_are_owners() {
    const PAPERS: [&str; 5] = ["ABC", "XYZ", "QRS", "KLM", "DEF"];
    let of = |name: &str, paper: fn(u32) -> u32| {
        rows(&format!("{name},date,price"), 400, |n| {
            let own = PAPERS[paper(n) as usize];
            format!("{own},2024-{:02}-{:02},{}.5", n / 140 + 1, n / 5 % 28 + 1, 40 + n * n % 83)
        })
    };
    for name in ["symbol", "Ticker"] {
        let found = look(of(name, |n| n % 5));
        assert_eq!((found.owner.as_deref(), found.questions), (Some(name), vec![]));
        assert!(found.notes.iter().any(|own| own.contains("with it no two rows")));
    }
    // Kinds of a thing, and two rows of a paper on one day.
    asks(&of("slags", |n| n % 5), "It may be `slags`");
    let twice = look(of("symbol", |n| if n % 100 == 7 { 1 } else { n % 5 }));
    assert!(twice.questions.iter().any(|own| own.contains("It may be `symbol`")));
}

/// The place or the area of each row, with each of them once at each time.
#[test]
fn car_parks_and_numbers_of_counties_are_owners() {
    let parks = rows("read_at,car_park,free", 24, |n| {
        format!(
            "2024-04-01 1{}:07:1{},{},{}",
            n / 6,
            n % 2,
            ["P", "N", "W"][n as usize % 3],
            n * 37
        )
    });
    let found = look(parks);
    assert_eq!((found.owner.as_deref(), found.questions), (Some("car_park"), vec![]));
    for name in ["county_fips", "FIPS"] {
        let counties = rows(&format!("{name},year,pm"), 18, |n| {
            format!("0{},{},{}.5", 6001 + n / 3 * 2, 2016 + n % 3, n * 7 % 13)
        });
        let found = look(counties);
        assert_eq!((found.owner.as_deref(), found.questions), (Some(name), vec![]));
    }
}
