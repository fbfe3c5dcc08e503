"""Calls of the command: options from keywords, answers as dicts."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

from . import _oneport
from ._oneport import Error, UsageError

Path = Union[str, "os.PathLike[str]"]
#: Costs: numbers for all ranks (``{"alpha": 1000, "beta": 0.5}``), matrices for each pair of ranks
#: as in a cost file (lists, or arrays of NumPy), or the path of such a file.
Costs = Union[Mapping[str, Any], Path]
#: ``True`` shows how far a call is on standard error; a function is called with the units of work
#: that are done, of how many (0: not known), and what is in work.
Progress = Union[bool, Callable[[int, int, str], object]]


class Note(UserWarning):
    """What the command would remark on standard error."""


class UnexpectedKeyword(UsageError, TypeError):
    """A keyword that a function does not take."""


_ELEMENT_BYTES = dict(_oneport.element_types)
#: The names that types of NumPy, of Python and of the module `array` have here. Integers of C and
#: of Python are those of 64-bit systems.
_OTHER_NAMES = {
    "half": "f16", "e": "f16", "single": "f32", "f": "f32", "float": "f64", "double": "f64", "d": "f64",
    "bfloat16": "bf16", "byte": "i8", "b": "i8", "ubyte": "u8", "B": "u8", "short": "i16", "h": "i16",
    "ushort": "u16", "H": "u16", "intc": "i32", "i": "i32", "uintc": "u32", "I": "u32", "int": "i64",
    "int_": "i64", "intp": "i64", "long": "i64", "longlong": "i64", "l": "i64", "q": "i64", "uint": "u64",
    "uintp": "u64", "ulong": "u64", "ulonglong": "u64", "L": "u64", "Q": "u64",
} | {
    f"{long}{8 * size}": f"{short}{8 * size}"
    for long, short in (("float", "f"), ("int", "i"), ("uint", "u"))
    for size in (1, 2, 4, 8)
}
_FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"


def _dtype(dtype: Any) -> str:
    """The name of an element type, from that of the command, of NumPy or of Python. "i8" and "u8"
    are the command's, of 8 bits; NumPy's own types and strings such as "<i8" mean 8 bytes."""
    if isinstance(dtype, str) and dtype in _ELEMENT_BYTES:
        return dtype
    # NumPy's dtypes have a name and an order of bytes, classes have a name.
    name = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
    order = getattr(dtype, "byteorder", None) or name[:1]
    bits = re.fullmatch(r"[<>=|]?([fiu])([1248])", name)
    if bits:
        name = f"{bits[1]}{8 * int(bits[2])}"
    name = _OTHER_NAMES.get(name.lstrip("<>=|"), name)
    if name not in _ELEMENT_BYTES:
        raise UsageError(
            f"no elements of type {dtype!r}: dtype is one of {', '.join(_ELEMENT_BYTES)}, or what "
            "NumPy or Python call one of them (float, 'f8', numpy.int32, ...)"
        )
    if order == _FOREIGN_ORDER and _ELEMENT_BYTES[name] > 1:
        raise UsageError(
            f"elements of type {dtype!r} have another order of bytes than this machine: convert them"
        )
    return name


def _plain(value: Any) -> Any:
    """Arrays as lists; infinite costs, and those that are no number, are links that do not exist."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return [None if isinstance(x, float) and not math.isfinite(x) else x for x in items]
    return value


