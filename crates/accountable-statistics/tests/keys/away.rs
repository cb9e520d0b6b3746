//! Members who are away, or come late.

use crate::net::{Net, id};
use alpheus_accountable_statistics::keymaking::{Fault, What};

#[test]
fn all_that_are_there_make_a_key_at_once() {
    for (n, t) in [(1, 1), (2, 1), (4, 2), (7, 3)] {
        let mut net = Net::new(n, t, 1);
        net.made(11);
        assert!(net.faults().is_empty(), "{:?}", net.faults());
        assert!(net.members.iter().all(|member| member.cards.len() == 1));
    }
}

/// Whoever is away, the others make the key: if it was to convene, at the next attempt.
#[test]
fn whoever_is_away_stops_nobody() {
    for absent in 0..4 {
        let mut net = Net::new(4, 2, 2);
        net.member(absent).away = true;
        net.made(300);
        let fault = if absent == 0 { Fault::Silent } else { Fault::Absent };
        assert!(net.faults().contains(&(id(absent), fault)), "{:?}", net.faults());
        assert_eq!(net.blamed(), [absent].into());
        assert_eq!(net.member((absent + 1) % 4).maker.attempt(), Some(u32::from(absent == 0)));
    }
    let mut net = Net::new(7, 3, 3);
    (net.member(0).away, net.member(4).away) = (true, true);
    net.made(400);
    assert_eq!(net.blamed(), [0, 4].into());
}

/// As many as the threshold stop it: that is said, and nobody is blamed who is there.
#[test]
fn as_many_as_the_threshold_are_too_many() {
    let mut net = Net::new(4, 2, 4);
    (net.member(2).away, net.member(3).away) = (true, true);
    (0..600).for_each(|_| net.round());
    assert!(net.members.iter().all(|member| member.cards.is_empty()));
    // With one of them back there is a key.
    net.member(3).away = false;
    net.made(4_000);
}

/// Who goes away in the midst of an attempt, after each word.
#[test]
fn whoever_falls_silent_stops_nobody() {
    for silent in 0..4 {
        for last in 0..9 {
            let mut net = Net::new(4, 2, 5);
            net.lies(silent, move |_, word| {
                let kind = match word.what {
                    What::Announcement(..) => 0,
                    What::Roster(_) => 1,
                    What::Pledge(..) => 2,
                    What::Pledged(_) => 3,
                    What::Dealing(_) => 4,
                    What::Verdict(_) => 5,
                    What::Answer(..) => 6,
                    What::Outcome(_) => 7,
                    What::Vote(_) => 8,
                };
                if kind < last { vec![word] } else { vec![] }
            });
            net.made(2_000);
            assert!(net.blamed().iter().all(|by| *by == silent), "{silent} {last}");
        }
    }
}

/// Who has the certificate of a key leaves it to whoever convenes next: the same key is voted
/// for again, and not another one made.
#[test]
fn a_key_that_may_be_in_use_is_not_made_anew() {
    let mut net = Net::new(4, 2, 6);
    // All vote; the votes reach member 1 alone, which signs the card.
    net.lies(3, |to, word| match word.what {
        What::Vote(_) if to != id(1) => vec![],
        _ => vec![word],
    });
    let held_back =
        |net: &mut Net| net.members.iter().map(|member| member.cards.len()).sum::<usize>();
    for member in [0, 2] {
        net.lies(member, |to, word| match word.what {
            What::Vote(_) if to != id(1) => vec![],
            _ => vec![word],
        });
    }
    while held_back(&mut net) == 0 {
        net.round();
    }
    let first = net.members[1].cards[0].clone();
    assert_eq!(first.0, 0);
    // From now on all keep to the protocol but 3, which is away; 1's words of before are lost.
    for member in [0, 2] {
        net.member(member).honest();
    }
    net.member(3).away = true;
    let key = net.made(2_000);
    assert_eq!(key, first.1);
    assert!(net.members[0].cards[0].0 > 0);
}
