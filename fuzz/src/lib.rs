//! What must hold of each decoder for any bytes whatever: it neither panics
//! nor hangs, and what it accepts means one thing only.
//!
//! A check fails by panicking, as fuzzers want it.

use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_policy::document::Node;

/// An encrypted event is read, and written back to the same bytes.
pub fn frame(data: &[u8]) {
    let Ok(view) = FrameView::parse(data) else { return };
    let owned = own(view);
    assert_eq!(owned.to_bytes(), data, "a frame has one spelling");
}

/// The same frame with words of its own.
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

/// A YAML document is read, or refused with a place.
pub fn document_yaml(data: &[u8]) {
    document(data, Node::from_yaml);
}

/// A JSON document is read, or refused with a place.
pub fn document_json(data: &[u8]) {
    document(data, Node::from_json);
}

fn document<E: std::error::Error>(data: &[u8], read: fn(&str) -> Result<Node, E>) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = read(text) {
        assert!(!error.to_string().is_empty(), "a refusal says something");
    }
}

/// A query is read, and means the same when it is written back and read again:
/// that is how refusals suggest the nearest query that would be allowed.
pub fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match alpheus_policy::query::parse(text) {
        Ok(statement) => {
            let written = statement.to_string();
            let again = alpheus_policy::query::parse(&written).map(|again| again.to_string());
            assert_eq!(again.as_deref(), Ok(written.as_str()), "written back");
        }
        Err(error) => assert!(!error.render(text).is_empty(), "a refusal points somewhere"),
    }
}
