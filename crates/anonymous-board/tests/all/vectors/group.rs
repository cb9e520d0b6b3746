//! Mode 2's baseline: keys from a group, their proofs, and what is rejected.

use crate::vectors::{array, bytes, cases, folder, number};
use alpheus_anonymous_board::coalition::engine::{Engine, Points};
use alpheus_anonymous_board::coalition::field::Field;
use alpheus_anonymous_board::coalition::gate::{EvaluationPoint, Opening, Proof};
use alpheus_anonymous_board::coalition::group::line::Line;
use alpheus_anonymous_board::coalition::group::{Group, Key, Modular, Word};
use alpheus_crypto::cells::Cells;
use alpheus_crypto::group::Element;
use alpheus_crypto::labels;
use serde_json::Value;

/// What all servers compute from a case.
struct Run {
    group: Group,
    tables: Vec<Cells>,
    openings: Vec<Opening<Modular>>,
    mark: Modular,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn elements(value: &Value) -> Vec<Element> {
    list(value).iter().map(|e| Element::from_bytes(&array(e)).unwrap()).collect()
}

/// Runs a case, up to the first rejection.
fn run(case: &Value) -> Result<Run, String> {
    let servers = number(&case["servers"]) as usize;
    let group = Group::new(servers, number(&case["rows"]), number(&case["bytes"]) as usize);
    let line = Line::from_bytes(&bytes(&case["line"])).unwrap();
    assert_eq!(line.to_bytes(), bytes(&case["line"]));
    let word = Word { cells: elements(&case["cells"]), sums: elements(&case["sums"]), line };
    let [row, r, s] = [0, 1, 2].map(|i| Modular::from_bytes(&bytes(&case["points"][i])).unwrap());
    let points = [Points { row, r, s }];
    let place = EvaluationPoint::from_hash(labels::BOARD_PLACE, &[&bytes(&case["drawn"])]);
    let (mut tables, mut openings, mut mark) = (Vec::new(), Vec::new(), Modular::node(0));
    for (server, (key, proof)) in list(&case["keys"]).iter().zip(list(&case["proofs"])).enumerate()
    {
        let key = Key::from_bytes(&bytes(key)).ok_or("malformed")?;
        group.check(server, &word, &key).map_err(|bad| format!("{bad:?}").to_lowercase())?;
        let mut table = group.table();
        let sums = group.add(&word, &key, &points, &mut table).pop().unwrap();
        openings.push(place.open(&sums, &Proof::from_bytes(&bytes(proof)).unwrap()));
        tables.push(table);
        mark = mark.plus(&Group::mark(&key));
    }
    Ok(Run { group, tables, openings, mark })
}

/// Whether the servers accept it, and if not, why.
fn judged(run: &Run) -> Result<(), String> {
    let one = run.mark.equals(&Modular::node(1));
    match (Opening::verify(&run.openings), one) {
        (false, _) => Err("audit".into()),
        (true, false) => Err("mark".into()),
        (true, true) => Ok(()),
    }
}

#[test]
fn tables_and_openings_match_the_vectors() {
    for case in cases("group") {
        let run = run(&case).unwrap();
        assert_eq!(judged(&run), Ok(()));
        let mut sum = run.group.table();
        for (server, (table, opening)) in run.tables.iter().zip(&run.openings).enumerate() {
            assert_eq!(opening.to_bytes(), bytes(&case["openings"][server]));
            for (at, cell) in list(&case["tables"][server]).iter().enumerate() {
                assert_eq!(table.read(at).unwrap().as_bytes(), &array(cell));
            }
            sum.add_all(table);
        }
        assert!(!Opening::verify(&run.openings[1..]), "all are needed");
        let written = number(&case["row"]);
        for row in 0..number(&case["rows"]) {
            let expected = (row == written).then(|| bytes(&case["message"]));
            assert_eq!(run.group.read(&sum, row), expected);
        }
    }
}

#[test]
fn bad_writes_are_rejected_as_in_the_vectors() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json").filter(|n| n.starts_with("group_bad_")) else {
            continue;
        };
        for case in cases(name) {
            seen += 1;
            let refused = run(&case).and_then(|run| judged(&run));
            assert_eq!(refused.err().as_deref(), case["refusal"].as_str(), "{name}");
        }
    }
    assert_eq!(seen, 16);
}
