//! One credential for each account, kind and period, and the same answer to the same request.

use crate::properties::town::{Town, rng};
use crate::support::{Ledger, at, configuration, pin};
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::error::{IssuerError, VerifierError};
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::{DamagedLedgerError, StateOrigin};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::ledger::FailingLedger;

fn pending(town: &mut Town, which: Timing) -> PendingRequest {
    let pinned = town.pinned();
    let step = PendingRequest::begin(pinned, b"ada", which, at(0), &mut town.rng).unwrap();
    step.commit(&mut Ledger::new()).unwrap()
}

fn issue(
    town: &mut Town,
    account: &[u8],
    pending: &PendingRequest,
) -> Result<Vec<u8>, IssuerError> {
    let service = &mut town.service;
    let step =
        service.issuer.issue(Applicant::named(account), &pending.bytes(), at(0), &mut town.rng)?;
    Ok(step.commit(&mut service.books).unwrap())
}

fn restore(
    key: IssuerKey,
    pinned: &PinnedConfiguration,
    books: &mut Ledger,
    origin: StateOrigin,
) -> Result<Issuer, IssuerError> {
    let step = Issuer::restore(key, pinned.clone(), books.clone(), origin, at(0))?;
    Ok(step.commit(books).unwrap())
}

#[test]
fn the_same_request_gets_the_same_answer_and_another_gets_none() {
    let mut town = Town::new(1, 1);
    let (first, second) =
        (pending(&mut town, Timing::Running), pending(&mut town, Timing::Running));
    let answer = issue(&mut town, b"ada", &first).unwrap();
    assert_eq!(issue(&mut town, b"ada", &first), Ok(answer.clone()));
    assert_eq!(issue(&mut town, b"ada", &second), Err(IssuerError::AlreadyIssued));
    // The proof is bound to the account.
    assert_eq!(issue(&mut town, b"eve", &first), Err(IssuerError::Proof));
    // The next period is independent.
    let next = pending(&mut town, Timing::Next);
    issue(&mut town, b"ada", &next).unwrap();
    assert!(second.finish(&answer).is_err());
    first.finish(&answer).unwrap().commit(&mut Ledger::new()).unwrap();
}

/// The records are the account's, whatever its holder calls it.
#[test]
fn one_account_under_four_names_gets_one_credential() {
    let mut town = Town::new(1, 9);
    let names: [&[u8]; 4] = [b"ada", b"Ada", b"ADA", b"ada@example.org"];
    let mut answers = Vec::new();
    for name in names {
        let (pinned, timing) = (town.pinned(), Timing::Running);
        let step = PendingRequest::begin(pinned, name, timing, at(0), &mut town.rng).unwrap();
        let asks = step.commit(&mut Ledger::new()).unwrap().bytes();
        let applicant = Applicant { account: b"u-1815", name };
        let checked = town.service.issuer.check(applicant, &asks, at(0));
        let answer = town.service.issuer.issue(applicant, &asks, at(0), &mut town.rng);
        let answer = answer.map(|step| step.commit(&mut town.service.books).unwrap());
        assert_eq!(checked.err(), answer.as_ref().err().copied());
        answers.push(answer.map(drop));
    }
    assert_eq!(answers[0], Ok(()));
    assert!(answers[1..].iter().all(|answer| *answer == Err(IssuerError::AlreadyIssued)));
    // Another account that spells its name the same has its own.
    let step = PendingRequest::begin(town.pinned(), b"ada", Timing::Running, at(0), &mut town.rng);
    let asks = step.unwrap().commit(&mut Ledger::new()).unwrap().bytes();
    let other = Applicant { account: b"u-1816", name: b"ada" };
    assert!(town.service.issuer.issue(other, &asks, at(0), &mut town.rng).is_ok());
}

