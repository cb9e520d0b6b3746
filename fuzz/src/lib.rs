//! Properties of each decoder for any bytes: it neither panics nor hangs, and accepted bytes have
//! one meaning only.
//!
//! A check fails by panicking, as fuzzers expect.

// What coverage is counted with; the plain tests are linked with it too, to write seeds.
#[cfg(feature = "libfuzzer")]
use libfuzzer_sys as _;

mod bodies;
mod bounded;
mod contracts;
mod discoveries;
mod files;
mod receipts;
mod roles;
mod rows;
mod tables;
mod targets;
mod verified;

pub use bodies::{certificate, peer_bodies, stream_bodies, table_bodies};
pub use bounded::bounded;
pub use contracts::{contract, metrics};
pub use discoveries::discover;
pub use files::{backup, id_token, saved_write};
pub use receipts::{receipt, sealed_sum};
pub use roles::statistics;
pub use rows::rows;
pub use tables::{PAIRING, pairing_table, table, table_manifest};
pub use targets::{TARGETS, named};
pub use verified::{signed_row, verification, verifications};

use alpheus_access_pass::file::FileKey;
use alpheus_access_pass::messages as pass;
use alpheus_access_pass::request::Stamp;
use alpheus_anonymous_board::coalition::field::Binary;
use alpheus_anonymous_board::coalition::gate;
use alpheus_anonymous_board::coalition::group::Key as GroupKey;
use alpheus_anonymous_board::coalition::parity::{Grid, Key as ParityKey};
use alpheus_anonymous_board::dpf::Shape;
use alpheus_anonymous_board::messages as board;
use alpheus_anonymous_board::row::{Format, Row};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages as credential;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_anonymous_credential::sessions::codes::code_tags;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::certificate::{Deployment, Party, Role, Subject};
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets};
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::grant::{Grant, GrantedStream, HandedDays};
use alpheus_encrypted_stream::job::{self, JobMessage};
use alpheus_encrypted_stream::messages;
use alpheus_encrypted_stream::tick::frame::{MAC_LEN, TickFrame, body};
use alpheus_policy::document::Node;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;
use std::sync::{LazyLock, OnceLock};

/// An encrypted event is decoded, and encoded to the same bytes.
pub fn frame(data: &[u8]) {
    let Ok(view) = FrameView::parse(data) else { return };
    let owned = own(view);
    assert_eq!(owned.to_bytes(), data, "a frame has one encoding");
}

/// Tick frames.
pub fn tick_frame(data: &[u8]) {
    let Ok(frame) = TickFrame::parse(data, Span(1_000_000)) else { return };
    let before_mac = &data[..data.len() - MAC_LEN];
    match frame {
        TickFrame::Opening(opening) => {
            let head = opening.head.to_bytes();
            assert!(data.starts_with(&head), "an opening's head has one encoding");
        }
        TickFrame::Tick(claim, words) => {
            let words: Vec<u64> = words.iter().collect();
            assert_eq!(body(&claim, &words), before_mac, "a tick has one encoding");
        }
        TickFrame::Gap(claim) => {
            assert_eq!(body(&claim, &[]), before_mac, "a gap has one encoding");
        }
    }
}

/// The same frame with its own copy of the words.
fn own(view: FrameView<'_>) -> Frame<Vec<u64>> {
    match view {
        Frame::Opening { session, t, tag } => Frame::Opening { session, t, tag },
        Frame::Data { link, words } => Frame::Data { link, words: words.iter().collect() },
        Frame::Border { link, count, tag, words } => {
            Frame::Border { link, count, tag, words: words.iter().collect() }
        }
        Frame::Closing { link, count, tag, words } => {
            Frame::Closing { link, count, tag, words: words.iter().collect() }
        }
    }
}

/// A YAML document is read, or rejected with a position.
pub fn document_yaml(data: &[u8]) {
    document(data, Node::from_yaml);
}

/// A JSON document is read, or rejected with a position.
pub fn document_json(data: &[u8]) {
    document(data, Node::from_json);
}

fn document<E: std::error::Error>(data: &[u8], read: fn(&str) -> Result<Node, E>) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = read(text) {
        assert!(!error.to_string().is_empty(), "an error has a message");
    }
}

