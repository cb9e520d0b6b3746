//! A service that cheats, and is caught.
//!
//! The service of this demo is honest, as the product's is: it has no way to cheat. Here somebody
//! between it and the consumer changes what it published: first a row, then a controller's part of
//! the receipt as well, so that the parts add up to the changed number.

use super::play::{Play, broken};
use super::stage::output;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::receipt::{Receipt, WindowReceipt};
use alpheus_node::failure::{Category, Failure};
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::receipts::{ReceiptParts, page};
use alpheus_stream_runtime::results::{OK, Row, columns};
use alpheus_streams::query::receipts::{PlanOfRows, RefusedRowError, check};
use alpheus_time::Window;
use rand_core::Rng;
use serde_json::Value;

/// By how much the sum of all speeds is changed, in its last decimal place.
const CHANGE: u64 = 50_000;

/// A row, and what is needed to check it.
struct PublishedRow {
    row: Row,
    window: Window,
    announced: AnnouncedPlan,
    receipt: Receipt,
}

impl PublishedRow {
    /// What the consumer who asked finds.
    fn check(&self) -> Result<String, RefusedRowError> {
        let receipt = WindowReceipt::from(self.receipt.clone());
        let of = PlanOfRows { announced: &self.announced, schema: None };
        check(&self.row.to_json(), &self.row.query, of, (self.window, &receipt))
    }

    /// The row as it would be if the controllers' parts added up to more. False if nothing in it
    /// changes.
    fn change_row(&mut self, by: u64) -> bool {
        let verified = self.receipt.verify(&self.announced, self.window);
        let mut words = verified.map(|row| row.words().to_vec()).unwrap_or_default();
        changed(&mut words, by);
        let Ok(values) = columns(self.announced.plan(), &words) else { return false };
        let cells = self.row.outputs.iter_mut().map(|(_, cell)| cell);
        let changed =
            cells.zip(values).map(|(cell, value)| std::mem::replace(cell, value.clone()) != value);
        changed.fold(false, |any, changed| any | changed)
    }

    /// Changes one controller's part so that it fits, and signs it with another key. The
    /// controller's own key is nowhere but with the controller.
    fn change_receipt(&mut self, by: u64, key: &SigningKey) {
        let Some(share) = self.receipt.shares.first_mut() else { return };
        let Some(mut token) = share.token.dangerous_unverified() else { return };
        changed(&mut token.words, by);
        share.token = Signed::new(&token, key);
    }
}

/// Changes the sum of a row's words, which stands before the check word.
fn changed(words: &mut [u64], by: u64) {
    let sum = words.iter_mut().rev().nth(1);
    sum.into_iter().for_each(|sum| *sum = sum.wrapping_add(by));
}

/// Plays the act.
///
/// # Errors
/// If the recording is over, a store fails, or the query is refused.
pub(super) fn caught(play: &mut Play<'_>) -> Result<(), Failure> {
    play.stage.step(
        "A service that cheats, caught",
        "So far the service's own sums are in every row: if it published another number, nobody could\n\
         tell. This query asks for signed rows. Each controller signs its owner's part, still masked, and\n\
         the parts alone make the row. The consumer checks every signature, and that the parts add up:",
    )?;
    let text = play.world.signed.text.clone();
    play.stage.quote(&text)?;
    play.stage.say("")?;
    let mut published = signed_row(play)?;
    say_checked(play, "as published", &published)?;
    play.expect(published.check().is_ok(), "the signed row to hold");
    play.stage.say("\nNow the service publishes another number:\n")?;
    let is_other = published.change_row(CHANGE);
    play.expect(is_other, "another number in the row");
    say_checked(play, "changed", &published)?;
    play.expect(published.check().is_err(), "the changed row to be refused");
    play.stage.say(
        "\nSo it changes a controller's part too, until the sum fits. But it cannot sign as a controller:\n",
    )?;
    let mut seed = [0; 32];
    play.rng.fill_bytes(&mut seed);
    published.change_receipt(CHANGE, &SigningKey::from_seed(&Secret::from_bytes(seed)));
    say_checked(play, "forged", &published)?;
    play.expect(published.check().is_err(), "the forged receipt to be refused");
    play.stage.say(
        "\nNobody sees any number of a refused row. The service still chooses whom it asks, and the row says\n\
         how many people took part. docs/integrity.md shows what is proven, and what is not.",
    )
}

/// A window's signed row, with its receipt and plan, as its consumer gets them.
fn signed_row(play: &mut Play<'_>) -> Result<PublishedRow, Failure> {
    // Signed rows begin at the next anchor, which is the next tick.
    let from = play.now()?.plus(play.world.schema.tick);
    let planned = play.plan(&play.world.signed, from)?;
    play.start(planned)?;
    let mut rows = play.rows_of_others()?;
    rows.extend(play.rows_of_others()?);
    let row = rows.into_iter().find(|row| row.status == OK);
    let published = row.map(|row| received(play, row)).transpose()?.flatten();
    published.ok_or_else(|| Failure::new(Category::Check, "no signed window has opened"))
}

fn received(play: &Play<'_>, row: Row) -> Result<Option<PublishedRow>, Failure> {
    let Some(plan) = row.verified else { return Ok(None) };
    let found = receipt(play, &row.query, plan)?;
    let announced = play.embedded.announced(&plan).map_err(broken)?;
    let both = found.zip(announced);
    Ok(both.map(|((window, receipt), announced)| PublishedRow { row, window, announced, receipt }))
}

/// The receipt of the plan's only window so far.
fn receipt(
    play: &Play<'_>,
    query: &str,
    plan: PlanId,
) -> Result<Option<(Window, Receipt)>, Failure> {
    let embedded = &play.embedded;
    let read = page(embedded.store.as_ref(), &embedded.topics, query, 0);
    let (found, _) = read.map_err(|error| broken(error.into()))?;
    let mut parts = ReceiptParts::default();
    let mut whole = found.into_iter().filter_map(|part| parts.take(part));
    let own = whole.find(|(of, ..)| *of == plan);
    let verified = |receipt| match receipt {
        Ok(WindowReceipt::Verified(receipt)) => Some(receipt),
        _ => None,
    };
    Ok(own.and_then(|(_, window, receipt)| Some((window, verified(receipt)?))))
}

/// A row, and what its consumer finds.
fn say_checked(play: &Play<'_>, what: &str, published: &PublishedRow) -> Result<(), Failure> {
    let row = &published.row;
    let mean = row.outputs.first().and_then(|(name, _)| output(row, name)).and_then(Value::as_f64);
    let found = match published.check() {
        Ok(holds) => format!("holds: {holds}"),
        Err(why) => format!("REFUSED: {why}"),
    };
    let mean = mean.unwrap_or_default();
    play.stage
        .quote(&format!("{what:<13} mean speed {mean:5.2} m/s of {} people", row.population))?;
    play.stage.quote(&format!("              {found}"))
}
