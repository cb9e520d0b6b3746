//! Roles killed over and over while a recording goes through: what they had accepted counts,
//! and what was closed or published stays as it was.

use crate::common::Process;
use crate::stats::replay::{check_rows, small};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// So often somebody is killed.
const KILLS: usize = 24;
/// For a machine that does much else.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A process of a replay.
pub(crate) struct Role {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// The processes that another one has started.
pub(crate) fn roles_of(parent: u32) -> Vec<Role> {
    let read = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let of: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let arguments: Vec<String> = line.split('\0').map(str::to_owned).collect();
        let name = arguments.get(2)?.clone();
        let folder = fs::read_link(entry.path().join("cwd")).ok()?;
        (of == parent).then_some(Role { id, name, arguments, folder })
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| read(entry.unwrap())).collect()
}

/// What the aggregator has said of aggregates: closings as bytes, and how they ended.
#[derive(Default)]
struct Announcements {
    closings: BTreeMap<String, Vec<u8>>,
    ended: BTreeMap<String, serde_json::Value>,
}

impl Announcements {
    /// Asks again; nothing that was said once may be said otherwise.
    fn ask(&mut self, aggregator: &Role) {
        let api = aggregator.arguments.iter().position(|argument| argument == "--api").unwrap();
        let at = format!("https://{}", aggregator.arguments[api + 1]);
        let Some(rows) = get(&aggregator.folder, &format!("{at}/v1/results")) else { return };
        let Ok(rows) = serde_json::from_slice::<Vec<serde_json::Value>>(&rows) else { return };
        for row in rows {
            let name = row["name"].as_str().unwrap().to_owned();
            if let Some(closing) = get(&aggregator.folder, &format!("{at}/v1/closings/{name}")) {
                let known = self.closings.entry(name.clone()).or_insert_with(|| closing.clone());
                assert!(*known == closing, "a second closing");
            }
            if row["state"] != "open" {
                assert_eq!(*self.ended.entry(name).or_insert_with(|| row.clone()), row);
            }
        }
    }
}

fn get(folder: &Path, url: &str) -> Option<Vec<u8>> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "5", "--cacert", "pki/ca.pem", url]);
    let done = curl.current_dir(folder).stderr(Stdio::null()).output().ok()?;
    done.status.success().then_some(done.stdout)
}

pub(crate) fn kill(role: &Role) {
    let _ = Command::new("kill").args(["-9", &role.id.to_string()]).stderr(Stdio::null()).status();
}

/// Runs the small recording while roles are killed at times that a seed draws.
fn killed(mut seed: u64) {
    let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    assert!(curl.unwrap().success(), "nobody can be asked what was closed");
    let folder = tempfile::tempdir().unwrap();
    let mut replay = Process::start(&mut small(folder.path()));
    let (mut killed, mut said, until) =
        (BTreeMap::new(), Announcements::default(), Instant::now() + LONG);
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    while !replay.has_ended() {
        assert!(Instant::now() < until, "it does not end: {killed:?}\n{}", replay.log());
        std::thread::sleep(Duration::from_millis(50 + draw(700)));
        let roles = roles_of(replay.id());
        if let Some(aggregator) = roles.iter().find(|role| role.name == "aggregator") {
            said.ask(aggregator);
        }
        if killed.values().sum::<usize>() < KILLS && !roles.is_empty() {
            let role = &roles[usize::try_from(draw(roles.len() as u64)).unwrap()];
            kill(role);
            *killed.entry(role.name.clone()).or_default() += 1;
        }
    }
    assert!(replay.wait().success(), "{killed:?}\n{}", replay.log());
    // All readings, once each.
    check_rows(&fs::read_to_string(folder.path().join("out.csv")).unwrap());
    assert!(killed.values().sum::<usize>() > 3, "{killed:?}");
    eprintln!("killed: {killed:?}; closings seen: {}", said.closings.len());
}

/// Killing a replay leaves none of its processes behind.
#[test]
fn processes_go_with_a_replay_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut replay = Process::start(&mut small(folder.path()));
    let until = Instant::now() + LONG;
    let roles = loop {
        let roles = roles_of(replay.id());
        if roles.len() == 6 {
            break roles;
        }
        assert!(Instant::now() < until && !replay.has_ended(), "{}", replay.log());
        std::thread::sleep(Duration::from_millis(50));
    };
    replay.kill();
    let runs = |role: &Role| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", role.id)).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while roles.iter().any(runs) {
        assert!(Instant::now() < until, "somebody is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn killed_roles_lose_nothing_and_close_nothing_twice() {
    killed(7);
}

#[test]
fn other_times_of_death_do_no_harm_either() {
    killed(2_026);
}
