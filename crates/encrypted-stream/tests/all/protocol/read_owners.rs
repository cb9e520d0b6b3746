//! A consumer that may read an owner's raw data can subtract it from a sum. So that owner does
//! not count towards the minimum population of results for this consumer.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, consumer_id};
use alpheus_encrypted_stream::coordinator::Outcome;
use alpheus_encrypted_stream::error::ReleaseError;
use alpheus_encrypted_stream::grant::{Days, Grant};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::protocol::grants::{DAY, FIRST};
use crate::protocol::identities::{owner, owner_key};
use crate::protocol::net::Net;
use crate::protocol::sealed_results;
use crate::protocol::world::{EPOCH, Setup, key, stream_id};

/// Three owners with a controller each.
fn crowd(minimum: u32) -> Setup {
    Setup { sealed: true, minimum, ..Setup::new(3) }
}

/// The owner of stream 0 lets the plan's consumer read some days, or no more of them.
fn grant(net: &mut Net, days: Option<Days>, later: u64) {
    grant_to(net, &sealed_results::certificate(), days, Timestamp(EPOCH + later));
}

fn grant_to(net: &mut Net, to: &Signed<Certificate>, days: Option<Days>, now: Timestamp) {
    let stream = stream_id(0);
    let reader = consumer_id(&to.open(&key(101).verifying_key()).unwrap());
    let grant = Grant { stream, reader, at: now, days };
    let signed = Signed::new(&grant, &owner_key(stream));
    let step = net.controllers[0].grant(&signed, to, &owner(stream), now);
    step.unwrap().commit(&mut net.store).unwrap();
}

/// The reader fetches the keys of all granted days that are over.
fn fetch(net: &mut Net, now: Timestamp) {
    let mut rng = ChaCha20Rng::from_seed([5; 32]);
    let handed = net.controllers[0].hand_out(
        &stream_id(0),
        (&sealed_results::id(), &sealed_results::hybrid()),
        now,
        &mut rng,
    );
    let Days { first, last } = handed.unwrap().commit(&mut net.store).unwrap().days;
    assert_eq!(first, last);
}

fn days(first: u64, last: u64) -> Option<Days> {
    Some(Days::new(first, last).unwrap())
}

fn last(net: &Net) -> &Outcome {
    net.outcomes.last().unwrap()
}

fn population(net: &Net) -> Result<u32, ReleaseError> {
    last(net).result.as_ref().map(|opened| opened.population).map_err(Clone::clone)
}

#[test]
fn an_owner_with_a_raw_grant_does_not_count_for_its_reader() {
    for setup in [crowd(3), crowd(3).with_ticks()] {
        let mut net = Net::new(setup);
        net.close(0);
        assert_eq!(population(&net), Ok(3));
        // Another week's data is no help with this window's sum.
        grant(&mut net, days(FIRST + 7, FIRST + 9), 1);
        net.close(1);
        assert_eq!(population(&net), Ok(3));
        grant(&mut net, days(FIRST, FIRST + 1), 2);
        net.close(2);
        let counted = ReleaseError::PopulationTooSmall { counted: 2, needed: 3 };
        assert_eq!(population(&net), Err(counted));
    }
}

/// The consumer gets a new certificate: it has what it has read.
#[test]
fn a_new_certificate_does_not_make_the_owner_count_again() {
    let mut net = Net::new(crowd(3));
    let now = Timestamp(EPOCH + 1);
    grant_to(&mut net, &sealed_results::earlier_certificate(), days(FIRST, FIRST + 1), now);
    net.close(0);
    let counted = ReleaseError::PopulationTooSmall { counted: 2, needed: 3 };
    assert_eq!(population(&net), Err(counted));
}

/// Keys of the window's day went out before those of another day.
#[test]
fn a_later_grant_does_not_make_the_owner_count_again_for_days_that_were_read() {
    for is_restarted in [false, true] {
        let mut net = Net::new(crowd(3));
        let on = |day: u64| Timestamp((FIRST + day) * DAY);
        for (day, later) in [(0, 2), (20, 22)] {
            grant_to(
                &mut net,
                &sealed_results::certificate(),
                days(FIRST + day, FIRST + day),
                on(later),
            );
            fetch(&mut net, on(later));
        }
        if is_restarted {
            net.restore_controllers(on(22), true);
        }
        net.close(0);
        let counted = ReleaseError::PopulationTooSmall { counted: 2, needed: 3 };
        assert_eq!(population(&net), Err(counted), "restarted: {is_restarted}");
    }
}

#[test]
fn it_is_in_the_sum_all_the_same_and_counts_again_once_access_has_ended() {
    let mut net = Net::new(crowd(2));
    grant(&mut net, days(FIRST, FIRST + 1), 1);
    net.close(0);
    assert_eq!(population(&net), Ok(2));
    let sum = last(&net).result.as_ref().unwrap().sealed.clone().unwrap();
    let reader = sealed_results::reader(&net.world);
    assert_eq!(reader.open(&sum), Ok(net.world.truth(0..3, 0)));
    // No key has been handed out.
    grant(&mut net, None, 2);
    net.close(1);
    assert_eq!(population(&net), Ok(3));
}

#[test]
fn it_counts_for_everybody_else_and_where_the_minimum_is_one() {
    let mut open = Net::new(Setup { sealed: false, ..crowd(3) });
    grant(&mut open, days(FIRST, FIRST + 1), 1);
    open.close(0);
    assert_eq!(population(&open), Ok(3));
    let mut alone = Net::new(Setup { sealed: true, ..Setup::new(1) });
    grant(&mut alone, days(FIRST, FIRST + 1), 1);
    alone.close(0);
    assert_eq!(population(&alone), Ok(1));
}
