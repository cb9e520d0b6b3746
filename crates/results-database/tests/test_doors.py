"""What clients that do not log in can do at `alpheus-database`: nothing, and for a short time."""

import os
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from site_of_meters import Database

# More than there are places for.
MANY = 150


def setUpModule():
    global TEMPORARY, DATABASE
    TEMPORARY = tempfile.TemporaryDirectory()
    rows = Path(TEMPORARY.name) / "saved.json"
    rows.write_text('{"window_start": 0, "window_end": 1000, "n": 7, "status": "ok"}\n')
    DATABASE = Database(Path(TEMPORARY.name) / "database", "--rows", str(rows))


def tearDownModule():
    DATABASE.process.end()
    TEMPORARY.cleanup()


def doors():
    return [("127.0.0.1", int(DATABASE.port)), ("127.0.0.1", int(DATABASE.flight.rsplit(":")[-1]))]


def was_closed(connection, seconds):
    """Waits until the other side has closed a connection."""
    connection.settimeout(seconds)
    try:
        while connection.recv(1000):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


class Doors(unittest.TestCase):
    def test_connections_without_a_login_keep_no_role_out_and_end(self):
        for door in doors():
            silent = [socket.create_connection(door) for _ in range(MANY)]
            try:
                self.assertEqual(DATABASE.rows("SELECT n FROM saved"), [["7"]])
                # The first went for the last.
                self.assertTrue(was_closed(silent[0], 5), door)
                # Nobody came after the last. The library's own limit is a minute.
                self.assertTrue(was_closed(silent[-1], 40), door)
            finally:
                for connection in silent:
                    connection.close()

    def test_nothing_runs_after_a_login_that_has_failed(self):
        names = b"user\0ann\0database\0alpheus\0\0"
        startup = struct.pack("!ii", len(names) + 8, 3 << 16) + names
        login = message(b"p", b"NO-SUCH-MECHANISM\0" + struct.pack("!i", -1))
        question = message(b"Q", b"CREATE TABLE intruder AS SELECT 1 AS a\0")
        parsed = message(b"P", b"\0CREATE TABLE intruder AS SELECT 1 AS a\0" + struct.pack("!h", 0))
        bound = message(b"B", b"\0\0" + struct.pack("!hhh", 0, 0, 0)) + message(b"E", b"\0" + struct.pack("!i", 0))
        for statement in [question, parsed + bound + message(b"S", b"")]:
            with socket.create_connection(doors()[0]) as connection:
                connection.sendall(startup + login + statement)
                connection.shutdown(socket.SHUT_WR)
                self.assertTrue(was_closed(connection, 60))
            self.assertIn("42P01", DATABASE.refusal("SELECT a FROM intruder"))

    def test_a_wrong_password_is_refused_and_counted(self):
        environment = {**os.environ, "PGPASSWORD": "wrong"}
        command = ["psql", "-h", "127.0.0.1", "-p", DATABASE.port, "-U", "ann", "-X", "alpheus", "-c", "SELECT 1"]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertNotEqual(ran.returncode, 0)
        DATABASE.process.says("warning: logins with a wrong name or password so far: 1\n")
        self.assertEqual(DATABASE.rows("SELECT n FROM saved"), [["7"]])


if __name__ == "__main__":
    unittest.main()
