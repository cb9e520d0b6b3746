//! Codes for gates: bound to a scan or to ten seconds, by their holder.

use crate::town::{Device, SECOND, Town, at};
use alpheus_access_pass::code::{Binding, present, read};
use alpheus_access_pass::error::CodeRefused;
use alpheus_anonymous_credential::holder::Outgoing;
use alpheus_anonymous_credential::schedule::Time;

fn code(town: &mut Town, device: &mut Device) -> Outgoing {
    let compared = town.pinned.compare(&town.pinned.fingerprint()).unwrap();
    let made = device.holder.code(at(1), &compared, &mut town.rng).unwrap();
    made.commit(&mut device.store).unwrap()
}

#[test]
fn a_code_is_good_for_ten_seconds_or_for_one_nonce() {
    let mut town = Town::new(30);
    let mut device = town.device(b"ada");
    let code = code(&mut town, &mut device);
    let shown = present(&device.holder, &code, &Binding::now(at(1))).unwrap();
    // at(0) is a whole number of steps.
    assert!(read(&town.pinned, at(2), None, &shown).is_ok());
    assert!(read(&town.pinned, Time(at(20).0 - 1), None, &shown).is_ok());
    for now in [at(20), Time(at(0).0 - 1)] {
        assert_eq!(read(&town.pinned, now, None, &shown), Err(CodeRefused::Stale));
    }
    // A gate that shows a nonce takes no code that is not for it.
    assert_eq!(read(&town.pinned, at(2), Some(&[1; 16]), &shown), Err(CodeRefused::Binding));
    let bound = present(&device.holder, &code, &Binding::Gate([1; 16])).unwrap();
    assert!(read(&town.pinned, at(900), Some(&[1; 16]), &bound).is_ok());
    assert_eq!(read(&town.pinned, at(2), Some(&[2; 16]), &bound), Err(CodeRefused::Signature));
    assert_eq!(read(&town.pinned, at(2), None, &bound), Err(CodeRefused::Binding));
    // It is small enough for a code that a camera reads.
    assert_eq!(shown.len(), 74 + 392 + 3 * 128);
}

#[test]
fn a_photograph_cannot_be_made_fresh() {
    let mut town = Town::new(31);
    let mut device = town.device(b"ada");
    let (mut bob, now) = (town.device(b"bob"), at(1));
    let (hers, his) = (code(&mut town, &mut device), code(&mut town, &mut bob));
    let shown = present(&device.holder, &hers, &Binding::now(now)).unwrap();
    let later = Time(now.0 + 10 * SECOND);
    let mut fresher = shown.clone();
    fresher[2..10].copy_from_slice(&(later.0 / (10 * SECOND)).to_be_bytes());
    assert_eq!(read(&town.pinned, later, None, &fresher), Err(CodeRefused::Signature));
    // With somebody else's signature.
    let theirs = present(&bob.holder, &his, &Binding::now(now)).unwrap();
    let mixed = [&theirs[..74], &shown[74..]].concat();
    assert_eq!(read(&town.pinned, now, None, &mixed), Err(CodeRefused::Signature));
    assert!(present(&bob.holder, &hers, &Binding::now(now)).is_err());
    for cut in 0..shown.len() {
        assert!(read(&town.pinned, now, None, &shown[..cut]).is_err(), "cut at {cut}");
    }
}
