//! One credential for each account, kind and period, the same answer again.

use crate::support::{Ledger, at, configuration, pin};
use crate::town::{Broken, Town, rng};
use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::error::{IssueRefused, Refused};
use alpheus_anonymous_credential::holder::{Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::{DamagedLog, Log};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::verifier::Verifier;

fn asking(town: &mut Town, which: Which) -> Requesting {
    let pinned = town.pinned();
    let step = Requesting::begin(pinned, b"ada", at(0), which, &mut town.rng).unwrap();
    step.commit(&mut Ledger::new()).unwrap()
}

fn issue(town: &mut Town, account: &[u8], asking: &Requesting) -> Result<Vec<u8>, IssueRefused> {
    let service = &mut town.service;
    let step = service.issuer.issue(at(0), account, &asking.bytes(), &mut town.rng)?;
    Ok(step.commit(&mut service.books).unwrap())
}

fn restore(
    key: IssuerKey,
    pinned: &Pinned,
    books: &mut Ledger,
    log: Log,
) -> Result<Issuer, IssueRefused> {
    let step = Issuer::restore(key, pinned.clone(), books.clone(), log, at(0))?;
    Ok(step.commit(books).unwrap())
}

#[test]
fn the_same_request_gets_the_same_answer_and_another_none() {
    let mut town = Town::new(1, 1);
    let (first, second) = (asking(&mut town, Which::Running), asking(&mut town, Which::Running));
    let answer = issue(&mut town, b"ada", &first).unwrap();
    assert_eq!(issue(&mut town, b"ada", &first), Ok(answer.clone()));
    assert_eq!(issue(&mut town, b"ada", &second), Err(IssueRefused::AlreadyIssued));
    // The proof is bound to the account.
    assert_eq!(issue(&mut town, b"eve", &first), Err(IssueRefused::Proof));
    // The next period is another matter.
    let next = asking(&mut town, Which::Next);
    issue(&mut town, b"ada", &next).unwrap();
    assert!(second.finish(&answer).is_err());
    first.finish(&answer).unwrap().commit(&mut Ledger::new()).unwrap();
}

#[test]
fn what_was_issued_outlives_a_crash_and_what_was_not_stored_was_not_issued() {
    let mut rng = rng(2);
    let key = IssuerKey::random(&mut rng).unwrap();
    let bytes = key.expose();
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let one = configuration(&key, Limit::ONE);
    let pinned = pin(&one).unwrap();
    let mut books = Ledger::new();
    let mut issuer = restore(key, &pinned, &mut books, Log::New).unwrap();
    let mut ask = || {
        let step = Requesting::begin(pinned.clone(), b"ada", at(0), Which::Running, &mut rng);
        step.unwrap().commit(&mut Ledger::new()).unwrap().bytes()
    };
    let (first, second) = (ask(), ask());
    // A broken store: no answer leaves; nor on a retry.
    let mut rng = crate::town::rng(3);
    for _ in 0..2 {
        let step = issuer.issue(at(0), b"ada", &first, &mut rng).unwrap();
        assert!(step.commit(&mut Broken).is_err());
    }
    // Nothing was stored, so whoever asks after the restart is answered.
    let mut issuer = restore(again(), &pinned, &mut books, Log::Whole).unwrap();
    let step = issuer.issue(at(0), b"ada", &second, &mut rng).unwrap();
    let answer = step.commit(&mut books).unwrap();
    // That was stored: after the next restart it is the same answer, bit for bit.
    let mut issuer = restore(again(), &pinned, &mut books, Log::Whole).unwrap();
    let step = issuer.issue(at(0), b"ada", &second, &mut rng).unwrap();
    assert_eq!(step.commit(&mut books).unwrap(), answer);
    let refused = issuer.issue(at(0), b"ada", &first, &mut rng).err();
    assert_eq!(refused, Some(IssueRefused::AlreadyIssued));
    // Nor does the issuer of another tier give the account a second one.
    let other = pin(&Configuration { tier: 2, ..one }).unwrap();
    let step = Requesting::begin(other.clone(), b"ada", at(0), Which::Running, &mut rng).unwrap();
    let asks = step.commit(&mut Ledger::new()).unwrap().bytes();
    let mut issuer = restore(again(), &other, &mut books, Log::Whole).unwrap();
    let refused = issuer.issue(at(0), b"ada", &asks, &mut rng).err();
    assert_eq!(refused, Some(IssueRefused::AlreadyIssued));
}

/// A holder that says it is of another tier, after it was issued this one.
#[test]
fn attributes_are_the_issuers_to_choose() {
    let mut town = Town::new(1, 4);
    let device = town.device(b"ada");
    let gold = Configuration { tier: 9, ..*town.service.pinned };
    let gold = pin(&gold).unwrap();
    let holder = alpheus_anonymous_credential::holder::Holder::restore(
        gold.clone(),
        device.holder.period(),
        &device.store,
    );
    let mut holder = holder.unwrap().unwrap();
    let compared = gold.compare(&gold.fingerprint()).unwrap();
    let nothing = &crate::support::NOTHING;
    let step = holder.log_in(at(1), Which::Running, &compared, nothing, &mut town.rng).unwrap();
    let sent = step.commit(&mut Ledger::new()).unwrap();
    // It pretends to the silver service to be silver, and to the gold one to be gold.
    assert_eq!(town.log_in(at(1), &sent), Err(Refused::Proof));
    let key = IssuerKey::random(&mut town.rng).unwrap();
    assert!(Verifier::new(key, gold).is_err(), "a verifier has the configuration's key");
}

#[test]
fn only_the_running_and_the_next_period_are_issued() {
    let mut town = Town::new(1, 5);
    let asks = asking(&mut town, Which::Running);
    for (days, refused) in
        [(0, None), (1, Some(IssueRefused::Period)), (2, Some(IssueRefused::Period))]
    {
        let now = at(days * 86_400);
        let answer = town.service.issuer.issue(now, b"ada", &asks.bytes(), &mut town.rng);
        assert_eq!(answer.err(), refused, "{days}");
    }
}

#[test]
fn an_issuer_that_may_have_forgotten_issues_nothing_a_second_time() {
    let mut rng = rng(6);
    let key = IssuerKey::random(&mut rng).unwrap();
    let bytes = key.expose();
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let damaged = Some(IssueRefused::Ledger(DamagedLog));
    // A ledger that is gone is not a whole one, one in use is not new.
    let (mut books, mut gone) = (Ledger::new(), Ledger::new());
    assert_eq!(restore(again(), &pinned, &mut gone, Log::Whole).err(), damaged);
    let mut issuer = restore(again(), &pinned, &mut books, Log::New).unwrap();
    let mut ask = |account: &[u8]| {
        let step = Requesting::begin(pinned.clone(), account, at(0), Which::Running, &mut rng);
        step.unwrap().commit(&mut Ledger::new()).unwrap().bytes()
    };
    let (adas, bobs) = (ask(b"ada"), ask(b"bob"));
    let rng = &mut crate::town::rng(7);
    let answer = issuer.issue(at(0), b"ada", &adas, rng).unwrap().commit(&mut books).unwrap();
    assert_eq!(restore(again(), &pinned, &mut books, Log::New).err(), damaged);
    // What is found is repeated; what may be lacking is not issued again, and that
    // outlives a restart, too.
    restore(again(), &pinned, &mut books, Log::Doubtful).unwrap();
    let mut issuer = restore(again(), &pinned, &mut books, Log::Whole).unwrap();
    let repeated = issuer.issue(at(0), b"ada", &adas, rng).unwrap();
    assert_eq!(repeated.commit(&mut books).unwrap(), answer);
    let refused = issuer.issue(at(0), b"bob", &bobs, rng).err();
    assert_eq!(refused, Some(IssueRefused::MayHaveForgotten));
    for value in books.values_mut() {
        value.pop();
    }
    assert_eq!(restore(again(), &pinned, &mut books, Log::Whole).err(), damaged);
}

#[test]
fn what_is_over_is_forgotten_and_never_issued_again() {
    let mut rng = rng(5);
    let key = IssuerKey::random(&mut rng).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let mut books = Ledger::new();
    let issuer = Issuer::restore(key, pinned.clone(), [], Log::New, at(0)).unwrap();
    let mut issuer = issuer.commit(&mut books).unwrap();
    let period = 5760 * 15;
    let mut issue = |issuer: &mut Issuer, books: &mut Ledger, seconds| {
        let asking =
            Requesting::begin(pinned.clone(), b"ada", at(seconds), Which::Running, &mut rng);
        let asking = asking.unwrap().commit(&mut Ledger::new()).unwrap();
        let answer = issuer.issue(at(seconds), b"ada", &asking.bytes(), &mut rng);
        answer.map(|answer| drop(answer.commit(books).unwrap()))
    };
    for n in 0..3 {
        issue(&mut issuer, &mut books, n * period).unwrap();
        issuer.prune(at(n * period)).commit(&mut books).unwrap();
    }
    let issued = |books: &Ledger| books.keys().filter(|key| key.starts_with(b"issued")).count();
    assert_eq!(issued(&books), 2, "this period's and the last one's");
    // A clock that goes back finds nothing, and gives nothing.
    assert_eq!(issue(&mut issuer, &mut books, 0), Err(IssueRefused::MayHaveForgotten));
    assert_eq!(issue(&mut issuer, &mut books, 2 * period), Err(IssueRefused::AlreadyIssued));
}

/// Killed as it began for the first time, it begins again; with anything given, never.
#[test]
fn what_has_only_begun_is_new() {
    let mut town = Town::new(1, 6);
    let records = |books: &Ledger| books.clone().into_iter().collect::<Vec<_>>();
    let begun = town.service.books.clone();
    assert!(Issuer::has_only_begun(&records(&begun)) && !begun.is_empty());
    let first = asking(&mut town, Which::Running);
    issue(&mut town, b"ada", &first).unwrap();
    assert!(!Issuer::has_only_begun(&records(&town.service.books)));
    let mut rng = rng(7);
    let key = IssuerKey::random(&mut rng).unwrap();
    let (bytes, pinned) = (key.expose(), pin(&configuration(&key, Limit::ONE)).unwrap());
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let mut books = Ledger::new();
    restore(again(), &pinned, &mut books, Log::New).unwrap();
    assert!(restore(again(), &pinned, &mut books, Log::New).is_ok());
    // In doubt it gives nothing for a while, and that is not begun anew.
    restore(again(), &pinned, &mut books, Log::Doubtful).unwrap();
    assert!(!Issuer::has_only_begun(&records(&books)));
    assert!(restore(again(), &pinned, &mut books, Log::New).is_err());
}