/// A query is read, and means the same when it is written back and read again:
/// this is how errors suggest the nearest allowed query.
pub fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match alpheus_policy::query::parse(text) {
        Ok(statement) => {
            let written = statement.to_string();
            let again = alpheus_policy::query::parse(&written).map(|again| again.to_string());
            assert_eq!(again.as_deref(), Ok(written.as_str()), "written back");
        }
        Err(error) => assert!(!error.render(text).is_empty(), "an error points to a position"),
    }
}

/// A schema is parsed and laid out, or rejected with a position.
pub fn schema_yaml(data: &[u8]) {
    schema(data, Schema::from_yaml);
}

/// The same of its Avro form.
pub fn schema_avsc(data: &[u8]) {
    schema(data, Schema::from_avsc);
}

fn schema<E: std::error::Error>(data: &[u8], read: fn(&str) -> Result<Schema, E>) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match read(text) {
        Ok(schema) => {
            // Any declaration has a layout or is rejected.
            if let Ok(layout) = Layout::of(&schema) {
                assert_eq!(layout.check_word() + 1, layout.words, "the check word is last");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
}

/// Owners' choices are parsed with a schema, or rejected with a position.
pub fn policies(data: &[u8]) {
    static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| {
        Schema::from_yaml(include_str!("../../examples/fitness/schema.yaml")).ok()
    });
    let (Ok(text), Some(schema)) = (std::str::from_utf8(data), SCHEMA.as_ref()) else { return };
    match Policies::from_yaml(text, schema) {
        Ok(policies) => drop(policies.of_owner("somebody").attribute(0)),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
}

/// An annotation is decoded, and stays the same when it is encoded and decoded again.
pub fn annotation(data: &[u8]) {
    decoded::<Annotation>(data);
}

/// Bytes from the network are a message or rejected, and a message stays the same when it is encoded
/// and decoded again. Signed content is tried as well, since only honest signers protect it.
pub fn messages(data: &[u8]) {
    decoded::<messages::ServiceMessage>(data);
    decoded::<messages::ControllerMessage>(data);
    decoded::<messages::Announcement>(data);
    decoded::<messages::Acceptance>(data);
    decoded::<messages::PlanRefusal>(data);
    decoded::<messages::Summons>(data);
    decoded::<messages::Presence>(data);
    decoded::<messages::Picks>(data);
    decoded::<messages::Membership>(data);
    decoded::<messages::Token>(data);
    decoded::<messages::OpeningSet>(data);
    decoded::<messages::EdgeRequest>(data);
    decoded::<alpheus_encrypted_stream::receipt::BoundedReceipt>(data);
    decoded::<messages::Opening>(data);
    decoded::<messages::WindowRefusal>(data);
    decoded::<messages::Closing>(data);
    decoded::<messages::Retirement>(data);
    decoded::<alpheus_node::network::revocation_list::RevocationList>(data);
    decoded::<messages::EpochCall>(data);
    decoded::<messages::Attendance>(data);
    decoded::<messages::List>(data);
}

/// A message to or from the Flink job is decoded as one kind only, and survives a round trip.
pub fn job_message(data: &[u8]) {
    fn one<M: JobMessage + PartialEq + std::fmt::Debug>(data: &[u8]) -> usize {
        match M::from_bytes(data) {
            Ok(message) => {
                assert_eq!(M::from_bytes(&message.to_bytes()).as_ref(), Ok(&message));
                1
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error has a message");
                0
            }
        }
    }
    let kinds = [
        one::<job::PlanView>,
        one::<job::Join>,
        one::<job::PlanEnd>,
        one::<job::Opening>,
        one::<job::Token>,
        one::<job::Summary>,
        one::<job::TickSummary>,
        one::<job::DeviceNote>,
        one::<job::JoinAck>,
        one::<job::Progress>,
        one::<job::WindowSum>,
    ];
    let read: usize = kinds.iter().map(|kind| kind(data)).sum();
    assert!(read <= 1, "a message is of one kind");
}

/// An owner's grant and its keys survive a round trip. A reader without a day's key reads no event,
/// whatever its length.
pub fn raw_access(data: &[u8]) {
    decoded::<Grant>(data);
    decoded::<HandedDays>(data);
    let Some((reader, granted)) = reader() else { return };
    let what = (granted, 3);
    if let Ok(handed) = postcard::from_bytes::<HandedDays>(data) {
        assert!(reader.raw_reader(what, &[handed]).is_err(), "nobody sealed this");
    }
    let keys = reader.raw_reader(what, &[]);
    if let (Ok(keys), Ok(frame)) = (keys, FrameView::parse(data)) {
        assert!(!matches!(keys.read(&frame), Ok(Some(_))), "read without a key");
    }
}

/// A consumer, and the stream that it reads.
type Reader = (Consumer, GrantedStream);

fn reader() -> Option<&'static Reader> {
    static READER: OnceLock<Option<Reader>> = OnceLock::new();
    let made = || {
        let key = |seed: u8| SigningKey::from_seed(&Secret::from_bytes([seed; 32]));
        let (authority, subject) = (key(1), Subject([0; 16]));
        let service = Party::signing(Role::Service, "service", key(2).verifying_key());
        let service = service.certify(subject, &authority);
        let deployment = Deployment::new(authority.verifying_key(), &service).ok()?;
        let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([3; 32]));
        let certificate = secrets.request("reader").certify(subject, &authority);
        let consumer = secrets.certified(&certificate, &deployment).ok()?;
        let (stream, schema) = (StreamId([1; 16]), SchemaId([2; 32]));
        let (owner, controller) = (OwnerId([4; 32]), ControllerId([5; 32]));
        Some((consumer, GrantedStream { stream, schema, owner, controller }))
    };
    READER.get_or_init(made).as_ref()
}

