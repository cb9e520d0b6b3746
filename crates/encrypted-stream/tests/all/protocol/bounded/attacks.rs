//! What a member can try: each attack is refused, and names its member and nobody else.

use alpheus_bounded_influence::blame::LieError;
use alpheus_bounded_influence::check::FaultError;
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::{MessageError, ReleaseError};
use alpheus_encrypted_stream::messages::{BoundedOpening, Contribution, ControllerMessage, Token};
use alpheus_time::Span;

use super::{
    Reading, five, last, liar, lies_in_contribution, named, net, net_of, opened, truth, world,
};
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Lies, Net};
use crate::protocol::noise::four;
use crate::protocol::world::{Setup, after};

const LIAR: u32 = 2;

fn garbage() -> PublicScalar {
    PublicScalar::from_hash("alpheus/test-garbage/v1", &[])
}

/// A window of five with one liar, which costs nobody else anything: the row is that of the others.
fn costs_its_member_the_window(expected: FaultError, change: impl Fn(&mut Contribution) + 'static) {
    let mut net = net(Setup { streams_each: 2, ..five() });
    net.lies = lies_in_contribution(&net, LIAR, change);
    net.close(0);
    net.timeout(after(0).plus(Span::seconds(3)));
    let (outputs, cells) = opened(&net);
    let others = [0, 1, 2, 3, 6, 7, 8, 9];
    assert_eq!((cells, outputs.members), (truth(others, 0), 4), "{expected}");
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Fault(expected))]);
    assert!(last(&net).unopened.is_empty());
}

#[test]
fn commitments_without_proofs_or_with_others_cost_their_member_the_window() {
    costs_its_member_the_window(FaultError::Range, |own| own.owners[0].proof.clear());
    costs_its_member_the_window(FaultError::Range, |own| own.owners[1].proof.fill(0));
    costs_its_member_the_window(FaultError::Range, |own| {
        own.owners[0].proof = own.owners[1].proof.clone();
    });
}

#[test]
fn values_moved_between_owners_or_an_owner_twice_cost_their_member_the_window() {
    costs_its_member_the_window(FaultError::Order, |own| own.owners.swap(0, 1));
    costs_its_member_the_window(FaultError::Order, |own| {
        own.owners[1] = own.owners[0].clone();
    });
    costs_its_member_the_window(FaultError::Range, |own| {
        let (first, rest) = own.owners.split_at_mut(1);
        std::mem::swap(&mut first[0].commitments[1], &mut rest[0].commitments[1]);
    });
}

#[test]
fn another_number_of_owners_or_cells_costs_its_member_the_window() {
    costs_its_member_the_window(FaultError::Owners, |own| drop(own.owners.pop()));
    costs_its_member_the_window(FaultError::Cells, |own| own.share.values.truncate(1));
    costs_its_member_the_window(FaultError::Cells, |own| {
        own.owners[0].commitments.truncate(1);
    });
}

/// More owners than the plan lists are not even kept.
#[test]
fn more_owners_than_listed_are_dropped() {
    let mut net = net(five());
    net.lies = lies_in_contribution(&net, LIAR, |own| own.owners.push(own.owners[0].clone()));
    net.close(0);
    net.timeout(after(0).plus(Span::seconds(3)));
    assert_eq!(opened(&net).1, truth([0, 1, 3, 4], 0));
    assert!(net.dropped.contains(&MessageError::Malformed), "{:?}", net.dropped);
}

/// A message that is longer than any of its kind is not even read.
#[test]
fn longer_messages_than_any_are_dropped() {
    let mut net = net(Setup::new(3));
    net.close(0);
    let own = net.heard.iter().find_map(|(from, message)| match message {
        ControllerMessage::Contribution(signed) if *from == LIAR => signed.dangerous_unverified(),
        _ => None,
    });
    let (mut own, key) = (own.unwrap(), key_of(&net.world, LIAR));
    let verify = |own: &Contribution| {
        let message = ControllerMessage::Contribution(Signed::new(own, &key));
        net.coordinator.verify(&message, LIAR).err()
    };
    assert_eq!(verify(&own), None);
    own.owners[0].proof = vec![0; 3 << 10];
    assert_eq!(verify(&own), Some(MessageError::Malformed));
}

/// Commitments of another member, and those of an earlier window, are bound to that.
#[test]
fn anothers_commitments_and_old_ones_cost_their_member_the_window() {
    let mut net = net(five());
    net.close(0);
    let of = |net: &Net, at: u32, number: usize| {
        let own = net.heard.iter().filter_map(|(from, message)| match message {
            ControllerMessage::Contribution(signed) if *from == at => Some(signed.clone()),
            _ => None,
        });
        own.map(|signed| signed.dangerous_unverified().unwrap()).nth(number).unwrap()
    };
    let (others, old) = (of(&net, 1, 0), of(&net, LIAR, 0));
    for (number, copied) in [(1, others.owners.clone()), (2, old.owners.clone())] {
        net.lies = lies_in_contribution(&net, LIAR, move |own| own.owners.clone_from(&copied));
        net.close(number);
        net.timeout(after(number).plus(Span::seconds(3)));
        assert_eq!(opened(&net).1, truth([0, 1, 3, 4], number), "window {number}");
        assert_eq!(named(&net), [(LIAR, MemberFaultError::Fault(FaultError::Range))]);
    }
    // A whole message of another window is no answer to this one.
    let key = key_of(&net.world, LIAR);
    net.lies = Box::new(move |from, answer| match answer {
        ControllerMessage::Contribution(_) if from == LIAR => {
            vec![ControllerMessage::Contribution(Signed::new(&old, &key))]
        }
        answer => vec![answer],
    });
    net.close(3);
    net.timeout(after(3).plus(Span::seconds(3)));
    assert_eq!(opened(&net).1, truth([0, 1, 3, 4], 3));
    assert!(named(&net).is_empty(), "anybody could have sent it again");
}

