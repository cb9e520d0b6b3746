//! Ada listens to music with her pass, and the service cannot tell who she is. The steps: one
//! login, one request, one re-up, and a shared pass that is refused. Run it with `cargo run -p
//! alpheus-access-pass --example pass_login`.

mod support;

use alpheus_access_pass::client::{AcknowledgedSession, Next, Pace, connect, next};
use alpheus_access_pass::request::{Stamp, Stamper};
use alpheus_anonymous_credential::holder::{Holder, Timing};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use support::{AnyError, Ledger, NOTHING, SONG, Service, at};

pub(crate) fn main() -> Result<(), AnyError> {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]); // for a test; the system seeds real ones
    let mut service = Service::new(rng)?;

    // Once a day Ada gets a pass under her name. The issuer will not recognise it.
    let store = &mut Ledger::new();
    let mut ada = service.register(b"ada", store, rng)?;
    let copied = store.clone(); // a friend, with whom she shares it, copies all that she stored

    let (session, mut stamper) = log_in(&mut service, &mut ada, store, rng)?;
    request(&mut service, &mut stamper)?;
    re_up(&mut service, &mut ada, session, store, rng)?;
    // The session continues in the next epoch, on the same connection.
    let admitted = service.gateway.admit(&stamper.stamp(&SONG)?, &SONG, at(16))?;
    service.gateway.finish(admitted.session);

    let friend = Holder::restore(service.pinned.clone(), ada.period(), &copied)?;
    share(&mut service, &mut friend.ok_or("nothing was copied")?, rng)?;

    // Ada logs out, which ends her session at once. Its epochs stay spent.
    service.gateway.log_out(&ada.log_out(session.session())?)?;
    let late = service.gateway.admit(&stamper.stamp(&SONG)?, &SONG, at(18));
    println!("After logout: {}.", late.err().ok_or("still served")?);
    Ok(())
}

fn log_in(
    service: &mut Service,
    ada: &mut Holder,
    store: &mut Ledger,
    rng: &mut ChaCha20Rng,
) -> Result<(AcknowledgedSession, Stamper), AnyError> {
    // A gateway says hello on a fresh connection. Ada compares its configuration with the pinned
    // one, so that it cannot single her out. Then she presents the pass, without a name.
    let hello = service.gateway.hello(at(1), rng);
    let compared = service.pinned.compare(&hello.fingerprint)?;
    let login = ada.log_in(Timing::Running, &compared, &NOTHING, at(1), rng)?.commit(store)?;
    let acknowledged = service.log_in(&login, at(1))?;
    // She connects only the session that she sent. Her signature covers the gateway's challenge
    // and both agreement keys, so nobody in between learns the connection's key.
    let session = AcknowledgedSession::check(ada, &login, &acknowledged.into())?;
    let (message, pending) = connect(ada, &session, &hello, rng)?;
    let stamper = pending.finish(&service.gateway.connect(&message, at(1))?)?;
    println!("Ada logged in with {} bytes and is connected.", login.bytes.len());
    Ok((session, stamper))
}

fn request(service: &mut Service, stamper: &mut Stamper) -> Result<(), AnyError> {
    // A header carries the stamp, which is for this request alone.
    let header = stamper.stamp(&SONG)?.to_string();
    let stamp: Stamp = header.parse()?;
    let admitted = service.gateway.admit(&stamp, &SONG, at(2))?;
    service.gateway.finish(admitted.session);
    // A thief who copied the header is late: its counter is used.
    let replay = service.gateway.admit(&stamp, &SONG, at(3));
    println!("A replayed header: {}.", replay.err().ok_or("one stamp for two requests")?);
    Ok(())
}

fn re_up(
    service: &mut Service,
    ada: &mut Holder,
    session: AcknowledgedSession,
    store: &mut Ledger,
    rng: &mut ChaCha20Rng,
) -> Result<(), AnyError> {
    // Ada's client draws a pace for each session, and a moment for each epoch, since a habit would
    // distinguish it. The re-up costs the verifier less than half of a login, and needs no key.
    let (schedule, pace) = (service.pinned.schedule, Pace::draw(rng));
    let Next::Wait(moment) = next(&schedule, at(3), Some(session.epoch()), pace, 0) else {
        return Err("the next epoch is open already".into());
    };
    assert_eq!(next(&schedule, moment, Some(session.epoch()), pace, 0), Next::ReUp);
    let sent = ada.re_up(moment, rng)?.commit(store)?;
    let acknowledged = service.re_up(&sent, moment)?;
    let carried = AcknowledgedSession::check(ada, &sent, &acknowledged.into())?;
    assert_eq!((carried.session(), carried.epoch()), (session.session(), session.epoch().next()));
    println!("A re-up of {} bytes carried the session on.", sent.bytes.len());
    Ok(())
}

fn share(
    service: &mut Service,
    friend: &mut Holder,
    rng: &mut ChaCha20Rng,
) -> Result<(), AnyError> {
    // The friend's proof is valid, but one pass has one tag in each epoch, and Ada's session has
    // spent it. The service learns no more than that.
    let compared = service.pinned.compare(&service.pinned.fingerprint())?;
    let login = friend.log_in(Timing::Running, &compared, &NOTHING, at(17), rng)?;
    let refusal = service.log_in(&login.commit(&mut Ledger::new())?, at(17));
    println!("The shared pass: {}.", refusal.err().ok_or("two sessions of one pass")?);
    Ok(())
}
