//! Results that only one consumer can read: what the consumer gets, and what the service,
//! other consumers and late tokens do not reveal.

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, Party, consumer_id};
use alpheus_encrypted_stream::consumer::{
    Consumer, ConsumerPad, ConsumerSecrets, Reader, SealedSum, pad_digest,
};
use alpheus_encrypted_stream::error::{
    CertificateError, PlanConsumerError, PlanRefusalError, UnsealError,
};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{Announcement, Opening, Token};
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp};

use crate::protocol::evil::Evil;
use crate::protocol::identities::SUBJECT;
use crate::protocol::net::Net;
use crate::protocol::noise::Noise;
use crate::protocol::plans::said;
use crate::protocol::world::{Setup, World, after, key, window};

/// The keys of a consumer, by number.
fn secrets(seed: u8) -> ConsumerSecrets {
    ConsumerSecrets::from_seed(&Secret::from_bytes([seed; 32]))
}

/// The certificate of the consumer that plans are sealed to.
pub fn certificate() -> Signed<Certificate> {
    secrets(77).request("tests").certify(SUBJECT, &key(101))
}

/// One that the same consumer had before.
pub fn earlier_certificate() -> Signed<Certificate> {
    secrets(76).request("tests").certify(SUBJECT, &key(101))
}

/// The key that it names.
pub fn hybrid() -> HybridPublic {
    secrets(77).hybrid().clone()
}

/// Its id.
pub fn id() -> ConsumerId {
    consumer_id(&certificate().open(&key(101).verifying_key()).unwrap())
}

fn consumer(deployment: &Deployment) -> Consumer {
    secrets(77).certified(&certificate(), deployment).unwrap()
}

pub fn reader(world: &World) -> Reader {
    consumer(&world.deployment).reader(&world.announced).unwrap()
}

fn sealed(controllers: u32) -> Setup {
    Setup { sealed: true, ..Setup::new(controllers) }
}

/// Five controllers, of which two may drop out.
fn five() -> Setup {
    Setup { dropout: Fraction { numerator: 2, denominator: 5 }, ..sealed(5) }
}

fn published(net: &Net, number: usize) -> SealedSum {
    let opened = net.outcomes[number].result.as_ref().unwrap_or_else(|f| panic!("{f}"));
    assert!(opened.outputs.is_empty(), "the service opens nothing");
    opened.sealed.clone().unwrap()
}

#[test]
fn the_consumer_reads_what_the_service_cannot() {
    for controllers in [1, 2, 3, 5] {
        let mut net = Net::new(Setup { streams_each: 2, ..sealed(controllers) });
        let reader = reader(&net.world);
        for number in 0..3 {
            net.close(number);
            let truth = net.world.truth(0..2 * controllers as usize, number);
            let sum = published(&net, number as usize);
            let alike = sum.words.iter().zip(&truth).filter(|(padded, true_)| padded == true_);
            assert_eq!(alike.count(), 0, "N = {controllers}");
            assert_eq!(reader.open(&sum), Ok(truth), "N = {controllers}");
            let (bytes, again) = (sum.to_bytes(), SealedSum::from_bytes(&sum.to_bytes()));
            assert_eq!((again, bytes[0]), (Ok(sum), 1));
        }
        // Each window has its own pads.
        let words = |number| published(&net, number).words;
        assert!(words(0).iter().zip(words(1)).all(|(one, other)| *one != other));
    }
}