/// A window whose row fails, and in which a liar tells the truth about its edges: it is named.
fn names_in_one_round(lies: impl FnOnce(&Net) -> Lies) {
    let mut net = net(five());
    net.lies = lies(&net);
    net.close(0);
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Unbalanced))]);
    assert_eq!(last(&net).unopened, [net.world.plan.roster[LIAR as usize]]);
    // The next window opens without it.
    net.close(1);
    assert_eq!(opened(&net).1, truth([0, 1, 3, 4], 1));
}

#[test]
fn garbage_shares_are_named_in_one_round() {
    names_in_one_round(|net| {
        lies_in_contribution(net, LIAR, |own| own.share.values[0] = garbage())
    });
    names_in_one_round(|net| {
        lies_in_contribution(net, LIAR, |own| own.share.blindings[1] = garbage())
    });
}

#[test]
fn shares_that_differ_from_commitments_are_named_in_one_round() {
    names_in_one_round(|net| {
        lies_in_contribution(net, LIAR, |own| {
            let one = &mut own.share.values[1];
            *one = one.plus(&PublicScalar::of(1_000_000));
        })
    });
}

#[test]
fn values_moved_between_cells_are_named_in_one_round() {
    names_in_one_round(|net| {
        lies_in_contribution(net, LIAR, |own| {
            let values = &mut own.share.values;
            values[0] = values[0].plus(&PublicScalar::of(5));
            values[1] = values[1].minus(&PublicScalar::of(5));
        })
    });
}

fn lies_in_opening(net: &Net, change: impl Fn(&mut BoundedOpening) + 'static) -> Lies {
    let of = |answer: &ControllerMessage| match answer {
        ControllerMessage::BoundedOpening(signed) => Some(signed.clone()),
        _ => None,
    };
    liar(net, LIAR, of, ControllerMessage::BoundedOpening, change)
}

/// An opening that removes other pads than those of the share. Its statement is about the pads, so it
/// does not balance.
#[test]
fn openings_that_differ_are_named_in_one_round() {
    names_in_one_round(|net| {
        lies_in_opening(net, |own| {
            let one = &mut own.share.values[0];
            *one = one.plus(&PublicScalar::of(3));
        })
    });
}

/// Noise beyond its range, without a proof, or where the plan has none, fails the window and names its member.
#[test]
fn noise_without_a_proof_is_named() {
    let sent = |stream: usize, _| vec![Reading::Value(i64::try_from(stream).unwrap())];
    let net_with_noise = || net_of(world(four(3, 3), sent));
    type Change = Box<dyn Fn(&mut BoundedOpening)>;
    let cases: [(Change, FaultError); 4] = [
        (Box::new(|own| own.noise = None), FaultError::Noise),
        (Box::new(|own| own.noise.as_mut().unwrap().proof.fill(0)), FaultError::Noise),
        (
            Box::new(|own| {
                let noise = own.noise.as_mut().unwrap();
                noise.commitments.swap(0, 1);
            }),
            FaultError::Noise,
        ),
        (Box::new(|own| own.share.values.truncate(1)), FaultError::Cells),
    ];
    for (change, expected) in cases {
        let mut net = net_with_noise();
        net.lies = lies_in_opening(&net, change);
        net.close(0);
        assert_eq!(last(&net).result, Err(ReleaseError::FaultyOpening));
        assert_eq!(named(&net), [(LIAR, MemberFaultError::Fault(expected))]);
        assert_eq!(last(&net).unopened, [net.world.plan.roster[LIAR as usize]]);
    }
}

/// Two answers of one member, words in the place of scalars, and an opening of another share.
#[test]
fn second_answers_and_words_are_dropped() {
    let mut net = net(Setup::new(3));
    let (key, id) = (key_of(&net.world, LIAR), net.world.id());
    net.lies = Box::new(move |from, answer| match &answer {
        ControllerMessage::Contribution(signed) if from == LIAR => {
            let mut other = signed.dangerous_unverified().unwrap();
            other.share.values[0] = garbage();
            vec![answer, ControllerMessage::Contribution(Signed::new(&other, &key))]
        }
        ControllerMessage::BoundedOpening(signed) if from == LIAR => {
            let mut other = signed.dangerous_unverified().unwrap();
            other.contribution = other.opening_set;
            vec![ControllerMessage::BoundedOpening(Signed::new(&other, &key)), answer]
        }
        _ => vec![answer],
    });
    net.close(0);
    assert_eq!(opened(&net).1, truth(0..3, 0));
    assert_eq!(net.dropped, [MessageError::Mismatched, MessageError::Mismatched]);
    let membership = alpheus_crypto::hash::Digest([0; 32]);
    let window = last(&net).window;
    let token = Token { plan: id, window, controller: LIAR, membership, words: vec![0; 4] };
    let token = ControllerMessage::Token(Signed::new(&token, &key_of(&net.world, LIAR)));
    assert_eq!(net.coordinator.verify(&token, LIAR).err(), Some(MessageError::Malformed));
}
