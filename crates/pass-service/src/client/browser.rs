//! Access to the local proxy. Only programs with the local secret may use it, other web
//! pages may not, and no cookie outlives its session.

use crate::forward::{strip_forwarded, strip_ours};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use data_encoding::BASE64;
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

/// The header that holds the local secret, for programs.
const SECRET: HeaderName = HeaderName::from_static("alpheus-local");
/// The cookie that holds it, for browsers.
const COOKIE: &str = "alpheus-local";
/// The user of basic authentication, for players.
const USER: &str = "pass";

/// Cookies that one response expires. The next response expires the others.
const MAX_EXPIRED: usize = 64;

/// Checks requests to the local proxy.
pub struct Door {
    secret: String,
    hosts: [String; 2],
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// Another host name: a web page may resolve its own name to this machine.
    #[error("this proxy answers at its own address only; use the address that it printed")]
    Host,
    /// The request is from another site.
    #[error("the request is from another site; open the page directly")]
    Origin,
    /// The local secret is missing.
    #[error(
        "the local secret is missing; open the address that the client printed, or send it as the header `Alpheus-Local`"
    )]
    Secret,
}

impl Door {
    /// For a proxy at an address.
    #[must_use]
    pub fn new(secret: String, address: SocketAddr) -> Self {
        let hosts = [address.to_string(), format!("localhost:{}", address.port())];
        Self { secret, hosts }
    }

    /// The address at which a browser gets the cookie.
    #[must_use]
    pub fn opening(&self) -> String {
        format!("http://{}/.alpheus/local/open?secret={}", self.hosts[0], self.secret)
    }

    /// The cookie, if the query contains the secret.
    #[must_use]
    pub fn cookie(&self, uri: &Uri) -> Option<HeaderValue> {
        let secret = uri.query()?.strip_prefix("secret=")?;
        let same = same(secret, &self.secret);
        let cookie = format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict");
        same.then(|| HeaderValue::from_str(&cookie).ok())?
    }

    /// Checks that a request may use the pass.
    ///
    /// # Errors
    /// [`DoorError`].
    pub fn check(&self, headers: &HeaderMap) -> Result<(), DoorError> {
        self.check_host(headers)?;
        let origins = headers.get_all(header::ORIGIN).iter();
        for origin in origins {
            let host = origin.to_str().unwrap_or_default().strip_prefix("http://");
            if !host.is_some_and(|host| self.hosts.iter().any(|ours| ours == host)) {
                return Err(DoorError::Origin);
            }
        }
        if let Some(site) = headers.get("sec-fetch-site")
            && site != "same-origin"
            && site != "none"
        {
            return Err(DoorError::Origin);
        }
        if self.has_secret(headers) { Ok(()) } else { Err(DoorError::Secret) }
    }

    /// Checks the host only, for the address at which a browser gets the cookie.
    ///
    /// # Errors
    /// [`DoorError::Host`].
    pub fn check_host(&self, headers: &HeaderMap) -> Result<(), DoorError> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let ours = host.is_some_and(|host| self.hosts.iter().any(|ours| ours == host));
        if ours { Ok(()) } else { Err(DoorError::Host) }
    }

    fn has_secret(&self, headers: &HeaderMap) -> bool {
        let program = headers.get(&SECRET).and_then(|value| value.to_str().ok());
        let basic = headers.get(header::AUTHORIZATION).and_then(basic_secret);
        let cookie = cookies(headers).find(|(name, _)| *name == COOKIE).map(|(_, value)| value);
        let ours = |secret: &str| same(secret, &self.secret);
        program.is_some_and(ours) || basic.as_deref().is_some_and(ours) || cookie.is_some_and(ours)
    }
}

/// The secret in basic authentication, if the user is ours.
fn basic_secret(value: &HeaderValue) -> Option<String> {
    let decoded = BASE64.decode(value.to_str().ok()?.strip_prefix("Basic ")?.as_bytes()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, secret) = text.split_once(':')?;
    (user == USER).then(|| secret.to_owned())
}

/// Compares in constant time.
fn same(candidate: &str, secret: &str) -> bool {
    candidate.as_bytes().ct_eq(secret.as_bytes()).into()
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('='))
}

/// The names of other sessions' cookies that a browser still sends.
#[must_use]
pub fn stale(headers: &HeaderMap, jar: &str) -> Vec<String> {
    let ours = prefix(jar);
    let stale = |name: &&str| is_jarred(name) && !name.starts_with(&ours);
    cookies(headers).map(|(name, _)| name).filter(stale).map(str::to_owned).collect()
}

