//! What a pass sends to a gateway after it was used elsewhere: nothing of a code, and nothing of
//! another session.

use super::*;

/// Uses the pass at a gate.
fn show_code(file: &mut PassFile, pinned: &PinnedConfiguration) {
    let (now, mut rng) = (clock::now(), alpheus_node::entropy::rng().unwrap());
    let period = pinned.schedule.period_of(pinned.schedule.epoch_at(now).unwrap());
    let mut holder = file.holder(pinned, period).unwrap().unwrap();
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    holder.code(&compared, now, &mut rng).unwrap().commit(file).unwrap();
}

/// A pass, with codes of two epochs, whose next epoch is open.
fn passes(folder: &tempfile::TempDir, code: bool) -> (Passes, PinnedConfiguration, Epoch) {
    let mut rng = alpheus_node::entropy::rng().unwrap();
    let key = IssuerKey::random(&mut rng).unwrap();
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    let mut settings = configuration(&key, 600);
    settings.schedule.pre_login = settings.schedule.epoch;
    settings.schedule.border_pre_login = settings.schedule.epoch;
    let signed = Signed::new(&settings, &operator);
    let at = "http://127.0.0.1:1".to_owned();
    let card = Card::new(&Content::new(&signed, &operator, at.clone(), at, None), &operator);
    let mut file = pass_file(folder, &card, key);
    let pinned = card.open().unwrap().pinned;
    let epoch = pinned.schedule.epoch_at(clock::now()).unwrap();
    if code {
        show_code(&mut file, &pinned);
    }
    (Passes::new(file, pinned.clone()), pinned, epoch)
}

/// The gateway would learn from which address somebody came through the gate.
#[test]
fn after_a_code_nothing_is_sent_until_its_epochs_are_over() {
    let folder = tempfile::tempdir().unwrap();
    let (mut passes, pinned, epoch) = passes(&folder, true);
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let mut rng = alpheus_node::entropy::rng().unwrap();
    for (epoch, timing) in [(epoch, Timing::Running), (epoch.next(), Timing::Next)] {
        let refused = passes.log_in(epoch, timing, &compared, &mut rng).unwrap_err();
        let of_code = matches!(refused, SessionError::Holder(HolderError::Code));
        assert!(of_code && refused.kind() == FailureKind::Refused, "{refused}");
        assert!(!refused.is_final(), "it goes on in a later epoch");
    }
}

/// It would see who comes online again and again without a login.
#[tokio::test]
async fn after_a_code_a_client_does_not_even_greet_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, mut file) = world(&folder, 600, Behaviour::default()).await;
    let pinned = fake.state().pinned.clone();
    show_code(&mut file, &pinned);
    let ended = drive(file, 1 << 30, Duration::from_secs(2)).await;
    assert!(ended.is_none(), "{ended:?}");
    let state = fake.state();
    assert_eq!((state.hellos, state.logins.len()), (0, 0));
}

/// The next epoch's session is another. Its message belongs on connections of its own.
#[test]
fn a_session_is_carried_on_by_its_own_messages_only() {
    let folder = tempfile::tempdir().unwrap();
    let (mut passes, pinned, epoch) = passes(&folder, false);
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let mut rng = alpheus_node::entropy::rng().unwrap();
    let ours = passes.log_in(epoch, Timing::Running, &compared, &mut rng).unwrap();
    let next = passes.log_in(epoch.next(), Timing::Next, &compared, &mut rng).unwrap();
    assert_ne!(ours.session, next.session);
    let carried = passes.re_up(ours.session, epoch, &mut rng);
    let burnt = matches!(carried, Err(SessionError::Holder(HolderError::Burnt)));
    assert!(burnt, "{:?}", carried.map(|sent| sent.session == next.session));
}

/// Its answer was lost.
#[test]
fn a_re_up_is_sent_again_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (mut passes, pinned, epoch) = passes(&folder, false);
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let mut rng = alpheus_node::entropy::rng().unwrap();
    let ours = passes.log_in(epoch, Timing::Running, &compared, &mut rng).unwrap().session;
    let sent = passes.re_up(ours, epoch, &mut rng).unwrap();
    assert_eq!(passes.re_up(ours, epoch, &mut rng).unwrap(), sent);
}
