//! An owner's decisions. This process signs each with the owner's own key, as `alpheus owner` does.

use super::choices::{OwnChoices, Wish, attributes};
use super::failed;
use super::owner::{Owner, parsed};
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::certificate::{Certificate, consumer_id};
use alpheus_encrypted_stream::grant::Days;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_input::calendar::Day;
use alpheus_node::clock;
use alpheus_node::failure::Failure;
use alpheus_node::network::answer::{ApiError, EmptyAnswer};
use alpheus_policy::ids::{ConsumerId, SchemaId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_streams::deployment::{self, from_hex};
use alpheus_streams::owner::erasure::{ErasureStatement, certified};
use alpheus_streams::owner::version_at;
use alpheus_streams::wire::{ControllerView, StreamView};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

type EmptyReply = Result<Json<EmptyAnswer>, ApiError>;

/// What the page showed when the owner decided. A choice that has changed since is not signed.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    /// The version of the choice in force.
    choice: Option<u32>,
    schema: SchemaId,
}

impl View {
    pub(super) fn of(own: &OwnChoices, schema: &Schema) -> View {
        View { choice: own.current().map(|current| current.version), schema: schema.id() }
    }
}

fn changed() -> ApiError {
    let what = "what you decided about has changed since the page showed it, so nothing was signed";
    ApiError::new(StatusCode::CONFLICT, "changed", what)
        .with_help("close this, look at what the page shows now, and decide again")
}

/// Whose access ends with a pause.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    end: Vec<ConsumerId>,
}

/// Allows nothing until the owner resumes, and ends the access of these readers.
pub(super) async fn pause(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(pause): Json<Pause>,
) -> EmptyReply {
    let place = StreamChoices::of(&owner, &stream).await?;
    let nothing = ResolvedPolicy::private(&place.schema);
    let done = place.submit(&owner, nothing).await?;
    let mut failed = None;
    for reader in &pause.end {
        // One whose access cannot be ended does not keep it for the others.
        if let Err(error) = place.end_grant(&owner, reader).await {
            failed = Some(error);
        }
    }
    let said = "the device is paused; look at the readers, since access of one could not be ended";
    failed.map_or(Ok(done), |error| Err(error.with_help(said)))
}

/// What is allowed again, as the page showed it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resumption {
    seen: View,
    shown: Value,
}

/// Allows again what was allowed last. Only a choice that this owner has signed is signed again.
pub(super) async fn resume(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(resumption): Json<Resumption>,
) -> EmptyReply {
    let place = StreamChoices::of(&owner, &stream).await?;
    place.check(&resumption.seen)?;
    let last = place.own.last_sharing(&place.schema).map(|last| last.policy.clone());
    let none =
        || ApiError::missing("no earlier choice of yours allows anything that is still offered");
    let policy = last.ok_or_else(none)?;
    check_shown(&place.schema, &policy, &resumption.shown)?;
    place.submit(&owner, policy).await
}

fn check_shown(schema: &Schema, policy: &ResolvedPolicy, shown: &Value) -> Result<(), ApiError> {
    match serde_json::to_value(attributes(schema, policy)) {
        Ok(now) if now == *shown => Ok(()),
        _ => Err(changed()),
    }
}

/// A new choice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewChoice {
    seen: View,
    wish: Wish,
}

/// Changes the choice.
pub(super) async fn choose(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(NewChoice { seen, wish }): Json<NewChoice>,
) -> EmptyReply {
    let place = StreamChoices::of(&owner, &stream).await?;
    place.check(&seen)?;
    let policy = wish.policy(&place.schema)?;
    place.submit(&owner, policy).await
}

/// A stream with what its owner has chosen before.
struct StreamChoices {
    stream: StreamId,
    schema: Schema,
    view: StreamView,
    own: OwnChoices,
}

impl StreamChoices {
    async fn of(owner: &Owner, stream: &str) -> Result<StreamChoices, ApiError> {
        let stream = parsed(stream)?;
        let (view, schema) = (owner.view(&stream).await?, owner.schema().await?);
        let own = OwnChoices::of(&view, (owner.identity.certified.key(), &stream), &schema);
        Ok(StreamChoices { stream, schema, view, own })
    }

    /// That the owner saw what is in force.
    fn check(&self, seen: &View) -> Result<(), ApiError> {
        if *seen == View::of(&self.own, &self.schema) { Ok(()) } else { Err(changed()) }
    }

    async fn end_grant(&self, owner: &Owner, reader: &ConsumerId) -> EmptyReply {
        let known = self.view.grants.iter().find(|grant| grant.reader == *reader);
        let none = || ApiError::missing("you have given no access to this reader");
        let certificate = &known.ok_or_else(none)?.certificate;
        state_grant(owner, self.stream, (certificate, reader), None).await
    }

    /// Signs a policy, with the public facts of the last choice, and submits it.
    async fn submit(&self, owner: &Owner, policy: ResolvedPolicy) -> EmptyReply {
        let current = self.own.current();
        let metadata = current.map(|last| last.metadata.clone()).unwrap_or_default();
        // Two choices within a second still have an order.
        let after = current.map_or(0, |last| last.version.saturating_add(1));
        let version = version_at(clock::now()).max(after);
        let ids = (self.stream, self.schema.id());
        let annotation = owner.identity.choice(ids, version, metadata, policy);
        let choice = owner.identity.submission(annotation);
        let answer = owner.client.call("/v1/choices", &choice, Duration::ZERO).await;
        answer.map(Json).map_err(failed)
    }
}

