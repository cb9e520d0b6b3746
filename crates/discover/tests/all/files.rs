//! Files that leave no doubt.

use super::{ExpectedFile, agrees, is, look, unit};
use alpheus_discover::Values;

const NONE: &str = "none stated";

#[test]
fn a_plain_long_file() {
    let text = "user,time,steps\nann,2024-03-01 08:00:00,10\nbob,2024-03-01 08:00:00,20\nann,2024-03-01 09:00:00,5\nbob,2024-03-01 09:00:00,7\n";
    let expected = ExpectedFile {
        owner: Some("user"),
        time: &["time"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: NONE,
        attribute: ("steps", 4, "42"),
        rows: 4,
    };
    is(text, &expected);
}

#[test]
fn semicolons_decimal_commas_and_german_dates_in_latin_1() {
    let text = "Datum;Uhrzeit;Z\u{e4}hler;Temp [\u{b0}C]\n13.02.2024;10:00;A;1,5\n13.02.2024;10:00;B;-2,25\n13.02.2024;11:00;A;10,125\n13.02.2024;11:00;B;0\n";
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let expected = ExpectedFile {
        owner: Some("Zähler"),
        time: &["Datum", "Uhrzeit"],
        format: "%d.%m.%Y %H:%M",
        zone: NONE,
        attribute: ("Temp [°C]", 4, "9.375"),
        rows: 4,
    };
    let found = is(latin, &expected);
    assert_eq!(unit(&found, "Temp [°C]"), Some("°C"));
    assert_eq!(found.form.encoding.name(), "windows-1252");
}

#[test]
fn a_logger_with_title_byte_order_mark_and_zone_in_the_header() {
    let text = "\u{feff}\"Plot Title: creek\"\n\"Date Time, GMT-05:00\",\"Temp, °C (SN: 77)\",\"Level, ft\"\n01/28/16 11:25:04,4.5,\n01/28/16 11:55:04,,0.25\n01/29/16 11:55:04,4.75,\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["Date Time, GMT-05:00"],
        format: "%m/%d/%y %H:%M:%S",
        zone: "UTC-05:00",
        attribute: ("Temp, °C (SN: 77)", 2, "9.25"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!(unit(&found, "Level, ft"), Some("ft"));
}

#[test]
fn prose_above_a_header_with_a_mark_and_padded_cells() {
    let text = "SOURCE: a weather service, with commas, in prose\n\nHH = hour (UTC)\nT  = temperature (in 0.1 degC)\n\n# STN,YYYYMMDD,   HH,    T,   RH\n\n  260,20240101,   23,   49,    0\n  260,20240101,   24,   50,     \n  260,20240102,    1,  -52,    3\n";
    let expected = ExpectedFile {
        owner: Some("STN"),
        time: &["YYYYMMDD", "HH"],
        format: "%Y%m%d %H",
        zone: "UTC+00:00",
        attribute: ("T", 3, "47"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!(unit(&found, "T"), Some("0.1 degC"));
    assert_eq!(found.tally.span, Some((1_704_150_000_000_000, 1_704_157_200_000_000)));
}

#[test]
fn comment_lines_that_end_in_the_header() {
    let text = "#station;7\n#unitsymbol;m\n#Timestamp;Value;Quality Code\n2020-01-01T00:00:00.000+01:00;12.75;200\n2020-01-01T03:00:00.000+01:00;12.5;200\n2020-01-01T06:00:00.000+01:00;12.25;100\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["#Timestamp"],
        format: "%Y-%m-%dT%H:%M:%S.%f%z",
        zone: "offset in the value",
        attribute: ("Value", 3, "37.50"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!(unit(&found, "Value"), Some("m"));
}

#[test]
fn rows_of_units_and_of_methods_below_the_header() {
    let text = "\"TOA5\",\"site\",\"CR1000\"\n\"TIMESTAMP\",\"RECORD\",\"AirT\",\"Rain\"\n\"TS\",\"RN\",\"Deg C\",\"mm\"\n\"\",\"\",\"Avg\",\"Tot\"\n\"2024-05-01 00:00:00\",1,10.5,0\n\"2024-05-01 00:10:00\",2,10.25,\"NAN\"\n\"2024-05-01 00:20:00\",3,10,0.2\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["TIMESTAMP"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: NONE,
        attribute: ("Rain", 2, "0.2"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!((unit(&found, "AirT"), unit(&found, "Rain")), (Some("Deg C"), Some("mm")));
    assert!(found.left_out.iter().any(|(name, _)| name == "RECORD"));
}

#[test]
fn columns_between_spaces_with_date_parts() {
    let text = "#YY  MM DD hh mm WDIR WSPD\n#yr  mo dy hr mn degT m/s\n2024 01 15 00 00  90  5.5\n2024 01 15 00 10 100 99.0\n2024 01 15 00 20 110 99.0\n2024 01 15 00 30 120  4.5\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["#YY", "MM", "DD", "hh", "mm"],
        format: "%Y %m %d %H %M",
        zone: NONE,
        attribute: ("WSPD", 2, "10.0"),
        rows: 4,
    };
    let found = is(text, &expected);
    assert_eq!(unit(&found, "WSPD"), Some("m/s"));
}

#[test]
fn year_and_day_of_the_year_and_minutes_of_the_clock() {
    let text = "Year,DOY,MST,Global [W/m^2]\n2018,291,0,-7999.0\n2018,291,5,1.5\n2018,291,1230,2.25\n2018,292,2359,-7999.0\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["Year", "DOY", "MST"],
        format: "%Y %j %H%M",
        zone: "UTC-07:00",
        attribute: ("Global [W/m^2]", 2, "3.75"),
        rows: 4,
    };
    let found = is(text, &expected);
    assert_eq!(found.attributes[0].sentinels.get("-7999.0"), Some(&2));
}

#[test]
fn no_header_and_milliseconds() {
    let text = "0,1424696633908,1424696631913248572,-5.958,ann\n1,1424696633909,1424696631918283972,-5.25,ann\n2,1424696633918,1424696631923288855,-5,ann\n";
    let expected = ExpectedFile {
        owner: Some("column 5"),
        time: &["column 2"],
        format: "epoch milliseconds",
        zone: "UTC+00:00",
        attribute: ("column 4", 3, "-16.208"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert!(found.left_out.iter().any(|(name, _)| name == "column 3"));
}

#[test]
fn two_formats_in_one_column() {
    let text = "place,date,v\nA,04-19-16 9:37,3\nA,10-18-2016 11:15:21,2\nB,04-20-16 9:38,4\nB,10-19-2016 11:15:19,1\nA,04-22-16 10:01,5\n";
    let expected = ExpectedFile {
        owner: Some("place"),
        time: &["date"],
        format: "%m-%d-%y %H:%M or %m-%d-%Y %H:%M:%S",
        zone: NONE,
        attribute: ("v", 5, "15"),
        rows: 5,
    };
    is(text, &expected);
}

#[test]
fn numbers_that_stand_for_a_missing_one_are_left_out_everywhere() {
    let text = "time,a,b\n2024-01-01 00:00,-200,5\n2024-01-01 01:00,2,-200\n2024-01-01 02:00,3.5,330\n2024-01-01 03:00,-200,7\n2024-01-01 04:00,2.5,8\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("a", 3, "8.0"),
        rows: 5,
    };
    let found = is(text, &expected);
    assert_eq!(found.attributes[1].total.sum.text(), "350");
    assert!(found.notes.iter().any(|note| note.contains("-200") && note.contains("left out")));
}

#[test]
fn a_half_day_clock_and_quoted_cells_with_commas() {
    let text = "Customer ID,Order Date,Title,Price\nR1,1/18/2018 1:05 PM,\"A \"\"big\"\" desk, oak\",\"1,204.50\"\nR2,1/19/2018 12:00 AM,Lamp,7.99\nR1,12/2/2018 11:59 AM,\"Rug, red\",20\nR2,12/31/2018 12:30 PM,Mat,3.01\n";
    let expected = ExpectedFile {
        owner: Some("Customer ID"),
        time: &["Order Date"],
        format: "%m/%d/%Y %I:%M %p",
        zone: NONE,
        attribute: ("Price", 4, "1235.50"),
        rows: 4,
    };
    is(text, &expected);
}

#[test]
fn a_cell_with_a_line_break() {
    let text = "user,time,note,v\na,2024-01-01T00:00:00Z,\"one\ntwo\",1\nb,2024-01-01T00:00:00Z,\"x\",3\na,2024-01-02T00:00:00Z,,2\nb,2024-01-02T00:00:00Z,,4\n";
    let expected = ExpectedFile {
        owner: Some("user"),
        time: &["time"],
        format: "%Y-%m-%dT%H:%M:%S%z",
        zone: "offset in the value",
        attribute: ("v", 4, "10"),
        rows: 4,
    };
    assert!(is(text, &expected).form.multiline);
}

#[test]
fn utf_16_with_pipes_and_spaces_between_thousands() {
    let text = "meter|when|reading kWh\nm1|2024-01-01 00:00|1 204,5\nm2|2024-01-01 00:00|12,25\nm1|2024-01-01 01:00|1 205,5\nm2|2024-01-01 01:00|13\n";
    let bytes: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let expected = ExpectedFile {
        owner: Some("meter"),
        time: &["when"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("reading kWh", 4, "2435.25"),
        rows: 4,
    };
    is(bytes, &expected);
}

#[test]
fn a_row_number_without_a_name() {
    let text = "\"date\",\"Temp\"\n\"140\",\"2015-02-02 14:19:00\",23.75\n\"141\",\"2015-02-02 14:20:00\",23.5\n\"142\",\"2015-02-02 14:21:00\",23.25\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["date"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: NONE,
        attribute: ("Temp", 3, "70.50"),
        rows: 3,
    };
    is(text, &expected);
}

#[test]
fn rows_without_a_time_and_empty_rows() {
    let text = "Index,Timestamp,Event,Glucose (mg/dL),,\n1,,FirstName,,,\n2,,Alert,80,,\n3,2016-10-24T11:24:17,EGV,103,,\n4,2016-10-24T11:29:17,EGV,102,,\n5,2016-10-24T11:34:17,EGV,Low,,\n6,2016-10-24T11:39:17,EGV,99,,\n7,2016-10-24T11:44:17,EGV,98,,\n8,2016-10-24T11:49:17,EGV,97,,\n9,2016-10-24T11:54:17,EGV,96,,\n,,,,,\n";
    let found = super::look(text);
    let expected = ExpectedFile {
        owner: None,
        time: &["Timestamp"],
        format: "%Y-%m-%dT%H:%M:%S",
        zone: NONE,
        attribute: ("Glucose (mg/dL)", 6, "595"),
        rows: 7,
    };
    super::agrees(&found, &expected);
    assert_eq!((found.tally.untimed, found.tally.blank), (2, 1));
    assert_eq!(found.attributes[0].texts.get("Low"), Some(&1), "a text among numbers is named");
}

#[test]
fn a_column_of_units_behind_each_number() {
    let text = "Date\tTime\tU1\tUnit\tI1\tUnit\n09.09.2013\t12:30:27\t415,4\tV\t1,5\tA\n09.09.2013\t12:30:29\t416\tV\t1,25\tA\n09.09.2013\t12:30:31\t414,6\tV\t1\tA\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["Date", "Time"],
        format: "%d.%m.%Y %H:%M:%S",
        zone: NONE,
        attribute: ("U1", 3, "1246.0"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!((unit(&found, "U1"), unit(&found, "I1")), (Some("V"), Some("A")));
}

#[test]
fn months_by_name_and_a_web_log_time() {
    let text = "host,when,bytes\n10.0.0.1,10/Oct/2023:13:55:36 +0000,100\n10.0.0.2,10/Oct/2023:13:55:37 +0000,-\n10.0.0.1,11/Oct/2023:13:55:36 +0000,300\n10.0.0.2,12/Oct/2023:13:55:36 +0000,50\n";
    let expected = ExpectedFile {
        owner: Some("host"),
        time: &["when"],
        format: "%d/%b/%Y:%H:%M:%S %z",
        zone: "offset in the value",
        attribute: ("bytes", 3, "450"),
        rows: 4,
    };
    is(text, &expected);
}

#[test]
fn seconds_since_1970_in_a_wide_file() {
    let text = "timestamp,773869,767541,767542\n1330560000,64.5,67,\n1330560300,62,65.5,60\n1330560600,61,66,59\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["timestamp"],
        format: "epoch seconds",
        zone: "UTC+00:00",
        attribute: ("767542", 2, "119"),
        rows: 3,
    };
    let found = look(text);
    agrees(&found, &expected);
    assert!(found.questions[0].contains("`773869` and 2 other columns"), "{:?}", found.questions);
}

#[test]
fn days_of_a_spreadsheet() {
    let text = "Date,kWh\n43101.0,1.5\n43101.5,2.5\n43102.25,3\n";
    let expected = ExpectedFile {
        owner: None,
        time: &["Date"],
        format: "spreadsheet days",
        zone: NONE,
        attribute: ("kWh", 3, "7.0"),
        rows: 3,
    };
    let found = is(text, &expected);
    assert_eq!(found.tally.span, Some((1_514_764_800_000_000, 1_514_872_800_000_000)));
}

#[test]
fn yes_and_no_and_duplicates_and_disorder() {
    let text = "room,time,open\nA,2024-01-01 10:00,yes\nB,2024-01-01 10:00,no\nA,2024-01-01 09:00,no\nA,2024-01-01 09:00,no\nB,2024-01-01 11:00,yes\nB,2024-01-01 11:00,no\n";
    let expected = ExpectedFile {
        owner: Some("room"),
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("open", 6, "2"),
        rows: 6,
    };
    let found = is(text, &expected);
    assert_eq!(found.attributes[0].values, Values::Boolean);
    let tally = &found.tally;
    assert_eq!((tally.duplicates, tally.out_of_order, tally.same_time), (1, 2, 2));
}

#[test]
fn only_texts_are_counted() {
    let text = "user,time,event\na,2024-01-01 10:00,login\nb,2024-01-01 10:00,login\na,2024-01-01 11:00,logout\nb,2024-01-01 12:00,login\n";
    let expected = ExpectedFile {
        owner: Some("user"),
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("event", 4, "0"),
        rows: 4,
    };
    assert_eq!(is(text, &expected).attributes[0].values, Values::Text);
}

#[test]
fn money_and_percent_signs() {
    let text = "shop,day,sales,share\nx,2024-01-15,$1204.50,5 %\ny,2024-01-15,$3.25,95 %\nx,2024-01-16,$10.25,50 %\ny,2024-01-16,$20.00,50 %\n";
    let expected = ExpectedFile {
        owner: Some("shop"),
        time: &["day"],
        format: "%Y-%m-%d",
        zone: NONE,
        attribute: ("sales", 4, "1238.00"),
        rows: 4,
    };
    assert_eq!(is(text, &expected).attributes[1].total.sum.text(), "200");
}

#[test]
fn a_gauge_with_a_column_of_zones_and_a_row_of_widths() {
    let text = "# a survey\n#\nagency\tsite_no\tdatetime\ttz_cd\tstage_ft\n5s\t15s\t20d\t6s\t14n\nUS\t0123\t2024-03-10 00:00\tEST\t1.5\nUS\t0123\t2024-03-10 12:00\tEDT\t2\nUS\t0123\t2024-03-11 00:00\tEDT\t2.25\nUS\t0123\t2024-03-11 06:00\tEDT\t2.5\n";
    let expected = ExpectedFile {
        owner: Some("site_no"),
        time: &["datetime", "tz_cd"],
        format: "%Y-%m-%d %H:%M %Z",
        zone: "offset in the value",
        attribute: ("stage_ft", 4, "8.25"),
        rows: 4,
    };
    let found = is(text, &expected);
    assert_eq!(found.tally.span.map(|(first, _)| first), Some(1_710_046_800_000_000));
}

#[test]
fn a_station_with_hours_in_one_number_and_an_end_mark() {
    let text = "STATIONS_ID;MESS_DATUM;QN_9;TT_TU;eor\n         44;2024010100;    3;   4.5;eor\n         44;2024010101;    3;-999;eor\n         44;2024010102;    3;   4.25;eor\n         44;2024010103;    3;-999;eor\n";
    let expected = ExpectedFile {
        owner: Some("STATIONS_ID"),
        time: &["MESS_DATUM"],
        format: "%Y%m%d%H",
        zone: NONE,
        attribute: ("TT_TU", 2, "8.75"),
        rows: 4,
    };
    is(text, &expected);
}