class _Meter:
    """How far a call is, on one line of standard error."""

    #: Calls of it before it says something: a short call is not worth a line.
    PATIENCE = 3

    def __init__(self) -> None:
        self._calls = self._width = 0

    def __call__(self, done: int, of: int, what: str) -> None:
        self._calls += 1
        if self._calls > self.PATIENCE:
            share = f"{100 * done // of}%" if of else ""
            self._show(" ".join(filter(None, ["oneport:", what, share])))

    def _show(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Removes the line."""
        if self._width:
            self._show("")
            sys.stderr.write("\r")


#: What an option is given: ``True`` if it has no value, what one would write, several of that, what
#: is in the file that it names, or a schedule.
_Value = Union[bool, str, list[str], bytes, _oneport.Schedule]


def _value(value: Any) -> _Value:
    """The value as options take it."""
    if isinstance(value, (bool, str, _oneport.Schedule)):
        return value
    value = _plain(value)
    if isinstance(value, Mapping):
        return json.dumps(value).encode()
    if isinstance(value, (list, tuple, range)):
        return [os.fspath(x) if hasattr(x, "__fspath__") else str(x) for x in value]
    return os.fspath(value) if hasattr(value, "__fspath__") else str(value)


class _Call:
    """A call of the command: its name with what stands behind it, and options."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self.options: dict[str, _Value] = {}
        self.progress: Progress = False

    def add(self, **options: Any) -> "_Call":
        """Adds options; `None` leaves one out."""
        given = {name: value for name, value in options.items() if value is not None}
        self.options |= {name: _value(value) for name, value in given.items()}
        return self

    def add_all(
        self,
        elements: int | None = None,
        costs: Costs | None = None,
        arrivals: Any = None,
        dtype: Any = None,
        p: Any = None,
        ranks: Any = None,
        progress: Progress = False,
        **options: Any,
    ) -> "_Call":
        """Adds options, and what Python has another form for."""
        self.progress = progress
        if p is not None and ranks is not None:
            raise UsageError("give p or ranks, not both")
        if dtype is not None:
            dtype = _dtype(dtype)
        if elements is not None:
            if options.get("bytes") is not None:
                raise UsageError("give bytes or elements, not both")
            options["bytes"] = elements * _ELEMENT_BYTES[dtype or "u8"]
        if isinstance(costs, Mapping):
            costs = _plain(costs)
        if isinstance(costs, Mapping) and not any(isinstance(value, list) for value in costs.values()):
            options |= costs
            costs = None
        if arrivals is not None and not isinstance(arrivals, (str, os.PathLike, Mapping)):
            arrivals = {"arrivals": [float(time) for time in arrivals]}
        return self.add(ranks=ranks if p is None else p, dtype=dtype, costs=costs, arrivals=arrivals, **options)

    def command(self) -> str | None:
        """The command line that pages and pictures name, if it is not the one that does the same."""
        return None

    def call(self) -> _oneport.Answer:
        """Calls the command."""
        meter = _Meter() if self.progress is True else None
        told = meter or (self.progress if callable(self.progress) else None)
        try:
            return _oneport.call(self.words, self.options, self.command(), told)
        finally:
            if meter:
                meter.clear()


def _command_line(words: Sequence[str], options: Mapping[str, _Value]) -> str:
    """The command line of a call; files that it has in memory are on the disk."""
    return shlex.join(["oneport", *_oneport.command_line(words, options)])


def _checked(done: _oneport.Answer, found_wrong: bool = False) -> _oneport.Answer:
    """The answer, after warnings of its notes; raises its error."""
    for note in done.notes:
        warnings.warn(note, Note, stacklevel=4)
    if done.error is None or found_wrong and done.exit_code == 1 and done.output:
        return done
    if done.unknown_option:
        given, similar = (name and name.replace("-", "_") for name in done.unknown_option)
        hint = f": did you mean {similar!r}?" if similar else ""
        raise UnexpectedKeyword(f"unexpected keyword argument {given!r}{hint}")
    raise (UsageError if done.exit_code == 2 else Error)(done.error)


class Answer(dict[str, Any]):
    """What a command prints with ``--json``, as a dict; `json` is that text, byte for byte, and
    `str` what the command prints without, which is also how an answer looks at the prompt. Fields
    are attributes, too, unless a dict has a method of that name. An answer is false if it says that
    something is wrong: ``ok``, ``verified`` or ``holds`` is false."""

    def __init__(self, done: _oneport.Answer, call: _Call) -> None:
        try:
            super().__init__(json.loads(done.output or "{}"))
        except json.JSONDecodeError:
            raise UsageError(f"the output of {' '.join(call.words)!r} is no JSON") from None
        self.json = done.output
        self._text = done.text or done.error or done.output
        self._call = call

    def __bool__(self) -> bool:
        return all(self.get(verdict) is not False for verdict in ("ok", "verified", "holds"))

    # Type checkers know the fields of each kind of answer by name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self:
                return self[name]
            raise AttributeError(
                f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self
            )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(str.isidentifier, self)]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text.rstrip()


if TYPE_CHECKING:

    class AnyAnswer(Answer):
        """The answer of any command, which may have any field."""

        def __getattr__(self, name: str) -> Any: ...

else:
    AnyAnswer = Answer


class Table(Answer):
    """An answer with rows."""

    def columns(self) -> dict[str, list[Any]]:
        """The rows as a dict of columns, which pandas takes."""
        return _columns(self["rows"])


A = TypeVar("A", bound=Answer)


def _answer(call: _Call, kind: type[A], found_wrong: bool = True) -> A:
    # Of some commands the output is JSON anyway.
    if _oneport.has_option(call.words, "json"):
        call.add(json=True)
    return kind(_checked(call.call(), found_wrong), call)


def command(*words: str, **options: Any) -> AnyAnswer:
    """Any command, such as ``command("list", "scan")`` or ``command("run", "reduce", p=2)``: its
    JSON output. If that says that something is wrong, the answer is false."""
    return _answer(_Call(*words).add_all(**options), AnyAnswer)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
