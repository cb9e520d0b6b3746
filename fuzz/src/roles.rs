//! What the roles of accountable statistics tell each other.

use alpheus_accountable_statistics as of;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::keymaking::{Circle, KeyMaker, KeyWord, Patience, What};
use alpheus_accountable_statistics::threshold::ceremony::Ceremony;
use alpheus_accountable_statistics::threshold::dealing::Dealing;
use alpheus_accountable_statistics::threshold::decrypting::Partial;
use alpheus_accountable_statistics::tuple::Tuple;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What smoothers, clients and aggregators of statistics tell each other is read in its one
/// spelling; tuples, dealings and partial decryptions are written back to the same bytes; and
/// a smoother that makes a key hears whatever another says.
pub fn statistics(data: &[u8]) {
    use of::messages as m;
    one_spelling::<m::SlotRequest>(data);
    one_spelling::<m::Deposit>(data);
    one_spelling::<m::Receipt>(data);
    one_spelling::<m::Deposited>(data);
    one_spelling::<m::Evidence>(data);
    one_spelling::<m::Upload>(data);
    one_spelling::<m::Release>(data);
    one_spelling::<Vec<m::Shown>>(data);
    one_spelling::<m::Closing>(data);
    one_spelling::<m::Ready>(data);
    one_spelling::<m::Opening>(data);
    one_spelling::<m::Outcome>(data);
    one_spelling::<m::Card>(data);
    one_spelling::<of::definition::Definition>(data);
    one_spelling::<of::tally::Question>(data);
    one_spelling::<of::configuration::Configuration>(data);
    one_spelling::<of::endorsed::Endorsed<m::Entry>>(data);
    one_spelling::<of::keymaking::Prepared>(data);
    let spelling = "a message has one spelling";
    for interval in [(0, 15, false), (-100, 155, true), (0, 100_000, true)] {
        let Ok(interval) = Interval::new(interval.0, interval.1, interval.2) else { return };
        if let Ok(tuple) = Tuple::from_bytes(data, &interval) {
            assert_eq!(tuple.to_bytes(), data, "{spelling}");
        }
    }
    if let Ok(partial) = Partial::from_bytes(data) {
        assert_eq!(partial.to_bytes(), data, "{spelling}");
    }
    making(data);
}

/// Four who make a key, of whom one says this, signed: as it is, and in a list.
fn making(data: &[u8]) {
    let key = |by: u8| SigningKey::from_seed(&Secret::from_bytes([by; 32]));
    let keys = (0..4).map(|by| key(by).verifying_key()).collect();
    let Ok(committee) = of::threshold::Committee::new(Digest([7; 32]), 4, 2) else {
        return;
    };
    let ceremony = Ceremony::new(committee, 0, &[]);
    if let Ok(dealing) = Dealing::from_bytes(data, &ceremony) {
        assert_eq!(dealing.to_bytes(), data, "a dealing has one spelling");
    }
    let Some(word) = of::messages::decode::<KeyWord>(data) else { return };
    let Ok(circle) = Circle::new(word.epoch, committee, keys) else { return };
    let (by, patience) = (word.by, Patience { word: 1, attempt: 2 });
    let Some(seed) = u8::try_from(by.0).ok().filter(|by| *by < 4) else { return };
    let id = of::configuration::SmootherId(u16::from(seed == 0));
    let Ok(mut maker) = KeyMaker::restore(circle.clone(), id, patience, []) else { return };
    let signed = Signed::new(&word, &key(seed));
    maker.hear(by, &signed);
    let convener = circle.convener(word.attempt);
    let list = What::Roster(vec![(by, signed)]);
    let list = KeyWord { by: convener, what: list, ..word };
    maker.hear(convener, &Signed::new(&list, &key(u8::try_from(convener.0).unwrap_or(0))));
    for now in 0..4 {
        let _ = maker.poll(Time(now), &key(1), &mut Zeros);
    }
}

/// A generator that needs no entropy.
struct Zeros;

impl rand_core::TryRng for Zeros {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        out.fill(0);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Zeros {}

/// What is taken for a message is its one encoding.
fn one_spelling<T: Serialize + DeserializeOwned>(data: &[u8]) {
    if let Some(message) = of::messages::decode::<T>(data) {
        assert_eq!(postcard::to_allocvec(&message).as_deref(), Ok(data), "one spelling");
    }
}
