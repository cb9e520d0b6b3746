//! Verified windows: what their parts of sums cost, and what a receipt takes to keep and to check.

use crate::measure::Effort;
use crate::plans;
use crate::report::{Figure, Goal};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{
    Certificate, Deployment, Party, Role, Subject, fingerprint,
};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    Announcement, MaskKey, Membership, Opening, OpeningSet, Token,
};
use alpheus_encrypted_stream::receipt::{Receipt, Share};
use alpheus_encrypted_stream::tick::parts::NeededBlocks;
use alpheus_encrypted_stream::tick::sums::{Blocks, MAX_BLOCK};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::plan::{Fraction, Integrity, MaskStrategy, Plan, PlannedStream, Release};
use alpheus_time::Timestamp;
use std::hint::black_box;

/// Words of an event, with the check word.
const WORDS: u16 = 456;
/// Outputs of a window whose receipt is measured.
const OUTPUTS: u16 = 4;

/// Measures the parts of sums at service and controller, where everything is released and where
/// little is, and receipts of 100 and 10,000 controllers.
pub(crate) fn figures(effort: Effort, mut say: impl FnMut(&str)) -> Vec<Figure> {
    let mut figures = vec![];
    for most in [MAX_BLOCK, 16, 32, 64, 128] {
        say(&format!("verified: blocks of {most} words"));
        figures.push(root(effort, most));
        for (what, released) in [("all words", WORDS), ("24 words", 24)] {
            figures.extend(parts(effort, most, what, released));
        }
    }
    for controllers in [100, 10_000] {
        say(&format!("verified: receipts of {controllers} controllers"));
        figures.extend(receipts(effort, controllers).into_iter().flatten());
    }
    figures
}

/// The blocks of an event whose words are all of one attribute. The product's have [`MAX_BLOCK`] words.
fn blocks(most: u16) -> Blocks {
    let mut lengths = vec![];
    let mut left = WORDS - 1;
    while left > 0 {
        lengths.push(left.min(most));
        left -= left.min(most);
    }
    lengths.push(1);
    Blocks::of_lengths(&lengths)
}

fn sum() -> Vec<u64> {
    (0..u64::from(WORDS)).map(|word| word.wrapping_mul(0x9e37_79b9)).collect()
}

/// What a device adds to each tick, whatever the query.
fn root(effort: Effort, most: u16) -> Figure {
    let (blocks, sum) = (blocks(most), sum());
    let made = effort.time(|| {
        black_box(blocks.root(black_box(&sum)));
    });
    let name = format!("a device's root of a tick, {WORDS} words in blocks of {most}");
    let figure = Figure::alone("verified", name, "ns", made);
    if most == MAX_BLOCK { figure.with_goal(Goal::AtMost(35_000.0)) } else { figure }
}

/// A stream's window has two sums: at its start and at its end. The service makes one, since the window
/// before has ended with the other.
fn parts(effort: Effort, most: u16, what: &str, released: u16) -> [Figure; 3] {
    let rows = (0..released - 1).chain([WORDS - 1]).map(|word| vec![word]).collect();
    let release = Release { rows };
    let (needed, sum) = (NeededBlocks::of(&blocks(most), &release), sum());
    let (part, root) = needed.part(&sum);
    let mut outputs = vec![0; release.outputs()];
    let check = || {
        for _ in 0..2 {
            if let Ok(checked) = needed.check(black_box(&part), &root) {
                checked.add_to(&release, &mut outputs);
            }
        }
    };
    let checked = effort.time(check);
    let made = effort.time(|| {
        black_box(needed.part(black_box(&sum)));
    });
    let bytes = 2 * (part.words.len() * 8 + part.path.len() * 32);
    let of = format!("one stream's window of {WORDS} words in blocks of {most}, {what} released");
    let name = |who: &str| format!("{who}, {of}");
    [
        Figure::alone("verified", name("controller checks"), "ns", checked),
        Figure::alone("verified", name("service makes a part"), "ns", made),
        Figure::alone("verified", name("parts in the summons"), "B", bytes as f64),
    ]
}

/// What is kept of a window, and what its check takes.
fn receipts(effort: Effort, controllers: u32) -> Option<[Figure; 3]> {
    let world = World::new(controllers)?;
    let receipt = world.receipt();
    let kept = receipt.to_bytes();
    let bytes = kept.len();
    let window = world.announced.plan().window_at(Timestamp(0));
    receipt.verify(&world.announced, window).ok()?;
    let once = Effort { repeats: effort.repeats.min(5), ..effort };
    let checked = once.time(|| {
        let _ = black_box(receipt.verify(&world.announced, window));
    });
    // The first row of a plan: its certificates as well, and a receipt that is still bytes.
    let cold = once.time(|| {
        let announced = AnnouncedPlan::open(&world.announcement, &world.deployment);
        if let (Ok(announced), Ok(receipt)) = (announced, Receipt::from_bytes(&kept)) {
            let _ = black_box(receipt.verify(&announced, window));
        }
    });
    let name = |what: &str| format!("{what}, {controllers} controllers, {OUTPUTS} outputs");
    Some([
        Figure::alone("verified", name("a receipt"), "B", bytes as f64),
        Figure::alone("verified", name("a consumer verifies"), "ns", checked)
            .with_goal(Goal::AtMost(5e8)),
        Figure::alone("verified", name("and with plan and bytes, the first time"), "ns", cold)
            .with_goal(Goal::AtMost(1e9)),
    ])
}

