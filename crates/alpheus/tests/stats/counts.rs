//! A count, with no smoother there: a client and the aggregator are killed in between, and each
//! account counts once.

use crate::common::run_script;
use crate::guide::deployment;

const GATE: &str = "
cat > gate.yaml <<END
place: park/gate
every: 20s
release: count
fewest: 3
after: { close: 15s }
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
kill -9 $aggregator
rm terminal-2.log
AGGREGATOR
while [ $(date +%s) -lt $((start + 37)) ]; do sleep 0.2; done
until grep -qs 'serving at' terminal-2.log; do sleep 0.1; done
alpheus stats results gate.yaml --card roads/card.json --format csv
(count ada) & again=$!
sleep 3; kill $again
";

#[test]
fn a_count_needs_no_smoother_and_counts_each_account_once() {
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
    let (said, log) = run_script(folder.path(), 200, &script);
    assert!(log.contains("signed by the deployment's operator"), "{said}\n{log}");
    assert_eq!(said.matches("counted\n").count(), 3, "{said}\n{log}");
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("park/gate,")).collect();
    // Before it is over nobody is told how many there are.
    assert!(rows[0].ends_with(",,,,,0,,open"), "{said}\n{log}");
    assert!(rows[1].ends_with(",3,,,,3,,result"), "{said}\n{log}");
}
