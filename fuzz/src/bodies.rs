//! Bodies of requests and responses between processes, which their protocols' crates do not define.

use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_node::network::error::Problem;
use alpheus_node::network::role::Name;
use alpheus_stats_service::parties::DefinitionsPage;
use alpheus_stats_service::smoother::outbox::OutboxPage;
use alpheus_stream_runtime::receipts::ReceiptPart;
use alpheus_streams::wire as streams;
use alpheus_table_service::wire as table;
use alpheus_worker::part::Part;
use serde::{Serialize, de::DeserializeOwned};

/// What devices, controllers, owners and consumers send to each other and to the service.
pub fn stream_bodies(data: &[u8]) {
    written_again::<Vec<streams::Upload>>(data);
    written_again::<streams::Receipt>(data);
    written_again::<streams::Introduction>(data);
    written_again::<streams::Welcome>(data);
    written_again::<Vec<streams::Notice>>(data);
    written_again::<Vec<streams::NoticeReply>>(data);
    written_again::<streams::Mail>(data);
    written_again::<streams::Post>(data);
    written_again::<streams::Handover>(data);
    written_again::<streams::Choice>(data);
    written_again::<streams::MoveRequest>(data);
    written_again::<streams::MoveReply>(data);
    written_again::<streams::Arrival>(data);
    written_again::<streams::WithdrawalRequest>(data);
    written_again::<streams::GrantRequest>(data);
    written_again::<streams::KeysRequest>(data);
    written_again::<streams::KeysResponse>(data);
    written_again::<streams::FramesRequest>(data);
    written_again::<streams::FramesResponse>(data);
    written_again::<alpheus_crypto::signed_message::Signed<Certificate>>(data);
    written_again::<ReceiptPart>(data);
    if let Some(part) = Part::from_bytes(data) {
        assert_eq!(Part::from_bytes(&part.to_bytes()), Some(part), "written back");
    }
    // It reads what the Flink job reads; see `job_message`.
    let _ = alpheus_worker::instruction::Instruction::read(data);
}

/// What owners and servers of tables send to each other.
pub fn table_bodies(data: &[u8]) {
    written_again::<table::NewTable>(data);
    written_again::<table::NewObject>(data);
    written_again::<table::BlockRequest>(data);
    written_again::<table::FetchRequest>(data);
    written_again::<table::TableRequest>(data);
    written_again::<table::StateRequest>(data);
    written_again::<table::SumsRequest>(data);
    written_again::<Vec<table::SumResponse>>(data);
    written_again::<Vec<Vec<u8>>>(data);
}

/// What smoothers, verifiers and gates send to each other, beside the messages of their protocols.
pub fn peer_bodies(data: &[u8]) {
    written_again::<OutboxPage>(data);
    written_again::<DefinitionsPage>(data);
    written_again::<alpheus_anonymous_credential::sessions::peers::HoldRequest>(data);
    written_again::<alpheus_pass_service::verifier::api::Scan>(data);
    if let Ok(problem) = serde_json::from_slice::<Problem>(data) {
        let written = serde_json::to_vec(&problem).unwrap_or_default();
        let again = serde_json::from_slice::<Problem>(&written).ok();
        assert_eq!(again, Some(problem), "written back");
    }
}

/// The process that a certificate names has one name.
pub fn certificate(data: &[u8]) {
    let Ok(Some(name)) = Name::in_certificate(data) else { return };
    assert_eq!(name.to_string().parse::<Name>(), Ok(name), "written back");
}

/// A decoded body is written, and what was written is decoded as the same.
fn written_again<T: Serialize + DeserializeOwned>(data: &[u8]) {
    let Ok(body) = postcard::from_bytes::<T>(data) else { return };
    let written = postcard::to_allocvec(&body).unwrap_or_default();
    let again = postcard::from_bytes::<T>(&written).ok();
    let again = again.and_then(|body| postcard::to_allocvec(&body).ok());
    assert_eq!(again, Some(written), "written back");
}
