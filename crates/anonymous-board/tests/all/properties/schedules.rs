//! Statements, writes and shares arrive late, out of order or never, by a seed. Every epoch is
//! published or burnt in time, and nobody honest is blamed.

use crate::properties::town::{SECOND, Town, configuration};
use alpheus_anonymous_board::configuration::{Configuration, Epoch, Party, Schedule};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::BurnReason;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Delivery rates, in percent of attempts.
struct Weather {
    /// Statements, by sender and receiver.
    said: [[u32; 3]; 3],
    /// To each database.
    shares: [u32; 2],
    writes: [u32; 2],
    /// A restart, at each turn.
    restarts: u32,
}

impl Weather {
    /// Half of everything arrives, and sometimes a database is killed.
    const FAIR: Self = Self { said: [[50; 3]; 3], shares: [30; 2], writes: [50; 2], restarts: 4 };

    /// Each link has its own rate, down to zero.
    fn foul(rng: &mut ChaCha20Rng) -> Self {
        let mut luck = || [0, 5, 30, 100][rng.next_u32() as usize % 4];
        Self {
            said: [[luck(), luck(), luck()], [luck(), luck(), luck()], [luck(), luck(), luck()]],
            shares: [luck(), luck()],
            writes: [luck(), luck()],
            restarts: 4,
        }
    }
}

fn happens(rng: &mut ChaCha20Rng, percent: u32) -> bool {
    rng.next_u32() % 100 < percent
}

fn stage(seed: u8) -> Town {
    let usual = configuration(9, 40);
    let schedule = Schedule { patience: Span::seconds(300), ..usual.schedule };
    let mut town = Town::of(&Configuration { schedule, ..usual }, seed);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"at both"))));
    for (member, side) in [(4, Side::First), (5, Side::Second)] {
        let (_, submission) = town.write(member, Content::Message(b"at one"));
        town.submit(side, &submission).unwrap();
    }
    town.later(61);
    town
}

fn database_turn(town: &mut Town, side: Side, weather: &Weather, rng: &mut ChaCha20Rng) {
    let (i, own) = (side.index(), Party::Database(side));
    if happens(rng, weather.restarts) {
        town.restart(side, StateOrigin::Intact);
    }
    for by in [Party::Database(side.other()), Party::Auditor] {
        let mut said = town.statements[by.index()].clone();
        if happens(rng, 50) {
            said.reverse();
        }
        said.retain(|_| happens(rng, weather.said[by.index()][own.index()]));
        for said in said {
            if let Ok(step) = town.databases[i].handle_statement(&said, by, Epoch(0)) {
                town.accept(side, step);
            }
        }
    }
    for (name, _) in town.databases[i].missing_writes(Epoch(0)) {
        let held = town.databases[1 - i].submission(Epoch(0), &name).cloned();
        if let Some(submission) = held.filter(|_| happens(rng, weather.writes[i]))
            && let Ok(step) =
                town.databases[i].handle_forwarded(submission, side.other(), &town.members)
        {
            town.commit(side, step);
        }
    }
    if !town.databases[i].missing_shares(Epoch(0)).is_empty()
        && let Some(share) = town.shares[1 - i].clone()
        && happens(rng, weather.shares[i])
    {
        town.databases[i].handle_share(share.to_vec(), side.other(), Epoch(0)).unwrap();
    }
    if happens(rng, 70)
        && let Some(work) = town.databases[i].next_work()
    {
        let done = work.run().unwrap();
        town.databases[i].handle_result(done);
    }
    while let Some(step) = town.databases[i].poll(town.now, &mut town.rng) {
        town.accept(side, step);
    }
}

fn auditor_turn(town: &mut Town, weather: &Weather, rng: &mut ChaCha20Rng) {
    for side in Side::BOTH {
        let by = Party::Database(side);
        for said in town.statements[by.index()].clone() {
            if happens(rng, weather.said[by.index()][Party::Auditor.index()])
                && let Ok(step) = town.auditor.handle_statement(&said, side, Epoch(0), town.now)
            {
                step.commit(&mut town.ledgers[2]).unwrap();
            }
        }
    }
    town.check_share();
    while let Some(step) = town.auditor.poll(town.now, &mut town.rng) {
        let said = step.commit(&mut town.ledgers[2]).unwrap();
        town.statements[2].push(said.signed);
    }
}

