//! A showing takes the same number of instructions whoever shows, and whatever
//! the index; so do a request and a re-up: counted by valgrind, where there is one,
//! over this very binary.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

#[path = "../examples/support/mod.rs"]
mod support;

use alpheus_anonymous_credential::configuration::{Compared, Pinned};
use alpheus_anonymous_credential::holder::{
    About, Holder, Outgoing, Requesting, Which, show_together,
};
use alpheus_anonymous_credential::ledger::Step;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::Joint;
use alpheus_anonymous_credential::subjects::Subject;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::process::Command;
use support::{Ledger, NOTHING, START, Service, at};

/// Says what `one_showing` shows: limit, seed of the holder, index.
const SHOWN: &str = "ALPHEUS_TEST_SHOWN";

/// What is counted.
#[inline(never)]
fn showing(holder: &mut Holder, compared: &Compared, rng: &mut ChaCha20Rng) -> Outgoing {
    let step = holder.log_in(at(1), Which::Running, compared, &NOTHING, rng).unwrap();
    step.commit(&mut Ledger::new()).unwrap()
}

#[test]
fn one_showing() {
    let shown = std::env::var(SHOWN).unwrap_or("1 1 0".into());
    let numbers: Vec<u32> = shown.split(' ').map(|number| number.parse().unwrap()).collect();
    let [limit, seed, index] = numbers[..] else { panic!("three numbers") };
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(seed));
    let mut service = Service::new(Limit::try_from(limit).unwrap(), &mut rng).unwrap();
    let mut store = Ledger::new();
    let registered = service.register(&seed.to_be_bytes(), &mut store, &mut rng);
    let period = registered.unwrap().period();
    // As if the indices before were burnt, or something in the epoch before.
    let before = index.checked_sub(1).map_or((START.0 - 1, 0), |before| (START.0, before));
    let key = [&b"shown"[..], &period.0.to_be_bytes(), &before.0.to_be_bytes()].concat();
    store.insert([key, before.1.to_be_bytes().to_vec()].concat(), vec![0; 64]);
    let restore = || Holder::restore(service.pinned.clone(), period, &store).unwrap().unwrap();
    let (mut first, mut holder) = (restore(), restore());
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    showing(&mut first, &compared, &mut rng); // tables are made, contexts are known
    let sent = showing(&mut holder, &compared, &mut rng);
    let session = service.log_in(at(1), &sent).unwrap().session;
    assert!(service.re_up(at(1), &sent).is_err() && session == sent.session);
}

#[inline(never)]
fn carrying(holder: &mut Holder, rng: &mut ChaCha20Rng) -> Outgoing {
    holder.re_up(at(13), rng).unwrap().commit(&mut Ledger::new()).unwrap()
}

#[inline(never)]
fn requesting(pinned: &Pinned, account: &[u8], rng: &mut ChaCha20Rng) -> Requesting {
    let begun = Requesting::begin(pinned.clone(), account, at(1), Which::Running, rng);
    begun.unwrap().commit(&mut Ledger::new()).unwrap()
}

/// Requests a credential, logs in, carries the session on. The first run of each makes
/// tables, which are not counted against one holder.
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
    let sent = showing(&mut holder, &compared, &mut rng);
    service.log_in(at(1), &sent).unwrap();
    let sent = carrying(&mut holder, &mut rng);
    service.re_up(at(13), &sent).unwrap();
}

#[inline(never)]
fn showing_together(abouts: &mut [About], rng: &mut ChaCha20Rng) -> Vec<Step<Vec<u8>>> {
    show_together(abouts, &NOTHING, rng).unwrap()
}

/// Shows the credentials of two issuers together.
#[test]
fn one_showing_together() {
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
    let about = |at: usize, store: &Ledger| holders[at].0.about(subject(at), store).unwrap();
    let mut stores = [Ledger::new(), Ledger::new()];
    let mut burning = [about(0, &stores[0]), about(1, &stores[1])];
    let steps = show_together(&mut burning, &NOTHING, rng).unwrap(); // tables are made
    for (step, store) in steps.into_iter().zip(&mut stores) {
        step.commit(store).unwrap();
        // As if it were the index before.
        let (mut key, value) = store.pop_first().unwrap();
        key.truncate(key.len() - 4);
        store.insert([key, (index - 1).to_be_bytes().to_vec()].concat(), value);
    }
    let mut abouts = [about(0, &stores[0]), about(1, &stores[1])];
    assert_eq!(abouts[1].left(), limit - index);
    for (at, step) in showing_together(&mut abouts, rng).into_iter().enumerate() {
        let bytes = step.commit(&mut Ledger::new()).unwrap();
        let joint = Joint::from_bytes(&bytes, Limit::try_from(limit).unwrap(), (at, 2)).unwrap();
        assert!(services[at].verifier.verify_joint(&subject(at), vec![joint])[0].is_ok());
    }
}

#[test]
fn showings_together_take_the_same_instructions_for_every_holder_and_index() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("not checked: there is no valgrind here");
        return;
    }
    let shown = [(1, 1), (1, 2), (2, 4), (3, 17), (2, 24)];
    let shown = shown.map(|(seed, index)| {
        counted("showing_together", "one_showing_together", &format!("25 {seed} {index}"))
    });
    assert!(shown[0] > 1_000_000, "something was counted: {shown:?}");
    assert_eq!([shown[0]; 5], shown);
}

/// Of the two showings of `one_showing`, together.
fn instructions(limit: u32, seed: u32, index: u32) -> u64 {
    counted("showing", "one_showing", &format!("{limit} {seed} {index}"))
}

/// Of a function, in a test.
fn counted(function: &str, test: &str, shown: &str) -> u64 {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=instructions::{function}"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(SHOWN, shown)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}");
    let counted = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    counted.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

#[test]
fn a_showing_takes_the_same_instructions_for_every_holder_and_index() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("not checked: there is no valgrind here");
        return;
    }
    let holders = [1, 2, 3].map(|seed| instructions(1, seed, 0));
    assert!(holders[0] > 1_000_000, "something was counted: {holders:?}");
    assert_eq!([holders[0]; 3], holders);
    // After none or one that is burnt, the map of what is burnt is searched with
    // two instructions more or less; from the third on the search is the same.
    let indices = [(1, 2), (1, 511), (1, 512), (2, 999)];
    let indices = indices.map(|(seed, index)| instructions(1000, seed, index));
    assert_eq!([indices[0]; 4], indices);
}

#[test]
fn a_request_and_a_re_up_take_the_same_instructions_for_every_holder() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("not checked: there is no valgrind here");
        return;
    }
    for function in ["requesting", "carrying"] {
        let holders =
            [1, 2].map(|seed| counted(function, "one_request_and_re_up", &format!("1 {seed} 0")));
        assert!(holders[0] > 100_000, "something was counted: {holders:?}");
        assert_eq!(holders[0], holders[1], "{function}");
    }
}
