//! A client whose aggregator is gone when it looks: it fails, keeps its receipts, and is content
//! once somebody shows that it counts. Meanwhile somebody watches a smoother, and learns nothing; and
//! one of the clients is behind a SOCKS proxy.

use crate::common::socks::Socks;
use crate::common::{road, run_script};
use crate::stats::guide::deployment;
use crate::stats::hidden_counts::{self, watched};
use std::collections::BTreeSet;
use std::fs;

/// Ada's client stands still from when all are given until the result is there and the aggregator
/// is not, nor what smoothers have fetched from it for the others.
const GONE: &str = "
defined=$(alpheus stats define road.yaml --card roads/card.json --key roads/definer.key)
start=$((${defined##* } / 1000))
printf '61.2\\n60.1\\n57.7\\n' > ada.txt
printf '58.4\\n59\\n58.1\\n' > bert.txt
printf '64\\n63.2\\n' > cleo.txt
give() {
  exec alpheus stats client road.yaml --card roads/card.json --account $1 --secret-file $1.secret --state run/$1 --input $1.txt ${2:-}
}
look before
(give ada) 2> ada.log & ada=$!
(give bert) & others=$!
(give cleo --proxy=PROXY) & others=\"$others $!\"
while [ $(date +%s) -lt $((start + 29)) ]; do sleep 0.2; done
look after
while [ $(date +%s) -lt $((start + 41)) ]; do sleep 0.2; done
kill -STOP $ada
for other in $others; do wait $other; done
alpheus stats results road.yaml --card roads/card.json --format csv
ask() { curl --silent --fail --cacert pki/ca.pem https://localhost:$1; }
name=$(ask SHOWN/v1/results | grep -o '\"name\":\"[0-9a-f]*' | cut -d '\"' -f 4)
kill -9 $aggregator
for at in RELAYS; do
  while ask $at/v1/leaves/$name > leaves; do sleep 0.5; done
done
kill -CONT $ada
if wait $ada; then echo believed; else echo failed with $?; fi
cat ada.log >&2
rm terminal-2.log
AGGREGATOR
until grep -qs 'serving at' terminal-2.log; do kill -0 $!; sleep 0.1; done
(give ada)
";

/// A client's proxy was asked for all servers that it needs, and for nothing else, under a name for
/// each. Had it gone to one of them by itself, the proxy would not know that one.
fn reached_by_proxy(socks: &Socks, ports: &[String]) {
    let seen = socks.seen();
    let port = |to: &String| to.rsplit(':').next().unwrap().to_owned();
    let asked: BTreeSet<String> = seen.values().flatten().map(port).collect();
    assert_eq!(asked, ports.iter().cloned().collect(), "{seen:?}");
    assert!(seen.values().all(|to| to.len() == 1), "{seen:?}");
    // A route that is made of another one has a number after its name.
    let named = |name: &String| name.split('-').next().map(str::len) == Some(32);
    assert!(seen.keys().all(named), "{seen:?}");
}

#[test]
fn a_client_that_is_shown_nothing_fails_and_keeps_its_receipts() {
    let folder = tempfile::tempdir().unwrap();
    let plan = road(&[("patience: 1min", "patience: 30s")]);
    fs::write(folder.path().join("road.yaml"), plan).unwrap();
    let script = watched(&deployment());
    let aggregator = script.lines().find(|line| line.starts_with("alpheus stats aggregator"));
    let aggregator = aggregator.unwrap().to_owned();
    let script = script.replace(&aggregator, &format!("{aggregator}\naggregator=$!"));
    let port = |line: &str| {
        let after = line.split("--api 127.0.0.1:").nth(1).unwrap();
        after.split(' ').next().unwrap().to_owned()
    };
    let smoothers = script.lines().filter(|line| line.starts_with("alpheus stats smoother "));
    let relays: Vec<String> = smoothers.map(port).collect();
    assert_eq!(relays.len(), 4, "{script}");
    let gone = GONE.replace("RELAYS", &relays.join(" ")).replace("SHOWN", &port(&aggregator));
    let socks = Socks::start();
    let gone = gone.replace("PROXY", &format!("socks5h://{}", socks.address));
    let registrar = script.lines().find(|line| line.starts_with("alpheus stats registrar "));
    let to = [vec![port(registrar.unwrap())], relays].concat();
    let script = script + &gone.replace("AGGREGATOR", &aggregator);
    let (said, log) = run_script(folder.path(), &script);
    assert!(said.contains("failed with 1"), "{said}\n{log}");
    assert!(
        log.contains("the aggregator does not publish the set that it counted"),
        "{said}\n{log}"
    );
    assert!(said.contains(",8,481.7,"), "{said}\n{log}");
    hidden_counts::check(folder.path());
    reached_by_proxy(&socks, &to);
    // The receipts are there: it looks again, and finds what it gave.
    let last = said.lines().rev().find(|line| line.contains("contributions counted")).unwrap();
    assert!(said.ends_with(&format!("{last}\n")) && last.contains(" 0 left out"), "{said}\n{log}");
    assert!(!last.contains("result; 0 contributions"), "{said}\n{log}");
}
