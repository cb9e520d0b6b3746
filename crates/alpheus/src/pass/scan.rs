//! `alpheus pass scan`: a gate checks a login code, by asking the verifier, or
//! alone.

use crate::commands::{Format, Globals};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::client::code::parse_nonce;
use crate::pass::ledger::FencedLedger;
use crate::pass::serve::block_on;
use crate::pass::verifier::api::Scan;
use crate::pass::verifier::shards::{FOR_CLIENTS, Shards};
use crate::pass::{card, clock, init};
use crate::service::{ServiceError, Settings, path_flag};
use alpheus_access_pass::code::{self, GateNonce};
use alpheus_access_pass::error::CodeRefused;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::sessions::Shard;
use alpheus_anonymous_credential::sessions::codes::CodeLookUp;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use data_encoding::BASE32_NOPAD;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  alpheus ca issue pki --role gateway --name gate
  alpheus pass scan --identity pki/gate --card deployment/card.json --verifiers https://localhost:7502 CODE
  zbarcam --raw --oneshot | alpheus pass scan --identity pki/gate --card deployment/card.json --verifiers https://localhost:7502
  alpheus pass scan --offline --deployment deployment --state run/gate --gates 3 CODE

Exit code 0 opens the gate, 3 does not. A gate that works offline holds the issuer's key, which
makes passes, and cannot know of the others: one code opens each of them once.";

/// Arguments of `alpheus pass scan`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What was read; a line of standard input if it is not given
    code: Option<String>,
    /// The folder that says which gate this is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's public card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// All verifiers, in order, between commas
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// The nonce that this gate showed: 32 hexadecimal digits, for one scan
    #[arg(long, value_name = "HEX", value_parser = parse_nonce)]
    nonce: Option<GateNonce>,
    /// Ask nobody
    #[arg(long, requires = "deployment", requires = "state", requires = "gates")]
    offline: bool,
    /// Offline: the folder with the issuer's key
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// Offline: where this gate keeps what is spent
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Offline: how many gates there are, to say how often a code can be used
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    gates: Option<u32>,
}

/// A scan is asked about again for as long as a code is fresh.
const FRESH: Duration = Duration::from_secs(20);
/// Between two times; a verifier that hangs is left alone for a second.
const PAUSE: Duration = Duration::from_millis(1_100);

/// The gate stays shut.
#[derive(Debug, thiserror::Error)]
enum Shut {
    #[error(transparent)]
    Code(#[from] CodeRefused),
    #[error("what was read is no login code; read it again")]
    Unreadable,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Refused`] if the gate stays shut.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let text = match &args.code {
        Some(code) => code.clone(),
        None => std::io::read_to_string(std::io::stdin()).blame(Category::Io)?,
    };
    let shown = BASE32_NOPAD.decode(text.trim().to_ascii_uppercase().as_bytes());
    let shown = shown.map_err(|_| Shut::Unreadable).blame(Category::Refused)?;
    if args.offline {
        offline(args, globals, &shown)?
    } else {
        online(args, globals, shown)?
    }
    match globals.format.unwrap_or_default() {
        Format::Table => println!("open"),
        Format::Json => println!("{{\"open\":true}}"),
        Format::Csv => println!("open\ntrue"),
    }
    Ok(())
}

fn online(args: &Args, globals: &Globals, shown: Vec<u8>) -> Result<(), Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("pass.card", path_flag(args.card.as_ref())),
        ("pass.verifiers", args.verifiers.clone()),
    ])?;
    let pass = settings.pass.clone().unwrap_or_default();
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Gateway)?;
    let pinned = card::open(&Settings::needed(&pass.card, "pass.card")?)?.1.pinned;
    let verifiers = Settings::needed(&pass.verifiers, "pass.verifiers")?;
    // Here to find the shard; the verifier checks again by its own clock.
    let code = read(&pinned, args.nonce.as_ref(), &shown)?;
    let tag = code.session(&pinned).0;
    let scan = *Secret::<32>::random(&mut entropy::rng()?).expose();
    let scan = Scan { scan, nonce: args.nonce, shown };
    block_on(async {
        let shards = Shards::new(&verifiers, &identity, FOR_CLIENTS)?;
        let given_up = Instant::now() + FRESH;
        loop {
            match shards.tell("code", tag, &scan).await {
                // The same scan again gets the same answer; another scan of this code would
                // be kept out by what this one holds.
                Err(error) if error.may_pass() && Instant::now() < given_up => {
                    eprintln!("{error}; asking again");
                    tokio::time::sleep(PAUSE).await;
                }
                told => return Ok(told?),
            }
        }
    })
}

fn read(pinned: &Pinned, nonce: Option<&GateNonce>, shown: &[u8]) -> Result<Code, Failure> {
    let code = code::read(pinned, clock::now(), nonce, shown);
    code.map_err(Shut::from).blame(Category::Refused)
}

/// This gate alone: its own store, and the issuer's key.
fn offline(args: &Args, globals: &Globals, shown: &[u8]) -> Result<(), Failure> {
    let missing = ServiceError::Missing;
    let deployment = args.deployment.as_ref().ok_or(missing("deployment"))?;
    let state = args.state.as_ref().ok_or(missing("state"))?;
    let gates = args.gates.ok_or(missing("gates"))?;
    let pinned = card::open(&deployment.join(card::CARD))?.1.pinned;
    eprintln!("offline: a copied code opens each of {gates} gates once, so at most {gates} people");
    let code = read(&pinned, args.nonce.as_ref(), shown)?;
    let settings = Settings { state: Some(state.clone()), ..Settings::default() };
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let mut found = FencedLedger::open(store, &state.join("fence"), None)?;
    let now = clock::now();
    let shard = Shard::restore(pinned.clone(), found.records, found.log, now);
    let shard = shard.blame(Category::Input)?.commit(&mut found.ledger);
    let mut shard = shard.blame(Category::Io)?;
    let verifier = Verifier::new(init::issuer_key(deployment)?, pinned).blame(Category::Input)?;
    let scan = Digest(*Secret::<32>::random(&mut entropy::rng()?).expose());
    let admitted = || -> Result<_, Refused> {
        let CodeLookUp::Unspent(unspent) = shard.look_up_code(now, code, &scan)? else {
            return Err(Refused::Used);
        };
        shard.admit(now, &verifier.verify_code(unspent)?, &scan, |_| true)
    };
    let step = admitted_or_shut(admitted)?;
    step.commit(&mut found.ledger).blame(Category::Io)?;
    // What no code can spend any more need not be kept.
    let pruned = shard.prune(now).map_err(CodeRefused::from).map_err(Shut::from);
    pruned.blame(Category::Refused)?.commit(&mut found.ledger).blame(Category::Io)
}

fn admitted_or_shut<T>(admitted: impl FnOnce() -> Result<T, Refused>) -> Result<T, Failure> {
    admitted().map_err(|refused| Shut::from(CodeRefused::from(refused))).blame(Category::Refused)
}
