"""The command line: ``python -m alpheus`` is the program ``alpheus``."""

from ._program import main

main()
