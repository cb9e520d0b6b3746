//! `alpheus stats init`: creates a deployment's card and a folder of keys for each party.

use crate::card::{Addresses, Card, Content, SmootherAt, VerifiedCard};
use crate::keys;
use alpheus_accountable_statistics::configuration::{Configuration, Days, Limits, Smoother};
use alpheus_anonymous_credential::configuration::Configuration as Credential;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::group::Element;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::make_private_folder;
use alpheus_node::files::{Readers, write_new};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus stats init roads --registrar https://localhost:7701 \\
      --aggregator https://localhost:7702 \\
      --smoother https://localhost:7711,https://localhost:7721 --threshold 1 \\
      --authority pki/ca.pem
  alpheus stats init roads --registrar https://r.example --aggregator https://a.example \\
      --smoother https://s1.example,https://s1.example:7801 \\
      --smoother https://s2.example,https://s2.example:7801 \\
      --smoother https://s3.example,https://s3.example:7801 \\
      --smoother https://s4.example,https://s4.example:7801

Give each party its own folder and the card, and nothing else. A threshold t needs at least 3t - 2
smoothers. Smoothers that all belong to one person hide nothing from that person.";

/// The card's file name in the folder.
pub const CARD: &str = "card.json";
/// The file of the operator's key, which signs the card and counts.
pub const OPERATOR: &str = "operator.key";
/// The file of the definer's key, which signs proposed definitions.
pub const DEFINER: &str = "definer.key";
/// Bits of the table for discrete logarithms: 16 MiB.
const BITS: u8 = 20;
const DAY: u64 = 86_400_000_000;
/// The default tolerance: thousandths of the slots that may be missing.
pub const TOLERANCE: u16 = 50;

/// Arguments of `alpheus stats init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder to create; it must not exist yet
    folder: PathBuf,
    /// The registrar's address
    #[arg(long, value_name = "URL")]
    registrar: String,
    /// The aggregator's address
    #[arg(long, value_name = "URL")]
    aggregator: String,
    /// A smoother's address for clients and, after a comma, for its peers; repeat for each smoother
    #[arg(long, value_name = "URL,URL", required = true, value_parser = both)]
    smoother: Vec<SmootherAt>,
    /// The number of smoothers that can decrypt together; fewer cannot
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    threshold: u16,
    /// Certificate authorities of the parties, in PEM form
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The minimum number of accounts in a definition: choose more than one party can obtain
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    min_accounts: u32,
    /// The number of accounts that may waste their whole quota without keeping aggregates from closing
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    wasteful_accounts: u32,
    /// Days in a period, for which an account's credentials are valid; the first period begins today
    #[arg(long, value_name = "NUMBER", default_value = "7", value_parser = clap::value_parser!(u64).range(1..=366))]
    period_days: u64,
    /// Thousandths of an aggregate's slots that may stay empty or be left out, at most 100
    #[arg(long, value_name = "NUMBER", default_value_t = TOLERANCE)]
    tolerance: u16,
}

/// The parameters of a deployment.
pub struct Plan {
    /// The addresses of all parties.
    pub at: Addresses,
    /// The threshold t.
    pub threshold: u16,
    /// Certificate authorities of the parties.
    pub authority: Option<String>,
    /// The first day.
    pub start: Timestamp,
    /// The minimum number of accounts in a definition.
    pub min_accounts: u32,
    /// The number of accounts that may waste their whole quota.
    pub wasteful_accounts: u32,
    /// Days in a period of credentials.
    pub period_days: u64,
    /// The tolerance δ in thousandths.
    pub tolerance: u16,
}

fn both(text: &str) -> Result<SmootherAt, &'static str> {
    let parts = text.split_once(',').ok_or("give two addresses separated by a comma")?;
    Ok(SmootherAt { clients: parts.0.to_owned(), peers: parts.1.to_owned() })
}

/// Runs the command.
///
/// # Errors
/// If the folder exists, or the parameters are invalid.
pub fn run(args: &Args) -> Result<(), Failure> {
    let authority = args.authority.as_ref();
    let authority =
        authority.map(|path| std::fs::read_to_string(path).blame_io(path)).transpose()?;
    let (registrar, aggregator) = (args.registrar.clone(), args.aggregator.clone());
    let at = Addresses { registrar, aggregator, smoothers: args.smoother.clone() };
    let start = Timestamp(clock::now().0 / DAY * DAY);
    let Args { threshold, min_accounts, wasteful_accounts, period_days, tolerance, .. } = *args;
    let plan = Plan {
        at,
        threshold,
        authority,
        start,
        min_accounts,
        wasteful_accounts,
        period_days,
        tolerance,
    };
    let opened = make(&args.folder, plan)?;
    println!("{}", opened.pinned.fingerprint());
    Ok(())
}

/// The secrets of a party.
struct Secrets {
    signing: Secret<32>,
    issuing: IssuerKey,
}

impl Secrets {
    fn draw(rng: &mut ChaCha20Rng) -> Result<Self, Failure> {
        let issuing = IssuerKey::random(rng).blame(Category::Io)?;
        Ok(Self { signing: Secret::random(rng), issuing })
    }

