//! Any bytes are understood or refused, and never panic.

use alpheus_discover::write::{FileReport, files};
use alpheus_discover::{Hints, understand};
use proptest::prelude::*;

fn check(bytes: &[u8]) {
    if let Ok(found) = understand(bytes, &Hints::default()) {
        let understood = FileReport::of(&found);
        assert!(understood.attributes.iter().all(|own| own.count <= understood.rows));
        let _ = files(&found, "x.csv", None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn likely_tables(rows in proptest::collection::vec("[0-9a-z:/.,;\"# -]{0,24}(,|;|\t)[0-9]{1,4}(,|;|\t)[0-9./-]{0,12}", 0..30)) {
        check(rows.join("\n").as_bytes());
    }

    #[test]
    fn sums_of_any_integers_are_exact(values in proptest::collection::vec(-1_000_000i64..1_000_000, 2..60)) {
        let mut text = "sensor,time,value\n".to_owned();
        for (minute, value) in values.iter().enumerate() {
            text.push_str(&format!("s{},2024-01-15 {:02}:{:02}:00,{value}\n", minute % 2, minute / 60, minute % 60));
        }
        let found = understand(text.as_bytes(), &Hints::default()).unwrap();
        let own = &found.attributes.iter().find(|own| own.column == "value");
        if let Some(own) = own {
            let left_out: u64 = own.sentinels.values().sum();
            prop_assert_eq!(own.total.count + left_out, values.len() as u64);
            if left_out == 0 {
                prop_assert_eq!(own.total.sum.text(), values.iter().sum::<i64>().to_string());
            }
        }
    }
}
