"""The access pass: one session each, and nobody can tell whose.

:class:`PassSession` runs the pass's client beside this process, and :class:`PassAuth` sends requests
through it, for `requests` and for `httpx`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from ._errors import RefusedError, UsageError
from ._process import SERVING, Process, Running, free_port
from ._program import PathLike, run

#: The header by which the local proxy knows its user.
HEADER = "Alpheus-Local"
#: How long the pass's client may take to start, in seconds.
START = 60


class Pass:
    """A pass file, and the key file that opens it.

    >>> Pass("ada.pass", key_file="ada.key")
    <alpheus.Pass in ada.pass>
    """

    def __init__(self, path: PathLike, *, key_file: PathLike) -> None:
        self._path = path
        self._key_file = key_file

    @classmethod
    def join(
        cls,
        path: PathLike,
        *,
        key_file: PathLike,
        card: PathLike,
        account: str,
        secret_file: PathLike,
    ) -> Pass:
        """Creates a pass file for an account of the deployment that ``card`` describes.

        A key file that does not exist is created, for its user alone.
        """
        if not Path(key_file).exists():
            write_key(key_file)
        made = cls(path, key_file=key_file)
        line = ["pass", "client", "join", "--card", card, "--account", account]
        run([*line, "--secret-file", secret_file, *made._files()])
        return made

    def fetch(self) -> None:
        """Gets the passes of this period and the next, under the account's name.

        Do it at a different time from the login, so that times do not link the two.
        """
        run(["pass", "client", "fetch", *self._files()])

    def code(self, *, nonce: str | None = None) -> str:
        """A login code for a gate, valid once for some seconds."""
        more = [] if nonce is None else ["--nonce", nonce]
        return run(["pass", "client", "code", *self._files(), *more]).strip()

    def session(self, *, gateway: str | None = None, fetch: bool = True) -> PassSession:
        """Logs in, and keeps the session until it is closed."""
        return PassSession(self, gateway=gateway, fetch=fetch)

    def _files(self) -> list[PathLike]:
        return ["--pass", self._path, "--key-file", self._key_file]

    def __repr__(self) -> str:
        return f"<alpheus.Pass in {os.fspath(self._path)}>"


class PassSession(Running):
    """A logged-in session, which a process beside this one renews. It ends with this process."""

    _WHAT = "a pass's session"

    def __init__(self, of: Pass, *, gateway: str | None = None, fetch: bool = True) -> None:
        folder = Path(tempfile.mkdtemp(prefix="alpheus-"))
        super().__init__(folder)
        self._address = f"127.0.0.1:{free_port()}"
        secret = folder / "local"
        line: list[PathLike] = ["pass", "client", "run", *of._files(), "--local", self._address]
        line += ["--local-secret", secret, *([] if gateway is None else ["--gateway", gateway])]
        process = Process([*line, *([] if fetch else ["--no-fetch"])])
        self._processes.append(process)
        try:
            process.wait_for(SERVING, START)
            self._secret = secret.read_text().strip()
        except BaseException:
            self.close()
            raise

    def auth(self) -> PassAuth:
        """What `requests` and `httpx` take as ``auth``, for requests to the protected service.

        They go through the process beside this one, whatever address they name.
        """
        return PassAuth(self._address, self._secret)

    def __repr__(self) -> str:
        return f"<alpheus.PassSession at {self._address}>"


class PassAuth:
    """Sends requests through a pass's session: an ``auth`` of `requests` and of `httpx`.

    It changes where a request is sent, to the pass's client on this machine, and adds the local secret.
    The request's path and query are those that you wrote.

    A proxy would get all of that. If the environment names one that applies to the pass's client
    (``HTTP_PROXY`` without ``127.0.0.1`` in ``NO_PROXY``), the request is not sent, and :class:`UsageError`
    says so. Name no proxy in the client itself: an ``auth`` cannot see it.

    A redirect within the service goes through the session too. One to another host would leave it, with
    the local secret: `requests` raises :class:`RefusedError` then. `httpx` follows none unless it is
    asked to; do not ask it to.
    """

    def __init__(self, address: str, secret: str) -> None:
        self._address = address
        self._secret = secret

    def __call__(self, request: Any) -> Any:
        """Changes a request that is about to be sent."""
        url = str(request.url)
        self._refuse_proxies()
        # `httpx` has a type for addresses, and names the host in a header.
        moved = self._moved(url)
        request.url = moved if isinstance(request.url, str) else type(request.url)(moved)
        if "Host" in request.headers:
            request.headers["Host"] = self._address
        request.headers[HEADER] = self._secret
        if hasattr(request, "register_hook"):
            own = {self._address, urlsplit(url).netloc}
            request.register_hook("response", lambda response, **_: self._answered(response, own))
        return request

    def _refuse_proxies(self) -> None:
        """Refuses if the environment names a proxy for the pass's client. Its address may hold a password."""
        named = getproxies()
        if ("http" in named or "all" in named) and not proxy_bypass(self._address):
            raise UsageError(
                "a proxy of the environment would get the request and the session's secret",
                help="add 127.0.0.1 to NO_PROXY",
            )

    def _answered(self, response: Any, own: set[str]) -> None:
        """Keeps what `requests` does next within the session."""
        if not response.is_redirect:
            return
        target = urljoin(response.url, response.headers["location"])
        if urlsplit(target).netloc not in own:
            raise RefusedError(
                "the service redirects to another host, which the pass's session does not reach",
                help="say allow_redirects=False, and fetch what it names without this auth",
            )
        response.headers["location"] = self._moved(target)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an auth of a pass's session cannot be pickled or copied: it holds a secret")

    def _moved(self, url: str) -> str:
        parts = urlsplit(url)
        return urlunsplit(("http", self._address, parts.path or "/", parts.query, ""))

    def __repr__(self) -> str:
        return f"<alpheus.PassAuth through {self._address}>"


def write_key(path: PathLike) -> None:
    """Writes a new key file, 32 random bytes in base64, that only its user can read."""
    import base64
    import secrets

    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(base64.b64encode(secrets.token_bytes(32)))
