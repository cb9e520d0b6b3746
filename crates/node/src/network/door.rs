//! The door of a process that listens: who may ask what, and how much at a time,
//! before a byte of the body is taken.
//!
//! A certificate lets its holder in; it does not let them keep everybody else
//! out. Each holder has so many requests and bytes of bodies under way, a body has
//! so long to come, and a route takes so much.
//!
//! A body has the room that has come of it, not the room that was announced. One that stands
//! still is given up soon, also shortly before its end, and its room is there again.

use super::answer::{ApiError, caller};
use super::revoked_certificates::RevokedCertificates;
use super::role::{Name, Role};
use crate::service::http::Peer;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use axum::{Extension, Router};
use http_body_util::BodyExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// Requests of one holder under way.
const REQUESTS: usize = 16;
/// Bytes of bodies under way are counted in these.
const PIECE: usize = 1 << 10;
/// Bytes of bodies under way, of one holder and of all.
const BYTES: (usize, usize) = (128 << 20, 512 << 20);
/// How long a body may stand still, and how far it may fall behind what a slow line carries.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that the slowest line carries in a second.
const SLOWEST: u32 = 32 << 10;

/// The door. Clones are one.
#[derive(Clone)]
pub struct Door {
    bytes: Arc<Semaphore>,
    patience: Duration,
    /// A role whose holders may have fewer bytes of bodies under way, and how many.
    fewer: Option<(Role, usize)>,
    holders: Arc<Mutex<HashMap<Name, Holder>>>,
}

/// What one certificate's holder may still ask.
#[derive(Clone)]
struct Holder {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// What a route demands of its callers.
#[derive(Clone)]
struct DoorRule {
    door: Door,
    roles: &'static [Role],
    most: usize,
}

/// Held while a request is under way.
struct Pass {
    door: Door,
    holder: Holder,
    _request: OwnedSemaphorePermit,
    /// Room for what has come of the body: the holder's, and everybody's.
    room: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Default for Door {
    fn default() -> Door {
        Door::with_patience(PATIENCE)
    }
}

impl Door {
    /// A door at which a body may fall so far behind what a slow line carries.
    #[must_use]
    pub fn with_patience(patience: Duration) -> Door {
        let bytes = Arc::new(Semaphore::new(BYTES.1 / PIECE));
        Door { bytes, patience, fewer: None, holders: Arc::default() }
    }

    /// Lets holders of a role have fewer bytes of bodies under way than others: what is read from
    /// their bodies takes several times as much.
    #[must_use]
    pub fn with_fewer(self, role: Role, bytes: usize) -> Door {
        Door { fewer: Some((role, bytes)), ..self }
    }

    /// Lets only these roles ask, with at most so many bytes of body.
    pub fn guard<S: Clone + Send + Sync + 'static>(
        &self,
        route: MethodRouter<S>,
        roles: &'static [Role],
        most: usize,
    ) -> MethodRouter<S> {
        route.layer(from_fn_with_state(DoorRule { door: self.clone(), roles, most }, enter))
    }

    fn holder(&self, name: &Name) -> Holder {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let fewer = self.fewer.filter(|(role, _)| *role == name.role);
        let bytes = fewer.map_or(BYTES.0, |(_, bytes)| bytes);
        let new = || Holder {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            bytes: Arc::new(Semaphore::new(bytes / PIECE)),
        };
        holders.entry(name.clone()).or_insert_with(new).clone()
    }

    fn pass(&self, name: &Name) -> Result<Pass, ApiError> {
        let holder = self.holder(name);
        let request = holder.requests.clone().try_acquire_owned().map_err(|_| own_busy())?;
        Ok(Pass { door: self.clone(), holder, _request: request, room: None })
    }
}

/// The same routes, which refuse every request under one of these certificates, also on connections
/// that are open already.
pub fn without(router: Router, revoked: Option<RevokedCertificates>) -> Router {
    let Some(revoked) = revoked else { return router };
    router.layer(from_fn_with_state(revoked, refuse_revoked))
}

async fn refuse_revoked(
    State(revoked): State<RevokedCertificates>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if revoked.has_certificate(peer.certificate.as_deref().unwrap_or_default()) {
        let detail = "the authority has revoked your certificate; ask it for another";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "revoked", detail));
    }
    Ok(next.run(request).await)
}

