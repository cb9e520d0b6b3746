//! Three servers as processes: writes made in advance, from the first request to
//! the table.

use super::{PAPER, ROWS};
use crate::program::processor_seconds;
use crate::report::{Figure, Goal};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::configuration::Party;
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::writer::Content;
use alpheus_board_service::client::{BoardError, Client, PostedWrite};
use alpheus_board_service::replay::first_view;
use alpheus_board_service::stage::{Keepers, Stage};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::listeners::block_on;
use futures_util::stream::{self, StreamExt, TryStreamExt};

const HTTP: &str = "board, behind HTTP";
/// Writers who wait for receipts at a time.
const UNDER_WAY: usize = 64;
/// The paper's longest run.
const MILLIONS: f64 = 2_895_216.0;

/// Processor seconds of both databases, since they started.
type ProcessorSeconds = [f64; 2];

pub(super) fn figures(writes: u32) -> Result<Vec<Figure>, Failure> {
    let [before, taken, after] = spent(writes)?;
    let each = |from: ProcessorSeconds, to: ProcessorSeconds| {
        1000.0 * (to[0] - from[0]).max(to[1] - from[1]) / f64::from(writes)
    };
    let (all, taking) = (each(before, after), each(before, taken));
    let named = |what: &str| {
        format!(
            "{ROWS} rows of 160 bytes, {writes} writes, {UNDER_WAY} at a time: processor time of a database, {what}"
        )
    };
    let rate =
        "writes a second, one core; the paper's cluster: 38.4, its code run again: 36 to 105";
    let longest = "the paper's 2,895,216 writes at this rate, one core; the paper: 32";
    Ok(vec![
        Figure::alone(HTTP, named("all included"), "ms", all).with_goal(Goal::AtMost(1.6)),
        Figure::alone(HTTP, named("until all have receipts"), "ms", taking),
        Figure::alone(HTTP, rate.into(), "", 1000.0 / all),
        Figure::alone(HTTP, longest.into(), "h", MILLIONS * all / 3.6e6),
    ])
}

/// Processor time of both databases before the first write, after the last, and when all
/// writers have seen the table.
fn spent(writes: u32) -> Result<[ProcessorSeconds; 3], Failure> {
    let mut rng = entropy::rng()?;
    let writers: Vec<SigningKey> =
        (0..writes).map(|_| SigningKey::from_seed(&Secret::random(&mut rng))).collect();
    let stage = Stage::start(&writers, PAPER, Some(ROWS), Keepers::Audited)?;
    let databases = Side::BOTH.map(|side| stage.process(Party::Database(side)));
    let now = || -> Result<ProcessorSeconds, Failure> {
        Ok([processor_seconds(databases[0])?, processor_seconds(databases[1])?])
    };
    block_on(async {
        let client = Client::new(&stage.card)?;
        let view = first_view(&client).await?;
        let mut made = Vec::new();
        for key in &writers {
            let tag = Members::tag_of(&key.verifying_key());
            let ticket = |name: &_| Members::ticket(key, name);
            let content = Content::Message(b"a message of some length");
            made.push(view.write(content, tag, ticket, &mut rng).blame(Category::Check)?);
        }
        let before = now()?;
        let client = &client;
        let sent = stream::iter(made).map(|(written, submission)| async move {
            let received = client.submit(&written, &submission).await?;
            Ok::<_, BoardError>(PostedWrite { written, submission, received })
        });
        let posted: Vec<PostedWrite> = sent.buffer_unordered(UNDER_WAY).try_collect().await?;
        let taken = now()?;
        client.settle(view.epoch(), &posted).await?;
        Ok([before, taken, now()?])
    })
}
