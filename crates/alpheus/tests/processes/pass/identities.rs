//! One account gets one pass, however its name is spelled: with a command that knows the accounts,
//! and with an OpenID Connect provider, which runs as a process of its own.

use crate::common::{Process, free_address, write_secret};
use crate::pass::issuance::fetch;
use crate::pass::town::{Town, key, pass};
use alpheus_test_support::skip::{has_program, skip};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

/// The directory of this command does not care about case, spaces or a domain.
const DIRECTORY: &str = r#"
read -r name; read -r secret
name=$(printf '%s' "$name" | tr A-Z a-z); name=${name%@example.org}
case "$name $secret" in 'ada open sesame') echo u-1815;; *) exit 1;; esac
"#;

fn issuer(town: &Town, more: &[&str]) -> Process {
    let at = town.issuer_at.to_string();
    let args = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
    let rest = ["--state", "run/issuer", "--api", &at];
    let mut process = Process::start(&mut town.command(&[&args[..], &rest, more].concat()));
    process.wait_for_prefix("serving at ");
    process
}

#[test]
fn four_spellings_of_an_account_get_one_pass() {
    let town = Town::new("60", 1, &[]);
    let _issuer = issuer(&town, &["--accounts-command", DIRECTORY, "--new-state"]);
    let mut passes = 0;
    for (file, spelled) in ["ada", "Ada", "ADA", "ada@example.org"].into_iter().enumerate() {
        write_secret(&town.path(&format!("{spelled}.secret")), "open sesame\n");
        let file = format!("file-{file}");
        town.join(&file, spelled);
        let (code, said) = fetch(&town, &file);
        let refused = code == Some(3) && said.contains("already-issued");
        passes += usize::from(said.contains("fetched"));
        assert!(refused || code == Some(0), "{spelled}: {said}");
    }
    assert_eq!(passes, 1);
}

#[test]
fn a_guesser_is_slowed_down_before_the_command_is_asked() {
    if !has_program("curl") {
        return skip("curl is missing");
    }
    let town = Town::new("60", 1, &[]);
    let counts = format!("echo >> asked; {DIRECTORY}");
    let limit = ["--requests-per-minute", "30", "--new-state"];
    let _issuer = issuer(&town, &[&["--accounts-command", &counts], &limit[..]].concat());
    let refused = || fs::read_to_string(town.path("answer")).unwrap();
    // Upper and lower case are one name, which has ten requests in a minute.
    let name = |n: usize| if n.is_multiple_of(2) { "ada:wrong" } else { "ADA:wrong" };
    let let_in = (0..100).take_while(|n| post(&town, name(*n), None) == 401).count();
    assert!(let_in >= 10 && refused().contains("for this account"), "{let_in}");
    let asked = || fs::read_to_string(town.path("asked")).unwrap().len();
    assert_eq!(asked(), let_in, "the command is not asked about the others");
    // An address has thirty, under whatever names.
    let more = (0..100).take_while(|n| post(&town, &format!("name-{n}:"), None) == 401).count();
    assert!(let_in + 1 + more >= 30 && refused().contains("from this address"), "{more}");
    assert_eq!(asked(), let_in + more);
}

/// A request that is no request for a pass; the status. An account that is let in gets 400.
fn post(town: &Town, user: &str, token: Option<&str>) -> u16 {
    let url = format!("https://{}/v1/pass", town.issuer_at);
    let bearer = format!("Authorization: Bearer {}", token.unwrap_or_default());
    let who = if token.is_some() { ["-H", &bearer] } else { ["-u", user] };
    let args = ["-sk", "-o", "answer", "-w", "%{http_code}", "--data-binary", "x"];
    let mut curl = Command::new("curl");
    let output = curl.current_dir(town.path("")).args(args).args(who).arg(url).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

struct Provider {
    at: SocketAddr,
    _process: Process,
}

impl Provider {
    fn start(town: &Town) -> Self {
        town.done(&["ca", "issue", "pki", "--role", "gateway", "--name", "provider"]);
        let at = free_address();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/pass/provider.py");
        let mut python = Command::new("python3");
        python.current_dir(town.path("")).args([script, ".", &at.port().to_string()]);
        let mut process =
            Process::start(python.args(["pki/provider/tls.pem", "pki/provider/tls.key"]));
        process.wait_for_prefix("serving");
        Self { at, _process: process }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/realm", self.at.port())
    }

    /// A command that prints an ID token of somebody.
    fn command(&self, name: &str, password: &str, forge: &str) -> String {
        let post = "curl -s --cacert pki/ca.pem -d grant_type=password";
        let who = format!("-d username={name} -d 'password={password}' -d forge={forge}");
        let take = r#"sed -n 's/.*"id_token": "\([^"]*\)".*/\1/p'"#;
        format!("{post} {who} {}/token | {take}", self.url())
    }

    fn token(&self, town: &Town, forge: &str) -> String {
        let command = self.command("ada", "open sesame", forge);
        let mut shell = Command::new("sh");
        let output = shell.current_dir(town.path("")).args(["-c", &command]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn rotate(&self, town: &Town) {
        let url = format!("https://localhost:{}/rotate", self.at.port());
        let mut curl = Command::new("curl");
        let curl =
            curl.current_dir(town.path("")).args(["-sf", "--cacert", "pki/ca.pem", "-d", ""]);
        assert!(curl.arg(url).status().unwrap().success());
    }
}

fn join(town: &Town, file: &str, command: &str) {
    write_secret(&town.path(&key(file)), "a key file of some length");
    let join = ["pass", "client", "join", "--card", "deployment/card.json"];
    let files = ["--pass", &pass(file), "--key-file", &key(file)];
    town.done(&[&join[..], &["--id-token-command", command], &files].concat());
}

#[test]
fn a_provider_of_accounts_names_them_by_signed_tokens() {
    if !["curl", "openssl", "python3"].into_iter().all(has_program) {
        return skip("curl, openssl or python3 is missing");
    }
    let town = Town::new("60", 1, &[]);
    let provider = Provider::start(&town);
    let source = ["--oidc-provider", &provider.url(), "--oidc-client", "alpheus"];
    let more = ["--oidc-authority", "pki/ca.pem", "--requests-per-minute", "600", "--new-state"];
    let _issuer = issuer(&town, &[&source[..], &more].concat());
    // Two spellings of one person, who asks with two files.
    join(&town, "ada", &provider.command("ada", "open sesame", ""));
    join(&town, "again", &provider.command("ADA", "open sesame", ""));
    join(&town, "bob", &provider.command("bob", "hunter2", ""));
    let (code, said) = fetch(&town, "ada");
    assert!(code == Some(0) && said.matches("fetched").count() == 2, "{said}");
    let (code, said) = fetch(&town, "again");
    assert!(code == Some(3) && said.contains("already-issued"), "{said}");
    assert_eq!(fetch(&town, "bob").0, Some(0));
    // What the provider did not sign for this issuer, now.
    let shown = |forge: &str| post(&town, "", Some(&provider.token(&town, forge)));
    assert_eq!(shown(""), 400, "let in, with a body that is no request");
    for forge in ["key", "expired", "audience", "audiences", "issuer", "none", "hmac", "subject"] {
        assert_eq!(shown(forge), 401, "{forge}");
    }
    assert_eq!(post(&town, "ada:open sesame", None), 401, "a secret is not asked for");
    // A new key is fetched when it is first seen.
    provider.rotate(&town);
    assert_eq!(shown(""), 400);
    assert_eq!(shown("key"), 401);
}
