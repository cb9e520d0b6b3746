"""Links to the test program that cargo built: executable.py NAME LINK, with cargo's messages as JSON on standard input.

Cargo alone knows the path, and `cargo test` would wait for any build that is running.
"""

import json
import pathlib
import sys

name, link = sys.argv[1], pathlib.Path(sys.argv[2])
found = None
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["profile"]["test"] and message["target"]["name"] == name:
        found = message["executable"]
if not found:
    sys.exit(f"error: cargo built no test program named {name}")
link.unlink(missing_ok=True)
link.symlink_to(found)
