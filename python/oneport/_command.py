"""Calls of the command: arguments from keywords, answers as dicts."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Union

from . import _oneport
from ._oneport import Error, UsageError

Path = Union[str, "os.PathLike[str]"]
#: Costs: numbers for all ranks (``{"alpha": 1000, "beta": 0.5}``), matrices for each pair of ranks
#: as in a cost file, or the path of such a file.
Costs = Union[Mapping[str, Any], Path]


class Note(UserWarning):
    """What the command would remark on standard error."""


_NUMPY_NAMES = {"float16": "f16", "float32": "f32", "float64": "f64"} | {
    f"{long}{bits}": f"{short}{bits}"
    for long, short in (("int", "i"), ("uint", "u"))
    for bits in (8, 16, 32, 64)
}


def _dtype(dtype: Any) -> str:
    """The name of an element type, from that of the command or a type of NumPy."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)
    return _NUMPY_NAMES.get(name, str(name))


def _bytes_of(dtype: str | None) -> int:
    """Bytes of an element; without a type an element is one byte."""
    bits = [int(part[1:]) for part in (dtype or "u8").replace("bf", "f").split("_")]
    return sum(bits) // 8


class _Arguments:
    """Arguments of the command, and the files that they name, which are in memory."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self.files: dict[str, str] = {}

    def add(self, name: str, value: Any) -> None:
        """Adds an option; `None` and `False` leave it out."""
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            return
        if isinstance(value, Mapping):
            self.files[f"<{name}>"] = json.dumps(value)
            value = f"<{name}>"
        if value is True:
            self.words.append(option)
        elif isinstance(value, (list, tuple, range)):
            self.words.append(f"{option}={','.join(map(str, value))}")
        else:
            self.words.append(f"{option}={os.fspath(value) if hasattr(value, '__fspath__') else value}")

    def add_all(
        self,
        elements: int | None = None,
        costs: Costs | None = None,
        arrivals: Any = None,
        dtype: Any = None,
        p: Any = None,
        **options: Any,
    ) -> "_Arguments":
        """Adds options, and what Python has another form for."""
        self.add("ranks", p)
        if dtype is not None:
            dtype = _dtype(dtype)
            self.add("dtype", dtype)
        if elements is not None:
            if options.get("bytes") is not None:
                raise UsageError("give bytes or elements, not both")
            options["bytes"] = elements * _bytes_of(dtype)
        if isinstance(costs, Mapping) and not any(
            isinstance(value, (list, tuple)) for value in costs.values()
        ):
            options |= costs
        else:
            self.add("costs", costs)
        if arrivals is not None and not isinstance(arrivals, (str, Mapping)):
            arrivals = {"arrivals": [float(time) for time in arrivals]}
        self.add("arrivals", arrivals)
        for name, value in options.items():
            self.add(name, value)
        return self


def _checked(parts: Any, found_wrong: bool = False) -> tuple[str, dict[str, str]]:
    """Output and files of an answer; warns of its notes, raises its error."""
    output, notes, files, code, error = parts
    for note in notes:
        warnings.warn(note, Note, stacklevel=4)
    if error is not None and not (found_wrong and code == 1 and output):
        raise (UsageError if code == 2 else Error)(error)
    return output, files


class Answer(dict[str, Any]):
    """What a command prints with ``--json``, as a dict; `json` is the text, byte for byte."""

    def __init__(self, output: str, arguments: _Arguments | None = None) -> None:
        super().__init__(json.loads(output))
        self.json = output
        self._arguments = arguments or _Arguments()

    def _again(self, *words: str, without: str = "--json") -> tuple[str, dict[str, str]]:
        """Output and files of the same command with other words."""
        kept = [word for word in self._arguments.words if word != without]
        return _checked(_oneport.call(kept + list(words), self._arguments.files))

    def __str__(self) -> str:
        return self._again()[0]


A = TypeVar("A", bound=Answer)


def _answer(arguments: _Arguments, kind: type[A], found_wrong: bool = False) -> A:
    arguments.add("json", True)
    output, _ = _checked(_oneport.call(arguments.words, arguments.files), found_wrong)
    return kind(output, arguments)


def command(*words: str, **options: Any) -> Answer:
    """Any command, such as ``command("guidelines", "allreduce", p=4)``: its JSON output."""
    return _answer(_Arguments(*words).add_all(**options), Answer)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
