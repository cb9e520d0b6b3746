//! A small deployment for tests within this crate: keys in a folder, and what is made by them.

use super::card::{Addresses, Opened, SmootherAt};
use super::clock::Clock;
use super::init::{self, Plan};
use super::keys;
use super::plan::Plan as Measured;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::group::Element;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Message, Signed};

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
pub(crate) struct Place {
    /// Its card, with addresses where nobody is.
    pub(crate) card: Opened,
    /// What is measured.
    pub(crate) plan: Measured,
    /// Its folder.
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    /// A new one, whose first day is today.
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
            start: Time(Self::now().0 / DAY * DAY),
            crowd: 2,
            wasteful: 0,
            days: 7,
            tolerance: init::TOLERANCE,
        };
        let card = init::make(&folder.path().join("keys"), plan).unwrap();
        Self { card, plan: Measured::parse(PLAN).unwrap(), folder }
    }

    /// The time.
    pub(crate) fn now() -> Time {
        Clock::of(None).unwrap().now()
    }

    /// The definition of the hour that runs, or of one so much later.
    pub(crate) fn definition(&self, later: u64) -> Definition {
        let start = Time((Self::now().0 / HOUR + later) * HOUR);
        let key = ThresholdKey(Element::second_base());
        self.plan.definition(&self.card.pinned, start, key).unwrap()
    }

    /// The same as a quorum agrees on it.
    pub(crate) fn agreed(&self, later: u64) -> Agreed {
        let (definition, mut endorsed) = (self.definition(later), Endorsed::default());
        for id in 0..4_u16 {
            endorsed.add(SmootherId(id), self.signed_by(id.into(), &definition));
        }
        Agreed::open(&endorsed, &self.card.pinned).unwrap()
    }

    /// Where a party's keys are.
    pub(crate) fn keys(&self, party: &str) -> std::path::PathBuf {
        self.folder.path().join("keys").join(party)
    }

    /// A smoother's signing key.
    pub(crate) fn smoother(&self, id: usize) -> SigningKey {
        keys::signing(&self.keys(&format!("smoother-{}", id + 1)).join(keys::SIGNING)).unwrap()
    }

    /// What a smoother has signed.
    pub(crate) fn signed_by<T: Message>(&self, id: usize, message: &T) -> Signed<T> {
        Signed::new(message, &self.smoother(id))
    }
}
