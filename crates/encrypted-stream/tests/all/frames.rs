//! Frames round-trip, and any bytes result in a frame or a typed error.

use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::frame::{Frame, FrameError, FrameView, Link};
use alpheus_time::Timestamp;
use proptest::prelude::*;

fn link() -> impl Strategy<Value = Link> {
    (any::<u64>(), 0u64..1 << 52, 0u64..1 << 52)
        .prop_filter("two times", |(_, a, b)| a != b)
        .prop_map(|(session, a, b)| Link {
            session,
            previous: Timestamp(a.min(b)),
            t: Timestamp(a.max(b)),
        })
}

fn frame() -> impl Strategy<Value = Frame<Vec<u64>>> {
    let words = || prop::collection::vec(any::<u64>(), 1..40);
    let tag = || any::<[u8; 16]>().prop_map(Tag);
    prop_oneof![
        (any::<u64>(), 0u64..1 << 52, tag()).prop_map(|(session, t, tag)| Frame::Opening {
            session,
            t: Timestamp(t),
            tag
        }),
        (link(), words()).prop_map(|(link, words)| Frame::Data { link, words }),
        (link(), any::<u64>(), tag(), words())
            .prop_map(|(link, count, tag, words)| Frame::Border { link, count, tag, words }),
        (link(), any::<u64>(), tag(), words())
            .prop_map(|(link, count, tag, words)| Frame::Closing { link, count, tag, words }),
    ]
}

fn owned(view: FrameView<'_>) -> Frame<Vec<u64>> {
    view.map(|words| words.iter().collect())
}

proptest! {
    #[test]
    fn a_frame_round_trips(frame in frame()) {
        let bytes = frame.to_bytes();
        prop_assert_eq!(owned(FrameView::parse(&bytes).unwrap()), frame);
    }

    /// A frame has one form: bytes that parse are written back unchanged.
    #[test]
    fn any_bytes_result_in_a_frame_or_an_error(
        kind in prop_oneof![any::<u8>(), 0x10u8..0x14],
        mut rest in prop::collection::vec(any::<u8>(), 0..200),
        small in any::<bool>(),
    ) {
        if small {
            // Keep times below the limit, so that some frames parse.
            rest.iter_mut().enumerate().filter(|(i, _)| i % 8 > 5).for_each(|(_, b)| *b = 0);
        }
        rest.insert(0, kind);
        if let Ok(view) = FrameView::parse(&rest) {
            prop_assert_eq!(owned(view).to_bytes(), rest);
        }
    }

    #[test]
    fn a_frame_shortened_or_lengthened_by_less_than_a_word_does_not_parse(frame in frame(), cut in 1usize..8) {
        let mut bytes = frame.to_bytes();
        prop_assert!(FrameView::parse(&bytes[..bytes.len() - cut]).is_err());
        bytes.resize(bytes.len() + cut, 0);
        prop_assert!(FrameView::parse(&bytes).is_err());
    }

    #[test]
    fn words_are_added_only_where_lengths_agree(sum in prop::collection::vec(any::<u64>(), 1..40), frame in frame()) {
        let bytes = frame.to_bytes();
        let view = FrameView::parse(&bytes).unwrap();
        if let Some(words) = view.words() {
            let mut total = sum.clone();
            match words.add_to(&mut total) {
                Ok(()) => {
                    let added = sum.iter().zip(words.iter()).map(|(a, b)| a.wrapping_add(b));
                    prop_assert!(added.eq(total));
                }
                Err(error) => {
                    let (expected, found) = (sum.len(), words.len());
                    prop_assert_ne!(expected, found);
                    prop_assert_eq!(error, FrameError::WrongLength { expected, found });
                    prop_assert_eq!(total, sum, "unchanged");
                }
            }
            prop_assert_eq!(words.get(0), words.iter().next());
            prop_assert_eq!(words.get(words.len()), None);
        }
    }
}
