//! The library that tests link: the interface, and sessions and passes whose random numbers are chosen, to
//! compare with vectors. `tests/known_answers.h` declares what it adds. It is not shipped.

#![expect(unsafe_code, reason = "C passes pointers, and finds functions by their names")]

use alpheus_access_pass::client::Pace;
use alpheus_access_pass::file::{Contents, Evidence};
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::Schedule;
pub use alpheus_c::abi;
use alpheus_c::abi::memory::{Buffer, Error, Out, call, list, there};
use alpheus_c::abi::pass::{Pass, PassStore, writer};
use alpheus_c::abi::session::Session;
use alpheus_c::codes::Code;
use alpheus_c::pass::Handle as PassHandle;
use alpheus_c::pass::card::Card;
use alpheus_c::pass::store::Store;
use alpheus_c::randomness::Randomness;
use alpheus_c::refusal::Refusal;
use alpheus_c::session::{Handle, Offline};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_crypto::vault::Hardness;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{
    OpeningSecrets, Producer, Start, TickProducer, TickShape,
};
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::{Span, Timestamp};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::ffi::{c_char, c_void};
use zeroize::Zeroizing;

/// A case of the vectors.
struct Case(Value);

impl Case {
    /// # Safety
    /// `text` has `length` bytes.
    unsafe fn read(text: *const c_char, length: usize) -> Result<Case, Refusal> {
        // SAFETY: the caller answers for it.
        let text = unsafe { list(text.cast::<u8>(), length, "case") }?;
        serde_json::from_slice(text).map(Case).map_err(|error| wrong(&error.to_string()))
    }

    fn number(&self, name: &str) -> Result<u64, Refusal> {
        self.0.get(name).and_then(Value::as_u64).ok_or_else(|| wrong(name))
    }

    fn small<T: TryFrom<u64>>(&self, name: &str) -> Result<T, Refusal> {
        self.number(name)?.try_into().map_err(|_| wrong(name))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.and_then(|text| HEXLOWER.decode(text.as_bytes()).ok()).ok_or_else(|| wrong(name))
    }

    fn array<const N: usize>(&self, name: &str) -> Result<[u8; N], Refusal> {
        self.bytes(name)?.try_into().map_err(|_| wrong(name))
    }

    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// A number in sixteen hexadecimal digits.
    fn hex(&self, name: &str) -> Result<u64, Refusal> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or_else(|| wrong(name))
    }

    fn part(&self, name: &str) -> Result<Case, Refusal> {
        self.0.get(name).cloned().map(Case).ok_or_else(|| wrong(name))
    }

    fn numbers<T: TryFrom<u64>>(&self, name: &str) -> Result<Vec<T>, Refusal> {
        let all = self.0.get(name).and_then(Value::as_array).ok_or_else(|| wrong(name))?;
        let one = |each: &Value| each.as_u64().and_then(|each| each.try_into().ok());
        all.iter().map(one).collect::<Option<_>>().ok_or_else(|| wrong(name))
    }

    fn keys(&self) -> Result<(MasterSecret, StreamId, SchemaId), Refusal> {
        let master = MasterSecret::new(Secret::from_bytes(self.array("master")?));
        Ok((master, StreamId(self.array("stream")?), SchemaId(self.array("schema")?)))
    }
}

fn wrong(what: &str) -> Refusal {
    Refusal::argument("Case", what)
}

/// A session of words with the keys and the number of a case of `encrypted-stream`.
///
/// # Safety
/// `case` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_session(
    case: *const c_char,
    length: usize,
    session: Out<'_, Option<Box<Session>>>,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        let out = there(session, "session")?.write(None);
        // SAFETY: the caller answers for it.
        let case = unsafe { Case::read(case, length) }?;
        let (master, stream, schema) = case.keys()?;
        let (tick, words) = (Span(case.number("tick")?), case.small("words")?);
        let producer = Producer::new(&master, stream, schema, tick, words);
        let producer = producer.map_err(|error| Refusal::of(Code::FileInvalid, &error))?;
        let start = (Start::First, Timestamp(case.number("start")?));
        let rng = Randomness::scripted(&case.hex("session")?.to_le_bytes());
        let handle = Handle::start(Offline::Events(Box::new(producer)), None, start, rng)?;
        *out = Some(Box::new(Session::new(handle)));
        Ok(())
    })
}

