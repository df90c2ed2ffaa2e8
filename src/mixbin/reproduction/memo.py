"""Values computed once and kept in a file, so that an interrupted run does not compute them again."""

import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from mixbin._files import write_text


class Memo(MutableMapping[str, Any]):
    """A dictionary of JSON values, written to its file at every change, so that the file is never older than a checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value
        self._write()

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._write()

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _write(self) -> None:
        write_text(self.path, json.dumps(self._values))
