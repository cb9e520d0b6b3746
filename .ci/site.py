"""Builds one static site from the Markdown of the repository, and checks its links.

`site.py --check` only checks: each link between documents leads to a file, and to a heading where
it names one. `site.py FOLDER` collects the pages for the generator into FOLDER/pages, and writes its
configuration and llms.txt. `site.py --built FOLDER` checks what the generator has made of them: its
search knows each page of the navigation, and each link of llms.txt leads to a page. Only the standard
library is needed.
"""

import json
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~)")

# Titles and pages of the navigation. A guide that is not named here fails the build.
GUIDES = [
    ("Quick start", "README.md"),
    ("Bring your data", "docs/bring-your-data.md"),
    ("A tour", "docs/tour.md"),
    ("Noise", "docs/noise.md"),
    ("Results that prove themselves", "docs/integrity.md"),
    ("Pages in a browser", "docs/pages.md"),
    ("Kafka and Flink", "docs/scale.md"),
    ("Limits of scale", "docs/scale-limits.md"),
    ("Data contracts", "docs/standards.md"),
    ("Access pass", "docs/pass.md"),
    ("Accountable statistics", "docs/statistics.md"),
    ("Anonymous board", "docs/board.md"),
    ("A board with passes", "docs/board-passes.md"),
    ("Verifiable tables", "docs/tables.md"),
    ("Python", "bindings/python/README.md"),
    ("Browsers and Node", "bindings/js/README.md"),
    ("C", "bindings/c/README.md"),
    ("Operating", "docs/operating.md"),
]
REFERENCE = [
    ("Overview", "docs/reference/README.md"),
    ("Schema", "docs/reference/schema.md"),
    ("Source file", "docs/reference/source.md"),
    ("Policies", "docs/reference/policies.md"),
    ("Query language", "docs/reference/query-language.md"),
    ("Settings", "docs/reference/settings.md"),
    ("Commands", "docs/reference/commands.md"),
    ("Errors by id", "docs/reference/errors.md"),
    ("Wire formats", "docs/wire-formats.md"),
    ("Glossary", "docs/glossary.md"),
]
SECURITY = [
    ("What is protected", "SECURITY.md"),
    ("Threat model", "docs/threat-model.md"),
]


def tracked():
    """The files of the repository, those that are new included."""
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    return {line for line in out.splitlines() if (ROOT / line).is_file()}


def lines(text):
    """The lines of a document that are not code."""
    inside = False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def anchors(text):
    """The names of a document's headings, as GitHub and the generator make them."""
    found = {}
    names = set()
    for line in lines(text):
        heading = re.match(r"#{1,6} (.*)", line)
        if not heading:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.add(slug if count == 0 else f"{slug}-{count}")
    return names


def links(text):
    """The links of a document that lead to files of the repository."""
    for line in lines(text):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"[a-z]+:", target):
                yield target


def navigated():
    """The pages that the navigation names one by one."""
    return {page for group in (GUIDES, REFERENCE, SECURITY) for _, page in group}


def problems(files):
    """What is wrong with the links of all documents."""
    texts = {name: (ROOT / name).read_text() for name in files if name.endswith(".md")}
    folders = {posixpath.dirname(name) for name in files}
    folders |= {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents}
    for name, text in sorted(texts.items()):
        for target in links(text):
            path, _, anchor = target.partition("#")
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if full not in files and full not in folders:
                yield f"{name}: {target}: there is no such file"
            elif anchor and full in texts and anchor not in anchors(texts[full]):
                yield f"{name}: {target}: there is no such heading"
    shown = navigated()
    for page in sorted(shown - files):
        yield f"{page} is in the navigation and does not exist"
    for page in sorted(texts):
        if re.fullmatch(r"docs/(reference/)?[^/]+\.md", page) and page not in shown:
            yield f"{page} is not in the navigation of .ci/site.py"


def rewritten(name, text, files):
    """A page whose links to folders lead to their README, and to code to nothing but its name."""

    def link(match):
        whole, target = match.group(0), match.group(1)
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return whole
        path, _, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if full.endswith(".md"):
            return whole
        if f"{full}/README.md" in files:
            back = posixpath.relpath(f"{full}/README.md", posixpath.dirname(name) or ".")
            return whole.replace(f"({target})", f"({back})")
        label = re.match(r"\[([^\]]*)\]", whole).group(1)
        return label if label.startswith("`") else f"`{label}`"

    out, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
            # What tests read after the language is nothing to readers.
            line = re.sub(r"^(```\w+) .*", r"\1", line)
        out.append(line if inside else LINK.sub(link, line))
    return "\n".join(out) + "\n"


def described(name):
    """The first paragraph of a page, on one line."""
    text = (ROOT / name).read_text().split("\n\n")
    plain = next((part for part in text if not part.startswith(("#", "|", "```"))), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    return " ".join(plain.split())


def address(page):
    """Where the generator puts a page."""
    return re.sub(r"(^|/)README\.md$", r"\1index.html", page).replace(".md", ".html")


def llms():
    """An overview for language models: each page with what it is about."""
    out = ["# Alpheus", "", f"> {described('README.md')}"]
    for title, group in (("Guides", GUIDES), ("Reference", REFERENCE), ("Security", SECURITY)):
        out += ["", f"## {title}", ""]
        out += [f"- [{name}]({address(page)}): {described(page)}" for name, page in group]
    return "\n".join(out) + "\n"


def configuration(files):
    """The generator's configuration."""
    groups = [("Guides", GUIDES), ("Reference", REFERENCE), ("Security", SECURITY)]
    decisions = sorted(f for f in files if re.fullmatch(r"docs/decisions/.*\.md", f))
    protocols = sorted(f for f in files if re.fullmatch(r"crates/[^/]+/docs/.*\.md", f))
    nav = []
    for title, group in groups:
        nav.append(f"  - {title}:")
        nav += [f"      - {name}: {page}" for name, page in group]
    nav += ["  - Design:", "      - Architecture: ARCHITECTURE.md", "      - Protocols:"]
    nav += [f"          - {page}" for page in protocols]
    nav += ["      - Decisions:"] + [f"          - {page}" for page in decisions]
    nav += ["      - Changes: CHANGELOG.md", "      - Contributing: CONTRIBUTING.md"]
    return (ROOT / ".ci/mkdocs.yml").read_text() + "nav:\n" + "\n".join(nav) + "\n"


def build(folder):
    files = tracked()
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    for name in sorted(files):
        if name.endswith(".md"):
            target = pages / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rewritten(name, (ROOT / name).read_text(), files))
        elif name.startswith(("docs/", "bench/results/")) and name.endswith((".png", ".svg", ".jpg")):
            target = pages / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    (pages / "llms.txt").write_text(llms())
    (folder / "mkdocs.yml").write_text(configuration(files))


def unbuilt(html):
    """What the built site lacks."""
    index = json.loads((html / "search/search_index.json").read_text())
    known = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in sorted(navigated()):
        if address(page) not in known:
            yield f"search/search_index.json lacks {page}"
    for target in LINK.findall((html / "llms.txt").read_text()):
        if not (html / target).is_file():
            yield f"llms.txt: {target}: there is no such page"


def main():
    built = sys.argv[1] == "--built"
    found = list(unbuilt(pathlib.Path(sys.argv[2])) if built else problems(tracked()))
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    if not built and sys.argv[1:] != ["--check"]:
        build(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
