//! Every short input, for every target.

use alpheus_fuzz::TARGETS;

/// The longest input of which every one is tried.
const SHORT: u32 = 2;

/// Every input of so many bytes.
fn each(length: u32, mut check: impl FnMut(&[u8])) {
    for number in 0..1_u32 << (8 * length) {
        let bytes = number.to_be_bytes();
        check(&bytes[bytes.len() - length as usize..]);
    }
}

/// The targets, dealt to two tests that run beside each other.
fn every_short_input(half: usize) {
    for (_, check) in TARGETS.iter().skip(half).step_by(2) {
        (0..=SHORT).for_each(|length| each(length, check));
    }
}

#[test]
fn every_short_input_is_read_or_refused() {
    every_short_input(0);
}

#[test]
fn every_short_input_is_read_or_refused_too() {
    every_short_input(1);
}

/// The loop itself reaches each input, once.
#[test]
fn the_loop_has_every_short_input() {
    let mut seen = std::collections::BTreeSet::new();
    (0..=SHORT).for_each(|length| each(length, |data| assert!(seen.insert(data.to_vec()))));
    assert_eq!(seen.len(), 1 + 256 + 65_536);
}