/// Messages between holder, issuer, verifier and store are decoded, and encoded to the same bytes.
pub fn credential(data: &[u8]) {
    let limits = [1, 2, 5, 1000].into_iter().filter_map(|limit| Limit::try_from(limit).ok());
    for limit in limits {
        if let Ok(login) = credential::Login::from_bytes(data, limit) {
            assert_eq!(login.to_bytes(), data, "a login has one encoding");
            assert_eq!(login.bits.len(), limit.bits());
        }
        for place in [(0, 1), (1, 2), (3, 4)] {
            if let Ok(joint) = credential::JointPresentation::from_bytes(data, limit, place) {
                assert_eq!(joint.to_bytes(), data, "a joint presentation has one encoding");
                assert_eq!(joint.context.others.len() + 1, place.1);
            }
        }
    }
    let message = "a message has one encoding";
    if let Ok(request) = credential::Request::from_bytes(data) {
        assert_eq!(request.to_bytes(), data, "{message}");
    }
    if let Ok(response) = credential::Response::from_bytes(data) {
        assert_eq!(response.to_bytes(), data, "{message}");
    }
    if let Ok(re_up) = credential::ReUp::from_bytes(data) {
        assert_eq!(re_up.to_bytes(), data, "{message}");
    }
    if let Ok(logout) = credential::Logout::from_bytes(data) {
        assert_eq!(logout.to_bytes(), data, "{message}");
    }
    decoded::<alpheus_anonymous_credential::configuration::Configuration>(data);
}

/// The content of an envelope of mode 2 is a key or rejected, and has one encoding.
fn coalition(data: &[u8]) {
    let Some(shape) = Shape::new(9, 1).ok() else { return };
    for servers in 3..=6 {
        let Ok(grid) = Grid::new(shape, servers) else { return };
        if let Ok(key) = ParityKey::from_bytes(&grid, data.to_vec().into()) {
            assert_eq!(key.expose(), data);
        }
    }
    if let Some(proof) = gate::Proof::<Binary>::from_bytes(data) {
        assert_eq!(proof.expose(), data);
    }
    if let Some(opening) = gate::Opening::<Binary>::from_bytes(data) {
        assert_eq!(opening.to_bytes(), data);
    }
    if let Some(key) = GroupKey::from_bytes(data) {
        assert_eq!(key.expose().as_slice(), data);
    }
}

