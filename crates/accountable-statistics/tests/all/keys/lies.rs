//! Every lie in a message, with the fault reported for it. The others make the key all the same.

use crate::keys::net::{Net, bytes_of, id, signing};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::error::DealingError;
use alpheus_accountable_statistics::keymaking::{
    Content, FaultError, KeyCertificate, KeyMessage, Vote, longest_message, shared_digest,
};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::signed_message::Signed;

/// Member `liar` of four sends these instead of each of its messages. The key is made, nobody else
/// is blamed, and the liar at most for this fault.
fn caught(
    liar: u16,
    fault: FaultError,
    lie: impl Fn(SmootherId, KeyMessage) -> Vec<KeyMessage> + 'static,
) {
    let mut net = Net::new(4, 2, 7);
    net.lies(liar, lie);
    net.made(2_000);
    assert!(net.faults().contains(&(id(liar), fault)), "{fault:?}: {:?}", net.faults());
    assert_eq!(net.blamed(), [liar].into(), "{fault:?}: {:?}", net.faults());
}

/// Changes the content of some messages.
fn instead(
    change: impl Fn(Content) -> Option<Content>,
) -> impl Fn(SmootherId, KeyMessage) -> Vec<KeyMessage> {
    move |_, message| match change(message.content.clone()) {
        Some(content) => vec![KeyMessage { content, ..message }],
        None => vec![message],
    }
}

#[test]
fn two_messages_of_one_kind_are_reported() {
    let key = SealingPublic([9; 32]);
    caught(2, FaultError::Twice, move |_, message| match message.content {
        Content::Announcement(..) => {
            let content = Content::Announcement(key, None);
            vec![message.clone(), KeyMessage { content, ..message }]
        }
        _ => vec![message],
    });
    caught(2, FaultError::Twice, |_, message| match message.content {
        Content::Pledge(..) => {
            let content = Content::Pledge(Digest([0; 32]), Digest([1; 32]));
            vec![message.clone(), KeyMessage { content, ..message }]
        }
        _ => vec![message],
    });
}

/// Another announcement to each: the one that the convener received counts.
#[test]
fn a_member_with_different_announcements_stops_nobody() {
    for liar in 0..4 {
        let mut net = Net::new(4, 2, 8);
        net.lies(liar, |to, message| match &message.content {
            Content::Announcement(..) => {
                let mut key = [9; 32];
                key[1] = to.0.to_be_bytes()[1];
                vec![KeyMessage {
                    content: Content::Announcement(SealingPublic(key), None),
                    ..message
                }]
            }
            Content::Pledge(..) => {
                let pledge = Digest([to.0.to_be_bytes()[1]; 32]);
                vec![KeyMessage { content: Content::Pledge(Digest([0; 32]), pledge), ..message }]
            }
            _ => vec![message],
        });
        net.made(2_000);
        assert!(net.blamed().iter().all(|by| *by == liar));
    }
}

#[test]
fn a_sealing_key_of_small_order_is_reported() {
    let mut net = Net::new(4, 2, 9);
    net.lies(
        1,
        instead(|content| match content {
            Content::Announcement(_, shown) => {
                Some(Content::Announcement(SealingPublic([0; 32]), shown))
            }
            _ => None,
        }),
    );
    net.made(400);
    assert!(net.blamed().is_subset(&[1].into()));
}

#[test]
fn lists_by_others_than_the_convener_are_reported() {
    caught(3, FaultError::NotConvener, |_, message| match message.content {
        Content::Pledge(..) => {
            vec![KeyMessage { content: Content::Roster(vec![]), ..message.clone() }, message]
        }
        _ => vec![message],
    });
}

#[test]
fn lists_of_unsent_messages_are_reported() {
    let shorter = |content: Content| match content {
        Content::Roster(mut list) => {
            list.truncate(2);
            Some(Content::Roster(list))
        }
        _ => None,
    };
    caught(0, FaultError::List, instead(shorter));
    let twice = |content: Content| match content {
        Content::Roster(mut list) => {
            list[1] = list[0].clone();
            Some(Content::Roster(list))
        }
        Content::Pledged(list) => Some(Content::Pledged(list)),
        _ => None,
    };
    caught(0, FaultError::List, instead(twice));
    let forged = |content: Content| match content {
        Content::Pledged(mut list) => {
            list[1].0 = id(2);
            Some(Content::Pledged(list))
        }
        _ => None,
    };
    caught(0, FaultError::List, instead(forged));
    let few = |content: Content| match content {
        Content::Pledged(mut list) => {
            list.truncate(2);
            Some(Content::Pledged(list))
        }
        _ => None,
    };
    caught(0, FaultError::List, instead(few));
    let mixed = |content: Content| match content {
        Content::Outcome(mut list) => {
            let message = KeyMessage {
                epoch: alpheus_accountable_statistics::configuration::KeyEpoch(0),
                attempt: 0,
                by: id(0),
                content: Content::Pledge(Digest([0; 32]), Digest([0; 32])),
            };
            list.push((id(0), Signed::new(&message, &signing(id(0)))));
            Some(Content::Outcome(list))
        }
        _ => None,
    };
    caught(0, FaultError::List, instead(mixed));
}

