//! Every lie about a word, by its name; the others make the key all the same.

use crate::net::{Net, id, signing};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::error::BadDealing;
use alpheus_accountable_statistics::keymaking::{
    Fault, KeyWord, Prepared, Vote, What, shared_digest,
};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::signed::Signed;

/// Member `liar` of four says this instead of each of its words; the key is made, nobody else is
/// blamed, and it for this if for anything.
fn caught(liar: u16, fault: Fault, lie: impl Fn(SmootherId, KeyWord) -> Vec<KeyWord> + 'static) {
    let mut net = Net::new(4, 2, 7);
    net.lies(liar, lie);
    net.made(2_000);
    assert!(net.faults().contains(&(id(liar), fault)), "{fault:?}: {:?}", net.faults());
    assert_eq!(net.blamed(), [liar].into(), "{fault:?}: {:?}", net.faults());
}

/// Says another thing in place of some words.
fn instead(change: impl Fn(What) -> Option<What>) -> impl Fn(SmootherId, KeyWord) -> Vec<KeyWord> {
    move |_, word| match change(word.what.clone()) {
        Some(what) => vec![KeyWord { what, ..word }],
        None => vec![word],
    }
}

#[test]
fn two_words_of_one_kind() {
    let key = SealingPublic([9; 32]);
    caught(2, Fault::Twice, move |_, word| match word.what {
        What::Announcement(..) => {
            let what = What::Announcement(key, None);
            vec![word.clone(), KeyWord { what, ..word }]
        }
        _ => vec![word],
    });
    caught(2, Fault::Twice, |_, word| match word.what {
        What::Pledge(..) => {
            let what = What::Pledge(Digest([0; 32]), Digest([1; 32]));
            vec![word.clone(), KeyWord { what, ..word }]
        }
        _ => vec![word],
    });
}

/// Another announcement to each: what the convener has heard counts.
#[test]
fn a_member_that_says_something_else_to_each_stops_nobody() {
    for liar in 0..4 {
        let mut net = Net::new(4, 2, 8);
        net.lies(liar, |to, word| match &word.what {
            What::Announcement(..) => {
                let mut key = [9; 32];
                key[1] = to.0.to_be_bytes()[1];
                vec![KeyWord { what: What::Announcement(SealingPublic(key), None), ..word }]
            }
            What::Pledge(..) => {
                let pledge = Digest([to.0.to_be_bytes()[1]; 32]);
                vec![KeyWord { what: What::Pledge(Digest([0; 32]), pledge), ..word }]
            }
            _ => vec![word],
        });
        net.made(2_000);
        assert!(net.blamed().iter().all(|by| *by == liar));
    }
}

#[test]
fn a_key_of_small_order() {
    let mut net = Net::new(4, 2, 9);
    net.lies(
        1,
        instead(|what| match what {
            What::Announcement(_, shown) => Some(What::Announcement(SealingPublic([0; 32]), shown)),
            _ => None,
        }),
    );
    net.made(400);
    assert!(net.blamed().is_subset(&[1].into()));
}

#[test]
fn lists_of_whoever_does_not_convene() {
    caught(3, Fault::NotConvener, |_, word| match word.what {
        What::Pledge(..) => vec![KeyWord { what: What::Roster(vec![]), ..word.clone() }, word],
        _ => vec![word],
    });
}

#[test]
fn lists_of_what_was_not_said() {
    let shorter = |what: What| match what {
        What::Roster(mut list) => {
            list.truncate(2);
            Some(What::Roster(list))
        }
        _ => None,
    };
    caught(0, Fault::List, instead(shorter));
    let twice = |what: What| match what {
        What::Roster(mut list) => {
            list[1] = list[0].clone();
            Some(What::Roster(list))
        }
        What::Pledged(list) => Some(What::Pledged(list)),
        _ => None,
    };
    caught(0, Fault::List, instead(twice));
    let forged = |what: What| match what {
        What::Pledged(mut list) => {
            list[1].0 = id(2);
            Some(What::Pledged(list))
        }
        _ => None,
    };
    caught(0, Fault::List, instead(forged));
    let few = |what: What| match what {
        What::Pledged(mut list) => {
            list.truncate(2);
            Some(What::Pledged(list))
        }
        _ => None,
    };
    caught(0, Fault::List, instead(few));
    let mixed = |what: What| match what {
        What::Outcome(mut list) => {
            let word = KeyWord {
                epoch: alpheus_accountable_statistics::configuration::KeyEpoch(0),
                attempt: 0,
                by: id(0),
                what: What::Pledge(Digest([0; 32]), Digest([0; 32])),
            };
            list.push((id(0), Signed::new(&word, &signing(id(0)))));
            Some(What::Outcome(list))
        }
        _ => None,
    };
    caught(0, Fault::List, instead(mixed));
}

/// Two lists, each to half of the others: neither has a quorum, and the next attempt makes the key.
#[test]
fn a_convener_that_says_something_else_to_each() {
    for kind in 0..3 {
        let mut net = Net::new(4, 2, 10);
        net.lies(0, move |to, word| match (kind, &word.what) {
            (0, What::Roster(list)) if to.0 > 1 => {
                let list = list.iter().filter(|(by, _)| by.0 != 1).cloned().collect();
                vec![KeyWord { what: What::Roster(list), ..word }]
            }
            (1, What::Pledged(list)) if to.0 > 1 => {
                let list = list.iter().filter(|(by, _)| by.0 != 1).cloned().collect();
                vec![KeyWord { what: What::Pledged(list), ..word }]
            }
            (2, What::Outcome(list)) if to.0 > 1 => {
                let dealing = |by: &SmootherId| by.0 == 1;
                let list = list.iter().filter(|(by, _)| !dealing(by)).cloned().collect();
                vec![KeyWord { what: What::Outcome(list), ..word }]
            }
            _ => vec![word],
        });
        net.made(2_000);
        assert!(net.blamed().iter().all(|by| *by == 0), "{kind}: {:?}", net.faults());
    }
}

