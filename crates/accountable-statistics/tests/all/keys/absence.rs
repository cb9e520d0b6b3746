//! Absent and late members.

use crate::keys::net::{Net, id};
use alpheus_accountable_statistics::keymaking::{Content, FaultError};

#[test]
fn present_members_make_a_key_at_once() {
    for (n, t) in [(1, 1), (2, 1), (4, 2), (7, 3)] {
        let mut net = Net::new(n, t, 1);
        net.made(11);
        assert!(net.faults().is_empty(), "{:?}", net.faults());
        assert!(net.members.iter().all(|member| member.cards.len() == 1));
    }
}

/// The others make the key without any absent member: at the next attempt, if the convener was absent.
#[test]
fn an_absent_member_stops_nobody() {
    for absent in 0..4 {
        let mut net = Net::new(4, 2, 2);
        net.member(absent).away = true;
        net.made(300);
        let fault = if absent == 0 { FaultError::Silent } else { FaultError::Absent };
        assert!(net.faults().contains(&(id(absent), fault)), "{:?}", net.faults());
        assert_eq!(net.blamed(), [absent].into());
        assert_eq!(net.member((absent + 1) % 4).maker.attempt(), Some(u32::from(absent == 0)));
    }
    let mut net = Net::new(7, 3, 3);
    (net.member(0).away, net.member(4).away) = (true, true);
    net.made(400);
    assert_eq!(net.blamed(), [0, 4].into());
}

/// As many absent members as the threshold stop it. They are blamed, and members that are present
/// are not.
#[test]
fn absent_members_up_to_the_threshold_stop_the_key() {
    let mut net = Net::new(4, 2, 4);
    (net.member(2).away, net.member(3).away) = (true, true);
    (0..600).for_each(|_| net.round());
    assert!(net.members.iter().all(|member| member.cards.is_empty()));
    // With one of them back there is a key.
    net.member(3).away = false;
    net.made(4_000);
}

/// Members that fall silent during an attempt, after each message.
#[test]
fn a_member_that_falls_silent_stops_nobody() {
    for silent in 0..4 {
        for last in 0..9 {
            let mut net = Net::new(4, 2, 5);
            net.lies(silent, move |_, message| {
                let kind = match message.content {
                    Content::Announcement(..) => 0,
                    Content::Roster(_) => 1,
                    Content::Pledge(..) => 2,
                    Content::Pledged(_) => 3,
                    Content::Dealing(_) => 4,
                    Content::Verdict(_) => 5,
                    Content::Answer(..) => 6,
                    Content::Outcome(_) => 7,
                    Content::Vote(_) => 8,
                };
                if kind < last { vec![message] } else { vec![] }
            });
            net.made(2_000);
            assert!(net.blamed().iter().all(|by| *by == silent), "{silent} {last}");
        }
    }
}

/// A member with a key's certificate passes it to later conveners: they vote for the same key
/// again instead of making another.
#[test]
fn a_key_that_may_be_in_use_is_renewed() {
    let mut net = Net::new(4, 2, 6);
    // All vote. The votes reach member 1 alone, which signs the card.
    net.lies(3, |to, message| match message.content {
        Content::Vote(_) if to != id(1) => vec![],
        _ => vec![message],
    });
    let held_back =
        |net: &mut Net| net.members.iter().map(|member| member.cards.len()).sum::<usize>();
    for member in [0, 2] {
        net.lies(member, |to, message| match message.content {
            Content::Vote(_) if to != id(1) => vec![],
            _ => vec![message],
        });
    }
    while held_back(&mut net) == 0 {
        net.round();
    }
    let first = net.members[1].cards[0].clone();
    assert_eq!(first.0, 0);
    // From now on all but 3 are honest, and 3 is absent. Member 1's earlier messages are lost.
    for member in [0, 2] {
        net.member(member).honest();
    }
    net.member(3).away = true;
    let key = net.made(2_000);
    assert_eq!(key, first.1);
    assert!(net.members[0].cards[0].0 > 0);
}
