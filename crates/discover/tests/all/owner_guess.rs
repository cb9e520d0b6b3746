//! Columns that may say whose a row is though their names do not say so, and files that have none.

use crate::doubts::asks;
use crate::look;

/// A time that is hardly ever that of another row.
fn time(n: u32) -> String {
    format!("2024-05-{:02}T{:02}:{:02}:{:02}Z", n / 300 + 1, n / 13 % 24, n * 7 % 60, n * 11 % 60)
}

/// A number that follows no order.
fn mixed(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) >> 16
}

/// Rows of readings, each of one of some owners at an odd time.
fn readings(header: &str, owners: u32, owner: impl Fn(u32) -> String) -> String {
    (0..900).fold(format!("{header},time,kcal\n"), |text, n| {
        // Not in turn.
        let own = owner(mixed(n) % owners);
        text + &format!("{own},{},{}\n", time(n), n * 37 % 499)
    })
}

/// The column is the owner, or is asked about and the guess.
fn is_whose(text: &str, name: &str) {
    let found = look(text);
    assert_eq!(found.owner.as_deref(), Some(name), "{name}: {:?}", found.questions);
}

#[test]
fn numbers_that_may_be_owners_are_never_added_up_in_silence() {
    for name in [
        "Mitglied-Nr.",
        "Kunden-Nr.",
        "Pers.-Nr.",
        "Matricule",
        "Cow",
        "Kennzeichen-Nr",
        "Ear tag",
        "nr klienta",
        "Chip",
        "Locker",
        "Anlage",
        "Boks",
    ] {
        is_whose(&readings(name, 15, |own| (1001 + own).to_string()), name);
        is_whose(&readings(name, 30, |own| (1 + own).to_string()), name);
    }
    let long = readings("Chip", 20, |own| {
        (816_446_930_562_845 + u64::from(own) * 7_919_131_337).to_string()
    });
    is_whose(&long, "Chip");
    let sparse = readings("License", 20, |own| (100_003 + own * own * 2_111).to_string());
    is_whose(&sparse, "License");
    // Behind the time, the width or the gaps of numbers tell.
    let behind = |owner: &dyn Fn(u32) -> u32| {
        (0..900).fold("time,besoek,kcal\n".to_owned(), |text, n| {
            let own = owner(mixed(n) % 20);
            text + &format!("{},{own},{}\n", time(n), n * 37 % 499)
        })
    };
    is_whose(&behind(&|own| 1001 + own), "besoek");
    is_whose(&behind(&|own| 100_003 + own * own * 2_111), "besoek");
    let phone = readings("anruf", 20, |own| format!("+49151200000{own:02}"));
    is_whose(&phone, "anruf");
}

#[test]
fn texts_that_may_be_owners_are_asked_about() {
    const NAMES: [&str; 10] = ["zoe", "max", "kim", "lou", "pat", "sam", "ash", "bo", "cy", "dee"];
    const GUESTS: [&str; 4] = ["Anna Berg", "Max Roth", "Jo Pfau", "Eva Klee"];
    let name = |own: u32| NAMES[own as usize].to_owned();
    for header in ["first", "handle", "kto", "ref", "kontakt"] {
        let text = readings(header, 10, name);
        asks(&text, &format!("`{header}` has 10 different values that repeat"));
        is_whose(&text, header);
    }
    for header in ["alias", "child", "tenant"] {
        is_whose(&readings(header, 10, name), header);
    }
    asks(&readings("spiller", 4, name), "`spiller` has 4 different values");
    asks(&readings("Besucher", 4, |own| GUESTS[own as usize].to_owned()), "`Besucher` has 4");
    asks(&readings("Locker", 30, |own| format!("L-{own:03}x")), "`Locker` has 30");
    asks(&readings("key_hash", 12, |own| format!("{:010x}", own * 7_919_131 + 99)), "`key_hash`");
    let uuid = |own: u32| format!("{:04x}0000-1111-4222-8333-444455556666", own * 4099 + 17);
    asks(&readings("ref", 12, uuid), "`ref` has 12");
}

#[test]
fn people_of_an_area_are_asked_about() {
    let text = (0..900).fold("city,alias_2,time,kcal\n".to_owned(), |text, n| {
        let own = mixed(n) % 15;
        text + &format!("c{},Q{own},{},{}\n", own % 4, time(n), n * 37 % 499)
    });
    asks(&text, "`city` is taken as the owner, but `alias_2` has more values");
    let few = (0..900).fold("city,climate,time,kcal\n".to_owned(), |text, n| {
        let own = mixed(n) % 15;
        text + &format!(
            "c{own},{},{},{}\n",
            ["dry", "wet", "cold"][own as usize % 3],
            time(n),
            n * 37 % 499
        )
    });
    let found = look(few);
    assert_eq!((found.owner.as_deref(), found.questions), (Some("city"), vec![]));
}

