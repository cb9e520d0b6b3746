//! Noise in rows that their members decide.

use alpheus_encrypted_stream::error::WindowRefusalError;

use crate::protocol::evil::Evil;
use crate::protocol::net::Net;
use crate::protocol::noise::{Noise, four};
use crate::protocol::pmf::{Pmf, assert_follows};
use crate::protocol::world::{Setup, after, window};

/// The noise in the first word of each of these windows' rows. Each row is what the receipt shows, and its other
/// words are the truth.
fn noise_of(setup: Setup) -> Vec<i64> {
    let (windows, controllers) = (setup.windows, setup.controllers as usize);
    let mut net = Net::new(setup.verified());
    let one = |number: u64| {
        net.close(number);
        let opened = net.outcomes.last().unwrap().result.as_ref().unwrap();
        let receipt = opened.receipt.as_deref().unwrap();
        let row = receipt.verify(&net.world.announced, window(number)).unwrap();
        assert_eq!(row.words(), opened.outputs);
        let truth = net.world.truth(0..controllers, number);
        assert_eq!(row.words()[1..], truth[1..], "counts and check word take none");
        row.words()[0].wrapping_sub(truth[0]).cast_signed()
    };
    (0..windows).map(one).collect()
}

/// Four shares, sized for the three that an honest member can count on.
#[test]
fn rows_that_members_sign_contain_the_promised_noise() {
    assert_follows(&noise_of(four(600, 600)), &Pmf::polya(4.0 / 3.0, (-0.25_f64).exp(), 200));
}

/// Nobody else draws any.
#[test]
fn a_lone_controller_signs_its_sum_with_all_of_the_noise() {
    let setup = Setup { noise: Some(Noise::new(600)), windows: 600, ..Setup::new(1) };
    assert_follows(&noise_of(setup), &Pmf::polya(1.0, (-0.25_f64).exp(), 200));
}

/// A restart wipes the keys that noise is drawn from. Earlier answers are repeated, and nothing else is answered:
/// the service cannot average two draws.
#[test]
fn a_window_has_one_draw_of_noise_over_restarts_and_for_one_set() {
    let mut evil = Evil::new(four(3, 9).verified());
    let draft = evil.gather();
    let (all, three) = (evil.set(&draft, &[0, 1, 2, 3]), evil.set(&draft, &[0, 1, 2]));
    let message = evil.membership(&draft, 0);
    let (token, opening) = (evil.ask(0, after(0), &message), evil.ask(0, after(0), &all));
    assert!(token.is_ok() && opening.is_ok());
    for _ in 0..2 {
        assert_eq!(evil.ask(0, after(0), &message), token);
        assert_eq!(evil.ask(0, after(0), &all), opening);
        assert_eq!(evil.ask(0, after(0), &three), Err(WindowRefusalError::AlreadyOpened));
        evil.start_again(after(0));
    }
    // One that had not opened the window cannot do so with another draw.
    assert!(evil.ask(1, after(0), &evil.membership(&draft, 1)).is_ok());
    let (store, fence) = (evil.store.clone(), evil.controllers[1].fence());
    evil.restore(1, &store, after(0), Some(fence));
    assert_eq!(evil.ask(1, after(0), &all), Err(WindowRefusalError::KeysGone));
}