/// Messages to a board's servers survive a round trip, and any content of a row is empty,
/// legible or lost.
pub fn board(data: &[u8]) {
    same_again::<board::Submission>(data);
    same_again::<board::Complaint>(data);
    same_again::<board::Statement>(data);
    same_again::<board::Reveal>(data);
    same_again::<alpheus_anonymous_board::coalition::audit::CommonPart>(data);
    coalition(data);
    for format in [Format::RECOVERED, Format { max_message: 144, recovery: false }] {
        let most = usize::from(format.max_message);
        match format.decode(data) {
            Row::One(message) => assert!(message.len() <= most),
            Row::Two(both) => assert!(both.iter().all(|message| message.len() <= most)),
            Row::Empty | Row::Lost => {}
        }
    }
}

/// A decoded message is encoded, and decoded again as the same.
fn same_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(data) else { return };
    let written = postcard::to_allocvec(&message).unwrap_or_default();
    let again: Option<T> = postcard::from_bytes(&written).ok();
    assert_eq!(again, Some(message));
}

/// Messages of clients and gateways are decoded, and encoded to the same bytes.
pub fn access_pass(data: &[u8]) {
    let message = "a message has one encoding";
    if let Ok(hello) = pass::Hello::from_bytes(data) {
        assert_eq!(hello.to_bytes(), data, "{message}");
    }
    if let Ok(connect) = pass::Connect::from_bytes(data) {
        assert_eq!(connect.to_bytes(), data, "{message}");
    }
    if let Ok(connected) = pass::ConnectResponse::from_bytes(data) {
        assert_eq!(connected.to_bytes(), data, "{message}");
    }
    if let Ok(acknowledgement) = pass::Acknowledgement::from_bytes(data) {
        assert_eq!(acknowledgement.to_bytes(), data, "{message}");
    }
    if let Ok(code) = Code::from_bytes(data) {
        assert_eq!(code.to_bytes(), data, "{message}");
        // A verifier computes its tags before it knows whether its epoch is valid.
        let tags = pinned().as_ref().map(|pinned| code_tags(pinned, &code, &Digest([0; 32])));
        assert_eq!(tags.map(|tags| tags.len()), Some(code.onward.len() + 1));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(stamp) = text.parse::<Stamp>()
    {
        assert_eq!(stamp.to_string(), text, "{message}");
    }
    // A header with another work factor may take long, so only invalid headers are tried: nothing here
    // opens.
    if data.len() < 33 {
        assert!(FileKey::open(b"no key", data).is_err(), "nobody locked this");
    }
}

/// A proof is decoded for a statement, and encoded to the same bytes. A random proof does not hold.
pub fn proof(data: &[u8]) {
    let mut statement = Statement::new("alpheus/fuzz/v1", &[]);
    let (secret, base) = (statement.secret(), statement.element(&Element::base()));
    let image = statement.element(&Element::second_base());
    statement.equation(image, &[(1, secret, base)]);
    if let Ok(proof) = Proof::from_bytes(data, &statement) {
        assert_eq!(proof.to_bytes(), data, "a proof has one encoding");
        assert!(!Claim::new(statement, proof).holds(), "nobody knows this logarithm");
    }
}

fn decoded<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(data) else { return };
    let written = postcard::to_allocvec(&message).unwrap_or_default();
    assert_eq!(postcard::from_bytes::<T>(&written).as_ref(), Ok(&message), "written back");
}

/// A deployment that accepts codes.
fn pinned() -> &'static Option<PinnedConfiguration> {
    static PINNED: OnceLock<Option<PinnedConfiguration>> = OnceLock::new();
    PINNED.get_or_init(|| {
        let key = IssuerKey::from_bytes(&Secret::from_bytes([1; 128])).ok()?;
        let schedule = Schedule {
            start: Timestamp(0),
            epoch: Span(100),
            pre_login: Span(10),
            border_pre_login: Span(10),
            epochs_per_period: 100,
            ahead: 3,
        };
        let (issuer, limit) = (*key.public(), Limit::ONE);
        let deployment = [1; 32];
        let (kind, tier, incarnation) = (1, 1, 1);
        let configuration =
            Configuration { deployment, kind, tier, limit, incarnation, schedule, issuer };
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
        let signed = Signed::new(&configuration, &operator);
        PinnedConfiguration::open(&signed, &operator.verifying_key()).ok()
    })
}
