//! What makes frames of one a tick count: the device's certified key, which opens sessions, and
//! the service's ingest key, to which the keys of sessions are sealed.
//!
//! | file | in the identity folder of | holds |
//! | --- | --- | --- |
//! | `device.seed`, `device.txt` | a producer | the key that signs openings, and its certificate |
//! | `ingest.seed` | the server | the ingest key of the certificate in `deployment.json` |
//! | `ingest.1.seed`, `ingest.2.seed`, … | the server | retired ingest keys that devices may still use |

use crate::deployment::{self, DEVICE_CERTIFICATE, DEVICE_SEED, ingest_seed};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::producer::OpeningSecrets;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::pki::read_seed;
use alpheus_policy::schema::Schema;

/// A producer's device, as the authority certified it.
pub struct DeviceIdentity {
    /// What opens its sessions.
    pub secrets: OpeningSecrets,
    /// Its certificate, for the service.
    pub certificate: Signed<Certificate>,
}

impl DeviceIdentity {
    /// Reads the device's key and certificate, and the ingest key of the deployment.
    ///
    /// # Errors
    /// If a file cannot be read, or the certificate is not the folder's.
    pub fn open(folder: &IdentityFolder) -> Result<DeviceIdentity, Failure> {
        let device = SigningKey::from_seed(&read_seed(&folder.path(DEVICE_SEED))?);
        let path = folder.path(DEVICE_CERTIFICATE);
        let certificate = deployment::read_certificate(&path)?;
        let deployment = deployment::of(folder)?;
        let opened = deployment.device(&certificate).blame_input(&path)?;
        let party = (&opened.party.verifying, opened.party.name.as_str());
        deployment::check_own(&path, party, &device, folder)?;
        let current = deployment::ingest_of(folder)?.into_iter().next();
        let current = current.ok_or_else(no_ingest)?;
        let secrets = OpeningSecrets {
            device,
            certificate: opened.digest(),
            authority: *deployment.authority(),
            ingest: current.0,
            ingest_key: current.1,
        };
        Ok(DeviceIdentity { secrets, certificate })
    }
}

/// The server's check of frames.
///
/// # Errors
/// If a key cannot be read, or belongs to no certificate in the deployment's file.
pub fn server_check(folder: &IdentityFolder, schema: &Schema) -> Result<Ingest, Failure> {
    let deployment = deployment::of(folder)?;
    let certified = deployment::ingest_of(folder)?;
    if certified.is_empty() {
        return Err(no_ingest());
    }
    let mut keys: Vec<(Digest, SealingKey)> = Vec::new();
    for place in 0.. {
        let path = folder.path(&ingest_seed(place));
        if place > 0 && !path.exists() {
            break;
        }
        let key = SealingKey::from_seed(&read_seed(&path)?);
        let own = certified.iter().find(|(_, public)| *public == key.public());
        let (digest, _) = own
            .ok_or("the ingest key belongs to no certificate in deployment.json")
            .blame_input(&path)?;
        keys.push((*digest, key));
    }
    Ok(Ingest::new(*deployment.authority(), schema.id(), schema.tick, keys))
}

fn no_ingest() -> Failure {
    let what =
        "deployment.json names no ingest key, but a schema without `frames: events` needs one";
    Failure::new(Category::Input, what)
        .with_help("create the deployment with `alpheus ca init` of this version")
}
