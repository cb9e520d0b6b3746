//! `alpheus up` as a process, with all that it starts; `alpheus sql` at the service that it runs.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::until;
use crate::common::recording::{BASE, Recording};
use crate::common::terminal::{END, Terminal};
use crate::common::{Process, alpheus};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let running = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let after = stat.rsplit(") ").next().unwrap_or_default();
        after.split(' ').nth(1).and_then(|parent| parent.parse().ok()) == Some(parent)
    };
    running.filter_map(number).filter(is_child).collect()
}

fn runs(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Runs `alpheus sql` over some lines: exit code, output and log.
fn sql(at: (&str, &Path), more: &[&str], lines: &str) -> (Option<i32>, String, String) {
    let analyst = at.1.join("pki/analyst").display().to_string();
    let mut command = alpheus(["sql", "--server", at.0, "--identity", &analyst]);
    let mut child = command
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn one_command_runs_a_deployment_and_its_end_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("run");
    let mut up = Process::start(&mut alpheus(["up", "--state", state.to_str().unwrap()]));
    let server = up.wait_for_prefix("service:    ");
    let server = server.split(',').next().unwrap().to_owned();
    up.wait_for("row over six owners", |line| line.contains("ok          6 owners").then_some(()));
    // The service, three controllers, six devices, two consoles.
    let all = children(up.id());
    assert_eq!(all.len(), 12, "{}", up.log());

    let at = (server.as_str(), state.as_path());
    let lines = "SHOW SCHEMAS;\n\\d Household\n\\d\nSHOW\n QUERIES;\n\\r Street\nhelp\n\\f Street 1\nquit;\nSHOW";
    let (code, said, log) = sql(at, &[], lines);
    assert_eq!(code, Some(0), "{log}");
    for expected in ["Household", "power", "Street", "window_start", "sum_power", "list schemas"] {
        assert!(said.contains(expected), "no {expected}:\n{said}");
    }
    let (code, said, _) = sql(at, &["--format", "csv"], "\\f Street 1\n");
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    let asked = "EXPLAIN CREATE STREAM Fast AS SELECT SUM(power) WINDOW TUMBLING (SIZE 1 SECONDS)\n\
                 FROM Household BETWEEN 2 AND 10;\nSHOW SCHEMAS;";
    let (code, said, log) = sql(at, &[], asked);
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("more: alpheus errors policy-released-once"), "{log}");
    assert!(!log.trim_end().ends_with(')'), "what follows a query is pasted with it: {log}");
    assert!(said.is_empty(), "it goes on after a failure: {said}");
    let (code, said, log) = sql(at, &[], &asked.replace("1 SECONDS", "10 SECONDS"));
    assert_eq!(code, Some(0), "{log}");
    let first = "This query could not be started now (policy-released-once): 6 of 6 streams cannot take part: \
                 their `power` is already released by the running query `Street`";
    assert!(
        said.starts_with(first) && said.contains("`DROP STREAM Street`.\n\nFast from "),
        "{said}"
    );
    assert!(said.contains("revealed in each window of 10 SECONDS:\n    sum of power\n"), "{said}");
    prompt(at);
    history(at, folder.path());

    // It is killed, so that it can end nothing itself.
    up.kill();
    until("end of all processes", || all.iter().all(|id| !runs(*id)).then_some(()));
}

/// At a terminal: completion, a failure after which the prompt is still there, and the end.
fn prompt((server, state): (&str, &Path)) {
    let line = format!(
        "{} sql --no-history --server {server} --identity {}",
        env!("CARGO_BIN_EXE_alpheus"),
        state.join("pki/analyst").display()
    );
    let Some(mut terminal) = Terminal::start(&line) else { return };
    // The last line is not ended, and then the input is.
    for (after, prompt, keys) in [
        ("", "alpheus> ", "SELECT;\r"),
        ("query-syntax", "alpheus> ", "\\D Household\r"),
        ("did you mean `\\d NAME`?", "alpheus> ", "DESCRIBE Househ\t;\r"),
        ("TOPK(power", "alpheus> ", "SHOW SCHEMAS\r"),
        ("SHOW SCHEMAS", "      -> ", END),
    ] {
        terminal.types(after, prompt, keys);
    }
    let (status, said) = terminal.ends();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("has no `;`, so it was not sent"), "{said}");
    assert!(said.contains(" alpheus errors query-syntax"), "{said}");
    assert!(said.contains("\x1b[1m\x1b[31merror:"), "in colour at a terminal: {said:?}");
}

