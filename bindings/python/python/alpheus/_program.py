"""The program ``alpheus``, which is in the wheel, and what it prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ._errors import OF_EXIT_CODE, AlpheusError, ServiceError

#: A file or a folder.
PathLike = str | os.PathLike[str]


def program() -> Path:
    """The program's path: the one of this package, or the one that ``PROGRAM_OF_ALPHEUS`` names.

    >>> program().name
    'alpheus'
    """
    named = os.environ.get("PROGRAM_OF_ALPHEUS")
    own = Path(__file__).with_name("bin") / "alpheus"
    found = named or (str(own) if own.exists() else shutil.which("alpheus"))
    if not found:
        raise ServiceError(
            "the program `alpheus` is not in this package",
            help="install a wheel of alpheus, or name the program in PROGRAM_OF_ALPHEUS",
        )
    return Path(found)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: this process's, less the formats that people set."""
    own = {name: value for name, value in os.environ.items() if name != "ALPHEUS_FORMAT"}
    return {**own, **(extra or {})}


def run(arguments: Iterable[PathLike], *, cwd: PathLike | None = None, stdin: str = "") -> str:
    """Runs a command to its end, and returns what it prints. Raises its error if it fails."""
    line = [str(program()), *(os.fspath(argument) for argument in arguments)]
    done = subprocess.run(
        line, cwd=cwd, input=stdin, capture_output=True, text=True, env=environment()
    )
    if done.returncode != 0:
        raise failure(done.returncode, done.stderr)
    return done.stdout


def read(arguments: Iterable[PathLike], **options: Any) -> Any:
    """Runs a command that prints JSON, and returns that."""
    return json.loads(run([*arguments, "--format", "json"], **options) or "null")


def failure(code: int, said: str) -> AlpheusError:
    """The error of a failed command, as an exception."""
    message: list[str] = []
    help: list[str] = []
    id = None
    for line in said.splitlines():
        if line.startswith("error: "):
            message, help = [line.removeprefix("error: ")], []
        elif line.startswith("help: "):
            help.append(line.removeprefix("help: "))
        elif line.startswith("more: alpheus errors "):
            id = line.removeprefix("more: alpheus errors ").strip()
        elif message:
            message.append(line)
    text = "\n".join(message).strip() or said.strip() or f"the command ended with code {code}"
    made = OF_EXIT_CODE.get(code, ServiceError)
    return made(text, id=id, help="\n".join(help) or None)


def main() -> None:
    """Runs the program with this process's arguments: ``python -m alpheus``."""
    path = str(program())
    os.execv(path, [path, *sys.argv[1:]])