struct World {
    service: SigningKey,
    deployment: Deployment,
    announcement: Signed<Announcement>,
    /// By position.
    keys: Vec<SigningKey>,
    announced: AnnouncedPlan,
}

fn bytes(what: &str, number: u32) -> [u8; 32] {
    labelled_hash(what, &[&number.to_be_bytes()]).0
}

fn key(what: &str, number: u32) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes(bytes(what, number)))
}

impl World {
    fn new(controllers: u32) -> Option<World> {
        let (authority, service) = (key("authority", 0), key("service", 0));
        let own = Party::signing(Role::Service, "service", service.verifying_key());
        let own = own.certify(Subject([0; 16]), &authority);
        let deployment = Deployment::new(authority.verifying_key(), &own).ok()?;
        let seat = |number: u32| {
            let key = key("seat", number);
            let party = Party {
                role: Role::Controller,
                name: String::new(),
                verifying: key.verifying_key(),
                agreement: Some(AgreementPublic(bytes("agreement", number))),
                sealing: None,
                hybrid: Some(Digest(bytes("hybrid", number))),
            };
            let signed = party.certify(Subject([1; 16]), &authority);
            let opened = signed.open(&authority.verifying_key()).ok()?;
            Some((fingerprint(&opened), key, signed))
        };
        let mut seats: Vec<(ControllerId, SigningKey, Signed<Certificate>)> =
            (0..controllers).map(seat).collect::<Option<_>>()?;
        seats.sort_by_key(|(id, ..)| *id);
        let plan = plan(seats.iter().map(|(id, ..)| *id).collect());
        let certificates = seats.iter().map(|(.., signed)| signed.clone()).collect();
        let announcement = Announcement { plan, certificates, consumer: None };
        let announcement = Signed::new(&announcement, &service);
        let announced = AnnouncedPlan::open(&announcement, &deployment).ok()?;
        let keys = seats.into_iter().map(|(_, key, _)| key).collect();
        Some(World { service, deployment, announcement, keys, announced })
    }

    /// All controllers have signed a row of zeros.
    fn receipt(&self) -> Receipt {
        let (plan, all) = (self.announced.id(), self.announced.controllers());
        let window = self.announced.plan().window_at(Timestamp(0));
        let (members, root) = (RosterSet::full(all), Digest([0; 32]));
        let owners = vec![1; self.keys.len()];
        let mask_key = |(controller, key): (u32, &SigningKey)| {
            let public = AgreementPublic(bytes("mask key", controller));
            let begun = Timestamp(1_700_000_000_000_000);
            Signed::new(&MaskKey { plan, controller, begun, key: public }, key)
        };
        let mask_keys = (0..).zip(&self.keys).map(mask_key).collect();
        let membership =
            Membership { plan, window, members: members.clone(), owners, root, mask_keys };
        let membership = Signed::new(&membership, &self.service);
        let m = membership.digest();
        let set = OpeningSet { plan, window, membership: m, set: members };
        let opening_set = Signed::new(&set, &self.service);
        let s = opening_set.digest();
        let share = |(controller, key): (u32, &SigningKey)| {
            let words: Vec<u64> = (0..OUTPUTS).map(|word| u64::MAX - u64::from(word)).collect();
            let token = Token { plan, window, controller, membership: m, words: words.clone() };
            let token = Signed::new(&token, key);
            let of = Some(token.digest());
            let opening = Opening { plan, window, controller, opening_set: s, token: of, words };
            Share { token, opening: Some(Signed::new(&opening, key)) }
        };
        let shares = (0..).zip(&self.keys).map(share).collect();
        let (opening_set, exclusions) = (Some(opening_set), vec![]);
        Receipt { membership, opening_set, shares, exclusions, listing: None }
    }
}

fn plan(roster: Vec<ControllerId>) -> Plan {
    let stream = |controller: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&controller.to_be_bytes());
        PlannedStream {
            stream: StreamId(id),
            owner: OwnerId(bytes("owner", controller)),
            controller,
        }
    };
    let all = u32::try_from(roster.len()).unwrap_or(u32::MAX);
    Plan {
        release: Release { rows: (0..OUTPUTS).map(|word| vec![word]).collect() },
        integrity: Integrity::Verified,
        attributes: vec![0],
        alpha: Fraction::THIRD,
        colluders: 1,
        masks: MaskStrategy::Clique,
        roster,
        streams: (0..all).map(stream).collect(),
        ..plans::blank(all)
    }
}
