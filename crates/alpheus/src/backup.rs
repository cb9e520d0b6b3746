//! `alpheus backup`: what a process must not lose, taken while it runs, in one locked file.

use alpheus_crypto::vault::Hardness;
use alpheus_node::BUILD;
use alpheus_node::backup::archive::{About, Item, Origin, Reader, Writer};
use alpheus_node::backup::source;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::fence;
use alpheus_node::files::read_key_file;
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus backup --identity pki/service --state run/service --key-file backup.key \\
      --to service.backup
  alpheus backup --identity pki/first --state run/first --key-file backup.key \\
      --to first.backup
  alpheus backup --slots run/first/slots --key-file backup.key --to first-slots.backup

It works while the process runs: the store is copied as it is at one moment. Run it as the user of
the process. A backup contains the fence, which records how far the ledgers had come, but no slots,
so that erased data stays erased. Keep one backup of a controller's slots apart, taken after that of
its state, and replace it after each erasure. Copy state in a Kafka cluster with the cluster's own
tools. Owners use `alpheus owner backup`.";

const VERIFY: &str = "\
Examples:
  alpheus backup verify first.backup --key-file backup.key";

/// Arguments of `alpheus backup`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<Command>,
    #[command(flatten)]
    taken: Option<TakeArgs>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check that a backup is whole, unchanged, and opens
    #[command(after_help = VERIFY)]
    Verify(Verify),
}

#[derive(Debug, clap::Args)]
struct TakeArgs {
    /// The identity folder of the process, with its keys
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The state folder of the process
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The fence, if it is neither in the state folder nor next to it
    #[arg(long, value_name = "FILE", requires = "state")]
    fence: Option<PathBuf>,
    /// Back up a slot file alone; restoring it brings back what was erased since
    #[arg(long, value_name = "FILE", conflicts_with_all = ["identity", "state"])]
    slots: Option<PathBuf>,
    /// The file with the key or passphrase that opens the backup; keep it apart from the backup
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Where to write the backup
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file with the key or passphrase that opens it
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
}

/// There is nothing to back up.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("name what to back up: --identity, --state, or --slots")]
struct NothingError;

/// Runs the command.
///
/// # Errors
/// A folder or the key cannot be used, or a backup is not whole.
pub fn run(args: &Args, _: &Globals) -> Result<(), Failure> {
    match (&args.what, &args.taken) {
        (Some(Command::Verify(verify)), _) => {
            let (counted, _) = count(&verify.file, &read_key_file(&verify.key_file)?)?;
            println!("{counted}");
            Ok(())
        }
        (None, Some(taken)) => take(taken),
        (None, None) => Err(Failure::new(Category::Usage, NothingError)),
    }
}

fn take(taken: &TakeArgs) -> Result<(), Failure> {
    if taken.identity.is_none() && taken.state.is_none() && taken.slots.is_none() {
        return Err(Failure::new(Category::Usage, NothingError));
    }
    let secret = read_key_file(&taken.key_file)?;
    let mut options = OpenOptions::new();
    let file =
        options.write(true).create_new(true).mode(0o600).open(&taken.to).blame_io(&taken.to)?;
    let written = write(taken, &secret, file);
    // Half a backup is none.
    let written = written.and_then(|()| count(&taken.to, &secret));
    let (counted, role) = written.inspect_err(|_| drop(std::fs::remove_file(&taken.to)))?;
    println!("{counted}");
    for line in role.as_deref().map_or(&[][..], lacking) {
        println!("not in it, unless it is in a folder that was named: {line}");
    }
    Ok(())
}

/// What a process of this role also needs, and a backup has only where it lies in one of its folders:
/// settings name it.
pub(crate) fn lacking(role: &str) -> &'static [&'static str] {
    match role {
        "controller" => &[
            "the key file (`key-file`). Nothing else opens the keys of the host's streams, so without it a \
             restore is of no use: keep a copy apart from the backup",
            "slots (`slots`): back them up alone, with `--slots`",
        ],
        "producer" => &[
            "the device's file (`--device`). Without it the stream ends: `alpheus owner backup` keeps it",
        ],
        "board" => &[
            "the signing key (`board.key`). Without it nobody else recognises the server, so a \
             restore is of no use: keep a copy apart from the backup",
            "the card and the list of members (`board.card`, `board.members`)",
        ],
        "issuer" | "verifier" => &[
            "the deployment's folder with the issuer's key (`pass.deployment`). Without it no pass is issued \
             or accepted, so a restore is of no use: keep a copy apart from the backup",
            "accounts, if they are a file (`pass.accounts`)",
        ],
        "registrar" | "smoother" | "aggregator" => &[
            "the keys (`stats.keys`). Without them the party is a different one, so a restore is of no use: keep a \
             copy apart from the backup",
            "the card, and accounts if they are a file (`stats.card`, `stats.accounts`)",
        ],
        _ => &["the settings"],
    }
}

fn write(taken: &TakeArgs, secret: &[u8], file: File) -> Result<(), Failure> {
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::begin(out, secret, Hardness::of(secret), entropy::rng()?)?;
    let folder = taken.identity.as_ref();
    let folder = folder.map(|path| IdentityFolder::open_one_of(path, (Role::Server, &Role::ALL)));
    let whose = folder.transpose()?.map(|folder| folder.name().clone());
    writer.push(&Item::About(About {
        role: whose.as_ref().map(|name| name.role.as_str().to_owned()),
        name: whose.map(|name| name.name),
        build: BUILD.into(),
        created: clock::now().0,
    }))?;
    if let Some(identity) = &taken.identity {
        source::identity_files(identity, |item| writer.push(&item))?;
    }
    if let Some(state) = &taken.state {
        if source::is_store(state) {
            source::export(state, |item| writer.push(&item))?;
        }
        source::state_files(state, |item| writer.push(&item))?;
        // After the store: it is at least as far.
        let fence = taken.fence.clone().unwrap_or_else(|| fence::of_state(state));
        if fence.exists() {
            writer.push(&source::file(&fence, Origin::Fence)?)?;
        }
    }
    if let Some(slots) = &taken.slots {
        writer.push(&source::file(slots, Origin::Slots)?)?;
    }
    let mut out = writer.end()?;
    out.flush().blame(Category::Io)?;
    out.get_ref().sync_all().blame(Category::Io)
}

/// Reads a whole backup; what is in it, and of which role.
fn count(path: &Path, secret: &[u8]) -> Result<(String, Option<String>), Failure> {
    let file = BufReader::with_capacity(1 << 20, File::open(path).blame_io(path)?);
    let (mut reader, about) = Reader::open(file, secret).blame_input(path)?;
    let (mut files, mut entries) = (0_u64, 0_u64);
    while let Some(item) = reader.next_item().blame_input(path)? {
        match item {
            Item::File { .. } => files += 1,
            _ => entries += 1,
        }
    }
    let whose = match (&about.role, &about.name) {
        (Some(role), Some(name)) => format!("{role} {name}"),
        _ => "no identity".to_owned(),
    };
    let path = path.display();
    let counted = format!("{path}: whole: {whose}, {files} files, {entries} entries of a store");
    Ok((counted, about.role))
}
