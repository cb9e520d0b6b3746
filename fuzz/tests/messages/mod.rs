//! A message of each kind, as bytes.

use alpheus_bounded_influence::messages::{Edge, Scope};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::merkle::Proof;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    Attendance, Closing, ControllerMessage, EdgeRequest, EdgeStatement, List, ListEntry,
    ListedOwner, Membership, Opening, OpeningSet, Picks, Presence, Segment, SegmentBorder,
    Segments, ServiceMessage, Strike, SummonedStream, Summons, Token, WindowOutcome,
};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::plan::MaskStrategy;
use alpheus_time::{Timestamp, Window};
use serde::Serialize;

const PLAN: PlanId = PlanId([1; 32]);
const WINDOW: Window = Window { start: Timestamp(10), end: Timestamp(20) };
const DIGEST: Digest = Digest([2; 32]);

/// Bare messages and, of some, their signed form.
pub(crate) fn one_of_each() -> Vec<Vec<u8>> {
    let key = SigningKey::from_seed(&Secret::from_bytes([9; 32]));
    let set = OpeningSet { plan: PLAN, window: WINDOW, membership: DIGEST, set: members() };
    let opening = Opening {
        plan: PLAN,
        window: WINDOW,
        controller: 1,
        opening_set: DIGEST,
        token: Some(DIGEST),
        words: vec![5],
    };
    let closing =
        Closing { plan: PLAN, window: WINDOW, outcome: WindowOutcome::Opened { population: 12 } };
    vec![
        bytes(&summons()),
        bytes(&presence()),
        bytes(&membership()),
        bytes(&Token {
            plan: PLAN,
            window: WINDOW,
            controller: 1,
            membership: DIGEST,
            words: vec![0, u64::MAX],
        }),
        bytes(&set),
        bytes(&opening),
        bytes(&closing),
        bytes(&ServiceMessage::OpeningSet(Signed::new(&set, &key))),
        bytes(&ServiceMessage::Closing(Signed::new(&closing, &key))),
        bytes(&ControllerMessage::Opening(Signed::new(&opening, &key))),
        bytes(&attendance()),
        bytes(&list()),
        bytes(&ControllerMessage::Attendance(Signed::new(&attendance(), &key))),
        bytes(&picks()),
        bytes(&ControllerMessage::Picks(Signed::new(&picks(), &key))),
        bytes(&ServiceMessage::Introduction {
            membership: Signed::new(&membership(), &key),
            proof: Proof { index: 1, size: 3, path: vec![DIGEST, DIGEST] },
            pickers: vec![0, 10],
        }),
        bytes(&with_strikes(&key)),
        bytes(&ServiceMessage::EdgeRequest(Signed::new(&edge_request(), &key))),
        bytes(&edge_request()),
        bytes(&ControllerMessage::Edges(Signed::new(&edges(), &key))),
    ]
}

fn with_strikes(key: &SigningKey) -> ServiceMessage {
    let edges = || Signed::new(&edges(), key);
    ServiceMessage::BoundedMembership {
        membership: Signed::new(&membership(), key),
        proof: Proof { index: 0, size: 1, path: vec![] },
        strikes: vec![Strike { own: edges(), other: edges() }],
    }
}

fn edge_request() -> EdgeRequest {
    EdgeRequest { plan: PLAN, window: WINDOW, opening_set: DIGEST }
}

fn edges() -> EdgeStatement {
    let scope = Scope {
        plan: DIGEST,
        terms: DIGEST,
        start: 10,
        end: 20,
        epoch: 0,
        cohort: 0,
        membership: DIGEST,
    };
    let edge = Edge { other: 2, commitments: vec![Element::base(), Element::second_base()] };
    EdgeStatement {
        scope,
        controller: 1,
        opening_set: DIGEST,
        edges: vec![edge],
        consumer_pad: None,
    }
}

fn attendance() -> Attendance {
    Attendance { terms: PLAN, window: WINDOW, windows: 1, entry: entry() }
}

fn list() -> List {
    let masks = MaskStrategy::Dream { bits: 2 };
    List { terms: PLAN, window: WINDOW, windows: 1, masks, entries: vec![entry(), entry()] }
}

fn entry() -> ListEntry {
    let streams = vec![StreamId([6; 16]), StreamId([7; 16])];
    let owners = vec![ListedOwner { owner: OwnerId([5; 32]), streams }];
    ListEntry { controller: ControllerId([3; 32]), agreement: AgreementPublic([4; 32]), owners }
}

fn bytes(message: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(message).unwrap_or_default()
}

fn members() -> RosterSet {
    RosterSet::of(11, [0, 3, 10])
}

fn summons() -> Summons {
    let border = SegmentBorder { at: WINDOW.end, closing: true, events: 3, tag: Tag([4; 16]) };
    let segment = Segment {
        session: 7,
        from: WINDOW.start,
        opening: Some(border.tag),
        borders: vec![border],
    };
    let stream =
        SummonedStream { position: 2, segments: Segments::OfEvents(vec![segment]), check_sum: 0 };
    Summons { plan: PLAN, window: WINDOW, controller: 1, streams: vec![stream] }
}

fn picks() -> Picks {
    Picks { plan: PLAN, controller: 1, picks: vec![0, 3, 10] }
}

fn presence() -> Presence {
    Presence {
        plan: PLAN,
        window: WINDOW,
        controller: 1,
        summons: DIGEST,
        accepted: vec![2, 4],
        excluded: Vec::new(),
        owners: 2,
        silent: 0,
        mask_key: None,
    }
}

fn membership() -> Membership {
    Membership {
        plan: PLAN,
        window: WINDOW,
        members: members(),
        owners: vec![1, 2, 3],
        root: DIGEST,
        mask_keys: Vec::new(),
    }
}
