//! A deposit that the keeper forwards: every smoother takes its own part, and honest ones have a
//! certificate although the client sends none.

use crate::properties::helpers::{begun, grant, people, taken};
use crate::support::{Town, at, entry_of};
use alpheus_accountable_statistics::configuration::SmootherId;

#[test]
fn a_forwarded_deposit_is_certified_everywhere_without_its_client() {
    let mut town = Town::new(4, 2, 77).unwrap();
    let agreed = town.define(&town.definition("speed/a", 24).unwrap()).unwrap();
    let mut people = people(&mut town, 1);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    assert!(attempt.forwarded().is_none(), "before a grant");
    let granted = grant(&agreed, 0, 0, attempt.ephemeral());
    taken(&mut town, &mut people[0], &mut attempt, (0, &granted)).unwrap();
    let (keeper, forwarded) = attempt.forwarded().unwrap();
    let own = (keeper, forwarded.own.clone());
    let mut receipts = Vec::new();
    for (to, deposit) in std::iter::once(own).chain(forwarded.for_others()) {
        receipts.push(town.receive(to, deposit, at(70)).unwrap().unwrap());
    }
    assert_eq!(receipts.iter().map(|receipt| receipt.by.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for receipt in &receipts {
        assert!(!attempt.is_certified_everywhere(&town.pinned), "one may show nobody its receipts");
        let step = attempt.handle_receipt(receipt, &town.pinned).unwrap();
        step.commit(&mut people[0].store).unwrap();
    }
    assert!(attempt.is_certified_everywhere(&town.pinned) && attempt.forwarded().is_none());
    // The last smoother shows nobody its receipt.
    for to in 0..3 {
        for receipt in receipts[..3].iter().filter(|receipt| receipt.by != SmootherId(to)) {
            let to = usize::from(to);
            let heard = town.smoothers[to].handle_receipt(receipt, at(70)).unwrap();
            heard.commit(&mut town.ledgers[to]).unwrap();
        }
    }
    let entry = entry_of(&attempt).unwrap();
    for smoother in &town.smoothers[..3] {
        assert_eq!(smoother.certified(&agreed.name(), 0), Some(&entry));
    }
}
