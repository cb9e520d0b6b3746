//! An hour on a road: a few drivers report how fast they are, volunteers hide how many they are,
//! and only the sum that four smoothers agreed to open comes out. Run it with `cargo run -p
//! alpheus-accountable-statistics --example statistics_hour`.

#[expect(dead_code, reason = "tests take the rest")]
mod support;

use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::PublishedResult;
use alpheus_accountable_statistics::results::mean_and_deviation;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_accountable_statistics::verdict::{Verdict, verdict};
use support::{AnyError, Town, at, entry_of, proposed};

pub(crate) fn main() -> Result<(), AnyError> {
    // Four smoothers (aggregation nodes), of which any two can decrypt and no single one; a
    // registrar; an aggregator. The smoothers make a key for the day among themselves.
    let mut town = Town::new(4, 2, 7)?;

    // Smoothers sign what will be summed before it begins: twelve slots, at most three per account,
    // and nothing opened unless more than one account must have contributed.
    let definition = town.definition("speed/i93/4", 12)?;
    let road = town.define(&definition)?;
    // Another one over part of the same road at the same time: their difference would be a sum that
    // nobody has agreed to.
    let nested = town.definition("speed/i93/4/left", 12)?;
    let refusal =
        town.smoothers[0].handle_proposal(&proposed(&nested), at(1)).err().ok_or("signed")?;
    println!("A second aggregate inside of the first: {refusal}.");

    // Six people register under their names. After that nobody sees a name again.
    let mut people = Vec::new();
    for account in [b"ada", b"bob", b"cyd", b"dee", b"eve", b"fay"] {
        people.push(town.person(account)?);
    }

    // During the hour, five of them pass by. Each asks a smoother for a slot, proves a tuple for
    // it, and deposits it with all smoothers, sealed for the aggregator.
    let mut own = None;
    for (person, speed) in people.iter_mut().zip([61, 58, 64, 47, 60]) {
        let attempt = town.upload(person, &road, at(75), Contribution::Sample(speed))?;
        own.get_or_insert(attempt);
    }
    // The aggregator gets nothing yet.
    let refusal = town.smoothers[0].release(&road.name(), at(119)).err().ok_or("released")?;
    println!("In the hour: {refusal}.");

    // Afterwards volunteers fill the rest. Their dummies look like everything else.
    let dummies = town.fill(&mut people, &road, at(125))?;
    println!("Five samples and {dummies} dummies; the aggregator sees twelve uploads.");

    let own = own.ok_or("nobody")?;
    let (count, sum) = close(&mut town, &road, &own)?;
    assert_eq!((count, sum, dummies), (5, 61 + 58 + 64 + 47 + 60, 7));
    Ok(())
}

/// From the release to the result.
fn close(town: &mut Town, road: &AgreedDefinition, own: &Attempt) -> Result<(u64, i128), AnyError> {
    // At the agreed time the aggregator gets all uploads, checks each and closes. Every smoother
    // checks each tuple too, and agrees to this set and to no other.
    let now = road.release();
    let examined = town.gather(road, now)?;
    let (_, ready) = town.close(examined, now)?;

    // Smoothers open the count, see that it is a crowd, and open the rest.
    let outcome = town.open(ready, now)?.ok_or("not published")?;

    // Ada checks that her upload counts: smoothers report which set they have opened, and the
    // aggregator shows what is in it.
    let ends = town.ends(road);
    let Some(Verdict::Result(_, set)) = verdict(&ends, road, &town.pinned) else {
        return Err("smoothers do not agree".into());
    };
    let leaves = town.aggregator.0.leaves(&road.name()).ok_or("not closed")?;
    assert!(leaves.check(road, &set)?.has(&entry_of(own)?));

    let Ok(PublishedResult::Full { count, sum, squares, .. }) = outcome.result else {
        return Err("no result".into());
    };
    let (mean, deviation) = mean_and_deviation(count, sum, squares).ok_or("empty")?;
    println!("{count} samples, mean {mean}, deviation {:.3}.", deviation.unwrap_or_default());
    Ok((count, sum))
}
