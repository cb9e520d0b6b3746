//! `alpheus owner grant`: lets a named consumer read days of a stream itself.

use super::{One, Owner};
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::from_hex;
use crate::network::wire::{Done, GrantAsked};
use crate::runtime::embedded::wall_clock;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::annotation::owner_id;
use alpheus_encrypted_stream::certificate::{Certificate, consumer_id};
use alpheus_encrypted_stream::grant::{Days, Grant};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use time::{Date, Month};

/// A day of the calendar, UTC, as days since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day(pub(crate) u64);

/// Julian day of 1970-01-01.
const EPOCH: i32 = 2_440_588;

impl FromStr for Day {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Day, &'static str> {
        let wrong = "a day is written as 2026-11-21";
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or(wrong);
        let year: i32 = part()?.parse().map_err(|_| wrong)?;
        let month: u8 = part()?.parse().map_err(|_| wrong)?;
        let day: u8 = part()?.parse().map_err(|_| wrong)?;
        let month = Month::try_from(month).map_err(|_| "there is no such month")?;
        let date =
            Date::from_calendar_date(year, month, day).map_err(|_| "there is no such day")?;
        let since = u64::try_from(date.to_julian_day() - EPOCH);
        since.map(Day).map_err(|_| "days before 1970 hold no events")
    }
}

/// As it is written.
pub(crate) fn calendar(day: u64) -> String {
    let julian = i32::try_from(day).ok().and_then(|day| EPOCH.checked_add(day));
    let date = julian.and_then(|julian| Date::from_julian_day(julian).ok());
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    one: One,
    /// The reader's certificate: `consumer.txt` of its identity folder
    #[arg(long, value_name = "FILE")]
    reader: PathBuf,
    /// The first day, UTC
    #[arg(long, value_name = "DAY", required_unless_present = "stop")]
    from: Option<Day>,
    /// The last day, UTC; keys are handed out as days pass
    #[arg(long, value_name = "DAY", required_unless_present = "stop")]
    to: Option<Day>,
    /// No more: nothing that was not handed out by now
    #[arg(long, conflicts_with_all = ["from", "to"])]
    stop: bool,
}

pub(super) fn grant(args: &Args) -> Result<(), Failure> {
    let (owner, identity) = Owner::open(&args.one.reach)?;
    let text = std::fs::read_to_string(&args.reader).blame_io(&args.reader)?;
    let certificate: Signed<Certificate> = from_hex(&text)
        .ok_or("not a protocol certificate in hexadecimal digits")
        .blame_input(&args.reader)?;
    let reader = identity.deployment()?.consumer(&certificate).blame_input(&args.reader)?;
    let days = match (args.from, args.to) {
        (Some(from), Some(to)) => Some(Days::new(from.0, to.0).blame(Category::Usage)?),
        _ => None,
    };
    let grant =
        Grant { stream: args.one.stream, reader: consumer_id(&reader), at: wall_clock(), days };
    let (signed, key) = (Signed::new(&grant, &owner.key), owner.key.verifying_key());
    let asked = GrantAsked { signed, owner: key, certificate };
    owner.client.exchange::<Done>("/v1/grants", &asked, Duration::ZERO)?;
    match days {
        None => println!("`{}` is handed out no more", reader.name),
        Some(days) => println!(
            "`{}` may read every event from {} to {}; a day's key is handed out once it has passed, and cannot be taken back",
            reader.name,
            calendar(days.first),
            calendar(days.last)
        ),
    }
    println!("who reads makes sure that it is yours with --owner {}", owner_id(&key));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!("1970-01-01".parse(), Ok(Day(0)));
        assert_eq!("2023-11-14".parse(), Ok(Day(19_675)));
        assert_eq!(calendar(19_675), "2023-11-14");
        for (wrong, says) in [
            ("today", "is written as"),
            ("2026-13-01", "no such month"),
            ("2026-02-30", "no such day"),
            ("1969-12-31", "before 1970"),
        ] {
            assert!(wrong.parse::<Day>().unwrap_err().contains(says), "{wrong}");
        }
    }
}