#[test]
fn a_dropout_does_not_corrupt_the_result_and_returns_with_the_same_answers() {
    let mut net = Net::new(five());
    net.asleep = vec![2];
    let report = net.world.report(0);
    let step = net.coordinator.handle_window_report(&report, after(0));
    net.run(after(0), step);
    net.sleep_after_presence = vec![];
    net.timeout(after(0).plus(Span::seconds(2)));
    let reader = reader(&net.world);
    assert_eq!(reader.open(&published(&net, 0)), Ok(net.world.truth([0, 1, 3, 4], 0)));
    // It drops out between M and S: its pad is in a token that does not count.
    net.asleep = vec![];
    let report = net.world.report(1);
    let step = net.coordinator.handle_window_report(&report, after(1));
    net.sleep_after_presence = vec![4];
    net.run(after(1), step);
    net.timeout(after(1).plus(Span::seconds(2)));
    assert_eq!(reader.open(&published(&net, 1)), Ok(net.world.truth(0..4, 1)));
    // All controllers restart and agree on keys again.
    (net.asleep, net.sleep_after_presence) = (vec![], vec![]);
    net.restore_controllers(after(1), true);
    net.close(2);
    assert_eq!(reader.open(&published(&net, 2)), Ok(net.world.truth(0..5, 2)));
}

#[test]
fn noise_adds_up_under_the_pads() {
    for controllers in [1, 4] {
        let mut net = Net::new(Setup { noise: Some(Noise::new(9)), ..sealed(controllers) });
        net.close(0);
        let rows = reader(&net.world).open(&published(&net, 0)).unwrap();
        let truth = net.world.truth(0..controllers as usize, 0);
        let noise = rows[0].wrapping_sub(truth[0]).cast_signed();
        assert!(noise.abs() < 1_000 && rows.last() == Some(&0), "{noise}");
    }
}

/// Everything that a malicious service gets of a window: the tokens of all five and the
/// openings of the first four.
fn held(evil: &mut Evil) -> (Digest, Vec<Token>, Vec<Opening>) {
    let draft = evil.gather();
    let tokens: Vec<Token> = (0..5).map(|p| evil.token(p, &draft).unwrap()).collect();
    let set = evil.set(&draft, &[0, 1, 2, 3]);
    let openings = (0..4).map(|p| evil.opening(p, &set).unwrap()).collect();
    (tokens[0].membership, tokens, openings)
}

fn picked<T>(all: &[T], bits: u32) -> Vec<&T> {
    all.iter().zip(0..).filter(|(_, at)| bits >> at & 1 == 1).map(|(one, _)| one).collect()
}

/// Every sum of tokens and openings that the service can compute, over every choice of
/// streams: none reveals a row of any stream.
#[test]
fn nothing_that_the_service_adds_up_shows_a_value() {
    let mut evil = Evil::new(five());
    let (_, tokens, openings) = held(&mut evil);
    for bits in 1..32 {
        let streams: Vec<u32> = (0..5).filter(|at| bits >> at & 1 == 1).collect();
        let truth = evil.world.truth(streams.iter().map(|at| *at as usize), 0);
        for of_tokens in 0..32 {
            for of_openings in 0..16 {
                let (t, o) = (picked(&tokens, of_tokens), picked(&openings, of_openings));
                let sum = evil.add_up(&streams, &t, &o);
                assert!(sum.iter().zip(&truth).all(|(word, true_)| word != true_));
            }
        }
    }
}

/// Without RELEASE TO the same sums do reveal it, so the test above can fail.
#[test]
fn without_a_consumer_the_service_opens_the_window() {
    let mut evil = Evil::new(Setup { sealed: false, ..five() });
    let (_, tokens, openings) = held(&mut evil);
    let (t, o) = (picked(&tokens, 0b1111), picked(&openings, 0b1111));
    assert_eq!(evil.add_up(&[0, 1, 2, 3], &t, &o), evil.world.truth(0..4, 0));
}

/// As without RELEASE TO: the opening opens, and a late token stays under its mask.
#[test]
fn with_the_consumers_key_the_service_learns_the_sum_and_no_late_token() {
    let mut evil = Evil::new(five());
    let (membership, tokens, openings) = held(&mut evil);
    let (plan, reader) = (evil.world.id(), reader(&evil.world));
    let sum = |evil: &Evil, members: &[u32]| {
        let bits = members.iter().fold(0, |bits, at| bits | 1 << at);
        let o: Vec<&Opening> = openings.iter().collect();
        let words = evil.add_up(members, &picked(&tokens, bits), &o);
        let set = RosterSet::of(5, members.iter().copied());
        reader.open(&SealedSum { plan, window: window(0), membership, set, words })
    };
    assert_eq!(sum(&evil, &[0, 1, 2, 3]), Ok(evil.world.truth(0..4, 0)));
    for members in [&[0, 1, 2, 3, 4][..], &[4], &[0, 1, 2], &[0, 1, 2, 4]] {
        assert_eq!(sum(&evil, members), Err(UnsealError::CheckWord), "{members:?}");
    }
}

