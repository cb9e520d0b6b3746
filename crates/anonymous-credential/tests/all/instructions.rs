//! A presentation takes the same number of instructions for every holder and every index. So do
//! a request and a re-up. Valgrind counts them over this very binary, if it is installed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::support::{Ledger, NOTHING, START, Service, at};
use alpheus_anonymous_credential::configuration::{ConfigurationMatch, PinnedConfiguration};
use alpheus_anonymous_credential::holder::{
    Holder, OutboundMessage, PendingRequest, SubjectPresenter, Timing, present_together,
};
use alpheus_anonymous_credential::ledger::Step;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::JointPresentation;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_test_support::skip::has_program;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::process::Command;

/// The arguments of `one_presentation`: limit, seed of the holder, index.
const SHOWN: &str = "ALPHEUS_TEST_SHOWN";

/// The function whose instructions are counted.
#[inline(never)]
fn presentation(
    holder: &mut Holder,
    compared: &ConfigurationMatch,
    rng: &mut ChaCha20Rng,
) -> OutboundMessage {
    let step = holder.log_in(Timing::Running, compared, &NOTHING, at(1), rng).unwrap();
    step.commit(&mut Ledger::new()).unwrap()
}

#[test]
fn one_presentation() {
    let shown = std::env::var(SHOWN).unwrap_or("1 1 0".into());
    let numbers: Vec<u32> = shown.split(' ').map(|number| number.parse().unwrap()).collect();
    let [limit, seed, index] = numbers[..] else { panic!("three numbers") };
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(seed));
    let mut service = Service::new(Limit::try_from(limit).unwrap(), &mut rng).unwrap();
    let mut store = Ledger::new();
    let registered = service.register(&seed.to_be_bytes(), &mut store, &mut rng);
    let period = registered.unwrap().period();
    // As if the earlier indices were burnt, or something in the previous epoch.
    let before = index.checked_sub(1).map_or((START.0 - 1, 0), |before| (START.0, before));
    let key = [&b"shown"[..], &period.0.to_be_bytes(), &before.0.to_be_bytes()].concat();
    store.insert([key, before.1.to_be_bytes().to_vec()].concat(), vec![0; 64]);
    let restore = || Holder::restore(service.pinned.clone(), period, &store).unwrap().unwrap();
    let (mut first, mut holder) = (restore(), restore());
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    presentation(&mut first, &compared, &mut rng); // fills tables and the cache of contexts
    let sent = presentation(&mut holder, &compared, &mut rng);
    let session = service.log_in(&sent, at(1)).unwrap().session;
    assert!(service.re_up(&sent, at(1)).is_err() && session == sent.session);
}

#[inline(never)]
fn carrying(holder: &mut Holder, rng: &mut ChaCha20Rng) -> OutboundMessage {
    holder.re_up(at(13), rng).unwrap().commit(&mut Ledger::new()).unwrap()
}

#[inline(never)]
fn requesting(
    pinned: &PinnedConfiguration,
    account: &[u8],
    rng: &mut ChaCha20Rng,
) -> PendingRequest {
    let begun = PendingRequest::begin(pinned.clone(), account, Timing::Running, at(1), rng);
    begun.unwrap().commit(&mut Ledger::new()).unwrap()
}

/// Requests a credential, logs in, re-ups. The first run of each fills tables, which must not
/// count against one holder.
#[test]
fn one_request_and_re_up() {
    let shown = std::env::var(SHOWN).unwrap_or("1 1 0".into());
    let seed: u32 = shown.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(seed));
    let mut service = Service::new(Limit::ONE, &mut rng).unwrap();
    let asked = requesting(&service.pinned, &seed.to_be_bytes(), &mut rng);
    assert_eq!(asked.bytes().len(), 136);
    let mut holder = service.register(&seed.to_be_bytes(), &mut Ledger::new(), &mut rng).unwrap();
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    let sent = presentation(&mut holder, &compared, &mut rng);
    service.log_in(&sent, at(1)).unwrap();
    let sent = carrying(&mut holder, &mut rng);
    service.re_up(&sent, at(13)).unwrap();
}

#[inline(never)]
fn presentation_together(
    abouts: &mut [SubjectPresenter],
    rng: &mut ChaCha20Rng,
) -> Vec<Step<Vec<u8>>> {
    present_together(abouts, &NOTHING, rng).unwrap()
}

