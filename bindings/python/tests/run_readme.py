"""Runs all blocks of Python of a page as one program, in a folder of its own: run_readme.py PAGE."""

import os
import pathlib
import re
import sys
import tempfile

text = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
if not blocks:
    sys.exit("error: the page has no block of Python")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    exec(compile("\n".join(blocks), sys.argv[1], "exec"), {"__name__": "__main__"})
    os.chdir("/")