/// What was asked in one session comes back with the arrow in the next, and nobody else can read it.
fn history((server, state): (&str, &Path), home: &Path) {
    let line = format!(
        "XDG_STATE_HOME={} {} sql --server {server} --identity {}",
        home.display(),
        env!("CARGO_BIN_EXE_alpheus"),
        state.join("pki/analyst").display()
    );
    const UP: &str = "\x1b[A";
    for keys in ["SHOW SCHEMAS;\r".to_owned(), format!("{UP}\r")] {
        let Some(mut terminal) = Terminal::start(&line) else { return };
        terminal.types("", "alpheus> ", &keys);
        terminal.types("Household", "alpheus> ", END);
        let (status, said) = terminal.ends();
        assert!(status.success(), "{said}");
    }
    let kept = fs::metadata(home.join("alpheus/sql-history")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o077, 0);
}

/// A folder with the files of an example, and a generated recording of so many homes and a minute.
fn street(streams: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["schema.yaml", "source.yaml", "policies.yaml", "profile.yaml"] {
        fs::copy(root.join("examples/household").join(name), path(name)).unwrap();
    }
    fs::copy(root.join("examples/household/street.sql"), path("query.sql")).unwrap();
    let (schema, profile, output) = (path("schema.yaml"), path("profile.yaml"), path("meters.csv"));
    let generated = alpheus(["generate", "--schema", &schema, "--profile", &profile])
        .args(["--streams", streams, "--minutes", "1", "--output", &output])
        .status();
    assert!(generated.unwrap().success());
    folder
}

/// What is said of windows over so many owners: their sums.
fn sums(said: &str, owners: u32) -> Vec<u64> {
    let rows = said.lines().filter(|line| line.contains(&format!("ok         {owners:>2} owners")));
    let sum = |line: &str| {
        let rest = line.split("sum_power ").nth(1)?;
        rest.split(' ').next()?.parse().ok()
    };
    rows.filter_map(sum).collect()
}

/// A folder with a recording, played to its end: every window is released, as a replay releases it.
#[test]
fn a_folder_with_a_recording_is_played_to_its_end() {
    let folder = street("5");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let dir = folder.path().to_str().unwrap();
    // Much faster than devices can send: the clock waits for them.
    let mut up = Process::start(&mut alpheus(["up", dir, "--speed", "1000000"]));
    assert!(up.wait().success(), "{}", up.log());
    let said = up.log();
    assert!(said.contains("5 of 5 owners of the recording take part"), "{said}");
    assert!(said.contains("6 windows opened, 0 did not"), "{said}");
    assert!(!said.contains("missing"), "{said}");
    let query =
        "SELECT SUM(power) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Household WITH (error = 5 %)";
    let replayed = alpheus(["replay", "--schema", &path("schema.yaml")])
        .args(["--source", &path("source.yaml"), "--policies", &path("policies.yaml")])
        .args(["--input", &path("meters.csv"), "--query", query, "--output", "-"])
        .output()
        .unwrap();
    let rows = String::from_utf8(replayed.stdout).unwrap();
    let exact = "sum_power: exact, since no policy asks for noise";
    assert!(String::from_utf8_lossy(&replayed.stderr).contains(exact));
    let sum = |row: &str| row.split(',').nth(2).unwrap().parse::<u64>().unwrap();
    let expected: Vec<u64> = rows.lines().skip(1).map(sum).collect();
    assert_eq!((expected.len(), sums(&said, 5)), (6, expected), "{said}");

    let mut few = Process::start(&mut alpheus(["up", dir, "--owners", "1", "--once"]));
    assert_eq!(few.wait().code(), Some(4));
    assert!(few.log().contains("more: alpheus errors population-short"), "{}", few.log());
}

/// Of several controllers, some may collude, so their owners do not count: with few owners, one
/// controller answers what three cannot.
#[test]
fn as_many_controllers_are_started_as_the_query_can_have() {
    let folder = street("14");
    let dir = folder.path().to_str().unwrap();
    let query = "SELECT SUM(power) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Household \
                 BETWEEN 10 AND 100";
    let all = ["up", dir, "--once", "--speed", "1000", "--query", query];
    let mut up = Process::start(&mut alpheus(all));
    assert!(up.wait().success(), "{}", up.log());
    let said = up.log();
    assert!(said.contains("and 1 controller: one guards all 14 owners: with 3,"), "{said}");
    assert_eq!(sums(&said, 14).len(), 6, "{said}");
    let mut three = Process::start(alpheus(all).args(["--controllers", "3"]));
    assert_eq!(three.wait().code(), Some(3), "{}", three.log());
    let said = three.log();
    assert!(said.contains("help: the query is allowed with one controller (--controllers 1)"));
    assert!(said.contains("10 owners with data are required"), "{said}");
}