#[test]
fn another_consumer_reads_nothing() {
    let mut net = Net::new(sealed(3));
    net.close(0);
    let sum = published(&net, 0);
    let (deployment, announced) = (&net.world.deployment, &net.world.announced);
    // Certified like the other consumer, even under the same name.
    for name in ["tests", "others"] {
        let signed = secrets(78).request(name).certify(SUBJECT, &net.world.authority);
        let other = secrets(78).certified(&signed, deployment).unwrap();
        assert_eq!(other.reader(announced).err(), Some(UnsealError::OtherConsumer));
    }
    // With its own key in the other's place it removes different pads.
    let at = pad_digest(&sum.plan, sum.window, &sum.membership);
    let mut words = sum.words;
    for controller in announced.agreement() {
        let own = AgreementKey::from_seed(&Secret::from_bytes([78; 32]));
        ConsumerPad::agree(&own, controller).unwrap().subtract_from(&at, &mut words);
    }
    let truth = net.world.truth(0..3, 0);
    assert!(words.iter().zip(&truth).all(|(word, true_)| word != true_));
    // A plan that is not sealed has no reader, and a certificate is only for its own keys.
    let open = World::new(Setup::new(3));
    let unsealed = consumer(&open.deployment).reader(&open.announced).err();
    assert_eq!(unsealed, Some(UnsealError::NotSealed));
    let keys = secrets(78).certified(&certificate(), deployment).err();
    assert_eq!(keys, Some(CertificateError::OtherKeys));
    let role = secrets(77).certified(&net.world.seats[0].1, deployment).err();
    assert_eq!(role, Some(CertificateError::Role));
}

#[test]
fn a_sum_changed_by_the_service_is_refused_with_the_reason() {
    let mut net = Net::new(sealed(3));
    net.close(0);
    let (sum, reader) = (published(&net, 0), reader(&net.world));
    let tampered = |tamper: fn(&mut SealedSum)| {
        let mut sum = sum.clone();
        tamper(&mut sum);
        reader.open(&sum).unwrap_err()
    };
    assert_eq!(tampered(|sum| sum.plan.0[0] ^= 1), UnsealError::OtherPlan);
    assert_eq!(tampered(|sum| sum.window.end.0 += 1), UnsealError::OtherWindow);
    assert_eq!(tampered(|sum| sum.window = shifted()), UnsealError::OtherWindow);
    assert_eq!(tampered(|sum| sum.set = RosterSet::empty(3)), UnsealError::OtherRoster);
    assert_eq!(tampered(|sum| sum.set = RosterSet::full(4)), UnsealError::OtherRoster);
    assert_eq!(tampered(|sum| sum.words.truncate(1)), UnsealError::WrongLength);
    assert_eq!(tampered(|sum| sum.set.remove(1)), UnsealError::CheckWord);
    assert_eq!(tampered(|sum| sum.membership.0[0] ^= 1), UnsealError::CheckWord);
    assert_eq!(tampered(|sum| sum.window = window(1)), UnsealError::CheckWord);
    let last = |sum: &mut SealedSum| *sum.words.last_mut().unwrap() ^= 1;
    assert_eq!(tampered(last), UnsealError::CheckWord);
}

fn shifted() -> alpheus_time::Window {
    let Timestamp(start) = window(0).start;
    alpheus_time::Window { start: Timestamp(start + 1), end: window(0).end.plus(Span(1)) }
}

