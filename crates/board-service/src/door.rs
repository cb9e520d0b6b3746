//! `alpheus board door`: the doorkeeper. It checks passes with their issuer's key, records the
//! passes presented in an epoch, and signs a permit for the key in each login. The permit allows one
//! write. The doorkeeper must be separate from the board's servers, because a verifier of passes
//! can also issue them.
//!
//! | request | answers |
//! | --- | --- |
//! | `GET /v1/passes` | the fingerprint of the passes' configuration |
//! | `POST /v1/admissions` | accepts a login and returns a signed [`Permit`]; a repeated login gets the same permit |

use crate::card::{MismatchError, VerifiedCard, same_epochs};
use crate::role::{RoleArgs, RoleContext};
use alpheus_anonymous_board::admission::{Admission, Doorkeeper, Permit};
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::Login;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::engine::{Handle, Worker, channel};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::FencedLedger;
use alpheus_node::ledger::ShardIndex;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::answer::encode;
use alpheus_node::network::door::in_time;
use alpheus_node::note;
use alpheus_node::service::health::State as Ready;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_pass_service::refusal::Refusal;
use alpheus_pass_service::settings::PassSettings;
use alpheus_pass_service::verifier::engine::Call;
use alpheus_pass_service::verifier::restore;
use alpheus_pass_service::{card as passes, init};
use alpheus_time::Timestamp;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::{get, post};
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  alpheus board door --identity pki/door --card board.json --key door.key \\
      --deployment deployment --state run/door --fence fences/door --api 127.0.0.1:7604

Create the deployment with `alpheus pass init`, for this board alone. Keep its folder away from
the board's servers: with it they could issue passes, and fake a crowd.";

/// The maximum size of a request: a login.
const MAX_BODY: usize = 16 << 10;

/// Arguments of `alpheus board door`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    own: RoleArgs,
    /// The deployment folder created by `alpheus pass init`
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
}

/// The state that requests share.
struct Door {
    engine: Handle<Call>,
    key: SigningKey,
    passes: PinnedConfiguration,
    card: VerifiedCard,
}

/// Runs the command until a shutdown signal.
///
/// # Errors
/// A setting is missing or wrong, or the store or the address is unavailable.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let own = vec![("pass.deployment", path_flag(args.deployment.as_ref()))];
    let RoleContext { settings, board, identity, card, key, address } =
        args.own.open(own, globals)?;
    let pass = settings.part::<PassSettings>()?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let passes = passes::Card::load(&deployment.join(passes::CARD))?.1.pinned;
    let ours = Doorkeeper::new(key.verifying_key(), passes.fingerprint(), card.board.board);
    if ours.digest() != card.board.admission {
        return Err(MismatchError::Door).blame(Category::Input);
    }
    if !same_epochs(&card.board.schedule, &passes.schedule) {
        return Err(MismatchError::Epochs).blame(Category::Input);
    }
    let store = globals.open_store(&settings)?;
    let fence = board.fence(&settings.state)?;
    let place = ShardIndex { index: 0, count: 1 };
    let found = FencedLedger::open(store, &fence, Some(place))?;
    let issuer = init::issuer_key(&deployment)?;
    let verifier = Verifier::new(issuer, passes.clone()).blame(Category::Input)?;
    let engine = restore(found, verifier, &passes, place)?;
    let (handle, calls) = channel();
    let router = router(Door { engine: handle, key, passes, card });
    let part = globals.health.part("door");
    let (worker, broken) = Worker::start("door", engine, calls)?;
    part.set(Ready::Ready);
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false, revoked: None }]);
    serve(listeners, &settings, globals, broken, |at| note!("serving at {}", at.join(" ")))?;
    worker.end()
}

fn router(door: Door) -> Router {
    let router = Router::new()
        .route("/v1/passes", get(passes_of))
        .route("/v1/admissions", post(admit))
        .with_state(Arc::new(door));
    in_time(router, MAX_BODY)
}

async fn passes_of(State(door): State<Arc<Door>>) -> Result<Vec<u8>, Refusal> {
    Ok(encode(&door.passes.fingerprint())?)
}

async fn admit(State(door): State<Arc<Door>>, body: Bytes) -> Result<Vec<u8>, Refusal> {
    let login = Login::from_bytes(&body, Limit::ONE).map_err(VerifierError::from)?;
    let standing = door.engine.ask(|reply| Call::LogIn(Box::new(login), reply)).await??;
    let starts = door.passes.schedule.starts(standing.first);
    let epoch =
        door.card.board.schedule.epoch_at(Timestamp(starts.0)).ok_or(VerifierError::Epoch)?;
    let admitted = Permit { board: door.card.board.board, epoch, writer: standing.holder };
    Ok(encode(&Signed::new(&admitted, &door.key))?)
}
