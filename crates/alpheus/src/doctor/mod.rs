//! `alpheus doctor`: what is wrong with a process, a deployment, or the way to it, and what fixes it.
//!
//! - [`local_facts`]: facts from the caller's own files,
//! - [`remote_facts`]: facts from processes that the caller can ask.
//!
//! `alpheus-doctor` interprets the facts, from them alone.

mod local_facts;
mod remote_facts;

use alpheus_doctor::{Facts, Finding, diagnose};
use alpheus_input::tables::print_json;
use alpheus_node::BUILD;
use alpheus_node::failure::{Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::settings::{Format, Settings, path_flag};
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus doctor --identity pki/analyst --server https://localhost:7400 \\
      --controller https://localhost:7401 --schema examples/fitness/schema.yaml
  alpheus doctor --identity pki/watch --as operator --server https://localhost:7400 --format json
  alpheus doctor --config /etc/alpheus/server.toml --state /var/lib/alpheus-server
  alpheus doctor --identity pki/analyst --server https://localhost:7400 \\
      --query 'CREATE STREAM Sums AS SELECT SUM(power) WINDOW TUMBLING (SIZE 1 HOUR) FROM House'

It reports what this identity is allowed to see. For each fault it names the command that fixes it.
The exit code is 1 if it found a fault, otherwise 0. Operators and consumers see most. It changes
nothing.";

/// Arguments of `alpheus doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The identity folder of the party that asks
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The role in which its holder means to act
    #[arg(long = "as", value_enum, value_name = "ROLE")]
    acts_as: Option<Role>,
    /// The service's URL
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The URL of a host of controllers; may be repeated
    #[arg(long, value_name = "URL")]
    controller: Vec<String>,
    /// The schema that is used here, to compare with the service's
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// A folder that a process of this machine writes to
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The card of a pass, of statistics or of a board
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The fingerprint that the card should have, for a card of a pass
    #[arg(long, value_name = "HEX", requires = "card")]
    card_fingerprint: Option<String>,
    /// For a consumer: a query to explain; it is not started
    #[arg(long, value_name = "SQL", requires = "server")]
    query: Option<String>,
    /// How many seconds back to look at the service's counts
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    within: u32,
}

/// Something is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0} found")]
struct FoundError(String);

/// Runs the command.
///
/// # Errors
/// Something is wrong, which is printed first; or a file or an address cannot be used.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let found = diagnose(&collect(args, globals)?);
    let mut out = io::stdout().lock();
    let _ = printed(print(&found, globals.format.unwrap_or_default(), &mut out))?;
    match found.len() {
        0 => Ok(()),
        1 => Err(Failure::new(Category::Check, FoundError("a fault was".into()))),
        many => Err(Failure::new(Category::Check, FoundError(format!("{many} faults were")))),
    }
}

fn collect(args: &Args, globals: &Globals) -> Result<Facts, Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("schema", path_flag(args.schema.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("server", args.server.clone()),
    ])?;
    let mut facts = Facts { build: BUILD.into(), ..Facts::default() };
    facts.acts_as = args.acts_as.map(|role| role.as_str().to_owned());
    facts.folders = settings.state.iter().filter_map(|path| local_facts::folder(path)).collect();
    facts.schema = local_facts::schema(&settings)?;
    let folder = settings.identity.as_ref();
    let folder = folder.map(|path| IdentityFolder::open_one_of(path, (Role::Operator, &Role::ALL)));
    let folder = folder.transpose()?;
    if let (Some(path), Some(folder)) = (&settings.identity, &folder) {
        facts.identity = Some(local_facts::identity(path, folder));
    }
    if let Some(card) = &args.card {
        facts.card = Some(local_facts::card(card, args.card_fingerprint.as_deref()));
    }
    let may_connect = facts.identity.as_ref().is_some_and(|own| own.other_keys.is_empty());
    if let Some(folder) = folder.as_ref().filter(|_| may_connect) {
        let caller = remote_facts::Caller { folder, within: args.within };
        if let Some(server) = &settings.server {
            facts.service = Some(caller.service(server)?);
        }
        let hosts = args.controller.iter().map(|address| caller.controller(address));
        facts.controllers = hosts.collect::<Result<_, _>>()?;
        if let (Some(sql), Some(server)) = (&args.query, &settings.server) {
            facts.refusal = caller.refusal(server, sql);
        }
    } else if folder.is_none() && (settings.server.is_some() || !args.controller.is_empty()) {
        Settings::needed(&settings.identity, "identity")?;
    }
    Ok(facts)
}

fn print(found: &[Finding], format: Format, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => return print_json(&found, out),
        Format::Csv => {
            let what = "findings are not a table; use --format json or table";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        Format::Table => {}
    }
    if found.is_empty() {
        writeln!(out, "nothing is wrong, as far as this identity may see")?;
    }
    for Finding { fault, cause, fix } in found {
        writeln!(out, "{fault}: {}\n  cause: {cause}\n  fix:   {fix}", fault.what())?;
    }
    Ok(())
}