/// Controller 0's answer to the sealed plan after the service has tampered with it.
fn tampered(tamper: impl FnOnce(&mut Announcement)) -> Result<(), PlanRefusalError> {
    let mut evil = Evil::unannounced(sealed(3));
    let certificates = evil.world.seats.iter().map(|(_, certificate)| certificate.clone());
    let (plan, consumer) = (evil.world.plan.clone(), Some(certificate()));
    let mut announcement = Announcement { plan, certificates: certificates.collect(), consumer };
    tamper(&mut announcement);
    said(&mut evil, &announcement)
}

/// A plan that is sealed to the certificate's holder.
fn sealed_by(certificate: Signed<Certificate>, by: u8) -> Result<(), PlanRefusalError> {
    tampered(|announcement| {
        let opened = certificate.open(&key(by).verifying_key()).unwrap();
        announcement.plan.sealed_to = Some(consumer_id(&opened));
        announcement.consumer = Some(certificate);
    })
}

#[test]
fn a_service_that_substitutes_a_key_is_refused_with_the_reason() {
    let fault = |fault| Err(PlanRefusalError::Consumer(fault));
    assert_eq!(tampered(|_| {}), Ok(()));
    assert_eq!(tampered(|a| a.consumer = None), fault(PlanConsumerError::Missing));
    // A certificate that its holder signed itself; another consumer's certificate.
    let own = secrets(5).request("tests").certify(SUBJECT, &key(102));
    assert_eq!(sealed_by(own.clone(), 102), fault(PlanConsumerError::Unsigned));
    assert_eq!(tampered(|a| a.consumer = Some(own)), fault(PlanConsumerError::Unsigned));
    let other = secrets(5).request("other").certify(SUBJECT, &key(101));
    assert_eq!(sealed_by(other.clone(), 101), fault(PlanConsumerError::OtherName));
    assert_eq!(tampered(|a| a.consumer = Some(other)), fault(PlanConsumerError::OtherCertificate));
    let controller = |a: &mut Announcement| a.consumer = Some(a.certificates[0].clone());
    assert_eq!(tampered(controller), fault(PlanConsumerError::Role));
    // Keys that another party also has, or that everybody knows.
    let seats = World::new(sealed(3)).seats;
    let seat = seats[2].1.open(&key(101).verifying_key()).unwrap().into_inner();
    let with = |agreement| {
        let party = Party { agreement, ..secrets(5).request("tests") };
        party.certify(SUBJECT, &key(101))
    };
    let fault_of = |agreement| sealed_by(with(agreement), 101);
    assert_eq!(fault_of(seat.party.agreement), fault(PlanConsumerError::SharedKey));
    let low = AgreementPublic([0; 32]);
    assert_eq!(fault_of(Some(low)), fault(PlanConsumerError::LowOrder));
}

/// The consumer, not the service, decides that `to` receives results under that key.
#[test]
fn an_unsealed_plan_is_refused_if_a_policy_names_the_consumer() {
    let open = |a: &mut Announcement| (a.plan.sealed_to, a.consumer) = (None, None);
    let Err(PlanRefusalError::Policy { violation, .. }) = tampered(open) else { panic!() };
    assert_eq!(violation.rule, "consumer");
    let unwanted = tampered(|a| a.plan.sealed_to = None);
    assert_eq!(unwanted, Err(PlanRefusalError::Consumer(PlanConsumerError::Unwanted)));
}

#[test]
fn the_owners_log_states_whether_the_service_saw_the_result() {
    for sealed in [true, false] {
        let mut net = Net::new(Setup { sealed, ..Setup::new(3) });
        net.close(0);
        let own = net.store.values(Scope::Controller(net.controllers[0].id()));
        let flags = own.iter().filter_map(|value| match StampedRecord::read(value).unwrap().record {
            Record::Log(LogLine {
                event: LogEvent::PlanAccepted { sealed, .. } | LogEvent::Released { sealed, .. },
                ..
            }) => Some(sealed),
            _ => None,
        });
        assert_eq!(flags.collect::<Vec<_>>(), [sealed; 2]);
    }
}
