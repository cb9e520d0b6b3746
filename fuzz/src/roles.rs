//! Messages between roles of accountable statistics.

use alpheus_accountable_statistics as of;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::keymaking::{
    Content, KeyMaker, KeyMessage, Participants, Timeouts,
};
use alpheus_accountable_statistics::threshold::ceremony::Ceremony;
use alpheus_accountable_statistics::threshold::dealing::Dealing;
use alpheus_accountable_statistics::threshold::decryption::PartialDecryption;
use alpheus_accountable_statistics::tuple::Tuple;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Messages of smoothers, clients and aggregators have one encoding. Tuples, dealings and partial
/// decryptions are encoded to the same bytes. A smoother that makes a key accepts any message.
pub fn statistics(data: &[u8]) {
    use of::messages as m;
    one_spelling::<m::SlotRequest>(data);
    one_spelling::<m::Deposit>(data);
    one_spelling::<m::ForwardedDeposit>(data);
    one_spelling::<of::publication::Publication>(data);
    one_spelling::<m::Receipt>(data);
    one_spelling::<m::DepositResponse>(data);
    one_spelling::<m::Evidence>(data);
    one_spelling::<m::Upload>(data);
    one_spelling::<m::Release>(data);
    one_spelling::<Vec<m::ClosingTuple>>(data);
    one_spelling::<m::Closing>(data);
    one_spelling::<m::Ready>(data);
    one_spelling::<m::Opening>(data);
    one_spelling::<m::Outcome>(data);
    one_spelling::<m::Card>(data);
    one_spelling::<of::definition::Definition>(data);
    one_spelling::<of::tally::TallyDefinition>(data);
    one_spelling::<of::configuration::Configuration>(data);
    one_spelling::<of::endorsement::Endorsed<m::Entry>>(data);
    one_spelling::<of::keymaking::KeyCertificate>(data);
    let message = "a message has one encoding";
    for interval in [(0, 15, false), (-100, 155, true), (0, 100_000, true)] {
        let Ok(interval) = Interval::new(interval.0, interval.1, interval.2) else { return };
        if let Ok(tuple) = Tuple::from_bytes(data, &interval) {
            assert_eq!(tuple.to_bytes(), data, "{message}");
        }
    }
    if let Ok(partial) = PartialDecryption::from_bytes(data) {
        assert_eq!(partial.to_bytes(), data, "{message}");
    }
    making(data);
}

/// Four smoothers make a key, and one sends this, signed: alone, and in a list.
fn making(data: &[u8]) {
    let key = |by: u8| SigningKey::from_seed(&Secret::from_bytes([by; 32]));
    let keys = (0..4).map(|by| key(by).verifying_key()).collect();
    let Ok(committee) = of::threshold::Committee::new(Digest([7; 32]), 4, 2) else {
        return;
    };
    let ceremony = Ceremony::new(committee, 0, &[]);
    if let Ok(dealing) = Dealing::from_bytes(data, &ceremony) {
        assert_eq!(dealing.to_bytes(), data, "a dealing has one encoding");
    }
    let Some(message) = of::messages::decode::<KeyMessage>(data) else { return };
    let Ok(participants) = Participants::new(message.epoch, committee, keys) else { return };
    let timeouts = Timeouts { message: Span(1), attempt: Span(2) };
    let by = message.by;
    let Some(seed) = u8::try_from(by.0).ok().filter(|by| *by < 4) else { return };
    let id = of::configuration::SmootherId(u16::from(seed == 0));
    let Ok(mut maker) = KeyMaker::restore(participants.clone(), id, timeouts, []) else { return };
    let signed = Signed::new(&message, &key(seed));
    maker.handle(&signed, by);
    let convener = participants.convener(message.attempt);
    let list = Content::Roster(vec![(by, signed)]);
    let list = KeyMessage { by: convener, content: list, ..message };
    maker.handle(&Signed::new(&list, &key(u8::try_from(convener.0).unwrap_or(0))), convener);
    for now in 0..4 {
        let _ = maker.poll(Timestamp(now), &key(1), &mut Zeros);
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

/// Accepted bytes are the only encoding of the message.
fn one_spelling<T: Serialize + DeserializeOwned>(data: &[u8]) {
    if let Some(message) = of::messages::decode::<T>(data) {
        assert_eq!(postcard::to_allocvec(&message).as_deref(), Ok(data), "one encoding");
    }
}
