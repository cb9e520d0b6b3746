//! A registrar and a client that are killed between their first commit and the fence that shows it;
//! a smoother whose state is an older copy than its fence has seen.

use crate::common::{Process, alpheus, begin_fence, copy_folder, free_address, road, run_script};
use alpheus_node::fence::FenceFile;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A deployment's keys, with nobody there but who is started; and where the registrar is to be.
fn keys(folder: &Path) -> SocketAddr {
    let hour = [
        ("every: 30s", "every: 1hr"),
        ("turn: 10s", "turn: 10min"),
        ("settling: 1s", "settling: 1min"),
    ];
    fs::write(
        folder.join("road.yaml"),
        road(&[&hour[..], &[("patience: 1min", "patience: 1hr")]].concat()),
    )
    .unwrap();
    let (at, url) = (free_address(), || format!("https://{}", free_address()));
    let (registrar, aggregator) = (format!("https://{at}"), url());
    let smoothers = (0..4).map(|_| format!(" --smoother {},{}", url(), url()));
    let smoothers: String = smoothers.collect();
    run_script(folder,
        &format!(
            "umask 077
            alpheus ca init pki
            alpheus ca issue pki --role registrar --name registrar
            alpheus ca issue pki --role smoother --name smoother-1
            alpheus stats init roads --min-accounts 2 --wasteful-accounts 0 --authority pki/ca.pem --registrar {registrar} --aggregator {aggregator}{smoothers}
            alpheus pass account ada --accounts accounts.txt > ada.secret
            echo 61 > ada.txt"
        ),
    );
    at
}

/// What leaves its state as a kill right after the first commit does: it has committed once, and
/// the fence says that it was about to.
fn killed_at_first_commit(folder: &Path, state: &str, start: impl Fn() -> Command) {
    let fence = killed_without_fence(folder, state, start);
    begin_fence(&fence);
}

/// What leaves its state as a backup of the first day does: one commit, and no fence. Returns where
/// the fence was.
fn killed_without_fence(folder: &Path, state: &str, start: impl Fn() -> Command) -> PathBuf {
    let mut first = Process::start(start().current_dir(folder));
    let fence = folder.join(format!("{state}.fence"));
    // The file is there before the first commit, and says afterwards that it was made.
    let committed =
        || FenceFile::load(&fence).unwrap().get(&[0; 32]).is_some_and(|it| it.sequence > 0);
    while !committed() {
        assert!(!first.has_ended(), "{}", first.log());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    first.kill();
    fs::remove_file(&fence).unwrap();
    fence
}

fn registrar(at: SocketAddr) -> Command {
    let mut command = alpheus(["stats", "registrar", "--identity", "pki/registrar"]);
    command.args(["--card", "roads/card.json", "--keys", "roads/registrar"]);
    command.args(["--accounts", "accounts.txt", "--state", "registrar", "--api"]);
    command.arg(at.to_string());
    command
}

fn client() -> Command {
    let mut command = alpheus(["stats", "client", "road.yaml", "--card", "roads/card.json"]);
    command.args(["--account", "ada", "--secret-file", "ada.secret", "--state", "ada"]);
    command.args(["--input", "ada.txt"]);
    command
}

#[test]
fn who_was_killed_at_its_first_commit_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let at = keys(folder.path());
    killed_at_first_commit(folder.path(), "ada", client);
    killed_at_first_commit(folder.path(), "registrar", || registrar(at));
    let mut registrar = Process::start(registrar(at).current_dir(folder.path()));
    registrar.wait_for_prefix("serving at");
    let mut client = Process::start(client().current_dir(folder.path()));
    client.wait_for_prefix("taking part as ada");
    assert!(!registrar.log().contains("older than its fence"), "{}", registrar.log());
}

/// It may have given credentials and samples since.
#[test]
fn who_comes_back_from_the_first_day_is_not_new() {
    let folder = tempfile::tempdir().unwrap();
    let at = keys(folder.path());
    killed_without_fence(folder.path(), "ada", client);
    killed_without_fence(folder.path(), "registrar", || registrar(at));
    let mut registrar = Process::start(registrar(at).current_dir(folder.path()));
    registrar.wait_for("its age", |line| line.contains("older than its fence").then_some(()));
    let mut client = Process::start(client().current_dir(folder.path()));
    client.wait_for("refusal", |line| line.contains("older than its fence").then_some(()));
    assert!(!client.wait().success(), "{}", client.log());
    assert!(client.log().contains("alpheus errors state-old"), "{}", client.log());
}

/// A smoother alone, with its fence here.
fn smoother(folder: &Path, fence: &Path) -> Process {
    let mut running = Process::start(&mut smoother_command(folder, fence));
    running.wait_for_prefix("serving at");
    running
}

