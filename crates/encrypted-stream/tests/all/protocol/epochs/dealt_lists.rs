//! A service that deals controllers into other lists in each window, and solves for what each
//! owner has; and the bound on the sets of a day, which stops it.

use std::collections::BTreeSet;

use super::*;

/// Owners of a list: the smallest population that opens.
const MIN: usize = 4;
/// Owners with a controller each.
const OWNERS: usize = 20;

fn setup(sets_per_day: Option<u32>) -> Setup {
    let least = MIN as u32;
    Setup { minimum: least, windows: 9, sets_per_day, ..Setup::new(OWNERS as u32) }
}

/// What a liar has learnt of values that do not change: sums over these sets.
#[derive(Default)]
struct LearntSums(Vec<BTreeSet<usize>>);

/// A prime above all that elimination meets.
const PRIME: i128 = 2_147_483_647;

impl LearntSums {
    /// The equations in reduced row echelon form, and the column that leads each.
    fn solved(&self) -> Vec<(usize, Vec<i128>)> {
        let row = |set: &BTreeSet<usize>| -> Vec<i128> {
            (0..OWNERS).map(|at| i128::from(set.contains(&at))).collect()
        };
        let mut rows: Vec<Vec<i128>> = self.0.iter().map(row).collect();
        let mut solved: Vec<(usize, Vec<i128>)> = Vec::new();
        for column in 0..OWNERS {
            let Some(at) = rows.iter().position(|row| row[column] != 0) else { continue };
            let mut lead = rows.swap_remove(at);
            let inverse = inverse(lead[column]);
            lead.iter_mut().for_each(|cell| *cell = *cell * inverse % PRIME);
            let others = rows.iter_mut().chain(solved.iter_mut().map(|(_, row)| row));
            for row in others {
                let factor = row[column];
                let pairs = row.iter_mut().zip(&lead);
                pairs.for_each(|(cell, own)| *cell = (*cell - factor * own).rem_euclid(PRIME));
            }
            solved.push((column, lead));
        }
        solved
    }

    /// How many equations do not follow from others.
    fn rank(&self) -> usize {
        self.solved().len()
    }

    /// The owners whose values follow.
    fn read(&self) -> usize {
        let alone =
            |(_, row): &&(usize, Vec<i128>)| row.iter().filter(|cell| **cell != 0).count() == 1;
        self.solved().iter().filter(alone).count()
    }
}

fn inverse(number: i128) -> i128 {
    let (mut power, mut base, mut left) = (1, number, PRIME - 2);
    while left > 0 {
        if left & 1 == 1 {
            power = power * base % PRIME;
        }
        base = base * base % PRIME;
        left >>= 1;
    }
    power
}

/// Deals everybody into lists of the least size, in another way for each number.
fn deal(number: u64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..OWNERS).collect();
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for at in (1..OWNERS).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order.chunks(MIN).map(<[usize]>::to_vec).collect()
}

/// One window over one of the service's lists: the set of the sum, if it opens.
fn open(epochs: &mut Epochs, number: u64, list: &[usize]) -> Option<BTreeSet<usize>> {
    let entries = epochs.entries(number, list.iter().copied());
    let listing = Arc::new(epochs.list(number, entries));
    let announced = Arc::new(AnnouncedPlan::open_list(&listing, &epochs.world.deployment).unwrap());
    let outcome = epochs.run(number, &announced, ALL);
    let opened = outcome.result.ok()?;
    assert_eq!(opened.outputs, epochs.truth(list.iter().copied(), number));
    Some(list.iter().copied().collect())
}

/// The liar deals again in each window.
fn attack(epochs: &mut Epochs, windows: std::ops::Range<u64>) -> LearntSums {
    let mut learnt = LearntSums::default();
    for number in windows {
        for list in deal(number) {
            learnt.0.extend(open(epochs, number, &list));
        }
    }
    learnt
}

/// As with lists of 18 of a thousand owners, whom nineteen windows tell.
#[test]
fn a_liar_that_deals_lists_reads_everybody_in_a_window_more_than_a_list_has_owners() {
    let mut epochs = Epochs::new(setup(None));
    let learnt = attack(&mut epochs, 2..7);
    assert_eq!((learnt.rank(), learnt.read()), (OWNERS, OWNERS));
}

/// At most n·D/m sums of different sets on a day, and so at most as many owners are read.
#[test]
fn with_a_bound_a_day_tells_no_more_than_its_share_of_the_owners() {
    for (sets, rank, read) in [(1, 5, 0), (2, 9, 0), (3, 13, 0)] {
        let mut epochs = Epochs::new(setup(Some(sets)));
        let learnt = attack(&mut epochs, 2..7);
        let most = OWNERS * sets as usize / MIN;
        assert!(learnt.rank() <= most && learnt.read() <= most, "{sets}");
        assert_eq!((learnt.rank(), learnt.read()), (rank, read), "{sets}");
        assert_eq!(learnt.0.len(), most, "each controller opens what its bound allows");
    }
}

/// Sets that a day has had still open, and the next day has a bound of its own.
#[test]
fn known_sets_open_all_day_and_the_next_day_has_others() {
    let mut epochs = Epochs::new(setup(Some(1)));
    let [one, other] = [[0, 1, 2, 3], [0, 1, 2, 4]];
    // The third window begins at midnight.
    assert!(open(&mut epochs, 0, &one).is_some());
    assert!(open(&mut epochs, 1, &other).is_none(), "it differs by one owner from the day's set");
    assert!(open(&mut epochs, 2, &other).is_some());
    assert!(open(&mut epochs, 3, &one).is_none());
    assert!(open(&mut epochs, 4, &other).is_some());
}

