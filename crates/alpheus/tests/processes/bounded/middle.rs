//! Who stands between a controller and the service, and has the keys of both ends: a controller that
//! lies. It changes what the honest program says, and signs that.

use crate::common::deployment::Site;
use crate::common::relay::{Relay, relay};
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_node::files::read_key_file;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::slots::SlotFile;
use alpheus_streams::controller::guard::Spaces;
use alpheus_streams::controller::keystore::KeyStore;
use alpheus_streams::wire::Mail;
use alpheus_transport::local;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Its share is more than its commitments say.
    Share,
    /// Its proof of its owner's bounds is that of an earlier window.
    Proof,
    /// As its share, and it does not state its edges.
    Silence,
}

/// The liar.
pub(crate) struct Liar {
    key: SigningKey,
    lie: Mutex<Option<Lie>>,
    /// What it has signed, by what the controller had.
    given: Mutex<HashMap<Digest, Digest>>,
    /// The proofs of the last window in which it had some.
    proofs: Mutex<Vec<Vec<u8>>>,
}

/// Gives a house's controller an identity whose key is returned.
pub(crate) fn known_identity(place: &Site, house: &str) -> SigningKey {
    let (host, state) = (format!("host-{house}"), place.path(&format!("run/host-{house}")));
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::create_dir_all(&state).unwrap();
    let (mut rng, spaces) = (ChaCha20Rng::seed_from_u64(7), Spaces::new().unwrap());
    let seed = {
        let store = local::open(&state, &local::Options::default()).unwrap();
        let slots = SlotFile::open(&state.join("slots")).unwrap();
        let bytes = read_key_file(&place.path("key")).unwrap();
        let keys = KeyStore::create(store, spaces.keys, slots, &bytes, &mut rng).unwrap();
        let mut same = ChaCha20Rng::deserialize_state(&rng.serialize_state());
        let seed = Secret::<32>::random(&mut same);
        keys.new_identity(&host, &mut rng).unwrap();
        seed
    };
    let (identity, state) = (format!("pki/{host}"), format!("run/{host}"));
    let place_of = ["--identity", &identity, "--state", &state, "--key-file", "key"];
    place.done(&[&["controller", "init"], &place_of[..], &["--ca", "pki"]].concat());
    SigningKey::from_seed(&derive(seed.expose(), labels::IDENTITY_SIGNING, &[]))
}

impl Liar {
    /// Stands before the service, as which the controller knows it; at which address.
    pub(crate) fn start(
        folders: (&Path, &Path),
        url: &str,
        key: SigningKey,
    ) -> (Arc<Liar>, Trigger, String) {
        let (lie, given, proofs) = Default::default();
        let liar = Arc::new(Liar { key, lie, given, proofs });
        let (trigger, address) = relay(folders, url, Arc::clone(&liar));
        (liar, trigger, address)
    }

    /// Lies from now on, or no more.
    pub(crate) fn tell(&self, lie: Option<Lie>) {
        *self.lie.lock().unwrap() = lie;
    }

    fn changed(&self, message: ControllerMessage) -> ControllerMessage {
        let mut given = self.given.lock().unwrap();
        match (&message, *self.lie.lock().unwrap()) {
            (ControllerMessage::Contribution(signed), Some(lie)) => {
                let mut own = signed.dangerous_unverified().unwrap();
                match lie {
                    Lie::Share | Lie::Silence => {
                        let sum = own.share.values.iter_mut().next_back().unwrap();
                        *sum = sum.plus(&PublicScalar::of(1_000));
                    }
                    Lie::Proof => {
                        let old = self.proofs.lock().unwrap();
                        let both = own.owners.iter_mut().zip(old.iter());
                        both.for_each(|(owner, old)| owner.proof.clone_from(old));
                    }
                }
                let changed = Signed::new(&own, &self.key);
                given.insert(signed.digest(), changed.digest());
                ControllerMessage::Contribution(changed)
            }
            (ControllerMessage::Contribution(signed), None) => {
                let own = signed.dangerous_unverified().unwrap();
                let proofs: Vec<_> = own.owners.into_iter().map(|owner| owner.proof).collect();
                if !proofs.is_empty() {
                    *self.proofs.lock().unwrap() = proofs;
                }
                message
            }
            (ControllerMessage::BoundedOpening(signed), _) => {
                let mut own = signed.dangerous_unverified().unwrap();
                let Some(digest) = given.get(&own.contribution) else { return message };
                own.contribution = *digest;
                ControllerMessage::BoundedOpening(Signed::new(&own, &self.key))
            }
            _ => message,
        }
    }
}

impl Relay for Liar {
    fn says(&self, mail: &mut Mail) {
        let is_silent = *self.lie.lock().unwrap() == Some(Lie::Silence);
        let says =
            |own: &ControllerMessage| !is_silent || !matches!(own, ControllerMessage::Edges(_));
        mail.messages.retain(|(_, _, own)| says(own));
        for (_, _, message) in &mut mail.messages {
            *message = self.changed(message.clone());
        }
    }
}
