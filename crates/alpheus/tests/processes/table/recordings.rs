//! Recordings that are not CSV with commas are appended as `init` and `replay` read them.

use crate::table::world::World;

const COLUMNS: &str = "columns:\n  - { name: speed, min: 0, max: 100, scale: 1 }\n";

/// Ten rows, a second apart, in each form: 0.5 to 9.5.
#[test]
fn rows_in_other_forms_are_appended_and_added_up() {
    let german = |n: u64| format!("{n},5;13.02.2024 08:00:0{n}\n");
    let german: String = (0..10).map(german).collect();
    let line = |n: u64| format!("{{\"speed\":{n}.5,\"at\":\"2024-02-13T08:00:0{n}Z\"}}\n");
    let lines: String = (0..10).map(line).collect();
    let form = "file: { delimiter: ';', decimal: ',' }\n";
    for (name, text, form, format) in [
        ("german.csv", format!("speed;at\n{german}"), form, ", format: '%d.%m.%Y %H:%M:%S'"),
        ("lines.jsonl", lines, "", ""),
    ] {
        let schema = format!(
            "name: Street\nparameters: L128\n{form}time: {{ column: at{format} }}\n{COLUMNS}"
        );
        let world = World::new(&schema);
        std::fs::write(world.path(name), text).unwrap();
        world.done(&format!("append {name}"));
        let [row] = world.ask("SELECT COUNT(*), SUM(speed)").try_into().unwrap();
        assert_eq!((&row["count"], &row["sum_speed"]), (&10.into(), &"50.0".into()), "{name}");
    }
}