/// Expires cookies in the browser: their names alone would reveal earlier sessions to a
/// page's scripts. A browser does not send a cookie's path. It is a prefix of the request's
/// path, so all prefixes are tried.
pub fn expire(headers: &mut HeaderMap, stale: &[String], path: &str) {
    let ends = path.match_indices('/').flat_map(|(at, _)| [at, at + 1]).chain([path.len()]);
    let mut paths: Vec<&str> = ends.filter_map(|end| path.get(..end)).collect();
    paths.retain(|path| !path.is_empty() && !path.contains(';'));
    paths.dedup();
    let each = stale.iter().flat_map(|name| paths.iter().map(move |path| (name, path)));
    for (name, path) in each.take(MAX_EXPIRED) {
        let gone = HeaderValue::from_str(&format!("{name}=; Path={path}; Max-Age=0"));
        headers.extend(gone.ok().map(|gone| (header::SET_COOKIE, gone)));
    }
}

/// Rewrites a browser's request for the service: removes data about this machine, and
/// cookies of other sessions.
pub fn outward(headers: &mut HeaderMap, jar: &str, authority: &str, origin: &str) {
    let prefix = prefix(jar);
    let kept: Vec<String> = cookies(headers)
        .filter_map(|(name, value)| Some(format!("{}={value}", name.strip_prefix(&prefix)?)))
        .collect();
    headers.remove(header::COOKIE);
    if let (false, Ok(cookie)) = (kept.is_empty(), HeaderValue::from_str(&kept.join("; "))) {
        headers.insert(header::COOKIE, cookie);
    }
    strip_ours(headers);
    if headers.get(header::AUTHORIZATION).and_then(basic_secret).is_some() {
        headers.remove(header::AUTHORIZATION);
    }
    strip_forwarded(headers);
    headers.remove(header::REFERER);
    if let (true, Ok(origin)) =
        (headers.contains_key(header::ORIGIN), HeaderValue::from_str(origin))
    {
        headers.insert(header::ORIGIN, origin);
    }
    if let Ok(host) = HeaderValue::from_str(authority) {
        headers.insert(header::HOST, host);
    }
}

