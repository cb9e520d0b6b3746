"""Servers of the other parts on this machine, for trials and notebooks. You hold everybody's keys.

For streams there is :func:`alpheus.local`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import design
from ._process import SERVING, Process, Running, free_port
from ._program import PathLike, run
from .passes import Pass
from .rows import _decimal
from .tables import Table

#: How long a process may take to start, in seconds.
START = 60


class _Trial(Running):
    """A folder and its processes, which end with the block and with the interpreter."""

    _WHAT = "a trial"

    def __init__(self) -> None:
        #: The folder with all keys and state.
        self.folder = Path(tempfile.mkdtemp(prefix="alpheus-"))
        super().__init__(self.folder)

    def _run(self, *line: PathLike) -> str:
        return run(line, cwd=self.folder)

    def _issue(self, role: str, name: str) -> None:
        self._run("ca", "issue", "pki", "--role", role, "--name", name)

    def _serve(self, *line: PathLike) -> None:
        process = Process(list(line), cwd=self.folder)
        self._processes.append(process)
        process.wait_for(SERVING, START)


class TableServer(_Trial):
    """A server for encrypted tables, and a certificate of their owner."""

    def __init__(self) -> None:
        super().__init__()
        try:
            self._run("ca", "init", "pki")
            self._issue("server", "service")
            self._issue("owner", "ada")
            api = f"127.0.0.1:{free_port()}"
            #: The server's address.
            self.server = f"https://{api}"
            who = ["--identity", "pki/service", "--state", "tables"]
            self._serve("table", "serve", *who, "--api", api)
        except BaseException:
            self.close()
            raise

    def create(self, schema: PathLike, state: PathLike) -> Table:
        """Creates a table in a new folder ``state``."""
        identity = self.folder / "pki" / "ada"
        return Table.create(schema, state, server=self.server, identity=identity)


class PassGateway(_Trial):
    """A service behind the access pass: issuer, verifier and gateway, and an account.

    ``upstream`` is the address of the service that is protected. A verifier that is new serves from the
    next epoch on, so the first request may take ``epoch`` seconds.
    """

    def __init__(self, upstream: str, *, epoch: int = 15) -> None:
        super().__init__()
        try:
            self._start(upstream, epoch)
        except BaseException:
            self.close()
            raise

    def _start(self, upstream: str, epoch: int) -> None:
        self._run("ca", "init", "pki")
        for role in ("issuer", "verifier", "gateway"):
            self._issue(role, role)
        issuer, verifier, gateway = (f"127.0.0.1:{free_port()}" for _ in range(3))
        made = ["--issuer", f"https://{issuer}", "--gateway", f"https://{gateway}"]
        more = ["--authority", "pki/ca.pem", "--epoch", str(epoch)]
        self._run("pass", "init", "deployment", *made, *more)
        secret = self._run("pass", "account", "ada", "--accounts", "accounts.txt")
        (self.folder / "ada.secret").touch(mode=0o600)
        (self.folder / "ada.secret").write_text(secret)
        issues = ["--accounts", "accounts.txt", "--state", "run-issuer", "--new-state"]
        own = ["--deployment", "deployment", "--api"]
        self._serve("pass", "issuer", "--identity", "pki/issuer", *issues, *own, issuer)
        state = ["--state", "run-verifier"]
        self._serve("pass", "verifier", "--identity", "pki/verifier", *state, *own, verifier)
        what = ["--card", "deployment/card.json", "--verifiers", f"https://{verifier}"]
        to = ["--upstream", upstream, "--api", gateway]
        self._serve("pass", "gateway", "--identity", "pki/gateway", *what, *to)

    def join(self, path: PathLike, *, key_file: PathLike) -> Pass:
        """A pass file of the account, with this period's pass in it."""
        made = Pass.join(
            path,
            key_file=key_file,
            card=self.folder / "deployment" / "card.json",
            account="ada",
            secret_file=self.folder / "ada.secret",
        )
        made.fetch()
        return made


class StatisticsParties(_Trial):
    """The parties of accountable statistics: a registrar, an aggregator, four smoothers, some accounts."""

    def __init__(self, accounts: Iterable[str]) -> None:
        super().__init__()
        try:
            self._start(tuple(accounts))
        except BaseException:
            self.close()
            raise

    def _start(self, accounts: tuple[str, ...]) -> None:
        self._run("ca", "init", "pki")
        names = ["registrar", "aggregator", *(f"smoother-{number}" for number in range(1, 5))]
        at = {name: (f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}") for name in names}
        line = ["stats", "init", "roads", "--min-accounts", "2", "--wasteful-accounts", "0"]
        line += ["--authority", "pki/ca.pem"]
        for name, (api, peers) in at.items():
            role = name.split("-")[0]
            self._issue(role, name)
            both = f"https://{api},https://{peers}" if role == "smoother" else f"https://{api}"
            line += [f"--{role}", both]
        self._run(*line)
        for account in accounts:
            secret = self._run("pass", "account", account, "--accounts", "accounts.txt")
            self.secret(account).touch(mode=0o600)
            self.secret(account).write_text(secret)
        for name, (api, peers) in at.items():
            role = name.split("-")[0]
            more = {"registrar": ["--accounts", "accounts.txt"], "smoother": ["--peers", peers]}
            own = ["--identity", f"pki/{name}", "--card", "roads/card.json", "--keys", f"roads/{name}"]
            (self.folder / "run").mkdir(mode=0o700, exist_ok=True)
            self._serve("stats", role, *own, "--state", f"run/{name}", "--api", api, *more.get(role, []))

    @property
    def card(self) -> Path:
        """The card that everybody pins."""
        return self.folder / "roads" / "card.json"

    @property
    def definer_key(self) -> Path:
        """The key of the party that may define what is measured."""
        return self.folder / "roads" / "definer.key"

    def secret(self, account: str) -> Path:
        """The file with an account's secret."""
        return self.folder / f"{account}.secret"


def statistics(data: PathLike | Any, *, source: str, define: str) -> list[dict[str, Any]]:
    """Plays a file or a frame through every role of the statistics: what the aggregator publishes.

    ``source`` says how columns become contributors, ``define`` what is measured, both as the YAML that
    ``alpheus stats replay`` takes. Each row has ``slots``, the uploads that the aggregator has seen, and
    ``dummies``, those of them that add nothing.
    """
    import csv

    with tempfile.TemporaryDirectory(prefix="alpheus-") as folder, design._csv(data) as file:
        at = Path(folder)
        for name, text in (("source.yaml", source), ("define.yaml", define)):
            (at / name).write_text(text, encoding="utf-8")
        line = ["stats", "replay", "--input", file, "--source", at / "source.yaml"]
        run([*line, "--define", at / "define.yaml", "--output", at / "out.csv"])
        with (at / "out.csv").open(encoding="utf-8", newline="") as lines:
            return [_typed(row) for row in csv.DictReader(lines)]


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    return {name: _decimal(text) if text else None for name, text in row.items()}

