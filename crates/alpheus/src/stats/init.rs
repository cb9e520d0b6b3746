//! `alpheus stats init`: the keys of a deployment, a folder for each party, and its card.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::files::make_private_folder;
use crate::pass::clock;
use crate::pass::init::write_new;
use crate::stats::card::{Addresses, Card, Opened, SmootherAt};
use crate::stats::keys;
use alpheus_accountable_statistics::configuration::{Configuration, Days, Limits, Smoother};
use alpheus_anonymous_credential::configuration::Configuration as Credential;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::{Schedule, Time};
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus stats init roads --registrar https://localhost:7701 --aggregator https://localhost:7702 --smoother https://localhost:7711,https://localhost:7721 --threshold 1 --authority pki/ca.pem
  alpheus stats init roads --registrar https://r.example --aggregator https://a.example --smoother https://s1.example,https://s1.example:7801 --smoother https://s2.example,https://s2.example:7801 --smoother https://s3.example,https://s3.example:7801 --smoother https://s4.example,https://s4.example:7801

Hand each party its folder and the card, and nothing else; n smoothers bear a threshold t if
n is at least 3t - 2. Smoothers that one person runs hide nothing from that person.";

/// Of the folder.
pub const CARD: &str = "card.json";
/// Of the folder: signed the card, and signs nothing else.
pub const OPERATOR: &str = "operator.key";
/// Of the folder: signs what smoothers are asked to define.
pub const DEFINER: &str = "definer.key";
/// Bits of the table by which sums are read: 16 MiB.
const BITS: u8 = 20;
const DAY: u64 = 86_400_000_000;
/// So many thousandths of the slots may be missing, unless it is said otherwise.
pub const TOLERANCE: u16 = 50;

/// Arguments of `alpheus stats init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A folder that is not there yet
    folder: PathBuf,
    /// Where the registrar is
    #[arg(long, value_name = "URL")]
    registrar: String,
    /// Where the aggregator is
    #[arg(long, value_name = "URL")]
    aggregator: String,
    /// Where a smoother is for clients and, after a comma, for its peers; once for each
    #[arg(long, value_name = "URL,URL", required = true, value_parser = both)]
    smoother: Vec<SmootherAt>,
    /// So many smoothers together can decrypt, and fewer cannot
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    threshold: u16,
    /// Authorities of their certificates, in PEM form
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The least crowd of a definition: more accounts than one party can obtain
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    crowd: u32,
    /// So many accounts may waste what they can, and aggregates still close
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    wasteful: u32,
    /// Days for which an account's credentials are good: a period of them, which begins today
    #[arg(long, value_name = "NUMBER", default_value = "7", value_parser = clap::value_parser!(u64).range(1..=366))]
    days: u64,
    /// So many thousandths of an aggregate's slots may stay empty or be left out, 100 at most
    #[arg(long, value_name = "NUMBER", default_value_t = TOLERANCE)]
    tolerance: u16,
}

/// What a deployment is made of.
pub struct Plan {
    /// Where everybody is.
    pub at: Addresses,
    /// t.
    pub threshold: u16,
    /// Authorities of their certificates.
    pub authority: Option<String>,
    /// The first day.
    pub start: Time,
    /// The least crowd.
    pub crowd: u32,
    /// Accounts that may waste what they can.
    pub wasteful: u32,
    /// Days for which an account's credentials are good.
    pub days: u64,
    /// δ in thousandths.
    pub tolerance: u16,
}

fn both(text: &str) -> Result<SmootherAt, &'static str> {
    let parts = text.split_once(',').ok_or("two addresses divided by a comma")?;
    Ok(SmootherAt { clients: parts.0.to_owned(), peers: parts.1.to_owned() })
}

/// Runs the command.
///
/// # Errors
/// If the folder exists, or the deployment makes no sense.
pub fn run(args: &Args) -> Result<(), Failure> {
    let authority = args.authority.as_ref();
    let authority =
        authority.map(|path| std::fs::read_to_string(path).blame_io(path)).transpose()?;
    let (registrar, aggregator) = (args.registrar.clone(), args.aggregator.clone());
    let at = Addresses { registrar, aggregator, smoothers: args.smoother.clone() };
    let start = Time(clock::now().0 / DAY * DAY);
    let Args { threshold, crowd, wasteful, days, tolerance, .. } = *args;
    let plan = Plan { at, threshold, authority, start, crowd, wasteful, days, tolerance };
    let opened = make(&args.folder, plan)?;
    println!("{}", opened.pinned.fingerprint());
    Ok(())
}

/// The secrets of all parties, as they are made.
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

/// Makes a deployment in a folder that is not there yet.
///
/// # Errors
/// If it is there, cannot be written, or the plan makes no sense.
pub fn make(folder: &Path, plan: Plan) -> Result<Opened, Failure> {
    let mut rng = entropy::rng()?;
    let operator_seed = Secret::random(&mut rng);
    let operator = SigningKey::from_seed(&operator_seed);
    let definer = Secret::random(&mut rng);
    let (aggregator, sealing) = (Secrets::draw(&mut rng)?, Secret::random(&mut rng));
    let smoothers = plan.at.smoothers.iter().map(|_| Secrets::draw(&mut rng));
    let smoothers = smoothers.collect::<Result<Vec<_>, _>>()?;
    let deployment = *Secret::<32>::random(&mut rng).expose();
    let keys = (&operator, SigningKey::from_seed(&definer).verifying_key());
    let configuration = configuration(&plan, deployment, keys, (&aggregator, &sealing), &smoothers);
    let card = Card::new(&configuration, plan.at, plan.authority, &operator);
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
    write_new(&folder.join(CARD), &text, 0o644)?;
    Ok(opened)
}

fn configuration(
    plan: &Plan,
    deployment: [u8; 32],
    (operator, definer): (&SigningKey, VerifyingKey),
    (aggregator, sealing): (&Secrets, &Secret<32>),
    smoothers: &[Secrets],
) -> Configuration {
    let schedule = Schedule {
        start: plan.start,
        epoch: DAY,
        pre_login: 0,
        border_pre_login: 0,
        epochs_per_period: plan.days,
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
        limits: Limits { accounts: plan.crowd, wasteful: plan.wasteful, after: DAY, bits: BITS },
        aggregator: SigningKey::from_seed(&aggregator.signing).verifying_key(),
        sealing: SealingKey::from_seed(sealing).public(),
        uploads: credential(0, &aggregator.issuing),
        tolerance: plan.tolerance,
        days: Days { start: plan.start, length: DAY },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What whoever runs a deployment chooses stands on the card that everybody pins.
    #[test]
    fn periods_and_tolerance_are_on_the_card() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, days: u64, tolerance: u16| {
            let at = || "https://localhost:9".to_owned();
            let smoothers = vec![SmootherAt { clients: at(), peers: at() }];
            let at = Addresses { registrar: at(), aggregator: at(), smoothers };
            let (authority, start, crowd, wasteful) = (None, Time(DAY), 2, 0);
            let threshold = 1;
            let plan = Plan { at, threshold, authority, start, crowd, wasteful, days, tolerance };
            make(&folder.path().join(name), plan)
        };
        let pinned = made("roads", 30, 100).unwrap().pinned;
        assert_eq!(pinned.uploads().schedule.epochs_per_period, 30);
        assert_eq!((pinned.missing_at_most(20), pinned.missing_at_most(9)), (2, 0));
        let refused = made("other", 30, 101).err().unwrap().to_string();
        assert!(refused.contains("tolerance"), "{refused}");
        assert!(!folder.path().join("other").exists());
    }
}