/// A controller that crashes, and one whose ledger is an old copy.
#[test]
fn a_restart_gives_a_day_no_other_bound() {
    let mut epochs = Epochs::new(setup(Some(1)));
    let before = epochs.store.clone();
    assert!(open(&mut epochs, 2, &[0, 1, 2, 3]).is_some());
    let (store, fence) = (epochs.store.clone(), epochs.controllers[0].fence());
    epochs.restore(0, &store, after(2), Some(fence));
    assert!(open(&mut epochs, 3, &[0, 5, 6, 7]).is_none());
    assert!(open(&mut epochs, 4, &[0, 1, 2, 3]).is_some());
    // The copy lacks the day's sets. It has opened none of that day since.
    for at in 0..4 {
        let (mut store, now) = (epochs.store.clone(), after(4));
        let own = Scope::Controller(epochs.controllers[at].id()).prefix();
        store.map.retain(|key, _| !key.starts_with(&own));
        let old = before.map.iter().filter(|(key, _)| key.starts_with(&own));
        store.map.extend(old.map(|(key, value)| (key.clone(), value.clone())));
        epochs.restore(at, &store, now, None);
        let stream = epochs.held(at)[0].stream;
        let signed = epochs.world.annotate(stream, 1, policy(&epochs.world.setup));
        let owner = crate::protocol::identities::certified(&epochs.world.setup.owner_key(stream));
        let step = epochs.controllers[at].annotate(&signed, &owner, now).unwrap();
        step.commit(&mut epochs.store).unwrap();
    }
    assert!(open(&mut epochs, 7, &[0, 1, 2, 3]).is_none(), "its sets of the day may be lost");
}

/// Two owners at each host. The first of the first host bounds the sets of a day by one, all others by three.
fn with_a_strict_owner() -> (Epochs, StreamId) {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..setup(Some(3)) });
    let stream = epochs.held(0)[0].stream;
    let strict = policy(&Setup { sets_per_day: Some(1), ..epochs.world.setup.clone() });
    let signed = epochs.world.annotate(stream, 2, strict);
    let owner = crate::protocol::identities::certified(&epochs.world.setup.owner_key(stream));
    let step = epochs.controllers[0].annotate(&signed, &owner, Timestamp(EPOCH)).unwrap();
    step.commit(&mut epochs.store).unwrap();
    (epochs, stream)
}

/// The first host refused the second set of the day, for that owner's bound, and nobody else refused.
fn assert_first_host_refused(outcome: &Outcome) {
    let set = outcome.opening_set.as_ref().filter(|_| outcome.result.is_ok());
    assert!(!set.is_some_and(|set| set.contains(0)), "the difference is that owner");
    let refused: Vec<_> = outcome.refused.clone().into_iter().collect();
    assert_eq!(refused, [(WindowRefusalError::TooManySets { limit: 1 }, 1)]);
}

/// The service lists both owners of a host, and then one.
#[test]
fn a_neighbour_with_a_larger_bound_does_not_give_an_owner_away() {
    let (mut epochs, stream) = with_a_strict_owner();
    let list = [0, 1, 2, 3];
    assert!(open(&mut epochs, 2, &list).is_some());
    let mut entries = epochs.entries(3, list.into_iter());
    entries[0] = epochs.attendance_without(0, 3, vec![stream]).unwrap().entry;
    let listing = Arc::new(epochs.list(3, entries));
    let announced = Arc::new(AnnouncedPlan::open_list(&listing, &epochs.world.deployment).unwrap());
    let outcome = epochs.run(3, &announced, ALL);
    assert_first_host_refused(&outcome);
}

/// The service lists both owners of a host. Then it announces a fixed plan with one, on the same day.
#[test]
fn a_fixed_plan_after_an_epoch_does_not_give_an_owner_away() {
    let (mut epochs, stream) = with_a_strict_owner();
    assert!(open(&mut epochs, 2, &[0, 1, 2, 3]).is_some());
    let mut plan = Plan { nonce: [77; 16], from: window(3).start, ..epochs.all.clone() };
    plan.roster.truncate(4);
    plan.streams.retain(|planned| planned.controller < 4 && planned.stream != stream);
    let world = &epochs.world;
    let announced = announce(&plan, &world.seats[..4], &world.service, &world.deployment);
    let outcome = epochs.run(3, &announced, ALL);
    assert_first_host_refused(&outcome);
}

/// The coordinators of a query's epochs share what they know, whatever rosters their lists have.
#[test]
fn a_service_asks_for_sets_that_the_day_has_had_in_other_lists() {
    for shares in [true, false] {
        let mut epochs = Epochs::new(setup(Some(1)));
        epochs.sets = shares.then(DaySets::default);
        assert!(open(&mut epochs, 2, &[1, 2, 3, 4]).is_some());
        assert!(open(&mut epochs, 3, &[0, 1, 2, 3, 4]).is_none(), "members state their bounds");
        let entries = epochs.entries(4, 0..5);
        let listing = Arc::new(epochs.list(4, entries));
        let deployment = &epochs.world.deployment;
        let announced = Arc::new(AnnouncedPlan::open_list(&listing, deployment).unwrap());
        let outcome = epochs.run(4, &announced, ALL);
        let opened = outcome.result.ok().map(|opened| opened.outputs);
        assert_eq!(opened, shares.then(|| epochs.truth(1..5, 4)));
        assert_eq!(outcome.unopened, []);
    }
}
