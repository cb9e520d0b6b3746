//! `alpheus board replay`: what is posted comes back, or is known to be lost.

use crate::common::alpheus;
use alpheus_test_support::skip;
use std::collections::BTreeMap;
use std::path::Path;

/// How often each line stands in a text.
fn counted(text: &str) -> BTreeMap<&str, i64> {
    let mut lines = BTreeMap::new();
    text.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    lines
}

/// Replays, and checks that the lines that came back are those that were posted but
/// for as many as were said to be lost or rejected.
fn replay(input: &Path, folder: &Path, more: &[&str]) -> serde_json::Value {
    let output = folder.join("board.txt");
    let mut command = alpheus(["board", "replay", "--format", "json", "--input"]);
    command.arg(input).arg("--output").arg(&output).args(more);
    let done = command.output().unwrap();
    let log = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{log}");
    let counts: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let posted = std::fs::read_to_string(input).unwrap();
    let back = std::fs::read_to_string(&output).unwrap();
    let (posted, found) = (counted(&posted), counted(&back));
    assert!(found.iter().all(|(line, many)| posted.get(line).is_some_and(|p| many <= p)), "{back}");
    let missing: i64 = posted.values().sum::<i64>() - found.values().sum::<i64>();
    let count = |name: &str| counts[name].as_i64().unwrap();
    assert_eq!(
        missing,
        count("lost") + count("left_out") + count("rejected"),
        "none is silent: {counts}"
    );
    assert_eq!(count("delivered") + count("recovered") + missing, count("lines"), "{counts}");
    counts
}

#[test]
fn what_is_posted_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("posts.txt");
    // Equal lines, other alphabets, an empty one, one that is too long.
    let mut posts: Vec<String> = (0..20).map(|i| format!("line {}", i / 2)).collect();
    posts.extend(["žluťoučký kůň".to_owned(), String::new(), "x".repeat(161)]);
    std::fs::write(&input, posts.join("\n") + "\n").unwrap();
    let counts = replay(&input, folder.path(), &["--rows", "2000"]);
    assert_eq!((counts["lines"].as_i64(), counts["rejected"].as_i64()), (Some(23), Some(1)));
}

/// Replays so many real posts; how many were lost, if there are posts.
fn real(most: usize) -> Option<i64> {
    let data = skip::real_data()?;
    let Ok(posts) = std::fs::read_to_string(data.join("posts.txt")) else {
        skip::skip("there is no posts.txt in the folder of ALPHEUS_REAL_DATA");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("posts.txt");
    let some: Vec<&str> = posts.lines().take(most).collect();
    std::fs::write(&input, some.join("\n") + "\n").unwrap();
    let counts = replay(&input, folder.path(), &[]);
    eprintln!("{counts}");
    counts["lost"].as_i64()
}

/// Real posts, as many as a test has time for.
#[test]
fn real_posts_come_back() {
    // 5 % are expected to be lost: 10, and four standard deviations of losses by threes.
    assert!(real(200).is_none_or(|lost| lost <= 34));
}

/// All 3,500, in minutes: 174 are expected to be lost, give or take five times 23.
#[test]
#[ignore = "minutes of work: cargo test -p alpheus --test processes -- --ignored --nocapture board::"]
fn all_real_posts_come_back() {
    assert!(real(usize::MAX).is_none_or(|lost| (59..=289).contains(&lost)));
}
