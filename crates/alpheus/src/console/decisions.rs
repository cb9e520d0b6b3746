//! An owner's decisions. This process signs each with the owner's own key, as `alpheus owner` does.

use super::choices::{OwnChoices, Wish};
use super::failed;
use super::owner::{Owner, parsed};
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::grant::Days;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_input::calendar::Day;
use alpheus_node::clock;
use alpheus_node::failure::Failure;
use alpheus_node::network::answer::{ApiError, EmptyAnswer};
use alpheus_policy::ids::{ConsumerId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_streams::deployment::{self, from_hex};
use alpheus_streams::owner::erasure::{Erased, certified};
use alpheus_streams::owner::version_at;
use alpheus_streams::wire::StreamView;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

type Done = Result<Json<EmptyAnswer>, ApiError>;

/// Allows nothing until the owner resumes.
pub(super) async fn pause(State(owner): State<Owner>, Path(stream): Path<String>) -> Done {
    let place = Place::of(&owner, &stream).await?;
    let nothing = ResolvedPolicy::private(&place.schema);
    place.submit(&owner, nothing).await
}

/// Allows again what was allowed last. Only a choice that this owner has signed is signed again.
pub(super) async fn resume(State(owner): State<Owner>, Path(stream): Path<String>) -> Done {
    let place = Place::of(&owner, &stream).await?;
    let last = place.own.last_sharing(&place.schema).map(|last| last.policy.clone());
    let none =
        || ApiError::missing("no earlier choice of yours allows anything that is still offered");
    let policy = last.ok_or_else(none)?;
    place.submit(&owner, policy).await
}

/// Changes the choice.
pub(super) async fn choose(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(wish): Json<Wish>,
) -> Done {
    let place = Place::of(&owner, &stream).await?;
    let policy = wish.policy(&place.schema)?;
    place.submit(&owner, policy).await
}

/// A stream with what its owner has chosen before.
struct Place {
    stream: StreamId,
    schema: Schema,
    view: StreamView,
    own: OwnChoices,
}

impl Place {
    async fn of(owner: &Owner, stream: &str) -> Result<Place, ApiError> {
        let stream = parsed(stream)?;
        let (view, schema) = (owner.view(&stream).await?, owner.schema().await?);
        let own = OwnChoices::of(&view, (owner.identity.certified.key(), &stream), &schema);
        Ok(Place { stream, schema, view, own })
    }

    /// Signs a policy, with the public facts of the last choice, and submits it.
    async fn submit(&self, owner: &Owner, policy: ResolvedPolicy) -> Done {
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
pub(super) struct Certified {
    certificate: String,
}

#[derive(Serialize)]
pub(super) struct Reader {
    name: String,
}

/// Whom a certificate names, before the owner gives access.
pub(super) async fn reader(
    State(owner): State<Owner>,
    Json(asked): Json<Certified>,
) -> Result<Json<Reader>, ApiError> {
    let (_, reader) = opened(&owner, &asked.certificate)?;
    Ok(Json(Reader { name: reader.party.name.clone() }))
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
    from: String,
    to: String,
}

/// Lets a reader read days of a stream.
pub(super) async fn grant(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
    Json(access): Json<Access>,
) -> Done {
    let day = |text: &str| text.parse::<Day>().map_err(ApiError::malformed);
    let days = Days::new(day(&access.from)?.0, day(&access.to)?.0);
    let days = days.map_err(|error| ApiError::malformed(error.to_string()))?;
    state_grant(&owner, parsed(&stream)?, &access.certificate, Some(days)).await
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
) -> Done {
    let place = Place::of(&owner, &stream).await?;
    let known = place.view.grants.iter().find(|grant| grant.reader == ended.reader);
    let none = || ApiError::missing("you have given no access to this reader");
    let certificate = &known.ok_or_else(none)?.certificate;
    state_grant(&owner, place.stream, certificate, None).await
}

async fn state_grant(
    owner: &Owner,
    stream: StreamId,
    certificate: &str,
    days: Option<Days>,
) -> Done {
    let (certificate, reader) = opened(owner, certificate)?;
    let asked = owner.identity.grant(stream, &reader, certificate, (clock::now(), days));
    let answer = owner.client.call("/v1/grants", &asked, Duration::ZERO).await;
    answer.map(Json).map_err(failed)
}

/// Withdraws consent, for good.
pub(super) async fn revoke(State(owner): State<Owner>, Path(stream): Path<String>) -> Done {
    withdraw(&owner, parsed(&stream)?, false).await?;
    Ok(Json(EmptyAnswer {}))
}

/// Has the key destroyed. Answers with the controller's statement, which is checked here.
pub(super) async fn erase(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let stream = parsed(&stream)?;
    let known: Vec<String> = owner.get("/v1/controllers").await?;
    let known = certified(&known, &owner.folder, owner.client.peer()).map_err(broken)?;
    let signed = withdraw(&owner, stream, true).await?;
    let erased = Erased::of(signed, &known, &owner.identity, &stream).map_err(broken)?;
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
