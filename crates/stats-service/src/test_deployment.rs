//! A small deployment for this crate's tests: keys in a folder, and messages signed with them.

use super::card::{Addresses, SmootherAt, VerifiedCard};
use super::init::{self, Plan};
use super::keys;
use super::links;
use super::parties::PartyClient;
use super::plan::Plan as MeasurementPlan;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_crypto::group::Element;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed};
use alpheus_node::clock::Clock;
use alpheus_node::network::base::Base;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_time::Timestamp;
use axum::Router;
use axum::http::Uri;
use std::time::Duration;

const DAY: u64 = 86_400_000_000;
const HOUR: u64 = DAY / 24;

const PLAN: &str = "\
place: speed/road
attribute: speed
interval: { lowest: 0, highest: 100 }
every: 1hr
during: 2
quota: 4
accounts: 2
slots: 9
expected: 8
clients: 3
release: full
after: { turn: 10min, turns: 2, settling: 1min, patience: 1hr }
";

/// Four smoothers, of which any two can decrypt.
pub(crate) struct TestDeployment {
    /// Its card, with unused addresses.
    pub(crate) card: VerifiedCard,
    /// The plan.
    pub(crate) plan: MeasurementPlan,
    /// Its folder.
    pub(crate) folder: tempfile::TempDir,
}

impl TestDeployment {
    /// A new deployment, whose first day is today.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let nobody = || "http://127.0.0.1:9".to_owned();
        let smoother = || SmootherAt { clients: nobody(), peers: nobody() };
        let smoothers = (0..4).map(|_| smoother()).collect();
        let at = Addresses { registrar: nobody(), aggregator: nobody(), smoothers };
        let plan = Plan {
            at,
            threshold: 2,
            authority: None,
            start: Timestamp(Self::now().0 / DAY * DAY),
            min_accounts: 2,
            wasteful_accounts: 0,
            period_days: 7,
            tolerance: init::TOLERANCE,
        };
        let card = init::make(&folder.path().join("keys"), plan).unwrap();
        Self { card, plan: MeasurementPlan::parse(PLAN).unwrap(), folder }
    }

    /// The time.
    pub(crate) fn now() -> Timestamp {
        Clock::Process.now()
    }

    /// The definition of the current hour, or of one `later` hours after it.
    pub(crate) fn definition(&self, later: u64) -> Definition {
        let start = Timestamp((Self::now().0 / HOUR + later) * HOUR);
        let key = ThresholdKey(Element::second_base());
        self.plan.definition(&self.card.pinned, start, key).unwrap()
    }

    /// The same definition, agreed by a quorum.
    pub(crate) fn agreed(&self, later: u64) -> AgreedDefinition {
        let (definition, mut endorsed) = (self.definition(later), Endorsed::default());
        for id in 0..4_u16 {
            endorsed.add(SmootherId(id), self.signed_by(id.into(), &definition));
        }
        AgreedDefinition::open(&endorsed, &self.card.pinned).unwrap()
    }

    /// The folder of a party's keys.
    pub(crate) fn keys(&self, party: &str) -> std::path::PathBuf {
        self.folder.path().join("keys").join(party)
    }

    /// A smoother's signing key.
    pub(crate) fn smoother(&self, id: usize) -> SigningKey {
        keys::signing(&self.keys(&format!("smoother-{}", id + 1)).join(keys::SIGNING)).unwrap()
    }

    /// A message signed by a smoother.
    pub(crate) fn signed_by<T: Message>(&self, id: usize, message: &T) -> Signed<T> {
        Signed::new(message, &self.smoother(id))
    }
}

/// A party that answers each path with these bytes, until the trigger is dropped.
pub(crate) async fn answering(
    answer: impl Fn(&str) -> Vec<u8> + Clone + Send + Sync + 'static,
) -> (Trigger, PartyClient) {
    let routes = Router::new().fallback(move |uri: Uri| std::future::ready(answer(uri.path())));
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let at = Base::parse(&format!("http://{}", server.address().unwrap())).unwrap();
    let trigger = Trigger::new();
    tokio::spawn(server.serve(routes, trigger.shutdown(), Duration::from_millis(100)));
    (trigger, PartyClient::over(links::smoother(at, None).unwrap()))
}