/// Rewrites a response for the browser: cookies get a prefix for the session, and redirects
/// to the service lead to this proxy.
pub fn inward(headers: &mut HeaderMap, jar: &str, origin: &str) {
    let set: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for value in set {
        if let Some(renamed) = value.to_str().ok().and_then(|text| rename(text, jar)) {
            headers.append(header::SET_COOKIE, renamed);
        }
    }
    headers.remove(header::STRICT_TRANSPORT_SECURITY);
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let local = location
        .and_then(|value| value.strip_prefix(origin))
        .filter(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
    if let Some(Ok(local)) =
        local.map(|rest| HeaderValue::from_str(if rest.is_empty() { "/" } else { rest }))
    {
        headers.insert(header::LOCATION, local);
    }
}

/// `jar` identifies the session by sixteen hexadecimal digits, which never repeat.
fn prefix(jar: &str) -> String {
    format!("alpheus-{jar}.")
}

/// Whether a cookie was renamed by this proxy, in any session.
fn is_jarred(name: &str) -> bool {
    let jar = name.strip_prefix("alpheus-").and_then(|rest| rest.split_once('.'));
    jar.is_some_and(|(jar, _)| jar.len() == 16 && jar.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// Renames a cookie, and drops attributes that would keep a browser from sending it here.
fn rename(cookie: &str, jar: &str) -> Option<HeaderValue> {
    let mut parts = cookie.split(';').map(str::trim);
    let first = format!("{}{}", prefix(jar), parts.next()?);
    let unwanted = |part: &&str| {
        let part = part.to_ascii_lowercase();
        part == "secure"
            || part.starts_with("domain=")
            || part == "samesite=none"
            || part == "partitioned"
    };
    let kept: Vec<&str> = parts.filter(|part| !unwanted(part)).collect();
    HeaderValue::from_str(&[&[first.as_str()], &kept[..]].concat().join("; ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAR: &str = "0123456789abcdef";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_requests_with_the_secret_at_our_own_address_are_admitted() {
        let door = Door::new("s3cret".into(), "127.0.0.1:7600".parse().unwrap());
        let host = ("host", "127.0.0.1:7600");
        let check = |pairs: &[(&str, &str)]| door.check(&headers(pairs));
        let secret = ("alpheus-local", "s3cret");
        assert_eq!(check(&[host, secret]), Ok(()));
        assert_eq!(
            check(&[("host", "localhost:7600"), ("cookie", "a=b; alpheus-local=s3cret")]),
            Ok(())
        );
        assert_eq!(check(&[host, ("authorization", "Basic cGFzczpzM2NyZXQ=")]), Ok(()));
        // DNS rebinding: a page's own name resolves to this machine.
        assert_eq!(check(&[("host", "evil.example:7600"), secret]), Err(DoorError::Host));
        assert_eq!(check(&[secret]), Err(DoorError::Host));
        // A script of another page: the browser would send our cookie.
        let cookie = ("cookie", "alpheus-local=s3cret");
        for other in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:8000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(check(&[host, cookie, other]), Err(DoorError::Origin), "{other:?}");
        }
        assert_eq!(
            check(&[
                host,
                cookie,
                ("origin", "http://127.0.0.1:7600"),
                ("sec-fetch-site", "same-origin")
            ]),
            Ok(())
        );
        for wrong in [
            ("cookie", "alpheus-local=s3cre"),
            ("alpheus-local", ""),
            ("authorization", "Basic eDp5"),
        ] {
            assert_eq!(check(&[host, wrong]), Err(DoorError::Secret), "{wrong:?}");
        }
        let opened = |uri: &str| door.cookie(&uri.parse().unwrap()).is_some();
        assert!(
            opened("/.alpheus/local/open?secret=s3cret")
                && !opened("/x?secret=no")
                && !opened("/x")
        );
    }

    #[test]
    fn cookies_live_as_long_as_their_session() {
        let mut answer = headers(&[
            ("set-cookie", "id=7; Secure; Domain=music.example; HttpOnly; SameSite=None"),
            ("strict-transport-security", "max-age=1"),
            ("location", "https://music.example/next"),
        ]);
        inward(&mut answer, JAR, "https://music.example");
        assert_eq!(answer["set-cookie"], "alpheus-0123456789abcdef.id=7; HttpOnly");
        assert_eq!(answer["location"], "/next");
        assert!(!answer.contains_key("strict-transport-security"));
        let mut elsewhere = headers(&[("location", "https://music.example.evil/")]);
        inward(&mut elsewhere, JAR, "https://music.example");
        assert_eq!(elsewhere["location"], "https://music.example.evil/");

        let sent = [
            ("cookie", "alpheus-0123456789abcdef.id=7; alpheus-local=s; other=1"),
            ("referer", "http://127.0.0.1:7600/x"),
            ("origin", "http://127.0.0.1:7600"),
            ("x-forwarded-for", "10.0.0.7"),
            ("alpheus-local", "s"),
        ];
        let mut same = headers(&sent);
        outward(&mut same, JAR, "music.example", "https://music.example");
        assert_eq!(same["cookie"], "id=7");
        assert_eq!(
            (&same["origin"], &same["host"]),
            (&"https://music.example".parse().unwrap(), &"music.example".parse().unwrap())
        );
        assert_eq!(same.len(), 3, "{same:?}");
        let mut next = headers(&sent);
        outward(&mut next, "00000000000000ff", "music.example", "https://music.example");
        assert!(!next.contains_key("cookie"), "a new session starts with an empty jar");
    }

    #[test]
    fn cookies_of_earlier_sessions_are_expired() {
        let old = "alpheus-00000000000000ff.id=7; alpheus-0123456789abcdef.id=8";
        let sent = headers(&[("cookie", &format!("{old}; alpheus-local=s; alpheus-3.x=1"))]);
        let stale = stale(&sent, JAR);
        assert_eq!(stale, ["alpheus-00000000000000ff.id"]);
        let mut answer = headers(&[("set-cookie", "kept=1")]);
        expire(&mut answer, &stale, "/songs/7");
        let set: Vec<&str> =
            answer.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
        let gone = |path: &str| format!("alpheus-00000000000000ff.id=; Path={path}; Max-Age=0");
        let paths = ["/", "/songs", "/songs/", "/songs/7"].map(gone);
        assert_eq!(set[0], "kept=1");
        assert_eq!(set[1..], paths.each_ref().map(String::as_str));
    }
}
