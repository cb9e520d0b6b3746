"""Ties the pictures in docs/pages to the pages that they show.

`pictures.py --check` fails if a file of the pages, or the scene that is shown, has changed since the
pictures were made, or if a picture was made by something else. `pictures.py --made`, which `make
pictures` runs, notes what they were made from. Only the standard library is needed.
"""

import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = "crates/alpheus/src/console/page"
SCENE = "crates/alpheus/tests/processes/console/scene.rs"
PICTURES = "docs/pages"
NOTE = "made-from.txt"


def digests(root):
    """The digest of each file of the pages, of the scene and of each picture, by its path."""
    files = [*(root / PAGES).iterdir(), root / SCENE, *(root / PICTURES).glob("*.png")]
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(files) if file.is_file()}


def noted(root):
    """The same as they were when the pictures were made."""
    note = root / PICTURES / NOTE
    lines = note.read_text().splitlines() if note.is_file() else []
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}


def changed(root):
    """Paths that differ from when the pictures were made."""
    now, then = digests(root), noted(root)
    return sorted(path for path in now.keys() | then.keys() if now.get(path) != then.get(path))


def main(arguments, root=ROOT):
    if arguments == ["--made"]:
        lines = [f"{digest}  {path}\n" for path, digest in digests(root).items()]
        (root / PICTURES / NOTE).write_text("".join(lines))
        return None
    if arguments != ["--check"]:
        return __doc__
    paths = changed(root)
    if not paths:
        return None
    return (f"error: the pictures in {PICTURES} are not of these pages; changed since they were made: "
            f"{', '.join(paths)}\n"
            "help: run `make pictures`, which takes about ten minutes, look at each picture, and commit them")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