impl Pass {
    /// Takes room for a body of which so many bytes have come.
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let has = self.room.as_ref().map_or(0, |(own, _)| own.num_permits());
        let more = u32::try_from(bytes.div_ceil(PIECE).saturating_sub(has)).unwrap_or(u32::MAX);
        if more == 0 {
            return Ok(());
        }
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_many_owned(more);
        let own = take(&self.holder.bytes).map_err(|_| own_busy())?;
        let all = take(&self.door.bytes);
        let all = all.map_err(|_| busy("too much is under way; ask again later"))?;
        match &mut self.room {
            Some(room) => {
                room.0.merge(own);
                room.1.merge(all);
            }
            none => *none = Some((own, all)),
        }
        Ok(())
    }

    /// Reads a body of at most so many bytes, which keeps coming.
    async fn read(&mut self, mut body: Body, most: usize) -> Result<Bytes, ApiError> {
        let (mut all, patience) = (Vec::new(), self.door.patience);
        let mut due = Instant::now() + patience;
        loop {
            let next = timeout_at(due, body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = next else { return Ok(all.into()) };
            // It stopped.
            let frame = frame.map_err(|_| too_large(most))?;
            let Ok(data) = frame.into_data() else { continue };
            if all.len() + data.len() > most {
                return Err(too_large(most));
            }
            self.grow(all.len() + data.len())?;
            all.extend_from_slice(&data);
            let gained = Duration::from_secs(data.len() as u64) / SLOWEST;
            due = (due + gained).min(Instant::now() + patience);
        }
    }
}

fn own_busy() -> ApiError {
    busy("too much of yours is under way; ask again when it is done")
}

fn busy(detail: &str) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", detail)
}

/// Lets anybody ask what a router answers, with at most so many bytes of body, and
/// for as long only as these need to come.
pub fn in_time<S: Clone + Send + Sync + 'static>(router: Router<S>, most: usize) -> Router<S> {
    in_time_of(router, most, PATIENCE)
}

fn in_time_of<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    most: usize,
    patience: Duration,
) -> Router<S> {
    // The router's own limit is for bodies that nobody has bounded.
    let router = router.layer(DefaultBodyLimit::disable());
    router.layer(from_fn(move |request: Request, next: Next| async move {
        if declared(&request).is_some_and(|bytes| bytes > most) {
            return Err(too_large(most));
        }
        let (parts, body) = request.into_parts();
        let body = whole(body, most, patience).await?;
        Ok::<_, ApiError>(next.run(Request::from_parts(parts, Body::from(body))).await)
    }))
}

fn too_large(most: usize) -> ApiError {
    let detail = format!("the body may have {most} bytes at most");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "size", detail)
}

/// A body of so many bytes, if it comes in time.
async fn whole(body: Body, most: usize, patience: Duration) -> Result<Bytes, ApiError> {
    let body = timeout(patience, to_bytes(body, most)).await.map_err(|_| slow())?;
    // It stopped, or it is longer than it may be.
    body.map_err(|_| too_large(most))
}

fn slow() -> ApiError {
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body did not come in time")
}

