//! The [client](HttpClient) for callers that are threads.

use super::base::Base;
use super::client::HttpClient;
use super::error::RequestError;
use super::identity::IdentityFolder;
use super::peer::ExpectedPeer;
use super::role::Name;
use crate::failure::{Blame, Category, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// One thread for the connections of all blocking clients of the process.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("requests").enable_all().build()
});

/// A client of one server whose requests block the thread. Inside an asynchronous task they
/// fail; use [`HttpClient`] there. Clones share its connections.
#[derive(Clone, Debug)]
pub struct BlockingClient {
    client: HttpClient,
    runtime: &'static Runtime,
}

impl BlockingClient {
    /// A client of the server at `base` (`https://host:port`) that shows the certificate of
    /// its identity. Nothing is sent to a server that is not the expected peer.
    ///
    /// # Errors
    /// If the address or a file of the identity cannot be used.
    pub fn new(
        base: &str,
        peer: impl Into<ExpectedPeer>,
        identity: &IdentityFolder,
    ) -> Result<Self, Failure> {
        let parsed = Base::parse(base).blame(Category::Usage);
        let parsed = parsed.map_err(|failure| failure.at(base))?;
        Self::over(HttpClient::identified(parsed, peer, identity)?)
    }

    fn over(client: HttpClient) -> Result<Self, Failure> {
        let runtime = RUNTIME.as_ref().map_err(|error| error.to_string()).blame(Category::Io)?;
        Ok(Self { client, runtime })
    }

    /// The client for tasks, over the same connections.
    #[must_use]
    pub fn http(&self) -> &HttpClient {
        &self.client
    }

    /// The server's address.
    #[must_use]
    pub fn base(&self) -> &Base {
        self.client.base()
    }

    /// Who was at the other end, once a request was answered.
    #[must_use]
    pub fn peer(&self) -> Option<Name> {
        self.client.peer()
    }

    /// As [`HttpClient::get_json`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        wait: Duration,
    ) -> Result<T, RequestError> {
        self.block_on(self.client.get_json(path, wait))
    }

    /// As [`HttpClient::post_json`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, RequestError> {
        self.block_on(self.client.post_json(path, body))
    }

    /// As [`HttpClient::call`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<T, RequestError> {
        self.block_on(self.client.call(path, message, wait))
    }

    /// As [`HttpClient::call_while`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn call_while<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &(impl Serialize + Sync),
        wait: Duration,
        stands: impl Fn() -> bool + Send + Sync + Unpin + 'static,
    ) -> Result<T, RequestError> {
        self.block_on(self.client.call_while(path, message, wait, stands))
    }

    /// The error of an answer that makes no sense.
    #[must_use]
    pub fn malformed(&self) -> RequestError {
        self.client.malformed()
    }

    /// Waits for a request of the [client for tasks](Self::http).
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn block_on<T>(
        &self,
        request: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        if Handle::try_current().is_ok() {
            return Err(RequestError::InsideRuntime);
        }
        self.runtime.block_on(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::http::Server;
    use crate::service::shutdown::Trigger;
    use axum::Router;
    use std::io::Read;
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn client(address: SocketAddr) -> BlockingClient {
        let base = Base::parse(&format!("http://{address}")).unwrap();
        BlockingClient::over(HttpClient::anonymous(base, ExpectedPeer::External, None).unwrap())
            .unwrap()
    }

    fn listener() -> (TcpListener, BlockingClient) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(listener.local_addr().unwrap());
        (listener, client)
    }

    /// Whether a request puts its body on the wire while it stands.
    fn leaves(stands: bool) -> bool {
        let (listener, client) = listener();
        // What is to come is waited for; what is not to come, for a short time.
        let patience = Duration::from_millis(if stands { 60_000 } else { 300 });
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(patience)).unwrap();
            let (mut all, mut some) = (Vec::new(), [0; 4096]);
            let holds = |wire: &[u8]| wire.windows(7).any(|bytes| bytes == b"a token");
            while let Ok(read @ 1..) = stream.read(&mut some) {
                all.extend_from_slice(&some[..read]);
                if holds(&all) {
                    return true;
                }
            }
            false
        });
        let asked = Arc::new(AtomicBool::new(false));
        let asks = asked.clone();
        let still = move || {
            asks.store(true, Ordering::Relaxed);
            stands
        };
        let sent: Result<(), _> = client.call_while("/", &"a token", Duration::ZERO, still);
        assert!(sent.is_err() && asked.load(Ordering::Relaxed));
        thread.join().unwrap()
    }

    #[test]
    fn a_body_that_was_taken_back_does_not_leave() {
        assert!(leaves(true));
        assert!(!leaves(false));
    }

    #[test]
    fn of_a_long_body_nothing_leaves_after_it_was_taken_back() {
        let (listener, client) = listener();
        let revoked = Arc::new(AtomicBool::new(false));
        let seen = revoked.clone();
        let reader = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            revoked.store(true, Ordering::SeqCst);
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap_or(0)
        });
        let (long, stands) = (vec![7_u8; 64 << 20], move || !seen.load(Ordering::SeqCst));
        let sent: Result<(), _> = client.call_while("/", &long, Duration::ZERO, stands);
        assert!(matches!(sent, Err(RequestError::Unreachable { .. })), "{sent:?}");
        assert!(reader.join().unwrap() < 32 << 20);
    }

    #[test]
    fn threads_share_a_client_and_its_connections() {
        let runtime = RUNTIME.as_ref().unwrap();
        let bound = Server::bind(([127, 0, 0, 1], 0).into(), None);
        let (server, trigger) = (runtime.block_on(bound).unwrap(), Trigger::new());
        let client = client(server.address().unwrap());
        let router = Router::new().fallback(|| async { "7" });
        runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert_eq!(client.get_json::<u8>("/", Duration::ZERO).unwrap(), 7);
                });
            }
        });
    }

    #[tokio::test]
    async fn inside_a_task_it_fails_and_does_not_panic() {
        let (_listener, client) = listener();
        let asked = client.get_json::<u8>("/", Duration::ZERO);
        assert!(matches!(asked, Err(RequestError::InsideRuntime)));
    }
}
