//! Prints what is understood of the files that are named.

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        println!("=== {path}");
        match alpheus_discover::understand(&bytes, &alpheus_discover::Hints::default()) {
            Err(error) => println!("refused: {error}"),
            Ok(found) => {
                let time: Vec<&str> = found.time.columns.iter().map(|at| found.names[*at].as_str()).collect();
                println!("owner {:?} time {time:?} format {:?} zone {}", found.owner, found.time.format(), found.zone_text());
                println!("rows {} refused {} blank {} dup {} ooo {} same {} owners {}", found.tally.rows, found.tally.refused(), found.tally.blank, found.tally.duplicates, found.tally.out_of_order, found.tally.same_time, found.tally.owners);
                for a in &found.attributes {
                    println!("  {:40} {:20} {:?} {} {} scale {} sent {:?} texts {}", a.column, a.name, a.unit, a.total.count, a.total.sum.text(), a.total.places, a.sentinels, a.texts.len());
                }
                println!("  categories {:?} left {:?}", found.categories, found.left_out);
                for q in &found.questions { println!("  ? {q}"); }
                for n in &found.notes { println!("  - {n}"); }
            }
        }
    }
}
