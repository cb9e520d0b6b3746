//! The queries of the examples: allowed ones are planned, and forbidden ones are refused with
//! a suggestion that is planned.

use crate::planner::fixture::{World, create};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Fraction;
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn world(folder: &str, policies: &str, streams: u32, metadata: &[(&str, &str)]) -> World {
    let folder = examples().join(folder);
    World::of(&read(&folder.join("schema.yaml"))).with(
        streams,
        &read(&folder.join(policies)),
        metadata,
    )
}

#[test]
fn queries_of_the_applications_are_planned_or_refused() {
    for (folder, metadata) in [
        ("fitness", &[("region", "north")][..]),
        ("web-analytics", &[("site", "shop")]),
        ("car-maintenance", &[("model", "a")]),
    ] {
        let exact = world(folder, "policies.yaml", 400, metadata);
        let noisy = examples().join(folder).join("policies.dp.yaml").is_file();
        let noisy = noisy.then(|| world(folder, "policies.dp.yaml", 400, metadata));
        let mut seen = (0, 0);
        for entry in std::fs::read_dir(examples().join(folder).join("queries")).unwrap() {
            let path = entry.unwrap().path();
            let text = read(&path);
            let world = noisy.as_ref().filter(|_| text.contains("epsilon")).unwrap_or(&exact);
            if path.file_stem().unwrap().to_str().unwrap().starts_with("forbidden") {
                let (_, nearest) = world.refuse(&text);
                assert!(nearest.is_some(), "{}", path.display());
                seen.1 += 1;
            } else {
                let planned = world.plan(&text).unwrap_or_else(|refusal| {
                    panic!("{}\n{}", path.display(), refusal.render(&text))
                });
                let known = world.catalog.schema(&create(&text).from.text).unwrap();
                assert!(!explain(&planned, known, 0.01, false).revealed.is_empty());
                seen.0 += 1;
            }
        }
        assert!(seen.0 >= 2 && seen.1 >= 1, "{folder}: {seen:?}");
    }
}

#[test]
fn queries_of_the_recordings_are_planned() {
    for (folder, metadata, queries) in [
        ("real/fitness", &[][..], &["stats.sql", "altitude.sql"][..]),
        ("real/cars", &[], &["stats.sql"]),
        ("real/smartmeter", &[("VID", "a")], &["stats.sql", "daily.sql"]),
        ("real/traffic_speed", &[], &["stats.sql"]),
        ("real/weblog_apache", &[], &["stats.sql"]),
        ("real/weblog_nasa", &[], &["stats.sql"]),
    ] {
        for (policies, min) in [("policies.yaml", 1), ("policies.min10.yaml", 10)] {
            let world = world(folder, policies, 12, metadata);
            for query in queries {
                let text = read(&examples().join(folder).join(query));
                let planned = world.plan(&text).unwrap_or_else(|refusal| {
                    panic!("{folder} {query}\n{}", refusal.render(&text))
                });
                let plan = &planned.plans[0];
                assert_eq!((plan.streams.len(), plan.alpha), (12, Fraction::ZERO));
                // An option for one stream does not restrict dropouts.
                let daily = *query == "daily.sql";
                assert_eq!(plan.dropout, if daily { Fraction::FIFTH } else { Fraction::ZERO });
                assert_eq!(
                    plan.population.min,
                    if daily { 1 } else { min },
                    "{folder} {policies} {query}"
                );
                let first = plan.select.items[0].alias.as_str();
                assert!(first.starts_with("sum_"), "{first}");
            }
        }
    }
}
