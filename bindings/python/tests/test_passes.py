"""A pass's session as an ``auth``, without the libraries that take it. `tests/long` has those."""

import pytest

import alpheus
from alpheus.passes import HEADER, PassAuth


class Request:
    """What a library is about to send."""

    def __init__(self):
        self.url = "https://songs.example/song?x=1"
        self.headers = {}


@pytest.fixture
def auth(monkeypatch):
    """An auth, in an environment that names no proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return PassAuth("127.0.0.1:45999", "local secret")


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_no_proxy_of_the_environment_gets_the_secret(auth, monkeypatch, name):
    monkeypatch.setenv(name, "http://eve:password@proxy.example:3128")
    request = Request()
    with pytest.raises(alpheus.UsageError, match="NO_PROXY") as refused:
        auth(request)
    assert request.headers == {} and request.url == "https://songs.example/song?x=1"
    assert "password" not in str(refused.value)
    monkeypatch.setenv("no_proxy", "localhost")
    with pytest.raises(alpheus.UsageError):
        auth(request)
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert auth(request).headers == {HEADER: "local secret"}
    assert request.url == "http://127.0.0.1:45999/song?x=1"


def test_a_proxy_for_https_alone_does_not_matter(auth, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert auth(Request()).headers == {HEADER: "local secret"}