    fn write(&self, folder: &Path, issuing: &str) -> Result<(), Failure> {
        make_private_folder(folder)?;
        keys::write(&folder.join(keys::SIGNING), self.signing.expose())?;
        keys::write(&folder.join(issuing), self.issuing.expose().expose())
    }
}

/// Creates a deployment in a new folder.
///
/// # Errors
/// If the folder exists or cannot be written, or the parameters are invalid.
pub fn make(folder: &Path, plan: Plan) -> Result<VerifiedCard, Failure> {
    let mut rng = entropy::rng()?;
    let operator_seed = Secret::random(&mut rng);
    let operator = SigningKey::from_seed(&operator_seed);
    let definer = Secret::random(&mut rng);
    let (aggregator, sealing) = (Secrets::draw(&mut rng)?, Secret::random(&mut rng));
    let smoothers = plan.at.smoothers.iter().map(|_| Secrets::draw(&mut rng));
    let smoothers = smoothers.collect::<Result<Vec<_>, _>>()?;
    let deployment = *Secret::<32>::random(&mut rng).expose();
    let keys = (&operator, SigningKey::from_seed(&definer).verifying_key());
    let to = *keys::recipient(&sealing)?.public();
    let configuration = configuration(&plan, deployment, keys, (&aggregator, to), &smoothers);
    let card =
        Card::new(&Content::new(&configuration, plan.at, plan.authority, &operator), &operator);
    let opened = card.open().blame(Category::Usage)?;
    make_private_folder(folder)?;
    keys::write(&folder.join(OPERATOR), operator_seed.expose())?;
    keys::write(&folder.join(DEFINER), definer.expose())?;
    aggregator.write(&folder.join("aggregator"), keys::UPLOADS)?;
    keys::write(&folder.join("aggregator").join(keys::SEALING), sealing.expose())?;
    let registrar = folder.join("registrar");
    make_private_folder(&registrar)?;
    keys::write(&registrar.join(keys::UPLOADS), aggregator.issuing.expose().expose())?;
    for (index, smoother) in smoothers.iter().enumerate() {
        smoother.write(&folder.join(format!("smoother-{}", index + 1)), keys::SLOTS)?;
        let slots = registrar.join(keys::slots_of(index));
        keys::write(&slots, smoother.issuing.expose().expose())?;
    }
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    write_new(&folder.join(CARD), &text, Readers::Everybody)?;
    Ok(opened)
}

fn configuration(
    plan: &Plan,
    deployment: [u8; 32],
    (operator, definer): (&SigningKey, VerifyingKey),
    (aggregator, sealing): (&Secrets, Element),
    smoothers: &[Secrets],
) -> Configuration {
    let schedule = Schedule {
        start: plan.start,
        epoch: Span(DAY),
        pre_login: Span(0),
        border_pre_login: Span(0),
        epochs_per_period: plan.period_days,
        ahead: 0,
    };
    let credential = |kind: u32, key: &IssuerKey| {
        let (limit, issuer) = (Limit::ONE, *key.public());
        let configuration =
            Credential { deployment, kind, tier: 1, limit, incarnation: 1, schedule, issuer };
        Signed::new(&configuration, operator)
    };
    let smoother = |(kind, secrets): (u32, &Secrets)| Smoother {
        key: SigningKey::from_seed(&secrets.signing).verifying_key(),
        slots: credential(kind, &secrets.issuing),
    };
    Configuration {
        deployment,
        threshold: plan.threshold,
        smoothers: (1..).zip(smoothers).map(smoother).collect(),
        definer,
        limits: Limits {
            min_accounts: plan.min_accounts,
            wasteful_accounts: plan.wasteful_accounts,
            max_closing: Span(DAY),
            table_bits: BITS,
        },
        aggregator: SigningKey::from_seed(&aggregator.signing).verifying_key(),
        sealing,
        uploads: credential(0, &aggregator.issuing),
        tolerance: plan.tolerance,
        days: Days { start: plan.start, length: Span(DAY) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operator's choices are on the card that all participants pin.
    #[test]
    fn periods_and_tolerance_are_on_the_card() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, period_days: u64, tolerance: u16| {
            let at = || "https://localhost:9".to_owned();
            let smoothers = vec![SmootherAt { clients: at(), peers: at() }];
            let at = Addresses { registrar: at(), aggregator: at(), smoothers };
            let (authority, start, min_accounts, wasteful_accounts) = (None, Timestamp(DAY), 2, 0);
            let threshold = 1;
            let plan = Plan {
                at,
                threshold,
                authority,
                start,
                min_accounts,
                wasteful_accounts,
                period_days,
                tolerance,
            };
            make(&folder.path().join(name), plan)
        };
        let pinned = made("roads", 30, 100).unwrap().pinned;
        assert_eq!(pinned.uploads().schedule.epochs_per_period, 30);
        assert_eq!((pinned.max_missing(20), pinned.max_missing(9)), (2, 0));
        let refused = made("other", 30, 101).err().unwrap().to_string();
        assert!(refused.contains("tolerance"), "{refused}");
        assert!(!folder.path().join("other").exists());
    }
}