#[test]
fn what_a_person_writes_of_each_row_is_nobody() {
    for (header, texts) in [
        ("meal", ["Breakfast", "Lunch", "Dinner"]),
        ("activity", ["run", "walk", "swim"]),
        ("note", ["a", "b", "c"]),
        ("payment method", ["card", "cash", "check"]),
    ] {
        let text = (0..300).fold(format!("time,{header},kcal\n"), |text, n| {
            text + &format!("{},{},{}\n", time(n), texts[n as usize * 7 % 3], n * 37 % 499)
        });
        let found = look(text);
        assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]), "{header}");
    }
    let diary = (0..300).fold("time,mood,steps,pulse\n".to_owned(), |text, n| {
        let (steps, pulse) = (n * n * 37 % 9973, 55 + n * n % 71 * (n % 3));
        text + &format!("{},{},{steps},{pulse}\n", time(n), n * n % 9 + 1)
    });
    let found = look(diary);
    assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]));
    // What is measured has few of the least and of the greatest numbers.
    let pressure = (0..600).fold("time,besoek,pulse\n".to_owned(), |text, n| {
        let several: u32 = (0..6).map(|k| mixed(n * 6 + k) % 9).sum();
        text + &format!("{},{},{}\n", time(n), 110 + several, 55 + n * n % 71 * (n % 3))
    });
    let found = look(pressure);
    assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]));
}

#[test]
fn quantities_and_marks_of_readings_are_nobody() {
    for name in ["Normal Irradiance (DN) W/m2", "Direct Irradiance", "depth m2"] {
        let text = readings(name, 30, |own| (1 + own).to_string());
        let found = look(text);
        assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]), "{name}");
    }
    let marks = |own: u32| ["P", "A e", "P e", "A"][own as usize].to_owned();
    for name in ["Cloud uncert (code)", "wd_filter_nr", "flow_qualifiers", "Statut de mesure"] {
        for text in [readings(name, 4, |own| own.to_string()), readings(name, 4, marks)] {
            let found = look(text);
            assert_eq!((found.owner.as_deref(), found.asks_whose()), (None, false), "{name}");
        }
    }
    // A number of nobody knows what, and a state of a country.
    for name in ["Number", "Estado"] {
        let found = look(readings(name, 30, |own| (1001 + own).to_string()));
        assert!(found.asks_whose(), "{name}");
    }
    let header = "time,aa_nr,bb_nr,cc_nr,dd_nr,ee_nr,num_gaps,pulse\n".to_owned();
    let counts = (0..400).fold(header, |text, n| {
        let own: Vec<String> = (0..6).map(|k| (mixed(n * 6 + k) % 9).to_string()).collect();
        text + &format!("{},{},{}\n", time(n), own.join(","), 55 + n * n % 71 * (n % 3))
    });
    let found = look(counts);
    assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]));
    for name in ["Messstatus", "file name", "filename"] {
        let found = look(readings(name, 9, |own| format!("2024-05_part{own}.raw")));
        assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]), "{name}");
    }
}

/// The pressure beside a mast: one row for each time, and small steps up and down. It stays, and turns
/// anywhere; what goes up and back between two ends may be a round of visits, and is asked about.
#[test]
fn what_moves_slowly_is_nobody() {
    let slow = |n: u32| 920 + (n % 120).abs_diff(60) / 4 + (n % 14).abs_diff(7) / 3;
    let text = |number: &dyn Fn(u32) -> u32| {
        (0..240).fold("time,besoek,speed\n".to_owned(), |text, n| {
            let (day, time) = (n / 144 + 1, format!("{:02}:{}0", n / 6 % 24, n % 6));
            text + &format!("2024-05-{day:02} {time},{},{}.5\n", number(n), n * 37 % 71)
        })
    };
    let found = look(text(&slow));
    assert_eq!((found.owner.as_deref(), found.questions), (None, vec![]));
    assert!(found.attributes.iter().any(|own| own.column == "besoek"));
    // People take turns, in any order or in one.
    for turns in [(&|n| 901 + mixed(n) % 12) as &dyn Fn(u32) -> u32, &|n| 901 + n % 12] {
        asks(&text(turns), "`besoek` has 12 different values");
    }
    let back = |n: u32| 920 + (n % 60).abs_diff(30) / 2;
    asks(&text(&back), "`besoek` has 16 different values");
}
