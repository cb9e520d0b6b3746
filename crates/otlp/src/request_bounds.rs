//! What a request takes in memory is bounded before it is read: a message of two bytes becomes a hundred.

use crate::message::ExportRequest;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The most messages within a request: points, attributes and their values. A batch of 10,000 points with 20
/// attributes has fewer.
const MAX_MESSAGES: usize = 1 << 19;
/// Values lie within values at most so deep; Prost reads no deeper.
const MAX_DEPTH: usize = 100;

/// Why a request is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundError {
    /// It is not what it should be.
    Malformed,
    /// It has too many messages.
    TooMany,
}

/// Reads a request in Protobuf.
pub(crate) fn protobuf(bytes: &[u8]) -> Result<ExportRequest, BoundError> {
    let mut left = MAX_MESSAGES;
    count(Kind::Request, bytes, MAX_DEPTH, &mut left)?;
    ExportRequest::decode(bytes).map_err(|_| BoundError::Malformed)
}

/// Reads a request in JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<ExportRequest, BoundError> {
    // Also those in texts, which are few.
    if bytes.iter().filter(|byte| **byte == b'{').count() > MAX_MESSAGES {
        return Err(BoundError::TooMany);
    }
    serde_json::from_slice(bytes).map_err(|_| BoundError::Malformed)
}

/// The kinds of messages that others are in.
#[derive(Clone, Copy)]
enum Kind {
    Request,
    ResourceMetrics,
    Resource,
    ScopeMetrics,
    Scope,
    Metric,
    Data,
    Point,
    Entry,
    Value,
    Values,
    Entries,
}

impl Kind {
    /// What lies in a field, if it is a message.
    fn field(self, tag: u32) -> Option<Kind> {
        Some(match (self, tag) {
            (Kind::Request, 1) => Kind::ResourceMetrics,
            (Kind::ResourceMetrics, 1) => Kind::Resource,
            (Kind::ResourceMetrics, 2) => Kind::ScopeMetrics,
            (Kind::ScopeMetrics, 1) => Kind::Scope,
            (Kind::ScopeMetrics, 2) => Kind::Metric,
            (Kind::Metric, 5 | 7 | 9 | 10 | 11) => Kind::Data,
            (Kind::Data, 1) => Kind::Point,
            // Some of them are numbers in points of another kind: few, and then counted too.
            (Kind::Resource, 1) | (Kind::Scope, 3) | (Kind::Point, 1 | 7 | 9) => Kind::Entry,
            (Kind::Entry, 2) | (Kind::Values, 1) => Kind::Value,
            (Kind::Value, 5) => Kind::Values,
            (Kind::Value, 6) => Kind::Entries,
            (Kind::Entries, 1) => Kind::Entry,
            _ => return None,
        })
    }
}

/// Counts the messages within one. A body that cannot be read is left to its reader.
fn count(kind: Kind, bytes: &[u8], depth: usize, left: &mut usize) -> Result<(), BoundError> {
    let mut bytes = bytes;
    while !bytes.is_empty() {
        let Ok((tag, wire)) = decode_key(&mut bytes) else { return Ok(()) };
        if wire != WireType::LengthDelimited {
            if skip_field(wire, tag, &mut bytes, DecodeContext::default()).is_err() {
                return Ok(());
            }
            continue;
        }
        let length = decode_varint(&mut bytes).ok().and_then(|it| usize::try_from(it).ok());
        let Some((own, rest)) = length.and_then(|length| bytes.split_at_checked(length)) else {
            return Ok(());
        };
        bytes = rest;
        if let Some(kind) = kind.field(tag) {
            *left = left.checked_sub(1).ok_or(BoundError::TooMany)?;
            if depth > 0 {
                count(kind, own, depth - 1, left)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::requests;

    const CAPTURED: &str = include_str!("../../../fuzz/seeds/metrics/all_kinds.json");

    fn field(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        [bytes, content.to_vec()].concat()
    }

    /// A request with these bytes within its only metric's sum.
    fn within(points: &[u8]) -> Vec<u8> {
        field(1, &field(2, &field(2, &field(7, points))))
    }

    #[test]
    fn real_requests_are_read() {
        let request = requests(CAPTURED.as_bytes()).unwrap().remove(0);
        assert_eq!(protobuf(&request.encode_to_vec()), Ok(request.clone()));
        assert_eq!(json(CAPTURED.as_bytes()), Ok(request));
        assert_eq!(protobuf(b"\xff"), Err(BoundError::Malformed));
        assert_eq!(json(b"{"), Err(BoundError::Malformed));
    }

    #[test]
    fn small_requests_with_many_messages_are_refused_unread() {
        let points = |many| field(1, &[]).repeat(many);
        assert!(protobuf(&within(&points(1000))).is_ok());
        assert_eq!(protobuf(&within(&points(MAX_MESSAGES))), Err(BoundError::TooMany));
        // Attributes of a point, and values of a list.
        let attributes = field(1, &field(7, &[]).repeat(MAX_MESSAGES));
        assert_eq!(protobuf(&within(&attributes)), Err(BoundError::TooMany));
        let list = field(5, &field(1, &[]).repeat(MAX_MESSAGES));
        let attribute = field(1, &field(7, &field(2, &list)));
        assert_eq!(protobuf(&within(&attribute)), Err(BoundError::TooMany));
        let objects = [b"{".repeat(MAX_MESSAGES), b"{".to_vec()].concat();
        assert_eq!(json(&objects), Err(BoundError::TooMany));
    }

    #[test]
    fn values_within_values_end() {
        let mut value = Vec::new();
        for _ in 0..1000 {
            value = field(5, &field(1, &value));
        }
        let read = protobuf(&within(&field(1, &field(7, &field(2, &value)))));
        assert_eq!(read, Err(BoundError::Malformed));
    }
}
