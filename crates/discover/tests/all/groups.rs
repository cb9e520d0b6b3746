//! What describes owners, and so can group them: what is the same in all rows of each.

use crate::look;
use alpheus_discover::Understanding;
use alpheus_discover::write::files;

/// Rows of 24 patients, ten of each unless `rows` says otherwise, with a cell of the patient's number and
/// the visit's.
fn visits(rows: impl Fn(u32) -> u32, name: &str, cell: impl Fn(u32, u32) -> String) -> String {
    let all = (0..10u32).flat_map(|visit| (0..24u32).map(move |own| (own, visit)));
    let all = all.filter(|(own, visit)| *visit < rows(*own));
    all.fold(format!("patient,time,{name},kg\n"), |text, (own, visit)| {
        let (cell, kg) = (cell(own, visit), 60 + (own * 7 + visit * 13) % 29);
        text + &format!("P{own},2024-03-{:02} 09:30,{cell},{kg}.5\n", visit + 1)
    })
}

fn ten(_: u32) -> u32 {
    10
}

/// The section of the page for people.
fn section(found: &Understanding) -> String {
    let readme = files(found, "visits.csv", None).readme;
    let from = readme.split_once("## Ask by group").map_or("", |(_, behind)| behind);
    from.split("\n## ").next().unwrap_or_default().to_owned()
}

fn says(found: &Understanding) -> usize {
    found.notes.iter().filter(|note| note.contains("may describe the owners")).count()
}

#[test]
fn numbers_that_are_the_same_in_all_rows_of_each_owner_are_offered_and_measured() {
    let found = look(visits(ten, "arm", |own, _| (own % 2 + 1).to_string()));
    assert_eq!(found.questions, [""; 0]);
    let arm = found.attributes.iter().find(|own| own.column == "arm").unwrap();
    assert_eq!((arm.total.count, arm.total.sum.text()), (240, "360".to_owned()));
    let section = section(&found);
    for line in [
        "  - { name: arm_of_owner, type: string, optional: true }\n",
        "  arm_of_owner: { column: \"arm\" }\n",
        "`GROUP BY arm_of_owner`",
    ] {
        assert!(section.contains(line), "{section}");
    }
    assert_eq!(says(&found), 1, "{:?}", found.notes);
    let smoker = look(visits(ten, "smoker", |own, _| ["no", "yes"][own as usize % 2].to_owned()));
    assert!(self::section(&smoker).contains("  smoker_of_owner: { column: \"smoker\" }"));
}

#[test]
fn numbers_that_change_or_are_many_or_hardly_proven_are_only_measured() {
    let changes = |own: u32, visit: u32| own % 2 + u32::from((own, visit) == (17, 9)) + 1;
    let once = |own: u32| if own < 9 { 2 } else { 1 };
    let arm = |own: u32, _: u32| (own % 2 + 1).to_string();
    for text in [
        visits(ten, "arm", |own, visit| changes(own, visit).to_string()),
        visits(ten, "arm", |own, visit| if visit == own { String::new() } else { arm(own, 0) }),
        visits(ten, "arm", |own, _| format!("{}.5", own % 2)),
        // No group would have ten owners.
        visits(ten, "arm", |own, _| (own % 3 + 1).to_string()),
        visits(once, "arm", arm),
    ] {
        let found = look(&text);
        assert!(found.attributes.iter().any(|own| own.column == "arm"), "{text}");
        assert_eq!((section(&found), says(&found)), (String::new(), 0), "{text}");
    }
    let ten_twice = |own: u32| if own < 10 { 2 } else { 1 };
    assert_eq!(says(&look(visits(ten_twice, "arm", arm))), 1);
}

#[test]
fn a_category_that_changes_within_an_owner_is_not_offered() {
    let place = |own: u32, visit: u32| match (own, visit) {
        (3, 4 | 5) => "north",
        (own, _) => ["south", "north"][(own % 2 == 0) as usize],
    };
    let constant = |own: u32, _: u32| ["south", "north"][own as usize % 2].to_owned();
    let found = look(visits(ten, "site", constant));
    assert!(section(&found).contains("  site: { column: \"site\" }"), "{}", section(&found));
    assert!(!section(&found).contains("changes within an owner"), "{}", section(&found));
    let found = look(visits(ten, "site", |own, visit| place(own, visit).to_owned()));
    assert_eq!(found.categories, [("site".to_owned(), 2)]);
    let says =
        "These rows differ from the first of their owner, and would be refused: `site` in 2 rows.";
    assert!(section(&found).contains(says), "{}", section(&found));
    assert!(!section(&found).contains("```"), "{}", section(&found));
    // An empty cell differs too.
    let gap = |own: u32, visit: u32| match (own, visit) {
        (3, 4) => String::new(),
        _ => constant(own, visit),
    };
    let found = look(visits(ten, "site", gap));
    assert!(section(&found).contains("`site` in 1 row."), "{}", section(&found));
}
