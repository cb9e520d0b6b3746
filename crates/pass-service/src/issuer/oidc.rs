//! Accounts of an OpenID Connect provider. A subscriber shows an ID token that the provider has
//! signed for this issuer's client. The account is its `sub`, which never changes and is compared
//! byte by byte: names and addresses in a token can change, and have several spellings.

use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::{Base, BaseUrlError};
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_node::network::peer::ExpectedPeer;
use chrono::{DateTime, Utc};
use openidconnect::core::{
    CoreIdToken, CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
    CoreProviderMetadata,
};
use openidconnect::{
    ClaimsVerificationError, ClientId, HttpRequest, HttpResponse, IssuerUrl, Nonce,
    SignatureVerificationError,
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The provider's documents are small.
const LIMITS: Limits = Limits { bytes: 1 << 20, time: Duration::from_secs(10) };
/// Keys are fetched again for an unknown one, but no more often than this.
const REFRESH: Duration = Duration::from_secs(60);
/// Signatures that anybody can verify. Those with a shared secret, and none, are not among them.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Why an ID token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token.
    #[error("this is not an ID token; the command must print one, as a single line")]
    Malformed,
    /// It has expired.
    #[error("the ID token has expired; let the command fetch a new one")]
    Expired,
    /// It is for another client.
    #[error("the ID token is for another client; request one for this issuer's client")]
    Audience,
    /// Another provider's.
    #[error("the ID token is not from this issuer's provider")]
    Provider,
    /// The provider has no such key.
    #[error("the ID token is signed with a key that the provider does not have; fetch a new one")]
    UnknownKey,
    /// The signature is not by the key that the token names.
    #[error("the ID token's signature is wrong; fetch a new one")]
    Signature,
    /// Another rule of OpenID Connect.
    #[error("the ID token breaks a rule of OpenID Connect Core, section 3.1.3.7")]
    Invalid,
}

/// Why the provider's documents could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The address of a document.
    #[error("the provider's address: {0}")]
    Address(#[from] BaseUrlError),
    /// The authority.
    #[error("{0}")]
    Authority(String),
    /// No answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The answer is not a request or response of HTTP.
    #[error("the provider's answer is malformed")]
    Malformed,
}

/// What the operator says about the provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// Its address, as in its tokens.
    pub url: String,
    /// This issuer's name at the provider.
    pub client: String,
    /// Authorities that its certificate may come from, in PEM form.
    pub authority: Option<String>,
}

/// The provider, and its keys.
pub struct Provider {
    url: IssuerUrl,
    client: ClientId,
    authority: Option<String>,
    keys: Mutex<ProviderKeys>,
}

/// The provider's keys, and when they were last fetched because of an unknown one.
struct ProviderKeys {
    set: CoreJsonWebKeySet,
    refreshed: Option<Instant>,
}

impl Provider {
    /// Fetches the provider's metadata and keys (OpenID Connect Discovery).
    ///
    /// # Errors
    /// The provider is not reached, or its metadata are not its own.
    pub async fn discover(settings: ProviderSettings) -> Result<Self, Failure> {
        let ProviderSettings { url, client, authority } = settings;
        let url = IssuerUrl::new(url).blame(Category::Usage)?;
        let set = fetch_keys(&url, authority.as_deref()).await?;
        let keys = Mutex::new(ProviderKeys { set, refreshed: None });
        Ok(Self { url, client: ClientId::new(client), authority, keys })
    }

    /// A provider whose keys (a JSON Web Key Set) are known already. None if they or its address cannot be
    /// read.
    #[must_use]
    pub fn with_keys(settings: ProviderSettings, keys: &[u8]) -> Option<Self> {
        let ProviderSettings { url, client, authority } = settings;
        let set = serde_json::from_slice(keys).ok()?;
        let keys = Mutex::new(ProviderKeys { set, refreshed: None });
        let url = IssuerUrl::new(url).ok()?;
        Some(Self { url, client: ClientId::new(client), authority, keys })
    }

    /// The account of a token. May block, if the token is signed with a new key.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn subject(&self, token: &str) -> Result<String, TokenError> {
        let token: CoreIdToken = token.trim_end().parse().map_err(|_| TokenError::Malformed)?;
        match self.verified(&token) {
            Err(TokenError::UnknownKey) if self.refreshed() => self.verified(&token),
            verified => verified,
        }
    }

    fn verified(&self, token: &CoreIdToken) -> Result<String, TokenError> {
        let keys = self.keys().set.clone();
        let verifier =
            CoreIdTokenVerifier::new_public_client(self.client.clone(), self.url.clone(), keys)
                .set_allowed_algs(ALGORITHMS)
                .set_time_fn(now);
        // A nonce ties a token to a browser's session. Here is none: the token comes straight
        // from the provider to the subscriber's command.
        let claims = token.claims(&verifier, |_: Option<&Nonce>| Ok(()));
        claims.map(|claims| claims.subject().as_str().to_owned()).map_err(|why| refusal(&why))
    }

    /// Fetches the keys again, unless that was done just now. Whether it was done.
    fn refreshed(&self) -> bool {
        {
            let mut keys = self.keys();
            if keys.refreshed.is_some_and(|then| then.elapsed() < REFRESH) {
                return false;
            }
            keys.refreshed = Some(Instant::now());
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        match runtime.block_on(fetch_keys(&self.url, self.authority.as_deref())) {
            Ok(new) => self.keys().set = new,
            Err(error) => {
                tracing::warn!(%error, "the provider's keys could not be fetched");
                return false;
            }
        }
        true
    }

    fn keys(&self) -> MutexGuard<'_, ProviderKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of the process. Before its time can be written as a date, no token is valid.
fn now() -> DateTime<Utc> {
    let micros = i64::try_from(clock::now().0).ok();
    micros.and_then(DateTime::from_timestamp_micros).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The library's reasons quote the token, so none of their words are kept.
fn refusal(why: &ClaimsVerificationError) -> TokenError {
    match why {
        ClaimsVerificationError::Expired(_) => TokenError::Expired,
        ClaimsVerificationError::InvalidAudience(_) => TokenError::Audience,
        ClaimsVerificationError::InvalidIssuer(_) => TokenError::Provider,
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::NoMatchingKey
            | SignatureVerificationError::AmbiguousKeyId(_),
        ) => TokenError::UnknownKey,
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::CryptoError(_),
        ) => TokenError::Signature,
        _ => TokenError::Invalid,
    }
}

async fn fetch_keys(
    url: &IssuerUrl,
    authority: Option<&str>,
) -> Result<CoreJsonWebKeySet, Failure> {
    let get = |request| get(request, authority);
    let metadata = CoreProviderMetadata::discover_async(url.clone(), &get).await;
    let metadata = metadata.blame(Category::Io).map_err(|failure| {
        failure.with_help("check --oidc-provider and --oidc-authority; the address must be exactly the provider's `issuer`")
    })?;
    Ok(metadata.jwks().clone())
}

/// A request of the library, over our own client.
async fn get(request: HttpRequest, authority: Option<&str>) -> Result<HttpResponse, ProviderError> {
    let (parts, body) = request.into_parts();
    let origin = parts.uri.scheme_str().zip(parts.uri.authority());
    let origin = origin.map(|(scheme, authority)| format!("{scheme}://{authority}"));
    let base = Base::parse(&origin.unwrap_or_default())?;
    let link = HttpClient::anonymous(base, ExpectedPeer::External, authority);
    let link = link.map_err(|failure| ProviderError::Authority(failure.to_string()))?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let answer = link.exchange(parts.method, path, &[], body, LIMITS).await?;
    Ok(HttpResponse::new(answer))
}
