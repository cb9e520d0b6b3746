//! `alpheus pass init`: creates the keys and the public card of a deployment.

use crate::card::{CARD, Card, Content};
use alpheus_anonymous_credential::configuration::Configuration;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, read_key_file, write_new};
use alpheus_node::network::base::Base;
use alpheus_time::{Span, Timestamp};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  alpheus pass init deployment --issuer https://issuer.example --gateway https://music.example
  alpheus pass init deployment --issuer https://localhost:7501 \\
      --gateway https://localhost:7443 --authority pki/ca.pem --epoch 15
  alpheus pass init gates --issuer https://localhost:7501 --gateway https://localhost:7443 \\
      --epoch 300 --ahead 3";

/// The key that issues and verifies passes.
const ISSUER_KEY: &str = "issuer.key";
/// The key that signs the configuration and the card. No other command reads it.
const OPERATOR_KEY: &str = "operator.key";
const SECOND: u64 = 1_000_000;

/// Arguments of `alpheus pass init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder to create
    folder: PathBuf,
    /// The issuer's address, where accounts get passes
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// The gateway's address, where the service is used
    #[arg(long, value_name = "URL")]
    gateway: String,
    /// Certificate authorities of both, in PEM form
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// Length of an epoch. A pass allows one session per epoch
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    epoch: u64,
    /// How long before an epoch sessions are renewed for it [default: a fifth of an epoch]
    #[arg(long, value_name = "SECONDS")]
    pre_login: Option<u64>,
    /// Length of a period. A pass is valid for one period
    #[arg(long, value_name = "EPOCHS", default_value = "172800", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    epochs_per_period: u64,
    /// Later epochs that a login code also spends; 0 disables codes
    #[arg(long, value_name = "EPOCHS", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=16))]
    ahead: u64,
    /// The tier of the subscription. Each tier is a separate anonymity set
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    tier: u32,
}

/// Runs the command.
///
/// # Errors
/// If the folder exists or cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    Base::parse(&args.issuer).blame(Category::Usage)?;
    Base::parse(&args.gateway).blame(Category::Usage)?;
    let authority = args.authority.as_ref();
    let authority = authority.map(|path| std::fs::read_to_string(path).blame_io(path));
    let mut rng = entropy::rng()?;
    let operator_seed = Secret::random(&mut rng);
    let operator = SigningKey::from_seed(&operator_seed);
    let key = IssuerKey::random(&mut rng).blame(Category::Io)?;
    let configuration = Configuration {
        deployment: *Secret::<32>::random(&mut rng).expose(),
        kind: 1,
        tier: args.tier,
        limit: Limit::ONE,
        incarnation: 1,
        schedule: schedule(args),
        issuer: *key.public(),
    };
    let signed = Signed::new(&configuration, &operator);
    let (issuer, gateway) = (args.issuer.clone(), args.gateway.clone());
    let authority = authority.transpose()?;
    let card = Card::new(&Content::new(&signed, &operator, issuer, gateway, authority), &operator);
    let checked = card.open().blame(Category::Usage)?;
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    let made = DirBuilder::new().mode(0o700).create(&args.folder);
    let help = "nothing is overwritten: remove the folder, or choose another name";
    made.blame_io(&args.folder).map_err(|failure| failure.with_help(help))?;
    let hex = |bytes: &[u8]| Zeroizing::new(HEXLOWER.encode(bytes));
    write_new(&args.folder.join(OPERATOR_KEY), hex(operator_seed.expose()), Readers::Owner)?;
    write_new(&args.folder.join(ISSUER_KEY), hex(key.expose().expose()), Readers::Owner)?;
    write_new(&args.folder.join(CARD), &text, Readers::Everybody)?;
    println!("{}", checked.fingerprint);
    Ok(())
}

/// Starts at the last full hour, so that epochs begin at round times.
fn schedule(args: &Args) -> Schedule {
    let hour = 3600 * SECOND;
    let epoch = args.epoch * SECOND;
    let pre_login = args.pre_login.map_or(epoch / 5, |seconds| seconds.saturating_mul(SECOND));
    Schedule {
        start: Timestamp(clock::now().0 / hour * hour),
        epoch: Span(epoch),
        pre_login: Span(pre_login),
        border_pre_login: Span(pre_login.max(epoch / 3 * 2)),
        epochs_per_period: args.epochs_per_period,
        ahead: args.ahead,
    }
}

/// Reads the issuer's key of a deployment.
///
/// # Errors
/// If it cannot be read, others can read it, or it is not a key.
pub fn issuer_key(deployment: &Path) -> Result<IssuerKey, Failure> {
    let path = deployment.join(ISSUER_KEY);
    let text = read_key_file(&path)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim_ascii()).ok().map(Zeroizing::new);
    let secret = bytes.and_then(|bytes| Secret::<128>::from_slice(&bytes));
    let secret = secret.ok_or("not an issuer's key: 256 hexadecimal digits").blame_input(&path)?;
    IssuerKey::from_bytes(&secret).blame_input(&path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Anyone who has it can mint passes.
    #[test]
    fn an_issuers_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let key = IssuerKey::random(&mut entropy::rng().unwrap()).unwrap();
        let path = folder.path().join(ISSUER_KEY);
        std::fs::write(&path, HEXLOWER.encode(key.expose().expose()) + "\n").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(issuer_key(folder.path()).is_ok(), good, "{mode:o}");
        }
    }
}