/// A session of ticks with the keys and the number of a case of `ticks`.
///
/// # Safety
/// `case` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_tick_session(
    case: *const c_char,
    length: usize,
    session: Out<'_, Option<Box<Session>>>,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        let out = there(session, "session")?.write(None);
        // SAFETY: the caller answers for it.
        let case = unsafe { Case::read(case, length) }?;
        let (master, stream, schema) = case.keys()?;
        let seed = |name| case.array(name).map(Secret::from_bytes);
        let authority = VerifyingKey::from_bytes(case.array("authority")?);
        let secrets = OpeningSecrets {
            device: SigningKey::from_seed(&seed("device_seed")?),
            certificate: Digest(case.array("certificate")?),
            authority: authority.map_err(|_| wrong("authority"))?,
            ingest: Digest(case.array("ingest_key")?),
            ingest_key: SealingKey::from_seed(&seed("ingest_seed")?).public(),
        };
        let blocks = Blocks::of_lengths(&case.numbers("blocks")?);
        let (tick, anchor) = (Span(case.number("tick")?), Span(case.number("anchor")?));
        let shape = TickShape { tick, anchor, blocks };
        let producer = TickProducer::new(&master, stream, schema, shape, secrets);
        let producer = producer.map_err(|error| Refusal::of(Code::FileInvalid, &error))?;
        let start = (Start::First, Timestamp(case.number("opened")?));
        let number = case.hex("session")?.to_le_bytes();
        let drawn = [&number[..], &case.bytes("session_key")?].concat();
        let rng = Randomness::scripted(&drawn);
        let handle = Handle::start(Offline::Ticks(Box::new(producer)), None, start, rng)?;
        *out = Some(Box::new(Session::new(handle)));
        Ok(())
    })
}

/// Encrypts the words of an event.
///
/// # Safety
/// `words` has `count` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_words(
    session: Option<&Session>,
    at_us: u64,
    words: *const u64,
    count: usize,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller answers for it.
        let words = unsafe { list(words, count, "words") }?;
        there(session, "session")?.handle().words(Timestamp(at_us), words)
    })
}

/// The configuration of a case, under a card without addresses.
fn card(case: &Case) -> Result<Card, Refusal> {
    let given = case.part("configuration")?;
    let times: Vec<u64> = given.numbers("schedule")?;
    let [start, epoch, pre_login, border_pre_login, epochs_per_period, ahead] = times[..] else {
        return Err(wrong("schedule"));
    };
    let issuer = IssuerKey::from_bytes(&Secret::from_bytes(given.array("issuer")?));
    let configuration = Configuration {
        deployment: given.array("deployment")?,
        kind: given.small("kind")?,
        tier: given.small("tier")?,
        limit: given.small::<u32>("limit")?.try_into().map_err(|_| wrong("limit"))?,
        incarnation: given.number("incarnation")?,
        schedule: Schedule {
            start: Timestamp(start),
            epoch: Span(epoch),
            pre_login: Span(pre_login),
            border_pre_login: Span(border_pre_login),
            epochs_per_period,
            ahead,
        },
        issuer: *issuer.map_err(|_| wrong("issuer"))?.public(),
    };
    let operator = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let signed = Signed::new(&configuration, &operator);
    let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key());
    let pinned = pinned.map_err(|error| Refusal::of(Code::CardInvalid, &error))?;
    let fingerprint = pinned.fingerprint();
    let (issuer, gateway) = ("https://issuer.example".to_owned(), String::new());
    Ok(Card { pinned, fingerprint, issuer, gateway, authority: None })
}

