"""What tests of the C interface share: the libraries, compilers, and processes of the program."""

import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CARGO = TARGET / "debug"
ALPHEUS = CARGO / "alpheus"
#: Where tests build. It is made again in each run; two runs at once have a name each.
BUILD = TARGET / os.environ.get("C_BUILD", "c")
PREFIX = BUILD / "prefix"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O1", "-g"]
#: What `libalpheus.a` needs of the system.
SYSTEM = ["-lpthread", "-ldl", "-lm"]
#: Ports outside the system's ephemeral range, so that no outgoing connection takes one.
PORTS = range(10_000, 32_768)


def said(*line, **more):
    """What a command prints. Its errors are shown if it fails."""
    done = subprocess.run([str(part) for part in line], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{line[0]} ended with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}")
    return done.stdout


def prepare():
    """The folder of the tests, with the library as it is installed."""
    shutil.rmtree(BUILD, ignore_errors=True)
    said(sys.executable, HERE.parent / "install.py", CARGO, PREFIX)
    for name, text in blocks().items():
        (BUILD / f"readme_{name}.c").write_text(text)


def blocks():
    """The named blocks of C in README.md."""
    text = (HERE.parent / "README.md").read_text()
    return {name: code for name, code in re.findall(r"```c (\w+)\n(.*?)```", text, re.DOTALL)}


def flags(*asked):
    """What pkg-config says of the library."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig")}
    return said("pkg-config", *asked, "alpheus", env=environment).split()


def compiled(name, sources, *, more=(), known=False, compiler=("gcc", "-std=c11")):
    """Compiles a program. It links the shared library, or that of known answers, which is static."""
    out = BUILD / name
    where = [HERE / file if (HERE / file).exists() else BUILD / file for file in sources]
    library = [CARGO / "examples/libalpheus_known.a", *SYSTEM] if known else flags("--libs")
    path = [] if known else [f"-Wl,-rpath,{PREFIX / 'lib'}"]
    said(*compiler, *WARNINGS, *more, f"-I{HERE}", *flags("--cflags"), "-o", out, *where, *library, *path, "-lpthread")
    return out


def free_port():
    """A port that nobody listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Processes:
    """Processes of the program, in a folder. All end with the block."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()
            process.stderr.close()

    def run(self, *line):
        """Runs a command to its end."""
        return said(ALPHEUS, *line, cwd=self.folder).strip()

    def issue(self, role, name):
        self.run("ca", "issue", "pki", "--role", role, "--name", name)

    def start(self, *line):
        """Starts a command, and waits until it serves."""
        process = subprocess.Popen(
            [str(ALPHEUS), *map(str, line)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        seen = []
        for text in process.stderr:
            seen.append(text)
            if text.startswith("serving at "):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return
        raise AssertionError(f"{line[0]} does not serve:\n{''.join(seen)}")
