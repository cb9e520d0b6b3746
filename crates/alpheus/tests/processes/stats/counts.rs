//! A count, with no smoother there: a client and the aggregator are killed in between, and each
//! account counts once.

use crate::common::{in_some_attempt, run_script};
use crate::stats::guide::deployment;
use crate::stats::replay::recorded;
use std::fs;

const GATE: &str = "
cat > gate.yaml <<END
place: park/gate
every: 20s
release: count
fewest: 3
after: { close: 40s }
END
if alpheus stats define gate.yaml --card roads/card.json --key roads/definer.key; then exit 1; fi
defined=$(alpheus stats define gate.yaml --card roads/card.json --key roads/operator.key)
start=$((${defined##* } / 1000))
count() {
  exec alpheus stats client gate.yaml --card roads/card.json --account $1 --secret-file $1.secret --state run/$1
}
(count ada) 2> ada.log & ada=$!
(count bert) & others=$!
(count cleo) & others=\"$others $!\"
until grep -q 'counts in park/gate' ada.log; do sleep 0.1; done
kill -9 $ada
(count ada) & others=\"$others $!\"
for other in $others; do wait $other; done
alpheus stats results gate.yaml --card roads/card.json --format csv
[ $(date +%s) -lt $((start + 59)) ] || { echo 'too slow'; exit 0; }
kill -9 $aggregator
rm terminal-2.log
AGGREGATOR
while [ $(date +%s) -lt $((start + 62)) ]; do sleep 0.2; done
until grep -qs 'serving at' terminal-2.log; do kill -0 $!; sleep 0.1; done
alpheus stats results gate.yaml --card roads/card.json --format csv
(count ada) & again=$!
sleep 3; kill $again
";

#[test]
fn a_count_needs_no_smoother_and_counts_each_account_once() {
    in_some_attempt("a look before it is over", counted_without_smoothers);
}

fn counted_without_smoothers() -> Option<()> {
    let folder = tempfile::tempdir().unwrap();
    // Nothing of the smoothers.
    let away =
        |line: &&str| !(3..=6).any(|number| line.contains(&format!("terminal-{number}.log")));
    let script = deployment();
    let script = script.lines().filter(away).collect::<Vec<_>>().join("\n") + "\n";
    assert!(!script.contains("alpheus stats smoother"));
    let aggregator = script.lines().find(|line| line.starts_with("alpheus stats aggregator"));
    let aggregator = aggregator.unwrap();
    let gate = GATE.replace("AGGREGATOR", aggregator);
    let script = script.replace(aggregator, &format!("{aggregator}\naggregator=$!")) + &gate;
    let (said, log) = run_script(folder.path(), &script);
    if said.ends_with("too slow\n") {
        return None;
    }
    assert!(log.contains("signed by the deployment's operator"), "{said}\n{log}");
    assert_eq!(said.matches("counted\n").count(), 3, "{said}\n{log}");
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("park/gate,")).collect();
    // Before it is over nobody learns how many there are.
    assert!(rows[0].ends_with(",,,,,0,,open"), "{said}\n{log}");
    assert!(rows[1].ends_with(",3,,,,3,,result"), "{said}\n{log}");
    Some(())
}

/// Everyone with a value in an hour of a recording is counted, and, killed or not, only once.
#[test]
fn a_recording_is_counted() {
    const GATE: &str =
        "place: park/gate\nevery: 1hr\nrelease: count\nfewest: 2\nafter: { close: 90min }\n";
    const SPEED: &str = "\
timestamp,a,b,c,d,e,f
1330642800,61.2,58.4,,,60,
1330643400,60.1,,,,,
1330646400,57.7,58.1,60.9,39.5,,54.2
1330647000,57.7,58.1,60.9,nobody,,54.2
";
    for (fewest, code, first) in [("fewest: 2", 0, "3"), ("fewest: 4", 1, "")] {
        let folder = tempfile::tempdir().unwrap();
        let gate = GATE.replace("fewest: 2", fewest);
        let done = recorded(folder.path(), SPEED, &gate).output().unwrap();
        let log = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{log}");
        let unpublished = "park/gate from 1330642800000: fewer than may be published";
        assert_eq!(log.contains(unpublished), code == 1, "{log}");
        let out = fs::read_to_string(folder.path().join("out.csv")).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        let row = |start: u64, count: &str| {
            let slots = if count.is_empty() { "0" } else { count };
            format!("park/gate,{start},{},{count},,,,{slots},", start + 3_600_000)
        };
        assert_eq!(lines[1..], [row(1_330_642_800_000, first), row(1_330_646_400_000, "5")]);
    }
}