/// Two lists, each to half of the others: neither has a quorum, and the next attempt makes the
/// key.
#[test]
fn a_convener_with_two_lists_delays_the_key() {
    for kind in 0..3 {
        let mut net = Net::new(4, 2, 10);
        net.lies(0, move |to, message| match (kind, &message.content) {
            (0, Content::Roster(list)) if to.0 > 1 => {
                let list = list.iter().filter(|(by, _)| by.0 != 1).cloned().collect();
                vec![KeyMessage { content: Content::Roster(list), ..message }]
            }
            (1, Content::Pledged(list)) if to.0 > 1 => {
                let list = list.iter().filter(|(by, _)| by.0 != 1).cloned().collect();
                vec![KeyMessage { content: Content::Pledged(list), ..message }]
            }
            (2, Content::Outcome(list)) if to.0 > 1 => {
                let dealing = |by: &SmootherId| by.0 == 1;
                let list = list.iter().filter(|(by, _)| !dealing(by)).cloned().collect();
                vec![KeyMessage { content: Content::Outcome(list), ..message }]
            }
            _ => vec![message],
        });
        net.made(2_000);
        assert!(net.blamed().iter().all(|by| *by == 0), "{kind}: {:?}", net.faults());
    }
}

#[test]
fn an_outcome_that_settles_no_key_is_reported() {
    let less = |content: Content| match content {
        Content::Outcome(mut list) => {
            list.retain(|(by, _)| by.0 > 1);
            Some(Content::Outcome(list))
        }
        _ => None,
    };
    caught(0, FaultError::Outcome, instead(less));
}

#[test]
fn invalid_dealings_are_reported() {
    let other = |content: Content| match content {
        Content::Dealing(mut bytes) => {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            Some(Content::Dealing(bytes))
        }
        _ => None,
    };
    caught(1, FaultError::Dealing(DealingError::NotPledged), instead(other));
    let short = |content: Content| match content {
        Content::Dealing(_) => Some(Content::Dealing(vec![7; 9])),
        _ => None,
    };
    caught(1, FaultError::Dealing(DealingError::Malformed), instead(short));
    caught(1, FaultError::NotShown, |_, message| match message.content {
        Content::Dealing(_) => vec![],
        _ => vec![message],
    });
}

/// A share sealed for member 2 does not open. It complains, and the answer counts; or no answer
/// fits, and the dealer is left out.
#[test]
fn a_share_that_does_not_open_is_answered_or_its_dealer_left_out() {
    for (dealer, answers) in [(1, true), (1, false), (0, true), (3, false)] {
        let mut net = Net::new(4, 2, 11);
        net.misdeal(dealer, 2);
        net.lies(dealer, move |_, message| match message.content {
            Content::Answer(..) if !answers => vec![],
            _ => vec![message],
        });
        let key = net.made(400);
        assert!(net.faults().contains(&(id(dealer), FaultError::Share)));
        assert_eq!(net.faults().contains(&(id(dealer), FaultError::Answer)), !answers);
        assert_eq!(net.blamed(), [dealer].into(), "{:?}", net.faults());
        assert!(net.member(2).maker.share(&key).is_some());
    }
}

#[test]
fn a_wrong_answer_is_reported() {
    let mut net = Net::new(4, 2, 12);
    net.misdeal(1, 2);
    net.lies(
        1,
        instead(|content| match content {
            Content::Answer(to, _) => Some(Content::Answer(to, [3; 32])),
            _ => None,
        }),
    );
    net.made(400);
    assert!(net.faults().contains(&(id(1), FaultError::Answer)));
    assert_eq!(net.blamed(), [1].into());
}

