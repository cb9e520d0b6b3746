"""The commands and settings of docs/scale.md."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = re.compile(r"^```(sh|properties|yaml) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Page:
    """Blocks by name. Values that differ between deployments are replaced by name too."""

    def __init__(self, file: Path, changes: list[tuple[str, str]]) -> None:
        self._blocks = {name: text for _, name, text in _BLOCK.findall(file.read_text())}
        self._changes = changes

    def names(self) -> set[str]:
        """Names of all blocks."""
        return set(self._blocks)

    def block(self, name: str) -> str:
        """A block's text."""
        text = self._blocks[name]
        for written, actual in self._changes:
            text = text.replace(written, actual)
        return text
