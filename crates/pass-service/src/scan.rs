//! `alpheus pass scan`: a gate checks a login code, with the verifier or offline.

use crate::client::code::parse_nonce;
use crate::settings::PassSettings;
use crate::verifier::api::Scan;
use crate::verifier::shards::{FOR_CLIENTS, Shards};
use crate::{card, init};
use alpheus_access_pass::code::{self, GateNonce};
use alpheus_access_pass::error::CodeError;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::sessions::Shard;
use alpheus_anonymous_credential::sessions::codes::CodeLookUp;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::fence;
use alpheus_node::globals::Globals;
use alpheus_node::ledger::FencedLedger;
use alpheus_node::listeners::block_on;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::retry::{RetryPolicy, retry};
use alpheus_node::settings::Format;
use alpheus_node::settings::{Settings, SettingsError, path_flag};
use data_encoding::BASE32_NOPAD;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus ca issue pki --role gateway --name gate
  alpheus pass scan --identity pki/gate --card deployment/card.json \\
      --verifiers https://localhost:7502 < code.txt
  zbarcam --raw --oneshot | alpheus pass scan --identity pki/gate --card deployment/card.json \\
      --verifiers https://localhost:7502
  alpheus pass scan --offline --deployment deployment --state run/gate --gates 3 < code.txt

Exit code 0 means admit, and 3 means refuse. An offline gate holds the issuer's key, which can issue
passes. It does not know what other gates have seen: a code opens each of them once.";

/// Arguments of `alpheus pass scan`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The code; by default a line of standard input
    code: Option<String>,
    /// The gate's identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's public card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// All verifiers in the order of shards, separated by commas
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// The nonce that this gate displayed: 32 hexadecimal digits, for one scan
    #[arg(long, value_name = "HEX", value_parser = parse_nonce)]
    nonce: Option<GateNonce>,
    /// Check without a verifier
    #[arg(long, requires = "deployment", requires = "state", requires = "gates")]
    offline: bool,
    /// Offline: the folder of the issuer's key
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// Offline: the folder in which this gate stores spent tags
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Offline: the number of gates, to warn how often a code can be used
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    gates: Option<u32>,
}

/// How long a scan is retried: as long as a code is fresh.
const FRESH: Duration = Duration::from_secs(20);
/// The pause between two tries. A verifier that hangs gets no requests for a second.
const PAUSE: Duration = Duration::from_millis(1_100);

/// Why the gate stays closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("this is not a login code; scan it again")]
    Unreadable,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Refused`] if the gate stays closed.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let text = match &args.code {
        Some(code) => code.clone(),
        None => std::io::read_to_string(std::io::stdin()).blame(Category::Io)?,
    };
    let shown = BASE32_NOPAD.decode(text.trim().to_ascii_uppercase().as_bytes());
    let shown = shown.map_err(|_| ScanError::Unreadable).blame(Category::Refused)?;
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
    let pass = settings.part::<PassSettings>()?;
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = open_identity(&identity, Role::Gateway)?;
    let pinned = card::Card::load(&Settings::needed(&pass.card, "pass.card")?)?.1.pinned;
    let verifiers = Settings::needed(&pass.verifiers, "pass.verifiers")?;
    // Read here to find the shard. The verifier checks it again by its own clock.
    let code = read(&pinned, args.nonce.as_ref(), &shown)?;
    let tag = code.session(&pinned).0;
    let scan = *Secret::<32>::random(&mut entropy::rng()?).expose();
    let scan = Scan { scan, nonce: args.nonce, shown };
    block_on(async {
        let shards = Shards::new(&verifiers, &identity, FOR_CLIENTS)?;
        // The same scan gets the same answer. Another scan of this code would be refused
        // because of the tags that this one holds.
        let may_pass = |error: &RequestError| {
            let passes = error.may_pass();
            if passes {
                note!("{error}; the code is retried while it is fresh");
            }
            passes
        };
        let policy = RetryPolicy::every(PAUSE).within(FRESH);
        let answer = retry(policy, may_pass, || shards.send("code", tag, &scan)).await;
        answer.map_err(RequestError::into_refusal)
    })
}

fn read(
    pinned: &PinnedConfiguration,
    nonce: Option<&GateNonce>,
    shown: &[u8],
) -> Result<Code, Failure> {
    let code = code::read(pinned, nonce, shown, clock::now());
    code.map_err(ScanError::from).blame(Category::Refused)
}

/// Uses this gate's own store and the issuer's key.
fn offline(args: &Args, globals: &Globals, shown: &[u8]) -> Result<(), Failure> {
    let missing = SettingsError::Missing;
    let deployment = args.deployment.as_ref().ok_or(missing("deployment"))?;
    let state = args.state.as_ref().ok_or(missing("state"))?;
    let gates = args.gates.ok_or(missing("gates"))?;
    let pinned = card::Card::load(&deployment.join(card::CARD))?.1.pinned;
    note!("offline: a copied code opens each of {gates} gates once, so at most {gates} people");
    let code = read(&pinned, args.nonce.as_ref(), shown)?;
    let settings = Settings { state: Some(state.clone()), ..Settings::default() };
    let store = globals.open_store(&settings)?;
    let mut found = FencedLedger::open(store, &fence::move_out_of(state), None)?;
    let now = clock::now();
    let shard = Shard::restore(pinned.clone(), found.records, found.origin, now);
    let shard = shard.blame(Category::Input)?.commit(&mut found.ledger);
    let mut shard = shard.blame(Category::Io)?;
    let verifier = Verifier::new(init::issuer_key(deployment)?, pinned).blame(Category::Input)?;
    let scan = Digest(*Secret::<32>::random(&mut entropy::rng()?).expose());
    let admitted = || -> Result<_, VerifierError> {
        let CodeLookUp::Unspent(unspent) = shard.look_up_code(code, &scan, now)? else {
            return Err(VerifierError::Used);
        };
        shard.admit(&verifier.verify_code(unspent)?, &scan, now, |_| true)
    };
    let step = admitted_or_refused(admitted)?;
    step.commit(&mut found.ledger).blame(Category::Io)?;
    // Tags that no code can spend any more are deleted.
    let pruned = shard.prune(now).map_err(CodeError::from).map_err(ScanError::from);
    pruned.blame(Category::Refused)?.commit(&mut found.ledger).blame(Category::Io)
}

fn admitted_or_refused<T>(
    admitted: impl FnOnce() -> Result<T, VerifierError>,
) -> Result<T, Failure> {
    admitted().map_err(|refused| ScanError::from(CodeError::from(refused))).blame(Category::Refused)
}
