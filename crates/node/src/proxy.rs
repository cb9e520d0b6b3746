//! A SOCKS proxy between this process and all servers that it calls, such as Tor's.
//!
//! It is set once for the process. So no client can be forgotten: one that connected directly would
//! show the address that the proxy is to hide.

use crate::entropy;
use crate::failure::Failure;
use data_encoding::HEXLOWER;
use rand_core::Rng;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_socks::tcp::Socks5Stream;

/// The proxy of this process.
static PROXY: OnceLock<Proxy> = OnceLock::new();

/// The address of a proxy: `socks5h://host:port`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Proxy {
    host: String,
    port: u16,
}

/// The text is not the address of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Not of the form.
    #[error("a proxy is `socks5h://host:port`")]
    Form,
    /// Names would be looked up here.
    #[error(
        "with `socks5://` this machine would look up names, and so reveal what it connects to; use `socks5h://`"
    )]
    LocalNames,
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        if text.starts_with("socks5://") {
            return Err(ProxyError::LocalNames);
        }
        let rest = text.strip_prefix("socks5h://").ok_or(ProxyError::Form)?;
        let (host, port) = rest.rsplit_once(':').ok_or(ProxyError::Form)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let good = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let good = bare.is_some() || !host.is_empty() && host.chars().all(good);
        let port = port.parse().ok().filter(|port| *port > 0 && good).ok_or(ProxyError::Form)?;
        Ok(Self { host: bare.unwrap_or(host).to_owned(), port })
    }
}

impl TryFrom<String> for Proxy {
    type Error = ProxyError;

    fn try_from(text: String) -> Result<Self, ProxyError> {
        text.parse()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socks5h://{}:{}", self.host, self.port)
    }
}

/// From now on clients of this process connect through a proxy. A second call changes nothing.
pub fn connect_through(proxy: Proxy) {
    let _ = PROXY.set(proxy);
}

/// The way through the proxy for one client.
#[derive(Clone)]
pub(crate) struct Route {
    proxy: &'static Proxy,
    /// Different for each client. Tor sends connections with different names over different
    /// circuits, so that its exits see no more of one person than servers do. Others ignore it.
    name: String,
    /// How many routes were made of the one that was drawn.
    made: Arc<AtomicU64>,
}

impl Route {
    /// The way for a new client; `None` without a proxy.
    pub(crate) fn draw() -> Result<Option<Self>, Failure> {
        let Some(proxy) = PROXY.get() else { return Ok(None) };
        let mut name = [0; 16];
        entropy::rng()?.fill_bytes(&mut name);
        Ok(Some(Self { proxy, name: HEXLOWER.encode(&name), made: Arc::default() }))
    }

    /// A way with a name of its own.
    pub(crate) fn another(&self) -> Self {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Self { name: format!("{}-{number}", self.name), made: Arc::default(), ..self.clone() }
    }

    /// Connects to a server. The proxy looks its name up.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let proxy = (self.proxy.host.as_str(), self.proxy.port);
        let target = (host, port);
        let opened = Socks5Stream::connect_with_password(proxy, target, &self.name, &self.name);
        match opened.await {
            Ok(stream) => Ok(stream.into_inner()),
            Err(error) => Err(io::Error::other(format!("the proxy {}: {error}", self.proxy))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_a_name_of_its_own() {
        let proxy: &'static Proxy = Box::leak(Box::new("socks5h://a:1".parse().unwrap()));
        let first = Route { proxy, name: "drawn".into(), made: Arc::default() };
        let (second, third) = (first.another(), first.clone().another());
        let fourth = second.another();
        let names = [first, second, third, fourth].map(|route| route.name);
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), 4, "{names:?}");
        assert!(names.iter().all(|name| name.len() < 256), "SOCKS takes 255 bytes");
    }

    #[test]
    fn a_proxy_is_an_address_and_looks_names_up_itself() {
        let parse = |text: &str| text.parse::<Proxy>().map(|proxy| (proxy.host, proxy.port));
        assert_eq!(parse("socks5h://127.0.0.1:9050"), Ok(("127.0.0.1".into(), 9050)));
        assert_eq!(parse("socks5h://tor.lan:1"), Ok(("tor.lan".into(), 1)));
        assert_eq!(parse("socks5h://[::1]:9050"), Ok(("::1".into(), 9050)));
        assert_eq!(parse("socks5://127.0.0.1:9050"), Err(ProxyError::LocalNames));
        for bad in
            ["", "127.0.0.1:9050", "socks5h://", "socks5h://a", "socks5h://:1", "socks5h://a:0"]
        {
            assert_eq!(parse(bad), Err(ProxyError::Form), "{bad}");
        }
        for bad in ["socks5h://a:b@c:1", "socks5h://a:1/", "http://a:1", "socks5h://a:99999"] {
            assert_eq!(parse(bad), Err(ProxyError::Form), "{bad}");
        }
    }
}