/// Presents the credentials of two issuers together.
#[test]
fn one_presentation_together() {
    let shown = std::env::var(SHOWN).unwrap_or("2 1 1".into());
    let numbers: Vec<u32> = shown.split(' ').map(|number| number.parse().unwrap()).collect();
    let [limit, seed, index] = numbers[..] else { panic!("three numbers") };
    let rng = &mut ChaCha20Rng::seed_from_u64(u64::from(seed));
    let mut services = [(); 2].map(|()| Service::new(Limit::ONE, rng).unwrap());
    let mut holders = Vec::new();
    for service in &mut services {
        let mut store = Ledger::new();
        holders.push((service.register(&seed.to_be_bytes(), &mut store, rng).unwrap(), store));
    }
    let subject = |at: usize| {
        let (pinned, period) = (&services[at].pinned, holders[at].0.period());
        Subject::new(pinned, &NOTHING, Limit::try_from(limit).unwrap(), period)
    };
    let about = |at: usize, store: &Ledger| holders[at].0.for_subject(subject(at), store).unwrap();
    let mut stores = [Ledger::new(), Ledger::new()];
    let mut burning = [about(0, &stores[0]), about(1, &stores[1])];
    let steps = present_together(&mut burning, &NOTHING, rng).unwrap(); // fills tables
    for (step, store) in steps.into_iter().zip(&mut stores) {
        step.commit(store).unwrap();
        // As if it were the previous index.
        let (mut key, value) = store.pop_first().unwrap();
        key.truncate(key.len() - 4);
        store.insert([key, (index - 1).to_be_bytes().to_vec()].concat(), value);
    }
    let mut abouts = [about(0, &stores[0]), about(1, &stores[1])];
    assert_eq!(abouts[1].left(), limit - index);
    for (at, step) in presentation_together(&mut abouts, rng).into_iter().enumerate() {
        let bytes = step.commit(&mut Ledger::new()).unwrap();
        let joint = JointPresentation::from_bytes(&bytes, Limit::try_from(limit).unwrap(), (at, 2))
            .unwrap();
        assert!(services[at].verifier.verify_joint(&subject(at), vec![joint])[0].is_ok());
    }
}

#[test]
fn presentations_together_take_the_same_instructions_for_every_holder_and_index() {
    if !has_program("valgrind") {
        return;
    }
    let shown = [(1, 1), (1, 2), (2, 4), (3, 17), (2, 24)];
    let shown = shown.map(|(seed, index)| format!("25 {seed} {index}"));
    assert_same("presentation_together", "one_presentation_together", &shown, 1_000_000);
}

/// Compares the instructions of a function in several runs of a test, of which each takes at least
/// `least`. Other work of the process can only add to a count, so runs that differ
/// are repeated, and each keeps its lowest count.
fn assert_same(function: &str, test: &str, shown: &[String], least: u64) {
    let mut lowest = vec![u64::MAX; shown.len()];
    for _ in 0..4 {
        for (lowest, shown) in lowest.iter_mut().zip(shown) {
            *lowest = counted(function, test, shown).min(*lowest);
        }
        if lowest.iter().all(|count| *count == lowest[0]) {
            break;
        }
    }
    assert!(lowest[0] > least, "something was counted: {lowest:?}");
    assert_eq!(vec![lowest[0]; lowest.len()], lowest, "{function}");
}

/// Instructions of a function in a test.
fn counted(function: &str, test: &str, shown: &str) -> u64 {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=all::instructions::{function}"))
        .arg(std::env::current_exe().unwrap())
        // In one thread: valgrind counts what others do meanwhile.
        .args(["--exact", &format!("instructions::{test}"), "--test-threads=1"])
        .env(SHOWN, shown)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}");
    let counted = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    counted.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

#[test]
fn a_presentation_takes_the_same_instructions_for_every_holder_and_index() {
    if !has_program("valgrind") {
        return;
    }
    let same = |shown: &[(u32, u32)], limit: u32| {
        let shown: Vec<String> =
            shown.iter().map(|(seed, index)| format!("{limit} {seed} {index}")).collect();
        assert_same("presentation", "one_presentation", &shown, 1_000_000);
    };
    same(&[(1, 0), (2, 0), (3, 0)], 1);
    // With no burnt index, or one, the search of the map takes two instructions more or less.
    // From two on it is the same.
    same(&[(1, 2), (1, 511), (1, 512), (2, 999)], 1000);
}

#[test]
fn a_request_and_a_re_up_take_the_same_instructions_for_every_holder() {
    if !has_program("valgrind") {
        return;
    }
    for function in ["requesting", "carrying"] {
        let shown = [1, 2].map(|seed| format!("1 {seed} 0"));
        assert_same(function, "one_request_and_re_up", &shown, 100_000);
    }
}
