//! The address of a server.

use axum::http::Uri;
use std::net::IpAddr;

/// Where a server is: `https://host:port`, or `http://` to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    tls: bool,
    host: String,
    port: u16,
}

/// The text is not the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Not of the form.
    #[error("an address is `https://host` or `https://host:port`, without a path")]
    Form,
    /// Without TLS to another machine.
    #[error("without TLS, only this machine can be reached (127.0.0.1, localhost); use https://")]
    Plain,
    /// Without TLS nobody shows a certificate.
    #[error("both ends of this connection present certificates; use https://")]
    NoCertificates,
}

impl Base {
    /// Reads an address that passes and sessions may be sent to.
    ///
    /// # Errors
    /// [`BaseUrlError`].
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let base = Self::anywhere(text)?;
        if base.tls || base.is_local() { Ok(base) } else { Err(BaseUrlError::Plain) }
    }

    /// Reads any address: a service behind a gateway may be in a network that is
    /// trusted.
    ///
    /// # Errors
    /// [`BaseUrlError::Form`].
    pub fn anywhere(text: &str) -> Result<Self, BaseUrlError> {
        let uri: Uri = text.parse().map_err(|_| BaseUrlError::Form)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BaseUrlError::Form),
        };
        let bare = uri.query().is_none() && matches!(uri.path(), "" | "/");
        let authority = uri.authority().filter(|a| bare && !a.as_str().contains('@'));
        let authority = authority.ok_or(BaseUrlError::Form)?;
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { tls, host: authority.host().to_ascii_lowercase(), port })
    }

    fn is_local(&self) -> bool {
        let address = self.host().parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Whether it is reached over TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host, an IPv6 address without its brackets.
    pub(super) fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, without the port if it is the scheme's: the `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// `https://host:port`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_go_to_other_machines_by_tls_only() {
        for good in [
            "https://a.example",
            "https://a.example:8443/",
            "http://127.0.0.1:80",
            "http://localhost",
            "http://[::1]:9",
        ] {
            assert!(Base::parse(good).is_ok(), "{good}");
        }
        assert_eq!(Base::parse("http://a.example"), Err(BaseUrlError::Plain));
        assert_eq!(Base::parse("http://localhost.example"), Err(BaseUrlError::Plain));
        for bad in
            ["", "a.example", "ftp://a", "https://a/b", "https://a?b", "https://u@a", "https://"]
        {
            assert_eq!(Base::parse(bad), Err(BaseUrlError::Form), "{bad}");
        }
        assert!(Base::anywhere("http://upstream.internal:8000").is_ok());
        assert_eq!(Base::parse("https://A.example:443").unwrap().authority(), "a.example");
        assert_eq!(Base::parse("http://localhost:443").unwrap().authority(), "localhost:443");
    }
}
