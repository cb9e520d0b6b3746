//! Columns that say what the numbers beside them measure.

use super::{look, wild::lines};
use alpheus_discover::{Hints, Understanding, understand};

/// Readings of twenty persons, one of each a day.
fn long(kind: &str, value: &str, kinds: &[(&str, u32)]) -> String {
    let row = |n: u32| {
        let (text, size) = kinds[(n * 7 % 11) as usize % kinds.len()];
        let number = size * 4 + size * (n * 13 % 9) / 9;
        format!("p{},2024-03-{:02},{text},{}.{}", n % 20, n / 20 + 1, number / 4, n % 10)
    };
    format!("id,date,{kind},{value}\n{}", lines(400, row))
}

/// Whether a question is about the kinds of a column.
fn asks_of_kinds(found: &Understanding, kind: &str) -> bool {
    let about = format!("kinds of readings, which `{kind}` names");
    found.questions.iter().any(|asked| asked.contains(&about))
}

const TESTS: &[(&str, u32)] = &[("hdl", 50), ("sbp", 130), ("smoke", 0), ("fib4", 2)];

#[test]
fn several_tests_in_one_column_are_asked_about() {
    for (kind, value) in [
        ("test", "value"),
        ("Lab Test", "result"),
        ("test_name", "result_value"),
        ("measure", "value"),
        ("vital sign", "Wert"),
        ("item", "reading"),
        ("characteristic", "value"),
        ("Messart", "Messwert"),
        ("signal_name", "val"),
        ("indicator code", "numeric value"),
    ] {
        let text = long(kind, value, TESTS);
        let found = look(&text);
        assert!(asks_of_kinds(&found, kind), "{kind}: {:?}", found.questions);
        let hints = Hints { measure: vec![value.to_owned()], ..Hints::default() };
        let said = understand(text.as_bytes(), &hints).unwrap();
        assert_eq!(said.questions, [""; 0], "{kind}");
    }
}

#[test]
fn tests_with_results_of_one_size_are_not_asked_about() {
    let scores = long("test", "value", &[("Test A", 40), ("Test B", 60), ("Test C", 35)]);
    assert_eq!(look(scores).questions, [""; 0]);
}

#[test]
fn other_categories_beside_readings_are_not_asked_about() {
    for kind in ["region", "sex", "treatment", "device", "arm", "ward", "visit", "test_group"] {
        let found = look(long(kind, "value", &[("a", 40), ("b", 90), ("c", 500)]));
        assert!(!asks_of_kinds(&found, kind), "{kind}: {:?}", found.questions);
    }
    // What is bought is no kind of reading.
    let bought = look(long("item", "paid", &[("bread", 3), ("coffee", 8), ("lamp", 60)]));
    assert!(!asks_of_kinds(&bought, "item"), "{:?}", bought.questions);
}