const CROWD_SCHEMA: &str = "
name: Meters
tick: 10s
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 100, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [2], window: 10s }
";

/// A service and two of three controllers see all but the third's two owners. If one of these lacks
/// in each window, three controllers open none of them, and one opens all.
#[test]
fn one_controller_is_started_where_three_would_open_too_few_windows() {
    let folder = tempfile::tempdir().unwrap();
    let meters = |window: u64| (0..6).filter(move |meter| window % 6 != *meter);
    let row = |window: u64| {
        let row = move |meter| format!("{},m{meter},{}\n", BASE + 10 * window + meter, 5 * meter);
        meters(window).map(row).collect::<String>()
    };
    let data: String = "time,meter,reading\n".to_owned() + &(0..4).map(row).collect::<String>();
    let source =
        "schema: Meters\ntime: { column: time }\nstream: meter\nattributes: { reading: reading }\n";
    let policies = "schema: Meters\nservice: analyst\ndefault: { '*': crowd }\n";
    let query = "CREATE STREAM Crowd AS SELECT SUM(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters BETWEEN 2 AND 9";
    for (name, text) in [
        ("schema.yaml", CROWD_SCHEMA),
        ("source.yaml", source),
        ("policies.yaml", policies),
        ("query.sql", query),
        ("data.csv", &data),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let dir = folder.path().to_str().unwrap();
    let mut up = Process::start(&mut alpheus(["up", dir, "--once", "--speed", "1000"]));
    assert!(up.wait().success(), "{}", up.log());
    let said = up.log();
    assert!(said.contains("and 1 controller: one guards all 6 owners: with 3,"), "{said}");
    assert!(said.contains("4 windows opened, 0 did not"), "{said}");
    // Who asks for three learns what that costs, before and after.
    let mut three = Process::start(&mut alpheus([
        "up",
        dir,
        "--once",
        "--speed",
        "1000",
        "--controllers",
        "3",
    ]));
    assert_eq!(three.wait().code(), Some(1), "{}", three.log());
    let said = three.log();
    let hint =
        "help: with 3 controllers, 0 of 4 windows can open; with one (--controllers 1), 4 of 4.";
    assert!(said.matches(hint).count() >= 2, "{said}");
}

/// The owner of a device revokes while the recording is played: nobody waits for the device, which
/// learns it and ends, and the others' windows open.
#[test]
fn nobody_waits_for_the_device_of_an_owner_who_revokes() {
    let folder = street("5");
    let (dir, state) = (folder.path().to_str().unwrap(), folder.path().join("run"));
    let all = ["up", dir, "--once", "--speed", "3", "--controllers", "1", "--state"];
    let mut up = Process::start(alpheus(all).arg(&state));
    let revoke = up.wait_for("command to revoke", |line| {
        line.trim().starts_with("alpheus owner revoke").then(|| line.trim().to_owned())
    });
    let row = |line: &str| line.contains("ok          5 owners").then_some(());
    up.wait_for("row with all", row);
    let words: Vec<&str> = revoke.split(' ').skip(1).collect();
    let revoked = alpheus(words).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    assert!(up.wait().success(), "{}", up.log());
    let said = up.log();
    assert!(said.contains("the owner has withdrawn the stream for good"), "{said}");
    assert!(!sums(&said, 4).is_empty(), "{said}");
    assert!(!said.contains("has waited too long"), "{said}");
}

/// Ctrl-C reaches the command alone here, so that it has to end what it started.
#[test]
fn ctrl_c_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("run");
    let mut up = Process::start(&mut alpheus(["up", "--state", state.to_str().unwrap()]));
    up.wait_for_prefix("service:    ");
    let all = children(up.id());
    assert!(!all.is_empty());
    let sent = std::process::Command::new("kill").args(["-INT", &up.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let ended = up.wait();
    assert_eq!(ended.code(), Some(0), "{}", up.log());
    until("end of all processes", || all.iter().all(|id| !runs(*id)).then_some(()));
}

/// The reader of the output ends, as `| head` does: then all ends.
#[test]
fn it_ends_when_nobody_reads_its_output_any_more() {
    let folder = noisy(2000);
    let dir = folder.path().to_str().unwrap();
    let mut up = alpheus(["up", dir, "--speed", "100", "--stay"]);
    let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("service:    "), "{first}");
    let ended = up.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{log}");
    assert!(!log.contains("the recording has ended") && !log.contains("panicked"), "{log}");
}

/// Homes that are never on together: no window has three of them.
#[test]
fn no_open_window_is_a_failure_with_its_reason_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    Recording::made(1, 1).write(folder.path());
    let rows = "time,meter,reading\n1700000000,a,5\n1700000010,b,6\n1700000020,c,7\n";
    fs::write(folder.path().join("data.csv"), rows).unwrap();
    let query = "SELECT SUM(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters BETWEEN 3 AND 9";
    let dir = folder.path().to_str().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut up = Process::start(&mut alpheus(["up", dir, "--once", "--query", query]));
    assert_eq!(up.wait().code(), Some(1), "{}", up.log());
    let replayed = alpheus(["replay", "--schema", &path("schema.yaml")])
        .args(["--source", &path("source.yaml"), "--policies", &path("policies.yaml")])
        .args(["--input", &path("data.csv"), "--query", query, "--output", &path("out.csv")])
        .output()
        .unwrap();
    assert_eq!(replayed.status.code(), Some(1));
    let replayed = String::from_utf8(replayed.stderr).unwrap();
    assert!(replayed.contains("query_") && replayed.contains("3 of 3 windows have no result"));
    let rows = fs::read_to_string(path("out.csv")).unwrap();
    assert_eq!(rows.matches(",,0,0,0,population below the minimum 3\n").count(), 3, "{rows}");
    for said in [up.log(), replayed] {
        // How few have data is nowhere.
        assert!(said.contains("population below the minimum 3"), "{said}");
        assert!(!said.contains("population 1") && !said.contains("one owner"), "{said}");
        assert!(said.contains("no window opened"), "{said}");
        let remedy = "with `SIZE 1 MINUTE`, 3 owners or more have data in 1 of 1 windows";
        assert!(said.contains(remedy), "{said}");
    }
}

