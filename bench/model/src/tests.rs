//! The rules together hold, and each is missed when it is gone.

use super::*;
use controller::Copies;
use sets::{Disjoint, all_share_an_honest_member, least};

fn bounds(restores: u8, commits: u8, copies: Copies) -> Bounds {
    Bounds { restores, commits, copies }
}

#[test]
fn a_controller_answers_one_set() {
    for copies in [Copies::AtRest, Copies::AnyTime] {
        let outcome = explore(&Rules::ALL, &bounds(2, 5, copies));
        assert_eq!(outcome.answered_twice, None, "{copies:?}");
        assert!(outcome.states > 10_000, "{copies:?}: {}", outcome.states);
    }
}

#[test]
fn each_rule_is_missed_when_it_is_gone() {
    let all = Rules::ALL;
    let gone: [(&str, Rules); 4] = [
        ("one opening", Rules { one_opening: false, ..all }),
        ("restored counts", Rules { restored_counts: false, ..all }),
        ("fence is checked", Rules { fence_is_checked: false, ..all }),
        ("fence before send", Rules { fence_before_send: false, ..all }),
    ];
    for (name, rules) in gone {
        let outcome = explore(&rules, &bounds(2, 5, Copies::AtRest));
        assert!(outcome.answered_twice.is_some(), "{name}");
    }
    // One token for each membership: then one set of each could be asked for, and one is answered.
    let rules = Rules { one_membership: false, ..all };
    assert_eq!(explore(&rules, &bounds(1, 4, Copies::AtRest)).answered_twice, None);
}

/// A copy from between a commit and the fence is put back after another history went on equally far.
/// Without numbers of starts it passes for the latest. Even distrusted it would repeat what never left.
#[test]
fn a_copy_from_inside_of_a_commit_needs_both_rules() {
    let all = Rules::ALL;
    let gone: [(&str, Rules); 2] = [
        ("starts are known", Rules { starts_are_known: false, ..all }),
        ("unfenced is dropped", Rules { unfenced_is_dropped: false, ..all }),
    ];
    for (name, rules) in gone {
        let found = explore(&rules, &bounds(2, 5, Copies::AnyTime)).answered_twice.expect(name);
        let put_back = found.iter().filter(|event| matches!(event, Event::PutBack(_))).count();
        assert!(put_back > 0, "{name}: {found:?}");
    }
}

#[test]
fn two_sets_share_an_honest_member() {
    assert!(all_share_an_honest_member(6, least).unwrap() > 7_000);
    let majority = |controllers, _, _| controllers / 2 + 1;
    let found = all_share_an_honest_member(5, majority).unwrap_err();
    let Disjoint { controllers, tolerated, sets: [one, other] } = found;
    assert!(tolerated > 0 && (one & other).count_ones() <= tolerated && controllers >= 2);
}
