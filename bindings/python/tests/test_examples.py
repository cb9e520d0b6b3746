"""Every example in a docstring and in the README does what it says."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest
from conftest import ROOT

import alpheus

HERE = ROOT / "bindings/python"
MODULES = [module.name for module in pkgutil.iter_modules(alpheus.__path__) if module.name not in ("_native", "__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(f"alpheus.{name}")
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_docstrings_have_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(f"alpheus.{name}")) if test.examples]
    assert len(found) >= 8


@pytest.mark.parametrize("page", ["README.md"])
def test_the_readme_runs(page, tmp_path):
    """With the wheel, as `make dist` makes it."""
    line = [sys.executable, HERE / "tests/run_readme.py", HERE / page]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "of 12 owners" in done.stdout, done.stderr


def test_every_public_thing_is_documented():
    for name in alpheus.__all__:
        if name != "__version__":
            thing = getattr(alpheus, name)
            assert thing.__doc__, name
            if isinstance(thing, type):
                own = {n: m for n, m in vars(thing).items() if not n.startswith("_") and callable(m)}
                assert all(m.__doc__ for m in own.values()), name


def test_the_command_line_is_there():
    done = subprocess.run([sys.executable, "-m", "alpheus", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and alpheus.__version__ in done.stdout


@pytest.mark.parametrize("script", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_examples_run(script, tmp_path):
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