const NOISY_SCHEMA: &str = "
name: Meters
tick: 10s
capacity: { population: 100, eventsPerSecond: 0.1, window: 1min }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 100, aggregations: [mean] }
  - { name: load, type: integer, min: 0, max: 100, aggregations: [mean] }
streamPolicyOptions:
  - { name: noisy, option: dp-aggregate, clients: [3], window: 10s, alpha: 0, budget: { perWindow: 5, total: 1000, unit: person-per-window } }
";

/// A folder with a recording of years ago: five meters, a reading and a load each in so many windows.
pub(crate) fn noisy(windows: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..windows).flat_map(|window| (0..5).map(move |meter| (window, meter)));
    let row = |(window, meter)| {
        format!("{},m{meter},{},{}\n", BASE + 10 * window + meter, 40 + 5 * meter, 60 - meter)
    };
    let data: String =
        std::iter::once("time,meter,reading,load\n".to_owned()).chain(rows.map(row)).collect();
    for (name, text) in [
        ("schema.yaml", NOISY_SCHEMA),
        (
            "source.yaml",
            "schema: Meters\ntime: { column: time }\nstream: meter\nattributes: { reading: reading, load: load }\n",
        ),
        ("policies.yaml", "schema: Meters\nservice: analyst\ndefault: { '*': noisy }\n"),
        (
            "query.sql",
            "CREATE STREAM Noisy AS SELECT MEAN(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters WITH (error = '50 %')",
        ),
        ("data.csv", &data),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Controllers accept queries with noise at the time of the recording, the first as well as one that
/// is asked while it is played.
#[test]
fn queries_with_noise_have_results_over_a_recording_of_the_past() {
    let folder = noisy(60);
    let (dir, state) = (folder.path().to_str().unwrap(), folder.path().join("run"));
    let all = ["up", dir, "--speed", "10", "--controllers", "1", "--state"];
    let mut up = Process::start(alpheus(all).arg(&state));
    let server = up.wait_for_prefix("service:    ");
    let server = server.split(',').next().unwrap().to_owned();
    let row = |line: &str| line.contains("ok          5 owners  mean_reading ").then_some(());
    up.wait_for("row with noise", row);
    let lines = "CREATE STREAM Later AS SELECT MEAN(load) WINDOW TUMBLING (SIZE 10 SECONDS) \
                 FROM Meters WITHIN 30 OF 95 %;\n\\f Later 2\n";
    let (code, said, log) = sql((server.as_str(), &state), &["--format", "csv"], lines);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(said.matches(",5,0,0,ok,").count(), 2, "{said}");
    assert!(!up.log().contains("did not open"), "{}", up.log());
    // What a window costs stands beside the query, for programs without a key.
    let analyst = state.join("pki/analyst");
    let read =
        ["query", "--server", &server, "--identity", analyst.to_str().unwrap(), "--released"];
    let said = String::from_utf8(alpheus(read).output().unwrap().stdout).unwrap();
    for attribute in ["reading", "load"] {
        let charge = format!("\"charges\":[{{\"attribute\":\"{attribute}\",\"epsilon\":\"");
        assert!(said.contains(&charge), "{said}");
    }
    up.kill();
}
