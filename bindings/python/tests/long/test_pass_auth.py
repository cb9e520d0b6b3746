"""A pass's session as an ``auth``: where requests go, and what a redirect must not do."""

import http.server
import pickle
import threading

import httpx
import pytest
import requests

import alpheus
from alpheus.passes import HEADER, PassAuth


@pytest.fixture
def proxy():
    """What stands for the pass's client: it notes requests, and redirects as its path says."""

    class Noted(http.server.BaseHTTPRequestHandler):
        seen = []

        def do_GET(self):
            self.seen.append((self.path, self.headers[HEADER], self.headers["Host"]))
            to = {"/own": "/song?x=1", "/named": "https://songs.example/song", "/other": "http://127.0.0.2:9/x"}
            if self.path in to:
                self.send_response(302)
                self.send_header("Location", to[self.path])
            else:
                self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", Noted.seen
    server.shutdown()


def test_requests_go_through_the_session(proxy):
    address, seen = proxy
    auth = PassAuth(address, "local secret")
    assert requests.get("https://songs.example/song?x=1", auth=auth, timeout=9).status_code == 200
    with httpx.Client(auth=auth) as client:
        assert client.get("https://songs.example/song?x=1").status_code == 200
    assert seen == [("/song?x=1", "local secret", address)] * 2
    assert "secret" not in repr(auth)
    with pytest.raises(TypeError):
        pickle.dumps(auth)


def test_redirects_stay_in_the_session(proxy):
    address, seen = proxy
    auth = PassAuth(address, "local secret")
    for path in ("own", "named"):
        assert requests.get(f"https://songs.example/{path}", auth=auth, timeout=9).status_code == 200
    assert [path for path, _, _ in seen] == ["/own", "/song?x=1", "/named", "/song"]
    assert {(secret, host) for _, secret, host in seen} == {("local secret", address)}
    with pytest.raises(alpheus.RefusedError, match="another host"):
        requests.get("https://songs.example/other", auth=auth, timeout=9)