/// The records of a case: a credential, and a presentation that was made before.
fn records(case: &Case, contents: &mut Contents) -> Result<(), Refusal> {
    if !case.has("m1") || case.has("request") {
        return Ok(());
    }
    let period = case.number("period")?.to_be_bytes();
    let credential = [case.bytes("m1")?, case.bytes("u")?, case.bytes("mac")?].concat();
    contents.records.insert([b"credential", &period[..]].concat(), credential);
    let shown = |epoch: u64, index: u32| {
        [b"shown", &period[..], &epoch.to_be_bytes(), &index.to_be_bytes()].concat()
    };
    if case.has("shown_session") {
        let session = [case.bytes("shown_session")?, vec![7; 32]].concat();
        contents.records.insert(shown(case.number("epoch")?, 0), session);
    } else if case.has("index")
        && let Some(before) = case.small::<u32>("index")?.checked_sub(1)
    {
        contents.records.insert(shown(case.number("epoch")?, before), vec![0; 64]);
    }
    Ok(())
}

/// The pass of a case of `anonymous-credential`.
///
/// # Safety
/// `case` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_pass(
    case: *const c_char,
    length: usize,
    store: PassStore,
    context: *mut c_void,
    pass: Out<'_, Option<Box<Pass>>>,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        let out = there(pass, "pass")?.write(None);
        // SAFETY: the caller answers for it.
        let case = unsafe { Case::read(case, length) }?;
        let mut contents = Contents::default();
        if case.has("account") {
            let account = String::from_utf8(case.bytes("account")?);
            contents.account = account.map_err(|_| wrong("account"))?;
        }
        contents.evidence = Evidence::Secret("a secret of ada".to_owned());
        records(&case, &mut contents)?;
        let card = card(&case)?;
        let (hardness, mut rng) = (Hardness { memory: 8, passes: 1 }, Randomness::scripted(&[]));
        let pace = Pace::draw(&mut rng);
        // SAFETY: the caller answers for it.
        let write = unsafe { writer(store, context) }?;
        let store = Store::create(contents, &[9; 32], hardness, rng, write)?;
        *out = Some(Box::new(Pass::new(PassHandle::with(card, store, pace))));
        Ok(())
    })
}

/// The pass draws these bytes next.
///
/// # Safety
/// `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_pass_draws(
    pass: Option<&Pass>,
    bytes: *const u8,
    length: usize,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller answers for it.
        let bytes = unsafe { list(bytes, length, "bytes") }?;
        there(pass, "pass")?.handle().draw_from(Randomness::scripted(bytes))
    })
}

/// A login with a message of 32 bytes.
///
/// # Safety
/// Each argument has as many bytes as its length says, `buffer` room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_pass_log_in(
    pass: Option<&Pass>,
    hello: Option<&[u8; 96]>,
    message: Option<&[u8; 32]>,
    now_us: u64,
    buffer: *mut u8,
    capacity: usize,
    length: Out<'_, usize>,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        let (hello, message) = (there(hello, "hello")?, there(message, "message")?);
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        let pass = there(pass, "pass")?.handle();
        buffer.write(&pass.log_in(Timing::Running, hello, &Digest(*message), Timestamp(now_us))?)
    })
}

/// What the pass of a period is stored as, by which vectors know it.
///
/// # Safety
/// `buffer` has room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn known_pass_credential(
    pass: Option<&Pass>,
    period: u64,
    buffer: *mut u8,
    capacity: usize,
    length: Out<'_, usize>,
    error: Out<'_, Error>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        there(pass, "pass")?.handle().read(|_, store| {
            let key = [b"credential", &period.to_be_bytes()[..]].concat();
            let found = store.contents.records.get(&key).cloned().map(Zeroizing::new);
            buffer.write(&found.ok_or_else(|| wrong("no credential"))?)
        })
    })
}