/// Who asks; then how much; then the body, in good time; then the request.
async fn enter(
    State(asked): State<DoorRule>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let DoorRule { door, roles, most } = asked;
    let peer = request.extensions().get::<Peer>().cloned();
    let peer = peer.ok_or_else(|| ApiError::failed("it is not known who asks"))?;
    let name = caller(&peer, roles)?;
    if declared(&request).is_some_and(|bytes| bytes > most) {
        return Err(too_large(most));
    }
    let mut pass = door.pass(&name)?;
    let (parts, body) = request.into_parts();
    let body = pass.read(body, most).await?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

fn declared(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::network::role::PeerNameError;
    use alpheus_crypto::hash::Digest;
    use axum::Extension;
    use axum::body::HttpBody;
    use axum::routing::post;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use rcgen::{CertificateParams, KeyPair, SanType};
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};

    const MAX_BODY: usize = 100;

    /// A body that never comes, and knows whether anybody waits for it.
    struct Silent(Arc<AtomicBool>);

    impl HttpBody for Silent {
        type Data = Bytes;
        type Error = PeerNameError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, PeerNameError>>> {
            self.0.store(true, Ordering::Relaxed);
            Poll::Pending
        }
    }

    /// A route for controllers behind a door, as `name` reaches it.
    fn route(door: &Door, name: &str) -> TowerToHyperService<Router> {
        route_with(door, certificate(name))
    }

    /// A certificate with this name, of a key of its own.
    pub(in crate::network) fn certificate(name: &str) -> Arc<[u8]> {
        let mut params = CertificateParams::new([]).unwrap();
        params.subject_alt_names.push(SanType::URI(name.try_into().unwrap()));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Arc::from(certificate.der().as_ref())
    }

    fn route_with(door: &Door, certificate: Arc<[u8]>) -> TowerToHyperService<Router> {
        route_of(door, certificate, MAX_BODY)
    }

    fn route_of(door: &Door, certificate: Arc<[u8]>, most: usize) -> TowerToHyperService<Router> {
        asked_by(certificate, guarded(door, most))
    }

    fn guarded(door: &Door, most: usize) -> Router {
        let route = door.guard(post(|body: Bytes| async move { body }), &[Role::Controller], most);
        Router::new().route("/", route).layer(DefaultBodyLimit::disable())
    }

    fn asked_by(certificate: Arc<[u8]>, router: Router) -> TowerToHyperService<Router> {
        let (address, certificate) = ("127.0.0.1:1".parse().unwrap(), Some(certificate));
        TowerToHyperService::new(router.layer(Extension(Peer { address, certificate })))
    }

    fn request(body: Body, length: usize) -> Request {
        let request = Request::post("/").header(header::CONTENT_LENGTH, length);
        request.body(body).unwrap()
    }

    fn silent() -> (Body, Arc<AtomicBool>) {
        let polled = Arc::new(AtomicBool::new(false));
        (Body::new(Silent(polled.clone())), polled)
    }

    #[tokio::test]
    async fn a_forbidden_caller_is_refused_before_its_body_is_read() {
        let door = Door::with_patience(Duration::from_secs(60));
        for (name, length, expected) in [
            ("alpheus://consumer/eve", 10, StatusCode::FORBIDDEN),
            ("alpheus://king/eve", 10, StatusCode::UNAUTHORIZED),
            ("alpheus://controller/eve", MAX_BODY + 1, StatusCode::PAYLOAD_TOO_LARGE),
        ] {
            let (body, polled) = silent();
            let answer = route(&door, name).call(request(body, length)).await.unwrap();
            assert_eq!(answer.status(), expected, "{name}");
            assert!(!polled.load(Ordering::Relaxed), "{name}: the body was waited for");
        }
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let door = Door::with_patience(Duration::ZERO);
        let (body, polled) = silent();
        let answer = route(&door, "alpheus://controller/eve").call(request(body, 10)).await;
        assert_eq!(answer.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
        assert!(polled.load(Ordering::Relaxed));
    }

    /// A body that begins, and then stands still.
    struct StalledBody(Option<Bytes>);

    impl HttpBody for StalledBody {
        type Data = Bytes;
        type Error = PeerNameError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, PeerNameError>>> {
            let first =
                self.0.take().map(|bytes| Poll::Ready(Some(Ok(hyper::body::Frame::data(bytes)))));
            first.unwrap_or(Poll::Pending)
        }
    }

    /// However much was announced, a body has ten seconds more than what has come of it needs.
    #[tokio::test]
    async fn a_body_that_stands_still_is_given_up() {
        let door = Door::with_patience(Duration::ZERO);
        let eve = route_of(&door, certificate("alpheus://controller/eve"), BYTES.0);
        let body = Body::new(StalledBody(Some(Bytes::from_static(b"0123456789"))));
        let answer = timeout(Duration::from_secs(60), eve.call(request(body, BYTES.0))).await;
        assert_eq!(answer.unwrap().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn bodies_that_do_not_come_have_no_room() {
        let door = Door::with_patience(Duration::from_secs(60));
        let mut begun = Vec::new();
        for number in 0..8 {
            let name = format!("alpheus://controller/eve-{number}");
            let eve = route_of(&door, certificate(&name), BYTES.0);
            begun.push(tokio::spawn(eve.call(request(silent().0, BYTES.0))));
        }
        tokio::task::yield_now().await;
        let alice = route(&door, "alpheus://controller/alice");
        let whole = request(Body::from("0123456789"), 10);
        assert_eq!(alice.call(whole).await.unwrap().status(), StatusCode::OK);
        assert!(begun.iter().all(|request| !request.is_finished()), "they wait");
        begun.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn what_has_come_takes_room_and_gives_it_back() {
        let door = Door::with_patience(Duration::from_secs(60));
        let name = Name::new(Role::Controller, "eve").unwrap();
        let mut pass = door.pass(&name).unwrap();
        for bytes in [1, PIECE, PIECE + 1, BYTES.0] {
            pass.grow(bytes).unwrap();
            let taken = BYTES.1 / PIECE - door.bytes.available_permits();
            assert_eq!(taken, bytes.div_ceil(PIECE));
        }
        assert!(pass.grow(BYTES.0 + 1).is_err(), "one holder has no more");
        assert!(door.pass(&name).unwrap().grow(1).is_err());
        drop(pass);
        assert_eq!(door.bytes.available_permits(), BYTES.1 / PIECE);
    }

    #[tokio::test]
    async fn one_with_a_smaller_share_has_no_more_in_all_its_requests() {
        let share = 10 * PIECE;
        let door = Door::default().with_fewer(Role::Producer, share);
        let name = Name::new(Role::Producer, "eve").unwrap();
        let mut passes = [(); 2].map(|()| door.pass(&name).unwrap());
        passes[0].grow(6 * PIECE).unwrap();
        passes[1].grow(4 * PIECE).unwrap();
        assert!(passes.iter_mut().all(|pass| pass.grow(7 * PIECE).is_err()), "all is taken");
        let mut second = passes.into_iter().next_back().unwrap();
        second.grow(share).unwrap();
    }

    #[tokio::test]
    async fn a_strangers_body_is_short_and_comes_in_time() {
        for (patience, body, length, expected) in [
            (Duration::ZERO, silent().0, 10, StatusCode::REQUEST_TIMEOUT),
            (PATIENCE, silent().0, MAX_BODY + 1, StatusCode::PAYLOAD_TOO_LARGE),
            (PATIENCE, Body::from(vec![7; MAX_BODY + 1]), 10, StatusCode::PAYLOAD_TOO_LARGE),
            (PATIENCE, Body::from("0123456789"), 10, StatusCode::OK),
        ] {
            let router = Router::new().route("/", post(|body: Bytes| async move { body }));
            let service = TowerToHyperService::new(in_time_of(router, MAX_BODY, patience));
            let answer = service.call(request(body, length)).await.unwrap();
            assert_eq!(answer.status(), expected, "{length} bytes");
        }
    }

    /// What a route takes is what its process says, not the two megabytes that axum would allow.
    #[tokio::test]
    async fn a_strangers_body_may_be_as_long_as_the_route_takes() {
        let length = 3 << 20;
        let router = Router::new().route("/", post(|body: Bytes| async move { body }));
        let service = TowerToHyperService::new(in_time(router, length));
        let answer = service.call(request(Body::from(vec![7; length]), length)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_revoked_certificate_is_refused_at_once_and_no_other() {
        let digest = |der: &[u8]| Digest([der.iter().fold(0, |sum, byte| sum ^ byte); 32]);
        let revoked = RevokedCertificates::new(digest, |_| Digest([0; 32]));
        let door = Door::default();
        let eve = certificate("alpheus://controller/eve");
        let asked = || request(Body::from("0123456789"), 10);
        let status = async |certificate: &Arc<[u8]>| {
            let routes = without(guarded(&door, MAX_BODY), Some(revoked.clone()));
            let route = asked_by(certificate.clone(), routes);
            route.call(asked()).await.unwrap().status()
        };
        assert_eq!(status(&eve).await, StatusCode::OK);
        revoked.replace([digest(&eve)].into());
        assert_eq!(status(&eve).await, StatusCode::UNAUTHORIZED);
        let other = (0..).map(|_| certificate("alpheus://controller/eve"));
        let other = other.into_iter().find(|other| digest(other) != digest(&eve)).unwrap();
        assert_eq!(status(&other).await, StatusCode::OK, "a renewed one");
        revoked.replace([].into());
        assert_eq!(status(&eve).await, StatusCode::OK);
    }

    #[tokio::test]
    async fn one_holder_keeps_nobody_else_out() {
        let door = Door::with_patience(Duration::from_secs(60));
        let eve = route(&door, "alpheus://controller/eve");
        let begin = |_| tokio::spawn(eve.call(request(silent().0, 10)));
        let begun: Vec<_> = (0..REQUESTS).map(begin).collect();
        tokio::task::yield_now().await;
        let whole = || request(Body::from("0123456789"), 10);
        assert_eq!(eve.call(whole()).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
        let alice = route(&door, "alpheus://controller/alice");
        assert_eq!(alice.call(whole()).await.unwrap().status(), StatusCode::OK);
        // Once theirs are gone, there is room again.
        for request in begun {
            request.abort();
            assert!(request.await.is_err());
        }
        assert_eq!(eve.call(whole()).await.unwrap().status(), StatusCode::OK);
    }
}
