//! Clients killed over and over while they give what they have: each line counts once. And a
//! smoother that hangs, which keeps nobody from anything.

use crate::common::{road, run_script};
use crate::stats::guide::deployment;
use std::fs;

/// Three clients of fifteen samples each, killed at times that are different for each, started
/// again at once, and in the end left alone.
const KILLED: &str = "
defined=$(alpheus stats define road.yaml --card roads/card.json --key roads/definer.key)
start=$((${defined##* } / 1000))
give() {
  exec alpheus stats client road.yaml --card roads/card.json --account $1 --secret-file $1.secret --state run/$1 --input $1.txt >> $1.log 2>&1
}
kill_and_go_on() {
  shift_of=$2
  while [ $(date +%s) -lt $((start + 12)) ]; do
    (give $1) & victim=$!
    shift_of=$(((shift_of * 37 + 11) % 17))
    sleep 0.$((shift_of + 3)); sleep $((shift_of % 2))
    kill -9 $victim && echo killed $1
    wait $victim 2> /dev/null || true
  done
  (give $1)
}
seed=1
for name in ada bert cleo; do
  for i in $(seq 15); do echo $((20 + seed * 15 + i)).$((i % 10)); done > $name.txt
  kill_and_go_on $name $seed & clients=\"${clients-} $!\"
  seed=$((seed + 1))
done
for client in $clients; do wait $client || { cat *.log; exit 1; }; done
cat ada.log bert.log cleo.log
cat ada.txt bert.txt cleo.txt | awk '{ n += 1; s += $1 } END { printf \"given %d %.1f\\n\", n, s }'
alpheus stats results road.yaml --card roads/card.json --format csv
";

#[test]
fn killed_clients_give_each_line_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifteen_each = [
        ("quota: 4", "quota: 20"),
        ("slots: 9", "slots: 48"),
        ("expected: 8", "expected: 45"),
        ("settling: 1s", "settling: 10s"),
        ("patience: 1min", "patience: 10min"),
    ];
    fs::write(folder.path().join("road.yaml"), road(&fifteen_each)).unwrap();
    let (said, log) = run_script(folder.path(), &(deployment() + KILLED));
    let line = |start: &str| said.lines().rev().find(|line| line.starts_with(start)).unwrap();
    let given: Vec<&str> = line("given ").split(' ').collect();
    let result: Vec<&str> = line("speed/road,").split(',').collect();
    assert_eq!(result[3..5], given[1..3], "{said}\n{log}");
    assert!(said.contains("killed ada") && said.contains("killed cleo"), "{said}\n{log}");
}

/// From here on the process that was started last may hang; it continues when all is over.
pub(crate) const FREEZE: &str = "
frozen=$!
trap 'kill -CONT $frozen; kill $(jobs -p) 2> /dev/null || true' EXIT
";

/// Three clients give what they have, at once; then what came of it.
pub(crate) const GIVE: &str = "
printf '61.2\\n60.1\\n57.7\\n' > ada.txt
printf '58.4\\n59\\n58.1\\n' > bert.txt
printf '64\\n63.2\\n' > cleo.txt
for name in ada bert cleo; do
  alpheus stats client road.yaml --card roads/card.json --account $name --secret-file $name.secret --state run/$name --input $name.txt &
  clients=\"${clients-} $!\"
done
for client in $clients; do wait $client; done
alpheus stats results road.yaml --card roads/card.json --format csv
";

/// More time for each part of an aggregate, since a smoother or the machine may be slow.
pub(crate) const SLOW: &[(&str, &str)] = &[
    ("turn: 10s", "turn: 40s"),
    ("settling: 1s", "settling: 10s"),
    ("patience: 1min", "patience: 10min"),
];

/// One smoother of four hangs from the definition on.
const FROZEN: &str = "
alpheus stats define road.yaml --card roads/card.json --key roads/definer.key
kill -STOP $frozen
";

#[test]
fn a_smoother_that_hangs_keeps_nobody_from_anything() {
    let folder = tempfile::tempdir().unwrap();
    let plan = road(SLOW);
    fs::write(folder.path().join("road.yaml"), plan).unwrap();
    let script = deployment() + FREEZE + FROZEN + GIVE;
    let (said, log) = run_script(folder.path(), &script);
    let result = said.lines().rev().find(|line| line.starts_with("speed/road,")).unwrap();
    assert!(result.contains(",8,481.7,") && result.ends_with(",result"), "{said}\n{log}");
    assert_eq!(log.matches(" 0 samples found no slot").count(), 3, "{said}\n{log}");
}