/// Whether the epoch has ended at both databases.
fn over(town: &Town) -> bool {
    town.databases
        .iter()
        .all(|database| database.unfinished_epochs().all(|epoch| epoch != Epoch(0)))
}

/// Runs an epoch. Returns the size of the published table, or `None` if the epoch was burnt in
/// time.
fn published(seed: u8, weather: &Weather, rng: &mut ChaCha20Rng) -> Option<u32> {
    let mut town = stage(seed);
    let burns = town.board.schedule.burn_time(Epoch(0));
    while !over(&town) {
        assert!(town.now.0 <= burns.0 + 3 * SECOND, "{seed}: neither published nor burnt in time");
        let mut turns = [0, 1, 2];
        turns.rotate_left(rng.next_u32() as usize % 3);
        for turn in turns {
            match turn {
                2 => auditor_turn(&mut town, weather, rng),
                turn => database_turn(&mut town, Side::BOTH[turn], weather, rng),
            }
        }
        town.later(3);
    }
    let said = town.transcript();
    for by in Party::ALL {
        let why = said.abort_reason(by);
        let fault = matches!(why, Some(BurnReason::Blamed(..) | BurnReason::Contradiction));
        assert!(!fault, "{seed}: the {by} says {why:?}");
        assert!(said.conflict(by).is_none(), "{seed}: {by} contradicts itself");
    }
    let tables: Vec<_> = town.tables.iter().flatten().collect();
    assert!(tables.windows(2).all(|two| two[0] == two[1]), "{seed}: two tables");
    let bound = Side::BOTH.iter().all(|side| said.latch(*side).is_some());
    let left = town.shares.iter().any(Option::is_some);
    assert!(bound || !left, "{seed}: a share left before both were bound");
    said.published_table(Side::First).and(said.published_table(Side::Second))?;
    for (database, ledger) in town.databases.iter().zip(&town.ledgers) {
        let heard = database.transcript(Epoch(0)).unwrap();
        if Side::BOTH.iter().all(|side| heard.published_table(*side).is_some()) {
            let shares = ledger.keys().filter(|key| key[..8] == [0; 8] && key[8] == b'm').count();
            assert_eq!(shares, 0, "{seed}: a share that nobody needs is kept");
        }
    }
    Some(town.read().unwrap().size)
}

/// Half of everything is lost, and the order is arbitrary: all epochs are published.
#[test]
fn in_fair_weather_every_epoch_is_published() {
    for seed in 0..16 {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        assert_eq!(published(seed, &Weather::FAIR, &mut rng), Some(6), "{seed}");
    }
}

/// Some links are dead: the epoch is burnt in time and without a lie, or published.
#[test]
fn in_foul_weather_every_epoch_ends() {
    let mut through = 0;
    for seed in 0..24 {
        let mut rng = ChaCha20Rng::from_seed([100 + seed; 32]);
        let weather = Weather::foul(&mut rng);
        through += usize::from(published(seed, &weather, &mut rng).is_some());
    }
    assert!((1..24).contains(&through), "both must happen: {through}");
}

/// Between deadlines no server has anything to do. At each deadline some server has.
#[test]
fn polling_at_deadlines_is_enough() {
    for deaf in [None, Some(Side::First)] {
        let mut town = Town::new(9, 40, 15);
        (0..4).for_each(|member| drop(town.post(member, Content::Message(b"at both"))));
        let (_, submission) = town.write(4, Content::Message(b"at one"));
        town.submit(Side::Second, &submission).unwrap();
        town.deaf = deaf;
        town.turn();
        for _ in 0..6 {
            let deadline = town.deadline();
            let before = town.statements.clone();
            town.now = Timestamp(deadline.0 - 1);
            town.turn();
            assert!(town.statements == before, "{deaf:?}: something happened before {deadline:?}");
            town.now = deadline;
            town.turn();
            assert!(town.statements != before, "{deaf:?}: nothing happened at {deadline:?}");
        }
        assert_eq!(town.read().unwrap().size, if deaf.is_none() { 5 } else { 4 });
    }
}
