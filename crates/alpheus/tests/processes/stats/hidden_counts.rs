//! What a smoother shows to those who may not know the number of samples: metrics, sizes of files,
//! log. Nothing of it moves while samples come.

use crate::common::free_address;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A deployment whose first smoother serves its metrics and logs more than usual, and the command
/// `look NAME`, which notes what is to be seen of it: metrics, log, and sizes of all files in folders
/// that others may look into.
pub(crate) fn watched(deployment: &str) -> String {
    let (at, alone) = (free_address(), "alpheus stats smoother --identity pki/smoother-1 ");
    assert_eq!(deployment.matches(alone).count(), 1, "{deployment}");
    let watched = format!("{alone}--listen {at} --log info ");
    let look = format!(
        "look() {{
          curl --silent --fail http://{at}/metrics > metrics.$1
          find run terminal-*.log -type d ! -perm /055 -prune -o -type f -printf '%p %s\\n' | sort > sizes.$1
          cp terminal-3.log log.$1
        }}\n"
    );
    deployment.replace(alone, &watched) + &look
}

/// All that `look` noted, as it was before any sample and as it is after all samples: nothing has
/// moved but time, and how often the aggregator has asked.
pub(crate) fn check(folder: &Path) {
    let read =
        |kind: &str, when| fs::read_to_string(folder.join(format!("{kind}.{when}"))).unwrap();
    let time = [
        "alpheus_uptime_seconds ",
        "alpheus_certificate_days_left ",
        "alpheus_stats_requests_total{request=\"outcomes\"",
    ];
    let still = |text: String| -> Vec<String> {
        let moves = |line: &&str| time.iter().any(|moves| line.starts_with(moves));
        text.lines().filter(|line| !moves(line)).map(str::to_owned).collect()
    };
    let metrics = ["before", "after"].map(|when| still(read("metrics", when)));
    assert_eq!(metrics[0], metrics[1]);
    assert!(metrics[0].iter().any(|line| line.starts_with("alpheus_build_info")), "{metrics:?}");
    assert_eq!(read("log", "before"), read("log", "after"));
    assert_eq!(read("sizes", "before"), read("sizes", "after"));
    assert!(read("sizes", "after").contains("terminal-3.log"));
    // Its state grows, where nobody else looks.
    let mode = fs::metadata(folder.join("run/smoother-1")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
