"""Processes of the program that end with this one, however it ends."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ._errors import ServiceError
from ._program import PathLike, environment, failure, program

#: Ports outside the system's ephemeral range, so that no outgoing connection takes one.
PORTS = range(10_000, 32_768)
#: What a process says once it serves.
SERVING = "serving at "


class Process:
    """A running command. It ends by itself once this process is gone, even if it was killed."""

    def __init__(self, arguments: list[PathLike], *, cwd: PathLike | None = None) -> None:
        line = [str(program()), *(os.fspath(argument) for argument in arguments)]
        self._parent = os.getpid()
        self._said: list[str] = []
        self._changed = threading.Condition()
        self._child = subprocess.Popen(
            line,
            cwd=cwd,
            # It ends once this closes, which the system does for a process that is killed.
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment({"CHILD_OF_ALPHEUS": "1"}),
        )
        threading.Thread(target=self._listen, daemon=True, name="alpheus").start()

    def _listen(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            with self._changed:
                # The beginning says where it serves, and the end says why it failed.
                self._said = [*self._said[:20], *self._said[20:][-99:], line]
                self._changed.notify_all()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._child.pid

    def wait_for(self, prefix: str, timeout: float) -> str:
        """Waits for a line of its standard error, and returns what follows the prefix."""
        until = time.monotonic() + timeout
        with self._changed:
            while True:
                for line in self._said:
                    if line.startswith(prefix):
                        return line.removeprefix(prefix).strip()
                code = self._child.poll()
                if code is not None:
                    self._changed.wait(0.05)
                    raise failure(code, "".join(self._said))
                if time.monotonic() > until:
                    raise ServiceError(f"a process did not start within {timeout} s")
                self._changed.wait(0.02)

    def alive(self) -> bool:
        """Whether it runs."""
        return self._child.poll() is None

    def end(self, timeout: float = 10) -> None:
        """Asks it to stop, and kills it if it does not. A copy of this process leaves it alone."""
        if self._parent != os.getpid():
            return
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        for stream in (self._child.stdin, self._child.stderr):
            if stream is not None:
                stream.close()


class Running:
    """Processes and their folder. Both go when it is closed, when nobody holds it, and with the interpreter."""

    #: What it is called where it cannot be copied.
    _WHAT = "this"

    def __init__(self, folder: Path | None) -> None:
        """A folder that is ``None`` stays."""
        self._processes: list[Process] = []
        self._ending = weakref.finalize(self, _end, self._processes, folder, os.getpid())

    def close(self) -> None:
        """Ends all processes, and removes their folder unless you named it.

        A forked process leaves both to its parent.
        """
        self._ending()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self._WHAT} cannot be pickled or copied: it is made of processes")


def _end(processes: list[Process], folder: Path | None, parent: int) -> None:
    if parent != os.getpid():
        return
    for process in reversed(processes):
        process.end()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port of this machine that is free now."""
    for port in random.sample(PORTS, 256):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServiceError("no port of this machine is free")


def private_folder(path: Path) -> Path:
    """A new folder that only its owner can look into."""
    path.mkdir(mode=0o700)
    return path
