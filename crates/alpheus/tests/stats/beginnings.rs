//! A registrar and a client that are killed between their first commit and the fence that shows it.

use crate::common::{Process, alpheus, free_address, run_script};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// A deployment's keys, with nobody there but who is started; and where the registrar is to be.
fn keys(folder: &Path) -> SocketAddr {
    let (at, url) = (free_address(), || format!("https://{}", free_address()));
    let (registrar, aggregator) = (format!("https://{at}"), url());
    let smoothers = (0..4).map(|_| format!(" --smoother {},{}", url(), url()));
    let smoothers: String = smoothers.collect();
    run_script(
        folder,
        60,
        &format!(
            "umask 077
            alpheus ca init pki
            alpheus ca issue pki --role registrar --name registrar
            alpheus stats init roads --crowd 2 --wasteful 0 --authority pki/ca.pem --registrar {registrar} --aggregator {aggregator}{smoothers}
            alpheus pass account ada --accounts accounts.txt > ada.secret
            cat > road.yaml <<END
place: speed/road
attribute: speed
interval: {{ lowest: 0, highest: 100 }}
every: 1hr
during: 2
quota: 4
accounts: 2
slots: 9
expected: 8
clients: 3
release: full
after: {{ turn: 10min, turns: 2, settling: 1min, patience: 1hr }}
END
            echo 61 > ada.txt"
        ),
    );
    at
}

/// What leaves its state as a kill between the first commit and the fence does: it has
/// committed once, and the fence is not there.
fn killed_at_first_commit(folder: &Path, state: &str, start: impl Fn() -> Command) {
    let mut first = Process::start(start().current_dir(folder));
    let fence = folder.join(state).join("fence");
    while !fence.exists() {
        assert!(!first.has_ended(), "{}", first.log());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    first.kill();
    fs::remove_file(fence).unwrap();
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
