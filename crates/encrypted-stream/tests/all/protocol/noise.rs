//! Noise between service and controllers: opened sums contain it, and a service that lies
//! about it or asks again gets no less of it.

use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::error::{ExclusionError, PlanRefusalError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{Announcement, ServiceMessage};
use alpheus_encrypted_stream::noise::generator;
use alpheus_policy::budget::{Cost, Epsilon, Horizon, Mechanism, PrivacyLoss, Rho, RowNoise};
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_policy::privacy::Privacy;
use alpheus_policy::schema::{AttributeKind, Budget, PrivacyUnit, Schema};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::net::Net;
use crate::protocol::plans::said;
use crate::protocol::pmf::{Pmf, assert_follows};
use crate::protocol::schemas::schema;
use crate::protocol::world::{Setup, after, stream_id};

/// What a plan requests and what its owners allow.
#[derive(Clone, Copy)]
pub struct Noise {
    pub mechanism: Mechanism,
    pub micro_epsilon: u64,
    pub atto_delta: u64,
    pub events: u64,
    pub budget: Budget,
}

/// Values from 0 to 10, summed in whole words.
const MAX_VALUE: i64 = 10;

impl Noise {
    /// An event moves the sum by at most 10: scale 4. Budgets allow this for a window, and
    /// cover `windows` of them.
    pub fn new(windows: u64) -> Self {
        let micro_epsilon = 2_500_000;
        Self {
            mechanism: Mechanism::Laplace,
            micro_epsilon,
            atto_delta: 0,
            events: 1,
            budget: Budget {
                window_micro_epsilon: micro_epsilon,
                total_micro_epsilon: windows * micro_epsilon,
                atto_delta: 0,
                unit: PrivacyUnit::PersonPerWindow,
            },
        }
    }

    /// Running totals over this many windows, with a policy that allows `queries` of them.
    pub fn totals(windows: u32, queries: u64, micro_epsilon: u64) -> Self {
        let own = Self::new(1);
        let budget = Budget {
            window_micro_epsilon: micro_epsilon,
            total_micro_epsilon: micro_epsilon * queries,
            atto_delta: 1_000_000_000_000,
            ..own.budget
        };
        let mechanism = Mechanism::Matrix(Horizon { windows, touched: 1 });
        Self { mechanism, micro_epsilon, atto_delta: budget.atto_delta, budget, ..own }
    }

    pub fn privacy(self) -> Privacy {
        Privacy {
            mechanism: self.mechanism,
            micro_epsilon: self.micro_epsilon,
            atto_delta: self.atto_delta,
            unit: PrivacyUnit::PersonPerWindow,
            events: self.events,
            streams_per_owner: 1,
            noise: vec![],
        }
    }
}

pub fn noisy_schema() -> Schema {
    let mut schema = Schema { name: "Noisy".into(), ..schema() };
    schema.attributes[0].kind = AttributeKind::Number { scale: 0, min: 0, max: MAX_VALUE };
    schema
}

/// Four controllers, of which one may collude and one may drop out.
pub fn four(windows: u64, budget: u64) -> Setup {
    let dropout = Fraction { numerator: 1, denominator: 4 };
    let noise = Some(Noise::new(budget));
    Setup { noise, windows, dropout, alpha: Fraction::THIRD, ..Setup::new(4) }
}

/// The shares that controllers drew for an opening set, from their secrets.
fn shares(evil: &Evil, draft: &Draft, set: &[u32]) -> Vec<i64> {
    let ServiceMessage::Membership { membership, .. } = evil.membership(draft, 0) else { panic!() };
    let ServiceMessage::OpeningSet(signed) = evil.set(draft, set) else { panic!() };
    let (membership, digest) = (membership.digest(), signed.digest());
    let of = |p: &u32| {
        let secret =
            derive::<32>(&[evil.world.seats[*p as usize].0; 32], labels::IDENTITY_NOISE, &[]);
        let plan = evil.world.id();
        let mut generator = generator(&secret, &plan, draft.window, &membership, Some(&digest));
        let shares = evil.world.announced.shares(set.len() as u32 - 1).unwrap().unwrap();
        shares.draw(&mut generator).expose()[0].cast_signed()
    };
    set.iter().map(of).collect()
}

/// Opens a window of four with the members of `set` and returns the result.
fn open(evil: &mut Evil, draft: &Draft, set: &[u32]) -> Vec<u64> {
    let tokens: Vec<_> = set.iter().map(|p| evil.token_at(*p, draft)).collect();
    let message = evil.set(draft, set);
    let openings: Vec<_> = set.iter().map(|p| evil.opening_at(*p, draft, &message)).collect();
    evil.add_up(set, &tokens.iter().collect::<Vec<_>>(), &openings.iter().collect::<Vec<_>>())
}

/// Over many windows, the opened sum is exactly the sum less the shares. All four together
/// have the distribution of four shares sized for three. The three that remain without any
/// one of them have the promised distribution.
#[test]
fn results_contain_the_promised_noise_whichever_controller_is_removed() {
    let windows = 1200;
    let mut evil = Evil::new(four(windows, windows));
    let (mut all, mut without) = (Vec::new(), vec![Vec::new(); 4]);
    for number in 0..windows {
        let draft = evil.gather_at(number);
        let opened = open(&mut evil, &draft, &[0, 1, 2, 3]);
        let truth = evil.world.truth(0..4, number);
        let drawn = shares(&evil, &draft, &[0, 1, 2, 3]);
        let noise = opened[0].wrapping_sub(truth[0]).cast_signed();
        assert_eq!(noise, -drawn.iter().sum::<i64>());
        assert_eq!(opened[1..], truth[1..], "counts and check word take none");
        all.push(noise);
        without.iter_mut().zip(&drawn).for_each(|(own, share)| own.push(-noise - share));
    }
    let q = (-0.25_f64).exp();
    assert_follows(&all, &Pmf::polya(4.0 / 3.0, q, 200));
    without.iter().for_each(|rest| assert_follows(rest, &Pmf::polya(1.0, q, 200)));
}

/// A controller that drops out before S takes no share with it: the others draw for the
/// floor of S.
#[test]
fn dropouts_do_not_reduce_the_noise() {
    let windows = 600;
    let mut evil = Evil::new(four(windows, windows));
    let mut alone = Vec::new();
    for number in 0..windows {
        let draft = evil.gather_at(number);
        let gone = (number % 4) as u32;
        let set: Vec<u32> = (0..4).filter(|p| *p != gone).collect();
        evil.token_at(gone, &draft);
        let opened = open(&mut evil, &draft, &set);
        let truth = evil.world.truth(set.iter().map(|p| *p as usize), number);
        let drawn = shares(&evil, &draft, &set);
        assert_eq!(opened[0].wrapping_sub(truth[0]).cast_signed(), -drawn.iter().sum::<i64>());
        // One of the three colludes, so two have to suffice.
        alone.push(drawn[0] + drawn[1]);
    }
    assert_follows(&alone, &Pmf::polya(1.0, (-0.25_f64).exp(), 200));
}

#[test]
fn a_single_controllers_token_contains_the_noise() {
    let windows = 1000;
    let setup = Setup { noise: Some(Noise::new(windows)), windows, ..Setup::new(1) };
    let mut net = Net::new(setup);
    (0..windows).for_each(|number| net.close(number));
    let noise = net.outcomes.iter().zip(0..).map(|(outcome, number)| {
        let opened = outcome.result.as_ref().unwrap();
        assert_eq!((opened.outputs.last(), opened.members), (Some(&0), 1));
        opened.outputs[0].wrapping_sub(net.world.truth([0], number)[0]).cast_signed()
    });
    assert_follows(&noise.collect::<Vec<_>>(), &Pmf::polya(1.0, (-0.25_f64).exp(), 200));
}

#[test]
fn skellam_noise_opens_too() {
    let noise = Noise {
        mechanism: Mechanism::Skellam,
        atto_delta: 1_000_000_000,
        budget: Budget { atto_delta: 1_000_000_000, ..Noise::new(9).budget },
        ..Noise::new(9)
    };
    let mut net = Net::new(Setup { noise: Some(noise), ..four(3, 9) });
    (0..3).for_each(|number| net.close(number));
    for (outcome, number) in net.outcomes.iter().zip(0..) {
        let opened = outcome.result.as_ref().unwrap();
        let noise = opened.outputs[0].wrapping_sub(net.world.truth(0..4, number)[0]);
        assert!(noise.cast_signed().abs() < 5_000, "{noise}");
    }
    let spent = net.controllers[0].accounts().account(net.world.plan.streams[0].owner, 0).unwrap();
    assert!(spent.total().rho > Rho(0) && spent.total().epsilon == Epsilon(0));
}

/// One answer, ever: the service cannot average two draws.
#[test]
fn a_windows_noise_is_the_same_over_restarts_and_bound_to_one_set() {
    let mut evil = Evil::new(four(3, 9));
    let draft = evil.gather();
    let (all, three) = (evil.set(&draft, &[0, 1, 2, 3]), evil.set(&draft, &[0, 1, 2]));
    let message = evil.membership(&draft, 0);
    let (token, opening) = (evil.ask(0, after(0), &message), evil.ask(0, after(0), &all));
    let mut other = draft.clone();
    other.members.remove(3);
    for _ in 0..2 {
        assert_eq!(evil.ask(0, after(0), &message), token);
        assert_eq!(evil.ask(0, after(0), &all), opening);
        assert_eq!(evil.ask(0, after(0), &three), Err(WindowRefusalError::AlreadyOpened));
        let again = evil.membership(&other, 0);
        assert_eq!(evil.ask(0, after(0), &again), Err(WindowRefusalError::AlreadySpent));
        let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
        evil.restore(0, &store, after(0), Some(fence));
    }
    assert_eq!(spent(&evil, 0), pure(1), "and is charged once");
}

pub fn pure(windows: u64) -> PrivacyLoss {
    let cost = Cost::Pure(Epsilon::from_micro(2_500_000));
    (0..windows).fold(PrivacyLoss::default(), |spent, _| spent.with(cost, Default::default()))
}

/// What the owner of the stream at `p` was charged, not counting the samplers' slack.
pub fn spent(evil: &Evil, p: u32) -> PrivacyLoss {
    let owner = evil.world.plan.streams[p as usize].owner;
    let account = evil.controllers[p as usize].accounts().account(owner, 0);
    let total = account.map(|account| account.total()).unwrap_or_default();
    PrivacyLoss { slack: Default::default(), ..total }
}

fn budget_records(evil: &Evil) -> usize {
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let records = own.iter().map(|value| StampedRecord::read(value).unwrap().record);
    records.filter(|record| matches!(record, Record::Budget(_))).count()
}

/// The spend is in the commit that releases the token.
#[test]
fn a_token_and_its_charge_are_one_commit() {
    let mut evil = Evil::new(four(3, 9));
    let draft = evil.gather();
    assert_eq!((budget_records(&evil), spent(&evil, 0)), (0, PrivacyLoss::default()));
    let commits = evil.store.commits;
    evil.token(0, &draft).unwrap();
    assert_eq!((evil.store.commits, budget_records(&evil)), (commits + 1, 1));
    assert_eq!(spent(&evil, 0), pure(1));
    // The owner can read the cost once the opening is sent.
    let all = evil.set(&draft, &[0, 1, 2, 3]);
    evil.opening(0, &all).unwrap();
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let costs = own.iter().find_map(|value| match StampedRecord::read(value).unwrap().record {
        Record::Log(LogLine { event: LogEvent::Released { costs, .. }, .. }) => Some(costs),
        _ => None,
    });
    let cost = Cost::Pure(Epsilon::from_micro(2_500_000));
    assert_eq!(costs, Some(vec![(0, cost)]));
}

/// Announces a plan with this privacy to controller 0.
fn announced(tamper: impl FnOnce(&mut Plan)) -> Result<(), PlanRefusalError> {
    let mut evil = Evil::unannounced(four(3, 9));
    let certificates = evil.world.seats.iter().map(|(_, certificate)| certificate.clone());
    let mut plan = evil.world.plan.clone();
    tamper(&mut plan);
    let announcement = Announcement { plan, certificates: certificates.collect(), consumer: None };
    said(&mut evil, &announcement)
}

/// The rule that refuses a plan after the service changed its noise, with sizes adjusted to
/// the change if `sized`.
fn rule(sized: bool, tamper: impl FnOnce(&mut Privacy)) -> String {
    let refused = announced(|plan| {
        tamper(plan.privacy.as_mut().unwrap());
        let schema = noisy_schema();
        let layout = alpheus_policy::layout::Layout::of(&schema).unwrap();
        if let (true, Ok(Some(needed))) = (sized, plan.calibration(&schema, &layout)) {
            plan.privacy.as_mut().unwrap().noise = needed.rows;
        }
    });
    match refused {
        Err(PlanRefusalError::Policy { violation, .. } | PlanRefusalError::Form { violation }) => {
            violation.rule
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_service_that_lies_about_the_noise_is_refused_with_the_reason() {
    assert_eq!(announced(|_| {}), Ok(()));
    // Other noise than the plan itself requires.
    assert_eq!(rule(false, |own| own.micro_epsilon /= 2), "noise");
    assert_eq!(rule(false, |own| own.unit = PrivacyUnit::Event), "privacy-unit");
    assert_eq!(rule(false, |own| own.events = 2), "noise");
    assert_eq!(rule(false, |own| own.noise[0] = RowNoise::None), "noise");
    assert_eq!(rule(false, |own| own.noise[0] = RowNoise::Laplace { above: 1, below: 3 }), "noise");
    assert_eq!(rule(true, |own| own.events = 101), "noise");
    // Noise that is correct for its claim, but less than the owner requires.
    assert_eq!(rule(true, |own| own.micro_epsilon += 1), "epsilon");
    assert_eq!(rule(true, |own| own.unit = PrivacyUnit::Event), "privacy-unit");
    assert_eq!(
        rule(true, |own| (own.mechanism, own.atto_delta) = (Mechanism::Skellam, 1_000_000)),
        "epsilon",
        "a budget without δ covers none"
    );
    assert_eq!(rule(true, |own| own.micro_epsilon = 0), "noise");
    let Err(PlanRefusalError::Policy { violation, .. }) = announced(|plan| plan.privacy = None)
    else {
        panic!()
    };
    assert_eq!(violation.rule, "needs-noise");
    // Sized for fewer streams than an owner has.
    let fewer = announced(|plan| plan.privacy.as_mut().unwrap().streams_per_owner = 0);
    assert_eq!(fewer, Err(PlanRefusalError::NoiseForFewer { stream: stream_id(0) }));
}

/// The samplers' slack as stated to policies is the actual slack.
#[test]
fn slack_covers_that_of_the_shares() {
    let evil = Evil::unannounced(four(3, 9));
    let rows = evil.world.plan.release.outputs();
    for honest in 1..=4_u32 {
        let shares = evil.world.announced.shares(honest).unwrap().unwrap();
        assert!(shares.slack_bits() >= alpheus_policy::privacy::slack_bits(rows, 4));
        let alone = alpheus_policy::privacy::slack_bits(rows, honest as usize);
        assert_eq!(shares.slack_bits(), alone);
    }
}

#[test]
fn noise_tables_are_computed_once_for_a_host() {
    let evil = Evil::unannounced(four(3, 9));
    let announced: &AnnouncedPlan = &evil.world.announced;
    let (one, other) = (announced.shares(3).unwrap(), announced.shares(3).unwrap());
    assert!(std::sync::Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
    assert!(announced.shares(0).is_err(), "nobody honest, no noise");
}

/// The producer counts under its MAC, and the controller relies on that count.
#[test]
fn a_stream_with_more_events_than_the_noise_hides_is_left_out() {
    let setup = Setup { busy: Some((1, 2)), ..four(3, 9) };
    let mut net = Net::new(setup);
    net.close(0);
    let outcome = &net.outcomes[0];
    assert_eq!(outcome.excluded[&ExclusionError::BeyondNoise], 1);
    assert_eq!(outcome.result.as_ref().unwrap().population, 3);
    let owner = net.world.plan.streams[1].owner;
    assert!(net.controllers[1].accounts().account(owner, 0).is_none(), "costs nothing");
    let two = Noise { events: 2, ..Noise::new(9) };
    let mut net = Net::new(Setup { noise: Some(two), busy: Some((1, 2)), ..four(3, 9) });
    net.close(0);
    assert_eq!(net.outcomes[0].result.as_ref().unwrap().population, 4);
}

/// A window contains no values of a silent owner, so it costs nothing.
#[test]
fn silent_owners_are_charged_nothing() {
    let mut net = Net::silent(four(3, 9), |stream, _| stream != 2);
    net.close(0);
    assert_eq!(net.outcomes[0].result.as_ref().unwrap().silent, 1);
    let charged = |p: usize| {
        let owner = net.world.plan.streams[p].owner;
        net.controllers[p].accounts().account(owner, 0).is_some()
    };
    assert_eq!([charged(0), charged(2)], [true, false]);
}
