//! Rows, columns and cells that may be single persons': what is asked, and what nobody releases.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::write::{Noise, files};
use alpheus_discover::{Hints, Understanding, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn with(text: &str, hints: Hints) -> Understanding {
    understand(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{error}"))
}

fn owner(name: &str) -> Hints {
    Hints { owner: Some(name.to_owned()), ..Hints::default() }
}

fn day(n: u32) -> String {
    format!("2024-{:02}-{:02}", n / 28 % 12 + 1, n % 28 + 1)
}

const PEOPLE: [&str; 18] = [
    "anna", "boris", "carla", "dmitri", "elena", "farid", "greta", "hugo", "ines", "jonas",
    "karin", "lars", "mona", "nils", "olga", "pavel", "quentin", "rosa",
];

#[test]
fn persons_as_columns_are_owners() {
    let wide = rows(&format!("date,{}", PEOPLE.join(",")), 10, |n| {
        (0..18).fold(day(n), |text, k| text + &format!(",{}.{n}", 200 + (k * 37 + n * 11) % 150))
    });
    let found = look(&wide);
    assert_eq!((found.questions.as_slice(), found.tally.owners), (&[][..], 18));
    assert!(found.notes[0].contains("source.yaml has them as `wide:`"), "{:?}", found.notes);
    let sum = (0..180u32).map(|n| 200 + (n % 18 * 37 + n / 18 * 11) % 150).sum::<u32>() as f64;
    let tenths = 18.0 * 4.5;
    let read: f64 = found.attributes[0].total.sum.text().parse().unwrap();
    assert!((read - sum - tenths).abs() < 1e-9, "{read} {sum}");
    let written = files(&found, "sleep.csv", None);
    let source = "wide:\n  attribute: value\n  columns: streams\n  leaveOut: []\n";
    assert!(written.source.ends_with(source), "{}", written.source);
    assert!(written.query.contains("SUM(value)") && written.query.contains("BETWEEN 10 AND"));
    assert!(written.policies.contains("clients: 10"), "{}", written.policies);
    for said in [owner("none"), Hints { measure: vec!["anna".to_owned()], ..Hints::default() }] {
        let found = with(&wide, said);
        assert!(found.wide.is_none() && found.questions.is_empty(), "{:?}", found.questions);
    }
    // Some are slower than others.
    let apart = rows(&format!("date,{}", PEOPLE.join(",")), 10, |n| {
        (0..18).fold(day(n), |text, k| text + &format!(",{}.5", 200 + k * 8 + n * 11 % 60))
    });
    assert_eq!(look(&apart).wide.map(|wide| wide.ends() == ("anna", "rosa")), Some(true));
    // Row numbers are nobody's, and a person says what is measured.
    let numbered = rows(&format!("date,row,{}", PEOPLE.join(",")), 10, |n| {
        (0..18).fold(format!("{},{n}", day(n)), |text, k| text + &format!(",{}", 200 + (k + n) % 9))
    });
    let said = Hints { wide: Some("sleep time".to_owned()), ..Hints::default() };
    let written = files(&with(&numbered, said), "sleep.csv", None);
    let source = "  attribute: sleep_time\n  columns: streams\n  leaveOut: [\"row\"]\n";
    assert!(written.source.ends_with(source), "{}", written.source);
    // Quantities of one machine are side by side too, in numbers of one size or not.
    for header in [
        "temperature,humidity,pressure,co2,noise,light,voltage,current",
        "open,high,low,close,adj close,volume",
        "ax,ay,az,gx,gy,gz,min,max",
    ] {
        let count = u32::try_from(header.split(',').count()).unwrap();
        let one = rows(&format!("date,{header}"), 40, |n| {
            (0..count).fold(day(n), |text, k| text + &format!(",{}.5", 20 + (k * 7 + n * 11) % 30))
        });
        assert_eq!(look(one).questions, [""; 0], "{header}");
    }
}

/// A unit that all columns have is that of what they measure.
#[test]
fn owners_side_by_side_share_a_unit() {
    let header = PEOPLE.map(|name| format!("{name} [min]")).join(",");
    let measured = rows(&format!("date,{header}"), 10, |n| {
        (0..18).fold(day(n), |text, k| text + &format!(",{}", 200 + (k + n) % 9))
    });
    let found = look(measured);
    let own = &found.attributes[0];
    assert_eq!((own.name.as_str(), own.unit.as_deref()), ("value", Some("min")));
    assert!(found.wide.is_some() && !found.unsure().concat().contains("No unit"));
}

/// Numbered flats with their sum beside them, as a spreadsheet has them.
#[test]
fn numbered_columns_with_a_unit_are_asked_about_and_their_sum_is_left_out() {
    let header = (1..=12).fold("date".to_owned(), |text, k| text + &format!(",flat {k} [kWh]"));
    let text = rows(&format!("{header},sum [kWh]"), 40, |n| {
        let own = |k: u32| 2 + (k * 7 + n * 11) % 12;
        let cells = (0..12).fold(day(n), |text, k| text + &format!(",{}.25", own(k)));
        format!("{cells},{}.00", (0..12).map(own).sum::<u32>() + 3)
    });
    asks(&text, "--wide NAME");
    let wide = |more: Hints| with(&text, Hints { wide: Some("energy".to_owned()), ..more });
    let found = wide(Hints::default());
    assert!(found.questions[0].contains("--leave-out 'sum [kWh]'"), "{:?}", found.questions);
    assert_eq!(found.tally.owners, 12);
    let sure = wide(Hints { leave_out: vec!["sum [kWh]".to_owned()], ..Hints::default() });
    assert_eq!((&sure.questions[..], sure.tally.rows), (&[][..], 480));
    assert_eq!(sure.attributes[0].unit.as_deref(), Some("kWh"));
}

#[test]
fn one_row_for_each_person_is_asked_about() {
    let admitted = |name: &str, who: fn(u32) -> String| {
        rows(&format!("admitted,{name},age,cd4_count"), 15, |n| {
            format!("{} 08:00:00,{},{},{}", day(n), who(n), 20 + n * 7 % 60, 100 + n * 131 % 800)
        })
    };
    let named = admitted("name", |n| format!("{}{n}", PEOPLE[n as usize]));
    asks(&named, "`name` differs from row to row and may name people");
    assert!(look(&named).asks_whose());
    assert_eq!(with(&named, owner("name")).tally.owners, 15);
    assert_eq!(with(&named, owner("none")).questions, [""; 0]);
    // Its values tell, whatever it is called.
    let who = admitted("entry", |n| {
        let (first, rest) = PEOPLE[n as usize].split_at(1);
        format!("{}{rest} {}", first.to_uppercase(), ["Berg", "Klein", "Vogt"][n as usize % 3])
    });
    asks(&who, "`entry` differs from row to row");
    // So do columns that differ between persons and not between days.
    let traits = rows("date,sex,weight", 30, |n| {
        format!("{},{},{}.5", day(n), ["f", "m"][n as usize * 7 % 3 % 2], 50 + n * 11 % 40)
    });
    asks(&traits, "rows seem to be about several people");
    // A diary with notes is one person's.
    let diary = rows("date,note,weight", 30, |n| {
        format!("{},went to bed at {n} and slept well,{}.5", day(n), 70 + n * 11 % 4)
    });
    assert_eq!(look(diary).questions, [""; 0]);
}

#[test]
fn owners_are_offered_by_how_well_they_identify() {
    // Customers, purchases and their price, in a file without names of columns.
    let sold = (0..900).fold(String::new(), |text, n| {
        let (own, day) = (n * 7 % 210, n % 28 + 1);
        text + &format!(
            "{own:05} {:04} 199701{day:02} {} {}.5\n",
            own % 200,
            n % 5 + 1,
            n * 13 % 90
        )
    });
    let found = look(&sold);
    let asked = found.questions.iter().find(|asked| asked.contains("--owner")).unwrap();
    assert!(asked.contains("It may be one of `column 1`, `column 2`."), "{asked}");
    let deaths = rows("date,gender,race,type,age", 120, |n| {
        let of = |list: [&'static str; 3], k: u32| list[(n * k % 3) as usize];
        let [gender, race, kind] =
            [of(["f", "m", "x"], 7), of(["a", "b", "c"], 5), of(["p", "q", "r"], 11)];
        format!("{},{gender},{race},{kind},{}", day(n / 6), 20 + n * 7 % 60)
    });
    for asked in look(&deaths).questions {
        assert!(!asked.contains("one of `gender`") && !asked.contains("`race`,"), "{asked}");
    }
}

#[test]
fn a_column_of_decimals_is_no_owner() {
    let text = rows("date,anna,boris", 10, |n| format!("{},{n}.25,{}.5", day(n), n * 3));
    let error = understand(text.as_bytes(), &owner("anna")).unwrap_err().to_string();
    assert!(error.contains("\"anna\" holds numbers with decimals, which measure"), "{error}");
}

#[test]
fn rows_that_name_nobody_are_noticed() {
    let found = look(rows("time,patient,pulse", 60, |n| {
        let name = if n % 20 == 7 { "NA".to_owned() } else { format!("p{}", n % 6) };
        format!("2024-03-01T{:02}:{:02}:00Z,{name},{}", n / 12, n % 12 * 5, 60 + n * 7 % 30)
    }));
    let notes = found.notes.join("\n");
    assert!(notes.contains("3 rows with a text such as `NA` for the owner"), "{notes}");
}

/// Twelve patients' readings of two weeks, of which one has a value that is rare.
fn lab(rare: fn(u32, u32) -> bool) -> String {
    rows("date,patient,pulse,hiv_load", 168, |n| {
        let (day, patient) = (n / 12, n % 12);
        let load = if rare(day, patient) { (400 + n).to_string() } else { "NA".to_owned() };
        format!("2024-03-{:02}T08:00:00Z,p{patient:02},{},{load}", day + 1, 60 + n * 7 % 30)
    })
}

#[test]
fn what_too_few_owners_have_is_not_released() {
    let one = look(lab(|_, patient| patient == 7));
    assert_eq!(one.questions, [""; 0]);
    let unsure = one.unsure().join("\n");
    assert!(unsure.contains("as few as 1 has a value of `hiv_load`, so the query does not ask for it, and policies.yaml releases nothing of it"));
    let written = files(&one, "lab.csv", None);
    assert!(written.policies.contains("hiv_load: { option: nothing }"), "{}", written.policies);
    assert!(!written.query.contains("hiv_load"), "{}", written.query);
    assert!(written.readme.contains("The query does not ask for `hiv_load`"), "{}", written.readme);
    assert!(!written.readme.contains("Nobody learns anything about fewer"));
    // Somebody may say that it is released.
    let said = Hints { measure: vec!["hiv_load".to_owned()], ..Hints::default() };
    let written = files(&with(&lab(|_, patient| patient == 7), said), "lab.csv", None);
    assert!(written.query.contains("hiv_load") && !written.policies.contains("option: nothing"));
    assert!(written.readme.contains("Rows may lack `hiv_load`"), "{}", written.readme);
    // Where all have a value now and then, it is released in windows in which enough have one.
    let some = look(lab(|day, patient| day < 13 && patient % 7 == day % 7));
    let written = files(&some, "lab.csv", None);
    assert!(written.policies.contains("hiv_load: { option: crowd, clients: 10, window: 7d }"));
}

/// Files for noise say how to have exact totals instead, and the same holds for these.
#[test]
fn exact_totals_in_place_of_noise_release_no_more() {
    let noise = || Some(Noise { error: "10 %", least: 0, terms: None });
    let one = look(lab(|_, patient| patient == 7));
    let written = files(&one, "lab.csv", noise());
    let lines = "#  # In some windows, fewer have a value.\n#  hiv_load: { option: nothing }\n";
    assert!(written.policies.ends_with(lines), "{}", written.policies);
    assert!(written.policies.contains("Exact totals: use all these lines instead."));
    assert!(!written.query.contains("hiv_load"), "{}", written.query);
    let all = files(&look(lab(|_, _| true)), "lab.csv", noise());
    assert!(all.policies.contains("Exact totals: use this line instead."), "{}", all.policies);
}

#[test]
fn what_too_few_owners_have_is_asked_about_if_there_is_nothing_else() {
    let hints = Hints { leave_out: vec!["pulse".to_owned()], ..Hints::default() };
    let found = with(&lab(|_, patient| patient == 7), hints);
    let asked = found.questions.join("\n");
    assert!(asked.contains("to release it all the same") && found.asks_whose(), "{asked}");
}

#[test]
fn a_zone_shifts_no_dates() {
    let text = rows("date,patient,pulse", 60, |n| format!("{},p{},{}", day(n / 6), n % 6, 60 + n));
    let zone = alpheus_discover::clock::Region::parse("Europe/Zurich");
    let said = with(&text, Hints { zone, ..Hints::default() });
    let plain = look(&text);
    assert_eq!(said.tally.span, plain.tally.span, "days of UTC");
    let says = |found: &Understanding| found.unsure().join("\n");
    assert!(says(&said).contains("each date is read as a day in UTC"), "{}", says(&said));
    assert!(says(&plain).contains("read as days in UTC, which no zone shifts"));
    assert!(files(&said, "d.csv", None).source.contains("zone: \"+00:00\""));
    // Times of day are shifted.
    let timed = text.replace(",p", " 08:00,p");
    let zone = alpheus_discover::clock::Region::parse("Europe/Zurich");
    let said = with(&timed, Hints { zone, ..Hints::default() });
    assert_ne!(said.tally.span, look(&timed).tally.span);
}

#[test]
fn what_noise_hides_is_not_overstated() {
    let written = files(&look(lab(|_, _| true)), "lab.csv", None);
    assert!(!written.policies.contains("next to nothing"), "{}", written.policies);
    let says = written.policies.replace("\n# ", " ");
    assert!(says.contains("ε = 5") && says.contains("not a strong"), "{says}");
    // Each attribute has a budget of its own.
    assert!(says.contains("up to ε = 100 for each attribute, hardly anything"), "{says}");
}

/// Twenty-four pigs are weighed each week. Nothing names them but a number between kinds of feed.
#[test]
fn as_long_as_it_is_open_whose_rows_are_a_crowd_is_asked_for() {
    let row = |n: u32| {
        let (pig, week) = (n / 12, n % 12);
        let (evit, cu, kg) = (pig % 3 + 1, pig / 3 % 3 + 1, 250 + 60 * week + pig * 7 % 31);
        let start = 4601 + pig * 97 % 53 * 50;
        format!(
            "{kg}.5,{evit},{cu},{},{start},2024-0{}-{:02}\n",
            pig % 5,
            week / 4 + 1,
            week % 4 * 7 + 1
        )
    };
    let rows: String = (0..288).map(row).collect();
    let file = format!("Weight,Evit,Cu,Litter,Pig,Time\n{rows}");
    let found = look(&file);
    assert!(found.asks_whose() && found.owner.as_deref() == Some("Pig"), "{:?}", found.questions);
    assert!(found.questions[0].contains("It may be one of `Pig`, "), "{:?}", found.questions);
    // Without that number, nothing tells them apart.
    let found = look(file.replace("Pig", "Start [g]").replace(",46", ",1"));
    assert!(found.asks_whose(), "{:?}", found.questions);
    let written = files(&found, "pigs.csv", None);
    assert!(written.policies.contains("option: crowd, clients: 10"), "{}", written.policies);
}

/// Few times repeat, so that the numbers of any two rows of one time differ by chance.
#[test]
fn a_measurement_that_differs_at_times_that_repeat_is_no_owner() {
    for (name, least) in [("bpm", 1), ("watts", 1), ("q9", 12)] {
        let row = |n: u32| {
            let minute = n - u32::from(n.is_multiple_of(least) && n % 3 == 1);
            let (hour, mode) = (minute / 60, ["rest", "walk"][(n % 2) as usize]);
            format!(
                "2024-03-{:02} {:02}:{:02},{mode},{},{}\n",
                hour / 24 + 1,
                hour % 24,
                minute % 60,
                60 + n * 37 % 131,
                90 + n % 9
            )
        };
        let rows: String = (0..1000).map(row).collect();
        let found = look(format!("time,mode,{name},spo2\n{rows}"));
        assert_ne!(found.owner.as_deref(), Some(name), "{:?}", found.questions);
    }
}

/// With noise, `--measure` only says which column an error is of. It frees no exact totals over few.
#[test]
fn a_column_that_is_named_for_an_error_frees_no_exact_totals() {
    let row = |n: u32| {
        let glucose = if n % 60 < 4 { format!("{}", 90 + n % 7) } else { String::new() };
        format!("p{},2024-03-{:02},{},{glucose}\n", n % 60, n / 60 + 1, 60 + n % 11)
    };
    let rows: String = (0..600).map(row).collect();
    let said = Hints { measure: vec!["glucose".to_owned()], ..Hints::default() };
    let found = with(&format!("person,day,pulse,glucose\n{rows}"), said);
    let noise = Noise { error: "60 %", least: 0, terms: None };
    let noisy = files(&found, "s.csv", Some(noise));
    let asked = noisy.query.lines().find(|line| line.starts_with("SELECT ")).unwrap();
    assert_eq!(asked, "SELECT AVG(glucose)");
    assert!(noisy.policies.contains("#  glucose: { option: nothing }"), "{}", noisy.policies);
    assert!(!noisy.query.contains("SUM(glucose)"), "{}", noisy.query);
    // Without noise, it says that exact totals are released all the same.
    let plain = files(&found, "s.csv", None);
    assert!(plain.query.contains("SUM(glucose)"), "{}", plain.query);
}
