//! A subscriber gets a pass and uses a service that cannot tell who it is, or
//! that it came before: issue, log in, re-up, and a copy that is refused.
//! `cargo run -p alpheus-anonymous-credential --example walkthrough` shows it.

mod support;

use alpheus_anonymous_credential::holder::{Holder, Requesting, Which};
use alpheus_anonymous_credential::limit::Limit;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use support::{Failed, Ledger, NOTHING, Service, at};

pub(crate) fn main() -> Result<(), Failed> {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]); // a test's; real ones are seeded by the system
    // The operator draws the issuer's key and signs the configuration that all pin.
    let mut service = Service::new(Limit::ONE, rng)?;
    let pinned = service.pinned.clone();

    // Ada asks under her name, once a day. What she gets says nothing to the issuer.
    let store = &mut Ledger::new();
    let asking = Requesting::begin(pinned.clone(), b"ada", at(0), Which::Running, rng)?;
    let asking = asking.commit(store)?;
    let answer = service.issuer.issue(at(0), b"ada", &asking.bytes(), rng)?;
    let answer = answer.commit(&mut service.books)?;
    let mut ada = asking.finish(&answer)?.commit(store)?;
    let copied = store.clone(); // a friend takes a copy of all that she has

    // She logs in without a name, having compared what the service says it works by.
    let compared = pinned.compare(&service.pinned.fingerprint())?;
    let login = ada.log_in(at(1), Which::Running, &compared, &NOTHING, rng)?.commit(store)?;
    let session = service.log_in(at(1), &login)?.session;
    // The acknowledgement is lost: the same bytes again give the same session.
    assert_eq!(service.log_in(at(2), &login)?.session, session);
    // Each connection of the session signs a nonce that the service draws for it.
    let nonce = [9; 32];
    service.shard.connect(at(2), session, &nonce, &ada.connect(session, &nonce)?)?;
    println!("Ada logged in with {} bytes and has a session.", login.bytes.len());

    // Somebody else's login is of the same size and shares nothing with hers.
    let bobs = &mut Ledger::new();
    let mut bob = service.register(b"bob", bobs, rng)?;
    let his = bob.log_in(at(2), Which::Running, &compared, &NOTHING, rng)?.commit(bobs)?;
    service.log_in(at(2), &his)?;
    assert_eq!(his.bytes.len(), login.bytes.len());

    // The friend cannot have a second one in the epoch, whatever the device.
    let mut friend = Holder::restore(pinned, ada.period(), &copied)?.ok_or("nothing copied")?;
    let copy = friend.log_in(at(3), Which::Running, &compared, &NOTHING, rng)?;
    let refusal = service.log_in(at(3), &copy.commit(&mut Ledger::new())?);
    println!("Her friend: {}.", refusal.err().ok_or("two sessions of one pass")?);

    // In the epoch's last moments a re-up carries her session on. No key is needed.
    let re_up = ada.re_up(at(13), rng)?.commit(store)?;
    service.re_up(at(13), &re_up)?;
    let live = service.shard.live(at(16), session)?;
    println!("A re-up of {} bytes: served until {:?}.", re_up.bytes.len(), live.until);

    // She logs out; the session is gone, its epochs stay burnt.
    service.shard.log_out(&ada.log_out(session)?)?.commit(&mut service.ledger)?;
    println!("After logout: {}.", service.shard.live(at(16), session).err().ok_or("still live")?);
    Ok(())
}
