//! A subscriber gets a pass and uses a service that can tell neither who she is nor whether she
//! came before. The steps: issue, log in, re-up, and a copy that is rejected. Run it with `cargo
//! run -p alpheus-anonymous-credential --example credential_sessions`.

mod support;

use alpheus_anonymous_credential::holder::{Holder, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::Applicant;
use alpheus_anonymous_credential::limit::Limit;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use support::{AnyError, Ledger, NOTHING, Service, at};

pub(crate) fn main() -> Result<(), AnyError> {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]); // for a test; the system seeds real ones
    // The operator draws the issuer's key and signs the configuration that everybody pins.
    let mut service = Service::new(Limit::ONE, rng)?;
    let pinned = service.pinned.clone();

    // Ada requests a credential under her name, once a day. The issuer will not recognise it.
    let store = &mut Ledger::new();
    let pending = PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), rng)?;
    let pending = pending.commit(store)?;
    let answer = service.issuer.issue(Applicant::named(b"ada"), &pending.bytes(), at(0), rng)?;
    let answer = answer.commit(&mut service.books)?;
    let mut ada = pending.finish(&answer)?.commit(store)?;
    let copied = store.clone(); // a friend copies all that she stored

    // She compares the service's configuration, then logs in without a name.
    let compared = pinned.compare(&service.pinned.fingerprint())?;
    let login = ada.log_in(Timing::Running, &compared, &NOTHING, at(1), rng)?.commit(store)?;
    let session = service.log_in(&login, at(1))?.session;
    // The acknowledgement is lost. The same bytes return the same session.
    assert_eq!(service.log_in(&login, at(2))?.session, session);
    // Each connection of the session signs a nonce that the service draws for it.
    let nonce = [9; 32];
    service.shard.connect(session, &nonce, &ada.connect(session, &nonce)?, at(2))?;
    println!("Ada logged in with {} bytes and has a session.", login.bytes.len());

    // Bob's login has the same size and shares nothing with hers.
    let bobs = &mut Ledger::new();
    let mut bob = service.register(b"bob", bobs, rng)?;
    let his = bob.log_in(Timing::Running, &compared, &NOTHING, at(2), rng)?.commit(bobs)?;
    service.log_in(&his, at(2))?;
    assert_eq!(his.bytes.len(), login.bytes.len());

    // The friend gets no second session in the epoch, on any device.
    let mut friend = Holder::restore(pinned, ada.period(), &copied)?.ok_or("nothing copied")?;
    let copy = friend.log_in(Timing::Running, &compared, &NOTHING, at(3), rng)?;
    let refusal = service.log_in(&copy.commit(&mut Ledger::new())?, at(3));
    println!("Her friend: {}.", refusal.err().ok_or("two sessions of one pass")?);

    // Shortly before the epoch ends a re-up carries her session on. This needs no key.
    let re_up = ada.re_up(at(13), rng)?.commit(store)?;
    service.re_up(&re_up, at(13))?;
    let live = service.shard.live(session, at(16))?;
    println!("A re-up of {} bytes: served until {:?}.", re_up.bytes.len(), live.until);

    // She logs out. The session ends, and its epochs stay burnt.
    service.shard.log_out(&ada.log_out(session)?)?.commit(&mut service.ledger)?;
    println!("After logout: {}.", service.shard.live(session, at(16)).err().ok_or("still live")?);
    Ok(())
}
