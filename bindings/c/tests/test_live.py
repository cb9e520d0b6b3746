"""Devices in C send to a live service, whose rows are the plaintext's sums; a subscriber in C uses a live gateway."""

import http.client
import http.server
import json
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from support import ALPHEUS, BUILD, Processes, compiled, free_port, prepare

#: Ticks that each device sends. A device without a tick's frame is in no window; a busy machine needs some.
TICKS = 10
#: 32 random bytes in base64, as guides make it: a key from a passphrase would cost more.
KEY_FILE = "EUCpfaD4b6RC92VxUTmSqcYVf36V7aQmGCjg7rwJc6I="
SCHEMA = """
name: Meters
version: 1
tick: 1s
FRAMES
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [variance] }
  - { name: share, type: decimal, scale: 2, min: -1, max: 1, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 2s, alpha: 0, dropout: 1/3 }
"""
POLICIES = """
schema: Meters
service: analyst
default:
  reading: { option: crowd, clients: 1 }
  share: { option: crowd, clients: 1 }
"""
QUERY = (
    "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading), SUM(share) "
    "WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters BETWEEN 2 AND 100"
)


def setUpModule():
    prepare()
    compiled("live_device", ["live_device.c", "readme_device.c"])
    compiled("live_pass", ["live_pass.c", "readme_pass.c"])


