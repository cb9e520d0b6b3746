"""Processes of the demo. Each has its own log, and none outlives the demo."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """A step of the demo failed. The message says which, and names the log."""


def _die_with_the_parent() -> None:
    """On Linux a process ends with its parent, even if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


def wait_for(what: str, happens: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    """Waits until a condition holds, or fails with the end of a log."""
    deadline = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds:.0f} s for {what}{_end_of(log)}")
        time.sleep(0.2)


def _end_of(log: Path | None) -> str:
    if log is None or not log.exists():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-15:]
    return f"; the end of {log}:\n" + "\n".join(lines)


def answers(port: int) -> bool:
    """Whether a process listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Processes:
    """All processes of one run. Leaving it ends them, the last first."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            self.end(process)

    def log(self, name: str) -> Path:
        """Where a process's output goes."""
        return self._logs / f"{name}.log"

    def start(self, name: str, command: list[str], env: dict[str, str] | None = None,
              talks: bool = False, folder: Path | None = None) -> subprocess.Popen[str]:
        """Starts a process. Its output goes to us if it `talks`, otherwise to its log."""
        with self.log(name).open("a") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **(env or {})}, cwd=folder, text=True, start_new_session=True,
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else log, stderr=log, preexec_fn=_die_with_the_parent)
        self._running.append(process)
        return process

    def run(self, name: str, command: list[str], env: dict[str, str] | None = None,
            folder: Path | None = None) -> str:
        """Runs a command and returns its output."""
        done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, **(env or {})}, cwd=folder)
        with self.log(name).open("a") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode != 0:
            raise Failed(f"{name} ended with {done.returncode}:\n{done.stderr.strip()[-3000:]}")
        return done.stdout

    def kill(self, process: subprocess.Popen[str]) -> None:
        """kill -9, of the process and its children."""
        self._signal(process, signal.SIGKILL)
        process.wait()
        self._running.remove(process)

    def end(self, process: subprocess.Popen[str]) -> None:
        """Terminates it, and kills it if necessary."""
        if process.poll() is None:
            self._signal(process, signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                self._signal(process, signal.SIGKILL)
                process.wait()

    @staticmethod
    def _signal(process: subprocess.Popen[str], number: int) -> None:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
