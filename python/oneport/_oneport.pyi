"""The part that is Rust."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

class Error(Exception):
    """What the library refuses, in its words."""

class UsageError(Error):
    """Bad usage or unreadable input."""

_Parts = tuple[str, list[str], dict[str, str], int, str | None]

def call(arguments: Sequence[str], files: Mapping[str, str]) -> _Parts: ...
def main(arguments: Sequence[str]) -> int: ...
def plan(
    arguments: Sequence[str], files: Mapping[str, str]
) -> tuple[_Parts, Schedule | None]: ...
def laid_out(
    collective: str, ranks: int, elements: int, root: int, targets: Sequence[int]
) -> str: ...

class Schedule:
    def json(self) -> str: ...
    @property
    def collective(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    def __len__(self) -> int: ...
    def table(self) -> dict[str, list[Any]]: ...
    def run(
        self,
        inputs: Sequence[Any],
        op: str | Callable[[Any, Any], Any] | None,
        commutes: bool,
    ) -> list[Memory]: ...

class Memory:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def tobytes(self) -> bytes: ...