/// Where the fence lies if nobody says where.
const BESIDE: &str = "smoother.fence/fence";

fn smoother_command(folder: &Path, fence: &Path) -> Command {
    let mut command = alpheus(["stats", "smoother", "--identity", "pki/smoother-1"]);
    command.args([
        "--card",
        "roads/card.json",
        "--keys",
        "roads/smoother-1",
        "--state",
        "smoother",
    ]);
    command.args(["--api", &free_address().to_string(), "--peers", &free_address().to_string()]);
    if fence != Path::new(BESIDE) {
        command.arg("--fence").arg(fence);
    }
    command.current_dir(folder);
    command
}

/// Sizes and times of what a smoother writes move with the number of samples, so it does not start
/// where others can see them.
#[test]
fn a_smoother_writes_only_where_nobody_else_looks() {
    let folder = tempfile::tempdir().unwrap();
    keys(folder.path());
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let mode = |name: &str, mode| fs::set_permissions(at(name), Permissions::from_mode(mode));
    fs::DirBuilder::new().mode(0o700).create(at("elsewhere")).unwrap();
    let fence = Path::new("elsewhere/fence");
    ended(smoother(folder.path(), fence));
    for open in ["smoother", "elsewhere"] {
        mode(open, 0o750).unwrap();
        let mut refused = Process::start(&mut smoother_command(folder.path(), fence));
        refused.wait_for("refusal", |line| line.contains("look into this folder").then_some(()));
        assert!(!refused.wait().success(), "{}", refused.log());
        mode(open, 0o700).unwrap();
    }
    ended(smoother(folder.path(), fence));
    // A cluster shows how many records it holds.
    let mut shared = smoother_command(folder.path(), fence);
    let mut refused = Process::start(shared.env("ALPHEUS_KAFKA__BROKERS", "localhost:1"));
    refused
        .wait_for("refusal", |line| line.contains("a Kafka cluster would show it").then_some(()));
    assert!(!refused.wait().success(), "{}", refused.log());
}

/// Half an upload is on its way when a smoother stops: its log does not show that somebody was there.
#[test]
fn a_smoother_that_stops_does_not_say_whom_it_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    keys(folder.path());
    fs::DirBuilder::new().mode(0o700).create(folder.path().join("elsewhere")).unwrap();
    let mut command = smoother_command(folder.path(), Path::new("elsewhere/fence"));
    command.env("ALPHEUS_LOG", "info").env("ALPHEUS_DRAIN_SECONDS", "1");
    let mut smoother = Process::start(&mut command);
    let addresses = smoother.wait_for_prefix("serving at ");
    let public = addresses.split(' ').next().unwrap();
    // The server asks for the body once it reads one, and gets a part of it.
    let mut client = Command::new("bash");
    client.args([
        "-c",
        "(printf half; cat) | curl --insecure --verbose --expect100-timeout 600 \
        --header 'Expect: 100-continue' --upload-file - --request POST $0/v1/deposits",
    ]);
    client.arg(public).stdin(Stdio::piped());
    client.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let said = BufReader::new(client.stderr.take().unwrap());
    let mut said = said.lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("100 Continue")), "it is not served");
    let before = smoother.log();
    assert_eq!(ended(smoother), before);
    drop(client.stdin.take());
    client.wait().unwrap();
}

fn ended(mut process: Process) -> String {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    process.log()
}

/// With its fence beside the state or on another disk, so to speak, an older copy of the state is
/// seen; a copy of both is not.
#[test]
fn a_smoother_with_an_older_copy_of_its_state_sits_out() {
    const OLDER: &str = "the state is older than its fence: this smoother sits out two days";
    for (fence, seen) in [("elsewhere/fence", true), (BESIDE, true), ("smoother/fence", false)] {
        let folder = tempfile::tempdir().unwrap();
        keys(folder.path());
        let at = |name: &str| -> PathBuf { folder.path().join(name) };
        fs::DirBuilder::new().mode(0o700).create(at("elsewhere")).unwrap();
        let start = || ended(smoother(folder.path(), Path::new(fence)));
        assert!(!start().contains(OLDER));
        assert!(at(fence).exists(), "{fence}");
        copy_folder(&at("smoother"), &at("backup"));
        assert!(!start().contains(OLDER));
        fs::remove_dir_all(at("smoother")).unwrap();
        copy_folder(&at("backup"), &at("smoother"));
        assert_eq!(start().contains(OLDER), seen, "{fence}");
        // What it has noted it remembers.
        assert!(!start().contains(OLDER));
    }
}
