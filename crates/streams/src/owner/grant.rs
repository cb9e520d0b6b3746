//! `alpheus owner grant`: lets a named consumer read days of a stream itself.

use super::{Owner, StreamArgs};
use crate::deployment;
use crate::deployment::from_hex;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::grant::Days;
use alpheus_input::calendar::Day;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::answer::EmptyAnswer;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    one: StreamArgs,
    /// The reader's certificate: `consumer.txt` of its identity folder
    #[arg(long, value_name = "FILE")]
    reader: PathBuf,
    /// The first day, UTC
    #[arg(long, value_name = "DAY", required_unless_present = "stop")]
    from: Option<Day>,
    /// The last day, UTC; each day's key is handed out once the day is over
    #[arg(long, value_name = "DAY", required_unless_present = "stop")]
    to: Option<Day>,
    /// End the grant: no further keys are handed out
    #[arg(long, conflicts_with_all = ["from", "to"])]
    stop: bool,
}

pub(super) fn grant(args: &Args) -> Result<(), Failure> {
    let (owner, identity) = Owner::open(&args.one.reach)?;
    let text = std::fs::read_to_string(&args.reader).blame_io(&args.reader)?;
    let certificate: Signed<Certificate> = from_hex(&text)
        .ok_or("not a protocol certificate in hexadecimal digits")
        .blame_input(&args.reader)?;
    let reader = deployment::of(&identity)?.consumer(&certificate).blame_input(&args.reader)?;
    let days = match (args.from, args.to) {
        (Some(from), Some(to)) => Some(Days::new(from.0, to.0).blame(Category::Usage)?),
        _ => None,
    };
    let stream = args.one.stream;
    let asked = owner.identity.grant(stream, &reader, certificate, (clock::now(), days));
    owner.client.call::<EmptyAnswer>("/v1/grants", &asked, Duration::ZERO)?;
    match days {
        None => println!("`{}` gets no further keys", reader.party.name),
        Some(days) => println!(
            "`{}` may read every event from {} to {}; each day's key is handed out once the day is over and cannot be taken back",
            reader.party.name,
            Day(days.first),
            Day(days.last)
        ),
    }
    let own = owner.identity.certified.id();
    println!("the reader can check that the stream is yours with --owner {own}");
    Ok(())
}