def carried(program, arguments, to):
    """Runs a program whose requests `to` carries: it gives the body of an answer, or None. Gives what is said at the end."""
    running = subprocess.Popen(
        [BUILD / program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with running:
        for line in running.stdout:
            if line == "done\n":
                break
            method, path, header = line.split()[:2] + [line.split(" ", 2)[2].rstrip("\n")]
            body = to(method, path, None if header == "-" else header, bytes.fromhex(next(running.stdout).strip()))
            running.stdin.write(("-" if body is None else body.hex()) + "\n")
            running.stdin.flush()
        running.stdin.close()
    return running.returncode


def over_tls(port, authority, identity=None):
    """HTTP over TLS: a function that asks. Each answer of another status than 200 is None."""
    context = ssl.create_default_context(cafile=authority)
    if identity is not None:
        context.load_cert_chain(identity / "tls.pem", identity / "tls.key")

    def ask(method, path, body, headers):
        connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
        try:
            connection.request(method, path, body or None, {"content-type": "application/octet-stream", **headers})
            answer = connection.getresponse()
            content = answer.read()
            return content if answer.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    return ask


class Streams(unittest.TestCase):
    def deployment(self, here, frames, names):
        """A service, a controller, and an owner with a device for each name. Gives the service's port."""
        here.folder.joinpath("schema.yaml").write_text(SCHEMA.replace("FRAMES", frames))
        here.folder.joinpath("policies.yaml").write_text(POLICIES)
        here.folder.joinpath("key").write_text(KEY_FILE)
        here.folder.joinpath("key").chmod(0o600)
        here.run("ca", "init", "pki")
        for role, name in (("server", "service"), ("consumer", "analyst"), ("controller", "host")):
            here.issue(role, name)
        own = ["--identity", "pki/host", "--state", "run/host", "--key-file", "key"]
        here.run("controller", "init", *own, "--ca", "pki")
        port, other = free_port(), f"127.0.0.1:{free_port()}"
        service = ["--identity", "pki/service", "--schema", "schema.yaml", "--state", "run/service"]
        here.start("server", *service, "--api", f"127.0.0.1:{port}", "--idle-timeout", "3")
        here.start("controller", "run", *own, "--schema", "schema.yaml", "--server", f"https://127.0.0.1:{port}", "--api", other)
        for name in names:
            here.issue("owner", f"owner-{name}")
            here.issue("producer", name)
            here.run("owner", "add", "--identity", f"pki/owner-{name}", "--controller", f"https://{other}", "--schema", "schema.yaml",
                     "--policies", "policies.yaml", "--producer", name, "--device", f"{name}.device")
        self.asked = ["query", "--server", f"https://127.0.0.1:{port}", "--identity", "pki/analyst"]
        # The controller registers the streams.
        self.until(lambda: self.succeeds(here, "--query", f"EXPLAIN {QUERY}"), "the streams are not registered")
        here.run(*self.asked, "--query", QUERY)
        return port

    def succeeds(self, here, *more):
        try:
            return here.run(*self.asked, *more) or True
        except AssertionError:
            return False

    def until(self, found, what):
        for _ in range(300):
            result = found()
            if result:
                return result
            time.sleep(0.2)
        raise AssertionError(what)

    def rows(self, here):
        said = self.succeeds(here, "--results", "Readings", "--format", "json")
        return [json.loads(line) for line in said.splitlines()] if isinstance(said, str) else []

    def opened(self, frames):
        values = {"watch": 100, "phone": 7}
        with tempfile.TemporaryDirectory() as folder, Processes(folder) as here:
            port = self.deployment(here, frames, values)
            ended = {}

            def device(name, value):
                identity = here.folder / "pki" / name
                ask = over_tls(port, identity / "ca.pem", identity)
                texts = "-" if frames else identity
                arguments = [here.folder / "schema.yaml", here.folder / f"{name}.device", texts, value, TICKS]
                ended[name] = carried("live_device", arguments, lambda method, path, _, body: ask(method, path, body, {}))

            threads = [threading.Thread(target=device, args=each) for each in values.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(ended, dict.fromkeys(values, 0))
            full = lambda row: row["status"] == "ok" and row["population"] == 2 and row["count_reading"] == 4  # noqa: E731
            row = self.until(lambda: next(filter(full, self.rows(here)), None), "no window of both devices")
            self.assertEqual((row["sum_reading"], row["sum_share"]), (str(2 * 107), "1.00"))

    def test_a_service_opens_frames_of_ticks(self):
        self.opened("")

    def test_a_service_opens_frames_of_events(self):
        self.opened("frames: events")


class Songs(http.server.BaseHTTPRequestHandler):
    """The service behind the gateway."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"song")

    def log_message(self, *words):
        pass


class Passes(unittest.TestCase):
    def test_a_gateway_serves_a_subscriber(self):
        songs = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Songs)
        threading.Thread(target=songs.serve_forever, daemon=True).start()
        try:
            with tempfile.TemporaryDirectory() as folder, Processes(folder) as here:
                self.serve(here, songs.server_port)
        finally:
            songs.shutdown()
            songs.server_close()

    def serve(self, here, upstream):
        here.run("ca", "init", "pki")
        for role in ("issuer", "verifier", "gateway"):
            here.issue(role, role)
        ports = {role: free_port() for role in ("issuer", "verifier", "gateway")}
        at = {role: f"127.0.0.1:{port}" for role, port in ports.items()}
        made = ["--issuer", f"https://{at['issuer']}", "--gateway", f"https://{at['gateway']}"]
        here.run("pass", "init", "deployment", *made, "--authority", "pki/ca.pem", "--epoch", "4")
        here.folder.joinpath("ada.secret").write_text(here.run("pass", "account", "ada", "--accounts", "accounts.txt"))
        own = ["--deployment", "deployment", "--api"]
        here.start("pass", "issuer", "--identity", "pki/issuer", "--accounts", "accounts.txt", "--state", "run-issuer", "--new-state", *own, at["issuer"])
        here.start("pass", "verifier", "--identity", "pki/verifier", "--state", "run-verifier", *own, at["verifier"])
        to = ["--verifiers", f"https://{at['verifier']}", "--upstream", f"http://127.0.0.1:{upstream}", "--api", at["gateway"]]
        here.start("pass", "gateway", "--identity", "pki/gateway", "--card", "deployment/card.json", *to)
        authority = here.folder / "pki/ca.pem"
        issuer, gateway = over_tls(ports["issuer"], authority), over_tls(ports["gateway"], authority)

        def to(method, path, header, body):
            if path == "/v1/pass":
                return issuer(method, path, body, {"authorization": header})
            return gateway(method, path, body, {"alpheus-pass": header} if header else {})

        arguments = [here.folder / "deployment/card.json", here.folder / "ada.secret", here.folder / "ada.pass", f"localhost:{ports['gateway']}"]
        self.assertEqual(carried("live_pass", arguments, to), 0)
        # The program reads the file that the library wrote.
        here.folder.joinpath("ada.key").write_text("a key of thirty-two random bytes")
        here.folder.joinpath("ada.key").chmod(0o600)
        fetched = here.run("pass", "client", "fetch", "--pass", "ada.pass", "--key-file", "ada.key")
        self.assertIn("already there", fetched)


if __name__ == "__main__":
    assert ALPHEUS.exists(), "make build-processes builds the program"
    unittest.main()
