//! Codes for gates, bound by their holder to a scan or to ten seconds.

use crate::properties::town::{Device, SECOND, Town, at};
use alpheus_access_pass::code::{Binding, present, read};
use alpheus_access_pass::error::CodeError;
use alpheus_anonymous_credential::holder::OutboundMessage;
use alpheus_time::Timestamp;

fn code(town: &mut Town, device: &mut Device) -> OutboundMessage {
    let compared = town.service.pinned.compare(&town.service.pinned.fingerprint()).unwrap();
    let made = device.holder.code(&compared, at(1), &mut town.rng).unwrap();
    made.commit(&mut device.store).unwrap()
}

#[test]
fn a_code_is_valid_for_ten_seconds_or_for_one_nonce() {
    let mut town = Town::new(30);
    let mut device = town.device(b"ada");
    let code = code(&mut town, &mut device);
    let shown = present(&device.holder, &code, &Binding::now(at(1))).unwrap();
    // at(0) begins a step.
    assert!(read(&town.service.pinned, None, &shown, at(2)).is_ok());
    assert!(read(&town.service.pinned, None, &shown, Timestamp(at(20).0 - 1)).is_ok());
    for now in [at(20), Timestamp(at(0).0 - 1)] {
        assert_eq!(read(&town.service.pinned, None, &shown, now), Err(CodeError::Stale));
    }
    // A gate with a nonce accepts only codes for that nonce.
    assert_eq!(read(&town.service.pinned, Some(&[1; 16]), &shown, at(2)), Err(CodeError::Binding));
    let bound = present(&device.holder, &code, &Binding::Gate([1; 16])).unwrap();
    assert!(read(&town.service.pinned, Some(&[1; 16]), &bound, at(900)).is_ok());
    assert_eq!(
        read(&town.service.pinned, Some(&[2; 16]), &bound, at(2)),
        Err(CodeError::Signature)
    );
    assert_eq!(read(&town.service.pinned, None, &bound, at(2)), Err(CodeError::Binding));
    // Small enough for a QR code that a camera can read.
    assert_eq!(shown.len(), 74 + 392 + 3 * 128);
}

#[test]
fn a_photograph_of_a_code_cannot_be_refreshed() {
    let mut town = Town::new(31);
    let mut device = town.device(b"ada");
    let (mut bob, now) = (town.device(b"bob"), at(1));
    let (hers, his) = (code(&mut town, &mut device), code(&mut town, &mut bob));
    let shown = present(&device.holder, &hers, &Binding::now(now)).unwrap();
    let later = Timestamp(now.0 + 10 * SECOND);
    let mut fresher = shown.clone();
    fresher[2..10].copy_from_slice(&(later.0 / (10 * SECOND)).to_be_bytes());
    assert_eq!(read(&town.service.pinned, None, &fresher, later), Err(CodeError::Signature));
    // With another holder's signature.
    let theirs = present(&bob.holder, &his, &Binding::now(now)).unwrap();
    let mixed = [&theirs[..74], &shown[74..]].concat();
    assert_eq!(read(&town.service.pinned, None, &mixed, now), Err(CodeError::Signature));
    assert!(present(&bob.holder, &hers, &Binding::now(now)).is_err());
    for cut in 0..shown.len() {
        assert!(read(&town.service.pinned, None, &shown[..cut], now).is_err(), "cut at {cut}");
    }
}