#[test]
fn an_answer_that_was_stored_survives_a_crash_and_no_other_leaves() {
    let mut rng = rng(2);
    let key = IssuerKey::random(&mut rng).unwrap();
    let bytes = key.expose();
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let one = configuration(&key, Limit::ONE);
    let pinned = pin(&one).unwrap();
    let mut books = Ledger::new();
    let mut issuer = restore(key, &pinned, &mut books, StateOrigin::New).unwrap();
    let mut ask = || {
        let step = PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), &mut rng);
        step.unwrap().commit(&mut Ledger::new()).unwrap().bytes()
    };
    let (first, second) = (ask(), ask());
    // The store is broken: no answer leaves, not even on a retry.
    let mut rng = crate::properties::town::rng(3);
    for _ in 0..2 {
        let step = issuer.issue(Applicant::named(b"ada"), &first, at(0), &mut rng).unwrap();
        assert!(step.commit(&mut FailingLedger).is_err());
    }
    // Nothing was stored, so a request after the restart is answered.
    let mut issuer = restore(again(), &pinned, &mut books, StateOrigin::Intact).unwrap();
    let step = issuer.issue(Applicant::named(b"ada"), &second, at(0), &mut rng).unwrap();
    let answer = step.commit(&mut books).unwrap();
    // This one was stored: after the next restart the answer is the same, bit for bit.
    let mut issuer = restore(again(), &pinned, &mut books, StateOrigin::Intact).unwrap();
    let step = issuer.issue(Applicant::named(b"ada"), &second, at(0), &mut rng).unwrap();
    assert_eq!(step.commit(&mut books).unwrap(), answer);
    let refused = issuer.issue(Applicant::named(b"ada"), &first, at(0), &mut rng).err();
    assert_eq!(refused, Some(IssuerError::AlreadyIssued));
    // The issuer of another tier does not give the account a second credential either.
    let other = pin(&Configuration { tier: 2, ..one }).unwrap();
    let step =
        PendingRequest::begin(other.clone(), b"ada", Timing::Running, at(0), &mut rng).unwrap();
    let asks = step.commit(&mut Ledger::new()).unwrap().bytes();
    let mut issuer = restore(again(), &other, &mut books, StateOrigin::Intact).unwrap();
    let refused = issuer.issue(Applicant::named(b"ada"), &asks, at(0), &mut rng).err();
    assert_eq!(refused, Some(IssuerError::AlreadyIssued));
}

/// A holder claims another tier than it was issued.
#[test]
fn a_holder_cannot_choose_its_attributes() {
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
    let step = holder.log_in(Timing::Running, &compared, nothing, at(1), &mut town.rng).unwrap();
    let sent = step.commit(&mut Ledger::new()).unwrap();
    // It claims silver to the silver service, and gold to the gold one.
    assert_eq!(town.log_in(&sent, at(1)), Err(VerifierError::Proof));
    let key = IssuerKey::random(&mut town.rng).unwrap();
    assert!(Verifier::new(key, gold).is_err(), "a verifier has the configuration's key");
}

#[test]
fn only_the_running_and_the_next_period_are_issued() {
    let mut town = Town::new(1, 5);
    let asks = pending(&mut town, Timing::Running);
    for (days, refused) in
        [(0, None), (1, Some(IssuerError::Period)), (2, Some(IssuerError::Period))]
    {
        let now = at(days * 86_400);
        let answer =
            town.service.issuer.issue(Applicant::named(b"ada"), &asks.bytes(), now, &mut town.rng);
        assert_eq!(answer.err(), refused, "{days}");
    }
}