#[test]
fn an_outcome_that_settles_no_key() {
    let less = |what: What| match what {
        What::Outcome(mut list) => {
            list.retain(|(by, _)| by.0 > 1);
            Some(What::Outcome(list))
        }
        _ => None,
    };
    caught(0, Fault::Outcome, instead(less));
}

#[test]
fn dealings_that_do_not_hold() {
    let other = |what: What| match what {
        What::Dealing(mut bytes) => {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            Some(What::Dealing(bytes))
        }
        _ => None,
    };
    caught(1, Fault::Dealing(BadDealing::NotPledged), instead(other));
    let short = |what: What| match what {
        What::Dealing(_) => Some(What::Dealing(vec![7; 9])),
        _ => None,
    };
    caught(1, Fault::Dealing(BadDealing::Malformed), instead(short));
    caught(1, Fault::NotShown, |_, word| match word.what {
        What::Dealing(_) => vec![],
        _ => vec![word],
    });
}

/// What is sealed for member 2 does not open: it complains, and the answer counts; or there is
/// none that fits, and the dealer is left out.
#[test]
fn a_share_that_does_not_open() {
    for (dealer, answers) in [(1, true), (1, false), (0, true), (3, false)] {
        let mut net = Net::new(4, 2, 11);
        net.misdeal(dealer, 2);
        net.lies(dealer, move |_, word| match word.what {
            What::Answer(..) if !answers => vec![],
            _ => vec![word],
        });
        let key = net.made(400);
        assert!(net.faults().contains(&(id(dealer), Fault::Share)));
        assert_eq!(net.faults().contains(&(id(dealer), Fault::Answer)), !answers);
        assert_eq!(net.blamed(), [dealer].into(), "{:?}", net.faults());
        assert!(net.member(2).maker.share(&key).is_some());
    }
}

#[test]
fn a_wrong_answer() {
    let mut net = Net::new(4, 2, 12);
    net.misdeal(1, 2);
    net.lies(
        1,
        instead(|what| match what {
            What::Answer(to, _) => Some(What::Answer(to, [3; 32])),
            _ => None,
        }),
    );
    net.made(400);
    assert!(net.faults().contains(&(id(1), Fault::Answer)));
    assert_eq!(net.blamed(), [1].into());
}

/// A complaint without ground costs the accuser its own share's secrecy, and nobody else
/// anything; who complains of as many as the threshold is not heard.
#[test]
fn complaints_without_ground() {
    let of = |dealers: Vec<u16>| {
        instead(move |what| match what {
            What::Verdict(_) => Some(What::Verdict(dealers.clone())),
            _ => None,
        })
    };
    let mut net = Net::new(4, 2, 13);
    net.lies(3, of(vec![1]));
    net.made(400);
    assert!(net.faults().is_empty());
    caught(3, Fault::Complaints, of(vec![0, 1, 2]));
}

#[test]
fn votes_for_something_else() {
    let voted = |attempt, by: u16| {
        move |_, word: KeyWord| match word.what {
            What::Vote(_) => {
                let vote = Vote { epoch: word.epoch, attempt, key: Digest([7; 32]) };
                vec![KeyWord { what: What::Vote(Signed::new(&vote, &signing(id(by)))), ..word }]
            }
            _ => vec![word],
        }
    };
    caught(3, Fault::Vote, voted(1, 3));
    caught(3, Fault::Vote, voted(0, 2));
    // For another key: the convener may have told it so.
    let mut net = Net::new(4, 2, 15);
    net.lies(3, voted(0, 3));
    net.made(20);
    assert!(net.faults().is_empty());
}

/// A certificate that nobody has given, of a key that somebody chose: shown when the first
/// attempt has failed, to make the others vote for it.
#[test]
fn certificates_that_are_none() {
    let mut other = Net::new(4, 2, 99);
    let key = other.made(20);
    let vote = |by: u16| {
        let vote = Vote { epoch: other.circle.epoch(), attempt: 0, key: shared_digest(&key) };
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
        let prepared = Prepared { key: key.clone(), attempt: 0, votes };
        let mut net = Net::new(4, 2, 14);
        net.member(0).away = true;
        net.lies(3, move |_, word| match word.what {
            What::Announcement(own, _) => {
                let what = What::Announcement(own, Some(Box::new(prepared.clone())));
                vec![KeyWord { what, ..word }]
            }
            // What it convenes would show its own announcement as it should be.
            What::Roster(_) => vec![],
            _ => vec![word],
        });
        // One is away and one lies: two at fault of four, so no key; but not theirs either.
        (0..600).for_each(|_| net.round());
        assert!(net.members.iter().all(|member| member.cards.is_empty()));
        assert!(net.faults().contains(&(id(3), Fault::Prepared)));
        net.member(0).away = false;
        assert_ne!(net.made(4_000), key);
    }
}