/// A reader's certificate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReaderCertificate {
    certificate: String,
}

#[derive(Serialize)]
pub(super) struct Reader {
    name: String,
    reader: ConsumerId,
}

/// Whom a certificate names, before the owner gives access.
pub(super) async fn reader(
    State(owner): State<Owner>,
    Json(asked): Json<ReaderCertificate>,
) -> Result<Json<Reader>, ApiError> {
    let (_, reader) = opened(&owner, &asked.certificate)?;
    Ok(Json(Reader { name: reader.party.name.clone(), reader: consumer_id(&reader) }))
}

/// The name on a reader's certificate, if the authority has signed it and it is this reader's.
pub(super) fn certified_name(
    owner: &Owner,
    reader: &ConsumerId,
    certificate: &str,
) -> Option<String> {
    let (_, known) = opened(owner, certificate).ok()?;
    (consumer_id(&known) == *reader).then(|| known.party.name.clone())
}

fn opened(
    owner: &Owner,
    certificate: &str,
) -> Result<(Signed<Certificate>, Verified<Certificate>), ApiError> {
    let help = "ask the reader for the file `consumer.txt` of its identity folder";
    let wrong = |why: String| ApiError::malformed(why).with_help(help);
    let signed: Signed<Certificate> = from_hex(certificate)
        .ok_or_else(|| wrong("this is not a certificate in hexadecimal digits".to_owned()))?;
    let deployment = deployment::of(&owner.folder).map_err(broken)?;
    let reader = deployment.consumer(&signed).map_err(|error| wrong(error.to_string()))?;
    Ok((signed, reader))
}

/// Which days a reader may read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Access {
    certificate: String,
    /// Whom the page named.
    reader: ConsumerId,
    from: String,
    to: String,
}

/// Lets a reader read days of a stream.
pub(super) async fn grant(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(access): Json<Access>,
) -> EmptyReply {
    let day = |text: &str| text.parse::<Day>().map_err(ApiError::malformed);
    let days = Days::new(day(&access.from)?.0, day(&access.to)?.0);
    let days = days.map_err(|error| ApiError::malformed(error.to_string()))?;
    let whom = (access.certificate.as_str(), &access.reader);
    state_grant(&owner, parsed(&stream)?, whom, Some(days)).await
}

/// Whose access ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndedAccess {
    reader: ConsumerId,
}

/// Ends a reader's access.
pub(super) async fn end_grant(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(ended): Json<EndedAccess>,
) -> EmptyReply {
    StreamChoices::of(&owner, &stream).await?.end_grant(&owner, &ended.reader).await
}

async fn state_grant(
    owner: &Owner,
    stream: StreamId,
    (certificate, whom): (&str, &ConsumerId),
    days: Option<Days>,
) -> EmptyReply {
    let (certificate, reader) = opened(owner, certificate)?;
    // The page named somebody. No one else is signed for.
    if consumer_id(&reader) != *whom {
        return Err(changed());
    }
    let asked = owner.identity.grant(stream, &reader, certificate, (clock::now(), days));
    let answer = owner.client.call("/v1/grants", &asked, Duration::ZERO).await;
    answer.map(Json).map_err(failed)
}

/// Withdraws consent, for good.
pub(super) async fn revoke(State(owner): State<Owner>, Path(stream): Path<String>) -> EmptyReply {
    withdraw(&owner, parsed(&stream)?, false).await?;
    Ok(Json(EmptyAnswer {}))
}

/// Has the key destroyed. Answers with the controller's statement, which is checked here.
pub(super) async fn erase(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let stream = parsed(&stream)?;
    let known: Vec<ControllerView> = owner.get("/v1/controllers").await?;
    let known = certified(&known, &owner.folder, owner.client.peer()).map_err(broken)?;
    let signed = withdraw(&owner, stream, true).await?;
    let erased = ErasureStatement::of(signed, &known, &owner.identity, &stream).map_err(broken)?;
    Ok(Json(json!({ "text": erased.statement().map_err(broken)? })))
}

async fn withdraw(
    owner: &Owner,
    stream: StreamId,
    erase: bool,
) -> Result<Option<Signed<Erasure>>, ApiError> {
    let asked = owner.identity.withdrawal(stream, erase);
    owner.client.call("/v1/withdrawals", &asked, Duration::ZERO).await.map_err(failed)
}

/// What the controller or the identity folder has wrong.
fn broken(failure: Failure) -> ApiError {
    ApiError::new(StatusCode::BAD_GATEWAY, "check", failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;

    const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1s
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [10, 20], window: [1m, 1h], attributes: [reading] }
  - { name: nothing, option: private }
";

    /// The page's choice is signed again, not one that a controller has shown since.
    #[test]
    fn a_resumption_signs_what_was_shown() {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let wished = |clients: u32| {
            let text = format!(
                r#"{{"attributes": {{"reading": [{{"option": "crowd", "clients": {clients}, "window": 60000000}}]}}}}"#
            );
            serde_json::from_str::<Wish>(&text).unwrap().policy(&schema).unwrap()
        };
        let (seen, other) = (wished(20), wished(10));
        let shown = serde_json::to_value(attributes(&schema, &seen)).unwrap();
        assert!(check_shown(&schema, &seen, &shown).is_ok());
        let refused = check_shown(&schema, &other, &shown).unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::CONFLICT);
        let renamed = Schema::from_yaml(&SCHEMA.replace("version: 1", "version: 2")).unwrap();
        let none = OwnChoices::none();
        assert!(View::of(&none, &schema) != View::of(&none, &renamed));
    }
}
