//! Times and headers as trackers, meters, loggers and portals write them, made up for one quirk each.

use super::wild::lines;
use super::{ExpectedFile, is, look, unit};
use alpheus_discover::{Hints, understand};

const NONE: &str = "none stated";

#[test]
fn a_tracker_with_half_day_clocks_without_zeros() {
    let row = |n: u32| {
        let (day, hour) = (10 + n / 24, n % 24);
        let noon = if hour < 12 { "AM" } else { "PM" };
        let twelve = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
        format!(
            "{},4/{day}/2016 {twelve}:21:05 {noon},{}",
            2_022_484_408_u64 + u64::from(n % 2),
            60 + n % 40
        )
    };
    let text = format!("Id,Time,Value\n{}", lines(240, row));
    let expected = ExpectedFile {
        owner: Some("Id"),
        time: &["Time"],
        format: "%m/%d/%Y %I:%M:%S %p",
        zone: NONE,
        attribute: ("Value", 240, "19080"),
        rows: 240,
    };
    let found = is(text, &expected);
    assert_eq!(found.tally.span.map(|(first, _)| first), Some(1_460_247_665_000_000));
}

#[test]
fn quarter_hours_from_and_to() {
    let row = |n: u32| {
        format!(
            "01.02.2024;{:02}:{:02};{:02}:{:02};0,{n:03}",
            n / 4,
            n % 4 * 15,
            (n + 1) / 4 % 24,
            (n + 1) % 4 * 15
        )
    };
    let text = format!("Datum;Von;Bis;Verbrauch (kWh)\n{}", lines(48, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Datum", "Von"],
        format: "%d.%m.%Y %H:%M",
        zone: NONE,
        attribute: ("Verbrauch (kWh)", 48, "1.128"),
        rows: 48,
    };
    is(text, &expected);
}

/// As in the well-known file of a city's air: `10/03/2004;18.00.00;2,6`.
#[test]
fn a_clock_with_dots_beside_the_date() {
    let row =
        |n: u32| format!("{:02}/03/2004;{:02}.00.00;{},{}", 10 + n / 24, n % 24, n % 7, n % 10);
    let text = format!("Date;Time;CO\n{}", lines(240, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Date", "Time"],
        format: "%d/%m/%Y %H.%M.%S",
        zone: NONE,
        attribute: ("CO", 240, "823.0"),
        rows: 240,
    };
    is(text, &expected);
}

/// A column named `Time` of whole numbers to 23 has hours: as `hhmm` all would be of the first
/// minutes of a day.
#[test]
fn hours_under_the_name_of_a_time() {
    let row =
        |n: u32| format!("2024{:02}{:02},{:02},{n}", n / 24 / 28 + 1, n / 24 % 28 + 1, n % 24);
    let text = format!("Date,Time,Load\n{}", lines(960, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Date", "Time"],
        format: "%Y%m%d %H",
        zone: NONE,
        attribute: ("Load", 960, "460320"),
        rows: 960,
    };
    is(text, &expected);
}

#[test]
fn three_header_rows() {
    for delimiter in [",", ";", "\t"] {
        let row = |n: u32| format!("2024-05-01 {:02}:00:00|{}|{}.5|0", n, n + 1, 10 + n);
        let text =
            format!("TIMESTAMP|RECORD|AirT|Rain\nTS|RN|Deg C|mm\n||Avg|Tot\n{}", lines(20, row));
        let expected = ExpectedFile {
            owner: None,
            time: &["TIMESTAMP"],
            format: "%Y-%m-%d %H:%M:%S",
            zone: NONE,
            attribute: ("AirT", 20, "400.0"),
            rows: 20,
        };
        let found = is(text.replace('|', delimiter), &expected);
        assert_eq!((unit(&found, "AirT"), unit(&found, "Rain")), (Some("Deg C"), Some("mm")));
    }
}

#[test]
fn names_units_and_aggregation_without_gaps() {
    let row = |n: u32| format!("01/05/2024 {:02}:00,{}.5,{}", n, 10 + n, 80 + n);
    let text = format!(
        "Time,Temperature,Humidity\ndd/mm/yyyy hh:mm,°C,%\nInst,Mean,Mean\n{}{}",
        lines(20, row),
        lines(4, |n| format!("{}/05/2024 00:00,1.5,2", 13 + n))
    );
    let expected = ExpectedFile {
        owner: None,
        time: &["Time"],
        format: "%d/%m/%Y %H:%M",
        zone: NONE,
        attribute: ("Humidity", 24, "1798"),
        rows: 24,
    };
    let found = is(text, &expected);
    assert_eq!((unit(&found, "Temperature"), unit(&found, "Humidity")), (Some("°C"), Some("%")));
}

#[test]
fn days_of_a_spreadsheet_with_a_decimal_comma() {
    let row = |n: u32| {
        format!("{},{};{},5", 45_292 + n / 2, if n.is_multiple_of(2) { "25" } else { "75" }, n)
    };
    let text = format!("Datum;Zähler kWh\n{}", lines(20, row));
    let found = look(text);
    assert_eq!(found.time.format(), "spreadsheet days");
    assert_eq!(found.tally.span, Some((1_704_088_800_000_000, 1_704_909_600_000_000)));
    let days = look(format!("Date,v\n{}", lines(20, |n| format!("{},1", 45_292 + n))));
    assert!(days.questions.iter().any(|q| q.contains("spreadsheet")), "{:?}", days.questions);
}

#[test]
fn a_date_and_a_half_day_clock_in_two_columns() {
    let row = |n: u32| {
        format!(
            "6/{}/2024,{}:05 {},{n}",
            1 + n / 2,
            1 + n % 11,
            if n.is_multiple_of(2) { "AM" } else { "PM" }
        )
    };
    let text = format!("Date,Time,Steps\n{}", lines(40, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Date", "Time"],
        format: "%m/%d/%Y %I:%M %p",
        zone: NONE,
        attribute: ("Steps", 40, "780"),
        rows: 40,
    };
    is(text, &expected);
}

#[test]
fn weeks_by_number() {
    let row = |n: u32| format!("2024-W{:02},{}", n + 1, n);
    let expected = ExpectedFile {
        owner: None,
        time: &["Week"],
        format: "%G-W%V",
        zone: NONE,
        attribute: ("Cases", 20, "190"),
        rows: 20,
    };
    let found = is(format!("Week,Cases\n{}", lines(20, row)), &expected);
    assert_eq!(found.tally.span.map(|(first, _)| first), Some(1_704_067_200_000_000));
    let expected = ExpectedFile { time: &["Year", "Week"], format: "%G %V", ..expected };
    let row = |n: u32| format!("2024,{},{}", n + 1, n);
    is(format!("Year,Week,Cases\n{}", lines(20, row)), &expected);
}

#[test]
fn a_time_in_three_columns_and_months_by_name() {
    let row = |n: u32| format!("2024-03-0{},{},{},{n}", 1 + n / 12, n / 2 % 6, n % 2 * 30);
    let expected = ExpectedFile {
        owner: None,
        time: &["date", "hour", "minute"],
        format: "%Y-%m-%d %H %M",
        zone: NONE,
        attribute: ("count", 24, "276"),
        rows: 24,
    };
    is(format!("date,hour,minute,count\n{}", lines(24, row)), &expected);
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let row = |n: u32| format!("{},{},{n}", 2000 + n / 12, months[(n % 12) as usize]);
    let expected = ExpectedFile {
        time: &["Year", "Month"],
        format: "%Y %b",
        attribute: ("Passengers", 24, "276"),
        ..expected
    };
    is(format!("Year,Month,Passengers\n{}", lines(24, row)), &expected);
    let row = |n: u32| format!("2020,3,{},{}:30,{n}", n + 1, n);
    let expected = ExpectedFile {
        time: &["year", "month", "day", "time"],
        format: "%Y %m %d %H:%M",
        attribute: ("v", 20, "190"),
        rows: 20,
        ..expected
    };
    is(format!("year,month,day,time,v\n{}", lines(20, row)), &expected);
}

#[test]
fn numbers_since_1970_in_each_unit() {
    for (format, zeros) in [
        ("epoch seconds", ".25"),
        ("epoch milliseconds", "250"),
        ("epoch microseconds", "250000"),
        ("epoch nanoseconds", "250000000"),
    ] {
        let row = |n: u32| format!("a{},{}{zeros},{n}", n % 2, 1_700_000_000 + n);
        let expected = ExpectedFile {
            owner: Some("device"),
            time: &["ts"],
            format,
            zone: "UTC+00:00",
            attribute: ("v", 20, "190"),
            rows: 20,
        };
        let found = is(format!("device,ts,v\n{}", lines(20, row)), &expected);
        assert_eq!(found.tally.span.map(|(first, _)| first), Some(1_700_000_000_250_000));
    }
}

#[test]
fn a_portal_with_long_half_day_times() {
    let row = |n: u32| {
        format!(
            "Main St,{:02}/{:02}/2024 {:02}:00:00 {},{n}",
            1 + n / 28,
            1 + n % 28,
            1 + n % 11,
            if n.is_multiple_of(2) { "AM" } else { "PM" }
        )
    };
    let text = format!("Site,Date/Time,Total\n{}", lines(56, row));
    let expected = ExpectedFile {
        owner: Some("Site"),
        time: &["Date/Time"],
        format: "%m/%d/%Y %I:%M:%S %p",
        zone: NONE,
        attribute: ("Total", 56, "1540"),
        rows: 56,
    };
    is(text, &expected);
}

#[test]
fn a_database_with_short_offsets_and_true_and_false() {
    let row = |n: u32| {
        format!(
            "{},2024-01-01 {:02}:00:00+00,{},{}",
            n % 2 + 501,
            n / 2,
            n,
            if n.is_multiple_of(3) { "t" } else { "f" }
        )
    };
    let text = format!("user_id,recorded_at,v,active\n{}", lines(40, row));
    let expected = ExpectedFile {
        owner: Some("user_id"),
        time: &["recorded_at"],
        format: "%Y-%m-%d %H:%M:%S%z",
        zone: "offset in the value",
        attribute: ("active", 40, "14"),
        rows: 40,
    };
    is(text, &expected);
}

#[test]
fn dots_in_the_time_of_day_and_a_two_digit_year() {
    let row = |n: u32| format!("{:02}-02-24 {n:02}.30|{n}", n + 1);
    let text = format!("Datum|Antal\n{}", lines(20, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Datum"],
        format: "%d-%m-%y %H.%M",
        zone: NONE,
        attribute: ("Antal", 20, "190"),
        rows: 20,
    };
    is(text, &expected);
}

#[test]
fn am_and_pm_in_a_column_of_their_own_or_as_one_letter() {
    let noon = |n: u32| (if n.is_multiple_of(2) { "AM" } else { "PM" }, 1 + n % 11);
    let row = |n: u32| format!("01/{:02}/2024,{}:15,{},{n}", 1 + n / 2, noon(n).1, noon(n).0);
    let expected = ExpectedFile {
        owner: None,
        time: &["date", "time", "ampm"],
        format: "%m/%d/%Y %I:%M %p",
        zone: NONE,
        attribute: ("v", 40, "780"),
        rows: 40,
    };
    is(format!("date,time,ampm,v\n{}", lines(40, row)), &expected);
    let row = |n: u32| {
        format!("{:02}.01.24\t{}:15 {}\t{n}", 1 + n / 2, noon(n).1, noon(n).0[..1].to_lowercase())
    };
    let expected =
        ExpectedFile { time: &["Date", "Time"], format: "%d.%m.%y %I:%M %p", ..expected };
    is(format!("Date\tTime\tv\n{}", lines(40, row)), &expected);
}

#[test]
fn a_clock_of_six_digits_and_days_that_begin_at_midnight() {
    let row = |n: u32| format!("X,202401{:02},{:02}{:02}00,{n}", 1 + n / 24, n % 24, n % 60);
    let expected = ExpectedFile {
        owner: None,
        time: &["<DATE>", "<TIME>"],
        format: "%Y%m%d %H%M%S",
        zone: NONE,
        attribute: ("<VOL>", 48, "1128"),
        rows: 48,
    };
    is(format!("<TICKER>,<DATE>,<TIME>,<VOL>\n{}", lines(48, row)), &expected);
    let row = |n: u32| {
        format!(
            "2024-01-{:02} 00:00:00;2024-01-{:02} 08:{n:02}:00;{}%;8:{n:02}",
            n + 1,
            n + 1,
            50 + n
        )
    };
    let expected = ExpectedFile {
        time: &["Start"],
        format: "%Y-%m-%d %H:%M:%S",
        attribute: ("Sleep quality", 20, "1190"),
        rows: 20,
        ..expected
    };
    is(format!("Start;End;Sleep quality;Time in bed\n{}", lines(20, row)), &expected);
}

#[test]
fn quoted_cells_with_other_delimiters_in_them() {
    let row = |n: u32| format!("\"2024-01-01 {n:02}:00\",\"BZN|DE-LU; all\",\"{}\"", 40_000 + n);
    let expected = ExpectedFile {
        owner: None,
        time: &["MTU (CET)"],
        format: "%Y-%m-%d %H:%M",
        zone: "UTC+01:00",
        attribute: ("Load [MW]", 20, "800190"),
        rows: 20,
    };
    is(format!("\"MTU (CET)\",\"Area\",\"Load [MW]\"\n{}", lines(20, row)), &expected);
}

/// A report of one day has its date above the table.
#[test]
fn times_of_day_have_the_date_of_a_line_above_or_one_that_is_said() {
    let rows: String =
        (0..48).map(|n| format!("{:02}:{:02},{}.5\n", n / 2, n % 2 * 30, n * 7 % 31)).collect();
    let dated = format!("Report of 2024-03-04\n\nTime,level\n{rows}");
    let found = look(&dated);
    assert!(found.questions[0].contains("--date 2024-03-04"), "{:?}", found.questions);
    let said = Hints { date: Some("2024-03-04".to_owned()), ..Hints::default() };
    for text in [dated, format!("Time,level\n{rows}")] {
        let found = understand(text.as_bytes(), &said).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.questions, [""; 0]);
        // Midnight of that day, to half past eleven in the evening.
        let begin = 1_709_510_400_000_000;
        assert_eq!(found.tally.span, Some((begin, begin + 47 * 1_800_000_000)));
    }
    let refused = understand(format!("Time,level\n{rows}").as_bytes(), &Hints::default());
    assert!(refused.is_err_and(|error| error.to_string().contains("--date")));
    // Of several days, and so not of one.
    let twice = format!("Report of 2024-03-04\nTime,level\n{rows}{rows}");
    assert!(!look(twice).questions.is_empty());
}

/// Times of day that pass midnight are not of one day.
#[test]
fn times_that_pass_midnight_are_asked_about_under_one_date() {
    let said = Hints { date: Some("2024-03-04".to_owned()), ..Hints::default() };
    let asked = |text: &str, hints: &Hints| {
        let found = understand(text.as_bytes(), hints).unwrap_or_else(|error| panic!("{error}"));
        found.questions.iter().any(|question| question.contains("midnight"))
    };
    let clock = |n: u32| format!("{:02}:{:02}", n / 2 % 24, n % 2 * 30);
    // A night from eight in the evening, of one owner or of two in turn.
    let night: String = (40..64).map(|n| format!("{},{}.5\n", clock(n), n * 7 % 31)).collect();
    let night = format!("Time,level\n{night}");
    let two = |n: u32| format!("a,{},{}.5\nb,{},{n}.5\n", clock(n), n * 7 % 31, clock(n + 3));
    let nights: String = (40..64).map(two).collect();
    let nights = format!("sensor,Time,level\n{nights}");
    // The newest row may come first.
    let (head, rows) = night.split_once('\n').unwrap_or_default();
    let back: Vec<&str> = rows.lines().rev().collect();
    let back = format!("{head}\n{}\n", back.join("\n"));
    for text in [&night, &nights, &back] {
        assert!(asked(text, &said), "{text}");
        assert!(asked(&format!("Report of 2024-03-04\n\n{text}"), &Hints::default()), "{text}");
    }
    // Each owner's day stands below another's, with a long pause at noon; or rows are dated.
    let day = |owner: &str| -> String {
        let hours = (0..6).chain(19..24);
        hours.map(|n| format!("{owner},{n:02}:00,{}.5\n", n * 7 % 31)).collect()
    };
    assert!(!asked(&format!("sensor,Time,level\n{}{}", day("a"), day("b")), &said));
    let dated = |n: u32| format!("2024-03-0{} {},{}.5\n", 4 + n / 48, clock(n), n * 7 % 31);
    let dated: String = (40..64).map(dated).collect();
    assert!(!asked(&format!("Time,level\n{dated}"), &said));
}

/// `05/03/19` may have the year, the day or the month first. The hours go on only if it is the month.
#[test]
fn the_month_may_stand_before_the_day_and_a_year_of_two_digits() {
    let row = |meter: u32, n: u32| {
        format!("m{meter},05/{:02}/19 {:02}:00,1.{:02}", 3 + n / 24, n % 24, n % 60)
    };
    let table =
        |hours: u32| -> String { (1..=2).map(|meter| lines(hours, |n| row(meter, n))).collect() };
    let found = look(format!("meter,date,kwh\n{}", table(96)));
    assert_eq!(found.time.format(), "%m/%d/%y %H:%M");
    assert!(
        found.notes.iter().any(|note| note.contains("the month is assumed")),
        "{:?}",
        found.notes
    );
    // So few rows do not show it.
    let found = look(format!("meter,date,kwh\n{}", table(3)));
    let asked = |part: &str| found.questions.iter().any(|question| question.contains(part));
    assert!(asked("`--month-first`"), "{:?}", found.questions);
}

#[test]
fn years_of_two_digits_that_lie_far_ahead_are_asked_about() {
    let of = |year: u32| {
        look(format!(
            "meter,date,kwh\n{}",
            lines(40, |n| format!("m{},20.{:02}.{},3", n % 2, n / 2 % 12 + 1, year + n / 24))
        ))
    };
    let found = of(65);
    let asked = |part: &str| found.questions.iter().any(|question| question.contains(part));
    assert!(
        asked("the last time is 2066-") && asked("confirm them with `--time-format`"),
        "{:?}",
        found.questions
    );
    assert!(!of(20).questions.iter().any(|question| question.contains("two digits")));
}
