#!/bin/sh
# The JVM's registry client against a real schema registry: Apicurio, in memory, on this machine.
set -eu
cd "$(dirname "$0")/.."
make scale-jvm
exec "${PYTHON:-python3}" - <<'TESTS'
import os, subprocess, sys, tempfile
from pathlib import Path

sys.path.insert(0, "examples/scale")
from cluster import Registry
from processes import Processes

with tempfile.TemporaryDirectory() as folder, Processes(Path(folder)) as processes:
    registry = Registry(processes, Path("jvm/demo/target/registry"))
    tests = ["./mvnw", "--batch-mode", "--no-transfer-progress", "--projects", "registry", "--also-make",
             "-Dtests.left-out=", "-Dgroups=registry", "-Dsurefire.failIfNoSpecifiedTests=false", "test"]
    sys.exit(subprocess.run(tests, cwd="jvm", env=os.environ | {"ALPHEUS_REGISTRY_URL": registry.url}).returncode)
TESTS
