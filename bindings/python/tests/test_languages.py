"""The table of languages in `bindings/README.md` says what the suites of each language read."""

import re

from conftest import ROOT

#: Where each language's tests are, and how their files end.
SUITES = {
    "Rust": (["crates/*/tests", "crates/*/src/vectors.rs"], ".rs"),
    "Java": (["jvm/*/src/test"], ".java"),
    "Python": (["bindings/python/tests"], ".py"),
    "JavaScript": (["bindings/js/test*"], "js"),
    "C": (["bindings/c/tests"], ".c"),
}


def table():
    """The rows of the table of vectors: a folder, and what each language's column says."""
    text = (ROOT / "bindings/README.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    start = next(at for at, line in enumerate(lines) if line.startswith("| vectors"))
    header, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:]]
    named = [(re.match(r"`([a-z-]+)`", row[0]), row) for row in rows[1:]]
    return {found[1]: dict(zip(header[1:], row[1:])) for found, row in named if found}


def reads(language, folder):
    """Whether a file of the language's tests names a file of vectors in the folder."""
    places, ending = SUITES[language]
    suites = [suite for where in places for suite in ROOT.glob(where)]
    files = [file for suite in suites for file in (suite.rglob("*") if suite.is_dir() else [suite])]
    files = [file for file in files if file.name.endswith(ending)]
    # A file that takes keys from vectors, and checks none, is no suite.
    files = [file for file in files if file.name not in ("test_languages.py", "device.js", "IdentityTest.java")]
    return any(re.search(rf"\b{folder}/v1\b", file.read_text()) for file in files)


def test_the_table_says_what_the_suites_read():
    rows = table()
    assert set(rows) >= {"schema", "encrypted-stream", "ticks", "anonymous-credential", "access-pass"}
    for folder, row in rows.items():
        assert set(row) <= set(SUITES), row
        for language, said in row.items():
            assert (said == "yes") == reads(language, folder), (folder, language)
