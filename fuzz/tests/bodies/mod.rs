//! Bodies of requests and responses, as bytes.

use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_credential::messages::{SessionId, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::job::{SetDigest, Tally};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_node::backup::archive::{About, Item, Origin};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_stream_runtime::receipts::ReceiptPart;
use alpheus_streams::wire;
use alpheus_table_service::wire as table;
use alpheus_time::{Timestamp, Window};
use alpheus_verifiable_table::label::{Address, Column, DataSet, Kind, Segment};
use alpheus_verifiable_table::messages::{Request, Run, Weights};
use serde::Serialize;

const PLAN: PlanId = PlanId([1; 32]);
const STREAM: StreamId = StreamId([2; 16]);
const TABLE: DataSet = DataSet([3; 16]);

/// Parts of a backup.
pub(crate) fn of_backups() -> Vec<Vec<u8>> {
    let about = About {
        role: Some("host".to_owned()),
        name: None,
        build: "a build".to_owned(),
        created: 1,
    };
    let (origin, name) = (Origin::State, "a/b".to_owned());
    vec![
        bytes(&Item::About(about)),
        bytes(&Item::File { origin, name, bytes: vec![1; 40].into() }),
        bytes(&Item::Entry { is_log: true, key: vec![2; 8], value: vec![3; 30] }),
        bytes(&Item::End(3)),
        b"ALPHBAK1".to_vec(),
    ]
}

/// A write as a member saves it, before and after a complaint: epoch, name, tag, row, cover, row's content,
/// seed, side.
pub(crate) fn of_saved_writes() -> Vec<Vec<u8>> {
    let shape = Format { max_message: 144, recovery: false }.shape(64).expect("a shape");
    let row = vec![4_u8; shape.width()];
    [None, Some(Side::Second)]
        .map(|side| {
            let names = (Epoch(1), [2_u8; 32], [3_u8; 32], 5_u32, side.is_none());
            bytes(&(names, &row, [6_u8; 32], side))
        })
        .to_vec()
}

/// Of devices, controllers, the service and workers.
pub(crate) fn of_streams() -> Vec<Vec<u8>> {
    let upload = |length: usize| wire::Upload {
        stream: STREAM,
        outbox: [4; 16],
        number: 1,
        frames: vec![vec![5; length]; 2],
    };
    let window = Window { start: Timestamp(10), end: Timestamp(20) };
    let streams = Tally { count: 2, digest: SetDigest([6; 4]) };
    let part = alpheus_worker::part::Part {
        plan: PLAN,
        start: window.start,
        lane: 1,
        streams,
        rows: vec![7, u64::MAX],
    };
    let uploads = vec![wire::UploadStatus::Taken, wire::UploadStatus::Before { last: 1 }];
    let refused = wire::NoticeReply::Refused { why: "no".to_owned() };
    vec![
        bytes(&vec![upload(60), upload(44)]),
        bytes(&vec![upload(1)]),
        bytes(&wire::Receipt { uploads, refused: Vec::new() }),
        bytes(&wire::Mail { messages: Vec::new(), wait: 1, received: wire::MailCursor::default() }),
        bytes(&wire::Post { cursor: wire::MailCursor::default(), messages: Vec::new() }),
        bytes(&wire::Welcome { life: [8; 16], wait: 1 }),
        bytes(&vec![wire::Notice::Withdrawn(STREAM)]),
        bytes(&vec![wire::NoticeReply::Yes, refused]),
        bytes(&wire::FramesResponse { frames: vec![vec![9; 44]], next: 3 }),
        bytes(&ReceiptPart {
            query: "Q".to_owned(),
            plan: PLAN,
            window,
            part: 0,
            parts: 1,
            bytes: vec![1; 5],
        }),
        part.to_bytes(),
        bytes(&withdrawal()),
    ]
}

/// A signed statement with certificates is long; its signed part stands for it.
fn withdrawal() -> Withdrawal {
    Withdrawal { stream: STREAM, erase: true }
}

/// Of owners and servers of tables.
pub(crate) fn of_tables() -> Vec<Vec<u8>> {
    let segment = Segment([5; 16]);
    let address = Address { segment, epoch: 1, index: 2 };
    let request = |weights| Request {
        kind: Kind::Product(Column(0), Column(1)),
        runs: vec![Run { segment, epoch: 0, from: 0, to: 2 }],
        weights,
    };
    let requests = vec![request(Weights::Ones), request(Weights::Each(0, vec![1, 2]))];
    vec![
        bytes(&table::NewTable { manifest: alpheus_fuzz::table_manifest(TABLE) }),
        bytes(&table::NewObject { table: TABLE, bytes: vec![6; 9] }),
        bytes(&table::BlockRequest { table: TABLE, address }),
        bytes(&table::FetchRequest { table: TABLE, addresses: vec![address; 3] }),
        bytes(&table::TableRequest { table: TABLE }),
        bytes(&table::SumsRequest { table: TABLE, requests }),
        bytes(&vec![table::SumResponse { microseconds: 1, answer: vec![7; 24] }]),
        bytes(&vec![vec![8_u8; 5], Vec::new()]),
    ]
}

/// Of smoothers, verifiers and gates, and a refusal of any server.
pub(crate) fn of_peers() -> Vec<Vec<u8>> {
    let page = alpheus_stats_service::smoother::outbox::OutboxPage {
        boot: 1,
        next: 2,
        messages: Vec::new(),
    };
    let scan = alpheus_pass_service::verifier::api::Scan {
        scan: [1; 32],
        nonce: None,
        shown: vec![2; 40],
    };
    let problem =
        r#"{"rule":"role","detail":"no","help":"ask","query":"SELECT 1","status":403,"type":"x"}"#;
    let tag = TagId(Digest([3; 32]));
    let hold = HoldRequest { epoch: Epoch(7), tag, session: SessionId(tag) };
    vec![bytes(&page), bytes(&scan), bytes(&hold), problem.as_bytes().to_vec()]
}

/// JSON lines and lists.
pub(crate) fn lines() -> Vec<Vec<u8>> {
    let texts = [
        "{\"t\":1,\"a\":{\"b\":2.50,\"c\":null}}\n{\"t\":2,\"a\":{\"b\":\"x\\ny\"},\"d\":true}\n",
        "[{\"t\":\"2026-01-01\",\"v\":1e3},\n{\"v\":-0}]",
        "\u{feff}{\"a\":[1]}\nnot json\n{\"a\":1}",
        "{\"a\":1,\"a\":2}",
    ];
    texts.into_iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn bytes(message: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(message).unwrap_or_default()
}