#[test]
fn an_issuer_that_may_have_forgotten_issues_nothing_twice() {
    let mut rng = rng(6);
    let key = IssuerKey::random(&mut rng).unwrap();
    let bytes = key.expose();
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let damaged = Some(IssuerError::Ledger(DamagedLedgerError));
    // A lost ledger is not intact, and one in use is not new.
    let (mut books, mut gone) = (Ledger::new(), Ledger::new());
    assert_eq!(restore(again(), &pinned, &mut gone, StateOrigin::Intact).err(), damaged);
    let mut issuer = restore(again(), &pinned, &mut books, StateOrigin::New).unwrap();
    let mut ask = |account: &[u8]| {
        let step = PendingRequest::begin(pinned.clone(), account, Timing::Running, at(0), &mut rng);
        step.unwrap().commit(&mut Ledger::new()).unwrap().bytes()
    };
    let (adas, bobs) = (ask(b"ada"), ask(b"bob"));
    let rng = &mut crate::properties::town::rng(7);
    let answer = issuer
        .issue(Applicant::named(b"ada"), &adas, at(0), rng)
        .unwrap()
        .commit(&mut books)
        .unwrap();
    assert_eq!(restore(again(), &pinned, &mut books, StateOrigin::New).err(), damaged);
    // Recorded answers are repeated. Possibly lost ones are not issued again, not even after
    // another restart.
    restore(again(), &pinned, &mut books, StateOrigin::Restored).unwrap();
    let mut issuer = restore(again(), &pinned, &mut books, StateOrigin::Intact).unwrap();
    let repeated = issuer.issue(Applicant::named(b"ada"), &adas, at(0), rng).unwrap();
    assert_eq!(repeated.commit(&mut books).unwrap(), answer);
    let refused = issuer.issue(Applicant::named(b"bob"), &bobs, at(0), rng).err();
    assert_eq!(refused, Some(IssuerError::MayHaveForgotten));
    for value in books.values_mut() {
        value.pop();
    }
    assert_eq!(restore(again(), &pinned, &mut books, StateOrigin::Intact).err(), damaged);
}

#[test]
fn past_periods_are_deleted_and_never_issued_again() {
    let mut rng = rng(5);
    let key = IssuerKey::random(&mut rng).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let mut books = Ledger::new();
    let issuer = Issuer::restore(key, pinned.clone(), [], StateOrigin::New, at(0)).unwrap();
    let mut issuer = issuer.commit(&mut books).unwrap();
    let period = 5760 * 15;
    let mut issue = |issuer: &mut Issuer, books: &mut Ledger, seconds| {
        let pending =
            PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(seconds), &mut rng);
        let pending = pending.unwrap().commit(&mut Ledger::new()).unwrap();
        let answer =
            issuer.issue(Applicant::named(b"ada"), &pending.bytes(), at(seconds), &mut rng);
        answer.map(|answer| drop(answer.commit(books).unwrap()))
    };
    for n in 0..3 {
        issue(&mut issuer, &mut books, n * period).unwrap();
        issuer.prune(at(n * period)).commit(&mut books).unwrap();
    }
    let issued = |books: &Ledger| books.keys().filter(|key| key.starts_with(b"issued")).count();
    assert_eq!(issued(&books), 2, "this period's and the last one's");
    // With a clock that went back it finds nothing, and issues nothing.
    assert_eq!(issue(&mut issuer, &mut books, 0), Err(IssuerError::MayHaveForgotten));
    assert_eq!(issue(&mut issuer, &mut books, 2 * period), Err(IssuerError::AlreadyIssued));
}

/// A crash during the first start allows a fresh start; once anything was issued, nothing does.
#[test]
fn what_has_issued_nothing_is_new() {
    let mut rng = rng(7);
    let key = IssuerKey::random(&mut rng).unwrap();
    let (bytes, pinned) = (key.expose(), pin(&configuration(&key, Limit::ONE)).unwrap());
    let again = || IssuerKey::from_bytes(&bytes).unwrap();
    let mut books = Ledger::new();
    restore(again(), &pinned, &mut books, StateOrigin::New).unwrap();
    assert!(restore(again(), &pinned, &mut books, StateOrigin::New).is_ok());
    // A restored issuer issues nothing for a while, and so does not count as new.
    restore(again(), &pinned, &mut books, StateOrigin::Restored).unwrap();
    assert!(restore(again(), &pinned, &mut books, StateOrigin::New).is_err());
}