/// Verdicts and answers that no honest member sends are dropped when they arrive: they would be kept,
/// counted and listed. So are messages longer than any honest one. A dealer that a member complains
/// of twice is not left out for that.
#[test]
fn malformed_messages_are_dropped_and_reported() {
    let all = (0..=u16::MAX).collect::<Vec<u16>>();
    for dealers in [vec![1, 1], vec![2, 1], vec![4], all] {
        let lie = move |content: Content| match content {
            Content::Verdict(_) => Some(Content::Verdict(dealers.clone())),
            _ => None,
        };
        caught(3, FaultError::Malformed, instead(lie));
    }
    caught(3, FaultError::Malformed, |_, message| match message.content {
        Content::Verdict(_) => {
            let to = |to| KeyMessage { content: Content::Answer(to, [3; 32]), ..message.clone() };
            [4, 5, u16::MAX].into_iter().map(to).chain([message.clone()]).collect()
        }
        _ => vec![message],
    });
    let long = |content: Content| match content {
        Content::Dealing(_) => Some(Content::Dealing(vec![7; 20_000])),
        _ => None,
    };
    caught(3, FaultError::Malformed, instead(long));
    // In the convener's list, too.
    let listed = |content: Content| match content {
        Content::Outcome(mut list) => {
            let content = Content::Answer(9, [3; 32]);
            let epoch = alpheus_accountable_statistics::configuration::KeyEpoch(0);
            let message = KeyMessage { epoch, attempt: 0, by: id(0), content };
            list.push((id(0), Signed::new(&message, &signing(id(0)))));
            Some(Content::Outcome(list))
        }
        _ => None,
    };
    caught(0, FaultError::List, instead(listed));
}

/// Honest messages of many members, with certificates and answers, are within the bound.
#[test]
fn honest_messages_are_within_the_bound() {
    let mut net = Net::new(10, 4, 16);
    net.misdeal(1, 2);
    net.member(0).away = true;
    net.made(2_000);
    let longest = net.members.iter().flat_map(|member| member.maker.sent());
    let longest = longest.map(|message| bytes_of(&message).len()).max().unwrap();
    assert!(longest * 2 < longest_message(net.members.len()), "{longest}");
    assert!(net.blamed().is_subset(&[0, 1].into()), "{:?}", net.faults());
}

/// A complaint without ground costs the accuser its own share's secrecy, and nobody else anything.
/// A member that complains of as many as the threshold is ignored.
#[test]
fn groundless_complaints_harm_only_their_accuser() {
    let of = |dealers: Vec<u16>| {
        instead(move |content| match content {
            Content::Verdict(_) => Some(Content::Verdict(dealers.clone())),
            _ => None,
        })
    };
    let mut net = Net::new(4, 2, 13);
    net.lies(3, of(vec![1]));
    net.made(400);
    assert!(net.faults().is_empty());
    caught(3, FaultError::Complaints, of(vec![0, 1, 2]));
}

#[test]
fn votes_for_another_key_are_reported() {
    let voted = |attempt, by: u16| {
        move |_, message: KeyMessage| match message.content {
            Content::Vote(_) => {
                let vote = Vote { epoch: message.epoch, attempt, key: Digest([7; 32]) };
                vec![KeyMessage {
                    content: Content::Vote(Signed::new(&vote, &signing(id(by)))),
                    ..message
                }]
            }
            _ => vec![message],
        }
    };
    caught(3, FaultError::Vote, voted(1, 3));
    caught(3, FaultError::Vote, voted(0, 2));
    // For another key: the convener may have sent it another list.
    let mut net = Net::new(4, 2, 15);
    net.lies(3, voted(0, 3));
    net.made(20);
    assert!(net.faults().is_empty());
}

/// An invalid certificate of a chosen key, shown when the first attempt has failed, to make the
/// others vote for it.
#[test]
fn an_invalid_certificate_is_reported() {
    let mut other = Net::new(4, 2, 99);
    let key = other.made(20);
    let vote = |by: u16| {
        let vote = Vote { epoch: other.participants.epoch(), attempt: 0, key: shared_digest(&key) };
        (id(by), Signed::new(&vote, &signing(id(by))))
    };
    let own = |by: u16| (id(by), vote(3).1);
    let forgeries = [
        vec![],
        vec![vote(3)],
        vec![vote(3), vote(3), vote(3)],
        vec![own(0), own(1), own(2), vote(3)],
    ];
    for votes in forgeries {
        let prepared = KeyCertificate { key: key.clone(), attempt: 0, votes };
        let mut net = Net::new(4, 2, 14);
        net.member(0).away = true;
        net.lies(3, move |_, message| match message.content {
            Content::Announcement(own, _) => {
                let content = Content::Announcement(own, Some(Box::new(prepared.clone())));
                vec![KeyMessage { content, ..message }]
            }
            // As convener it would list its own honest announcement.
            Content::Roster(_) => vec![],
            _ => vec![message],
        });
        // One is absent and one lies: two at fault of four, so no key, but not the liar's key
        // either.
        (0..600).for_each(|_| net.round());
        assert!(net.members.iter().all(|member| member.cards.is_empty()));
        assert!(net.faults().contains(&(id(3), FaultError::Prepared)));
        net.member(0).away = false;
        assert_ne!(net.made(4_000), key);
    }
}
