//! An owner's keys in an identity folder: the key that signs choices, and the certificate that
//! makes its holder one owner of the deployment.

use crate::deployment::{self, OWNER_CERTIFICATE, OWNER_SEED};
use crate::wire::{Choice, GrantRequest, WithdrawalRequest};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::certificate::{
    Certificate, CertifiedOwner, Party, Role, consumer_id,
};
use alpheus_encrypted_stream::grant::{Days, Grant};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::pki::read_seed;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Span, Timestamp};

/// An owner who can sign.
pub struct OwnerIdentity {
    /// Signs choices, grants and withdrawals.
    pub key: SigningKey,
    /// As the authority certified it.
    pub certified: CertifiedOwner,
}

impl OwnerIdentity {
    /// Reads key and certificate, and checks that they belong together, to this deployment
    /// and to the folder's name.
    ///
    /// # Errors
    /// If a file cannot be read, or the certificate is not the folder's.
    pub fn open(folder: &IdentityFolder) -> Result<OwnerIdentity, Failure> {
        let key = signing_key(folder)?;
        let path = folder.path(OWNER_CERTIFICATE);
        let signed = deployment::read_certificate(&path)?;
        let certified = deployment::of(folder)?.owner(&signed).blame_input(&path)?;
        deployment::check_own(&path, (certified.key(), certified.name()), &key, folder)?;
        Ok(OwnerIdentity { key, certified })
    }

    /// A choice for a stream, without an end.
    #[must_use]
    pub fn choice(
        &self,
        stream: (StreamId, SchemaId),
        version: u32,
        metadata: Vec<(String, String)>,
        policy: ResolvedPolicy,
    ) -> Signed<Annotation> {
        self.choice_from(Timestamp(0), stream, version, metadata, policy)
    }

    /// The same for data from a time on.
    #[must_use]
    pub fn choice_from(
        &self,
        valid_from: Timestamp,
        (stream, schema): (StreamId, SchemaId),
        version: u32,
        metadata: Vec<(String, String)>,
        policy: ResolvedPolicy,
    ) -> Signed<Annotation> {
        let annotation = Annotation {
            stream,
            owner: self.certified.id(),
            schema,
            version,
            valid_from,
            valid_to: Timestamp::LIMIT,
            metadata,
            policy,
        };
        Signed::new(&annotation, &self.key)
    }

    /// Submits a signed choice.
    #[must_use]
    pub fn submission(&self, annotation: Signed<Annotation>) -> Choice {
        Choice { annotation, owner: self.certified.certificate().clone() }
    }

    /// Lets a consumer read days of a stream; without days, ends that.
    #[must_use]
    pub fn grant(
        &self,
        stream: StreamId,
        reader: &Verified<Certificate>,
        certificate: Signed<Certificate>,
        (at, days): (Timestamp, Option<Days>),
    ) -> GrantRequest {
        let grant = Grant { stream, reader: consumer_id(reader), at, days };
        let signed = Signed::new(&grant, &self.key);
        GrantRequest { signed, owner: self.certified.certificate().clone(), certificate }
    }

    /// Withdraws consent for a stream, and has its key destroyed if `erase`.
    #[must_use]
    pub fn withdrawal(&self, stream: StreamId, erase: bool) -> WithdrawalRequest {
        let signed = Signed::new(&Withdrawal { stream, erase }, &self.key);
        WithdrawalRequest { signed, owner: self.certified.certificate().clone() }
    }
}

/// From when on the data of a new stream may be released. A host bounds the sets of a day by what it
/// knows itself, and another one may have had some of this owner's day. So with such a bound it is the
/// next day, in UTC.
#[must_use]
pub fn first_day(policy: &ResolvedPolicy, now: Timestamp) -> Timestamp {
    match bounds_sets(policy) {
        true => now.floor(Span::DAY).plus(Span::DAY),
        false => Timestamp(0),
    }
}

/// Whether a choice bounds over how many sets of owners a day is summed.
pub(super) fn bounds_sets(policy: &ResolvedPolicy) -> bool {
    let mut options = policy.attributes.iter().flat_map(|attribute| &attribute.alternatives);
    options.any(|option| option.sets_per_day.is_some())
}

/// What the owner of a folder asks the authority to certify.
///
/// # Errors
/// If the folder's key cannot be read.
pub fn request(folder: &IdentityFolder) -> Result<Party, Failure> {
    let key = signing_key(folder)?.verifying_key();
    Ok(Party::signing(Role::Owner, folder.name().name.as_str(), key))
}

fn signing_key(folder: &IdentityFolder) -> Result<SigningKey, Failure> {
    Ok(SigningKey::from_seed(&read_seed(&folder.path(OWNER_SEED))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::policy::Policies;
    use alpheus_policy::schema::Schema;

    const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1min
capacity: { population: 10, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 1min, alpha: 0, dropout: 0 }
";

    fn policy(option: &str) -> ResolvedPolicy {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let text =
            format!("schema: Meters\nservice: s.example\ndefault: {{ reading: {option} }}\n");
        Policies::from_yaml(&text, &schema).unwrap().of_owner("alice").clone()
    }

    /// An owner who comes from another host has had the sets of today there.
    #[test]
    fn a_new_stream_with_a_bound_on_sets_counts_from_the_next_day_on() {
        let (free, day) = ("{ option: crowd, clients: 1 }", Span::DAY.0);
        let bounded = policy("{ option: crowd, clients: 1, setsPerDay: 1 }");
        assert_eq!(first_day(&policy(free), Timestamp(5 * day + 7)), Timestamp(0));
        assert_eq!(first_day(&bounded, Timestamp(5 * day + 7)), Timestamp(6 * day));
        assert_eq!(first_day(&bounded, Timestamp(5 * day)), Timestamp(6 * day));
    }
}
