//! What devices encode becomes a bounded row: windows of owners are lifted to integers, committed to,
//! proven, opened and read.

use alpheus_bounded_influence::check::{BoundedContribution, Checker, Member};
use alpheus_bounded_influence::commit::{AdmittedOwners, Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::{Contribution, Opening, Scope};
use alpheus_bounded_influence::share::{Masks, Neighbour};
use alpheus_bounded_influence::terms::Terms;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_encrypted_stream::bounded_terms::terms_of;
use alpheus_encrypted_stream::decode::cells;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::layout::{FieldStatistic, Layout, Packing};
use alpheus_policy::plan::{
    Fraction, Integrity, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::schema::{Aggregation, Attribute, AttributeKind, Capacity, Frames, Schema};
use alpheus_policy::select::{MomentOutput, ReleasePlan, SelectItem, Statistic, SumLocation};
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

fn schema(min: i64, max: i64, events: u64) -> Schema {
    let kind = AttributeKind::Number { scale: 1, min, max };
    let aggregations = vec![Aggregation::Variance];
    Schema {
        name: "Test".into(),
        version: 1,
        tick: Span(1000),
        capacity: Capacity { population: 100, events, micro_rate: 0 },
        shared_count: true,
        frames: Frames::Ticks { anchor: Span(3_600_000_000) },
        metadata: vec![],
        attributes: vec![Attribute {
            name: "x".into(),
            kind,
            unit: String::new(),
            optional: false,
            aggregations,
        }],
        options: vec![],
    }
}

/// Rows for count, sum and sum of squares, and where each of them is.
fn release(layout: &Layout) -> (Release, Vec<SumLocation>) {
    let (mut rows, mut locations) = (Vec::new(), Vec::new());
    for of in [FieldStatistic::EventCount, FieldStatistic::Sum(0), FieldStatistic::SumOfSquares(0)]
    {
        let field = layout.fields.iter().find(|field| field.statistic == of).unwrap();
        let row = u16::try_from(rows.len()).unwrap();
        rows.extend((0..field.words()).map(|word| vec![field.first + word]));
        locations.push(match field.packing {
            Packing::Whole => SumLocation::Whole { row },
            Packing::Digits { bits, .. } => SumLocation::Digit { row, bits, digit: 0 },
            Packing::Limbs => SumLocation::Limbs { low: row, high: row + 1 },
        });
    }
    rows.push(vec![layout.check_word()]);
    (Release { rows }, locations)
}

/// Count, sum and sum of squares of one attribute, of two controllers with two owners each.
fn plan(schema: &Schema, layout: &Layout, events: u64) -> Plan {
    let (release, locations) = release(layout);
    let statistic = Statistic::Moments {
        output: MomentOutput::Variance,
        count: 0,
        sum: 1,
        squares: Some(2),
        scale: 1,
    };
    let streams = (0..4_u8).map(|n| PlannedStream {
        stream: StreamId([n; 16]),
        owner: OwnerId([n; 32]),
        controller: u32::from(n / 2),
    });
    Plan {
        nonce: [1; 16],
        name: "bounded".into(),
        consumer: "test".into(),
        sealed_to: None,
        schema: schema.id(),
        group: vec![],
        window: Span(2000),
        grace: Span(0),
        from: Timestamp(0),
        release,
        select: ReleasePlan {
            cells: locations,
            items: vec![SelectItem { alias: "x".into(), statistic }],
        },
        integrity: Integrity::Bounded { events },
        selection: Selection::default(),
        privacy: None,
        attributes: vec![0],
        population: PopulationBounds { min: 1, max: 100 },
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::ZERO,
        delta_exponent: 9,
        masks: MaskStrategy::Clique,
        epoch: None,
        roster: vec![ControllerId([0; 32]), ControllerId([1; 32])],
        streams: streams.collect(),
    }
}

/// Every query that a planner accepts can be proven, and its proofs are as long as the planner says.
#[test]
fn terms_are_those_that_the_planner_has_promised() {
    let mut sizes = Vec::new();
    for min in [0, -1, -1000, -(1 << 40), 1 << 40] {
        for width in [0, 1, 255, 90_000, 1 << 20, 1 << 31, 1 << 45] {
            for events in [1, 2, 60, 86_400] {
                let schema = schema(min, min + width, events);
                let Ok(layout) = Layout::of(&schema) else { continue };
                let plan = plan(&schema, &layout, events);
                let Ok(promised) = plan.bounded_terms(&schema, &layout) else { continue };
                let terms = terms_of(&plan, &schema, &layout).unwrap().unwrap();
                let bytes = promised.unwrap().owner_bytes() as usize;
                assert_eq!(terms.owner_length(), bytes, "{min} {width} {events}");
                sizes.push(bytes);
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() >= 3, "{sizes:?}");
}

fn digest(parts: &[&[u8]]) -> Digest {
    labelled_hash("alpheus/test-digest/v1", parts)
}

fn prf(name: &[u8]) -> Prf {
    let mut key = [0; 16];
    key.copy_from_slice(&digest(&[name]).0[..16]);
    Prf::new(&Secret::from_bytes(key))
}

/// One owner's window: its events, as its device encodes them, released and read as integers.
fn window_of(schema: &Schema, layout: &Layout, plan: &Plan, events: &[i64]) -> Vec<i128> {
    let (encoder, mut rng) =
        (Encoder::new(schema, layout).unwrap(), ChaCha20Rng::from_seed([3; 32]));
    let mut words = vec![0_u64; layout.words.into()];
    for event in events {
        let add = |word: u16, addend: u64| {
            let word = &mut words[usize::from(word)];
            *word = word.wrapping_add(addend);
        };
        encoder.encode(&[Value::Number(*event)], &mut rng, add).unwrap();
    }
    let mut released = vec![0; plan.release.outputs()];
    plan.release.add(&words, &mut released);
    cells(&plan.select, &released).unwrap()
}

struct Members {
    scope: Scope,
    checker: Checker,
    committers: [Committer; 2],
    own: [Prf; 2],
    pair: Prf,
    keys: [SigningKey; 2],
}

impl Members {
    fn new(terms: &Terms) -> Self {
        let secret = |p: u8| Secret::from_bytes([p; 32]);
        let scope = Scope {
            plan: digest(&[b"plan"]),
            terms: terms.digest(),
            start: 0,
            end: 2000,
            epoch: 0,
            cohort: 0,
            membership: digest(&[b"membership"]),
        };
        Self {
            scope,
            checker: Checker::new(terms.clone()),
            committers: [1, 2].map(|p| Committer::new(terms.clone(), secret(p))),
            own: [b"own 0", b"own 1"].map(|name| prf(name)),
            pair: prf(b"pair"),
            keys: [3, 4].map(|p| SigningKey::from_seed(&secret(p))),
        }
    }

    fn masks<T>(&self, p: usize, with: impl FnOnce(Masks<'_>) -> T) -> T {
        let position = u32::try_from(p).unwrap();
        let neighbours = [Neighbour { position: 1 - position, key: &self.pair }];
        with(Masks { position, own: &self.own[p], neighbours: &neighbours, consumer: None })
    }

    fn sign<M: Message>(&self, p: usize, message: &M) -> Verified<M> {
        let key = &self.keys[p];
        Signed::new(message, key).open(&key.verifying_key()).unwrap()
    }

    fn contribution(
        &self,
        p: usize,
        admitted: &AdmittedOwners,
    ) -> (Member, Verified<Contribution>) {
        let controller = u32::try_from(p).unwrap();
        let (owners, sum) = self.committers[p].owners(&self.scope, controller, admitted).unwrap();
        let share = self.masks(p, |masks| masks.masked(sum, &self.scope));
        let contribution = Contribution { scope: self.scope, controller, share, owners };
        let member = Member { controller, counted: admitted.counted(), listed: 2 };
        (member, self.sign(p, &contribution))
    }

    fn opening(&self, p: usize, set: &Digest, contribution: Digest) -> Verified<Opening> {
        let (scope, controller) = (self.scope, u32::try_from(p).unwrap());
        let noise = Noise::new(self.checker.terms(), &[0, 0, 0]).unwrap();
        let (noise, share) = self.committers[p].noise(&scope, controller, set, &noise).unwrap();
        let share =
            self.masks(p, |masks| masks.opening(share, &scope, set, |_| true).share().clone());
        let opening_set = *set;
        self.sign(p, &Opening { scope, controller, opening_set, contribution, share, noise })
    }
}

/// Two controllers, four owners. One device sends what no honest one would: its owner is left out,
/// its controller holds, and the row is the sum of the others.
#[test]
fn encoded_events_become_a_row_that_no_owner_moves_beyond_its_bounds() {
    let schema = schema(-500, 9000, 3);
    let layout = Layout::of(&schema).unwrap();
    let plan = plan(&schema, &layout, 3);
    let members = Members::new(&terms_of(&plan, &schema, &layout).unwrap().unwrap());
    let owners: [[&[i64]; 2]; 2] = [[&[-500, 9000, 12], &[7]], [&[1, 2], &[0, 0, 0]]];
    let window = |events: &[i64]| window_of(&schema, &layout, &plan, events);
    let mut values = owners.map(|own| own.map(window));
    // A count, a sum and squares that three events within bounds do not make.
    values[1][1] = vec![3, 26_000, 3 * 9000 * 9000];
    let admitted = [0, 1].map(|p| {
        let name = |at: u8| digest(&[b"owner", &[at]]);
        let named = (0_u8..).zip(&values[p]);
        let owners = named.map(|(at, own)| OwnerValues::new(name(at), own.clone())).collect();
        members.committers[p].admit(owners).unwrap()
    });
    assert_eq!(admitted.each_ref().map(AdmittedOwners::counted), [2, 1]);
    let signed = [0, 1].map(|p| members.contribution(p, &admitted[p]));
    let found = members.checker.contributions(&members.scope, &signed).unwrap();
    assert_eq!((found.bounded.len(), found.faulty.len(), found.misplaced.len()), (2, 0, 0));
    let set = digest(&[b"set"]);
    let open = |(p, bounded): (usize, &BoundedContribution)| {
        (bounded.clone(), members.opening(p, &set, signed[p].1.digest()))
    };
    let openings: Vec<_> = found.bounded.iter().enumerate().map(open).collect();
    let opened = members.checker.openings(&set, &openings).unwrap();
    let row = members.checker.row(&[0, 1], &opened, None).unwrap();
    let all = [-500_i128, 9000, 12, 7, 1, 2];
    let squares = all.iter().map(|x| x * x).sum::<i128>();
    assert_eq!((row.values(), row.owners()), (&[6, all.iter().sum(), squares][..], 3));
}
