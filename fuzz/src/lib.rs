//! What must hold of each decoder for any bytes whatever: it neither panics
//! nor hangs, and what it accepts means one thing only.
//!
//! A check fails by panicking, as fuzzers want it.

use alpheus_encrypted_stream::frame::{Frame, FrameView};

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
