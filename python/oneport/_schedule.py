"""Schedules, what is found about them, and the functions that make or compare them."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _oneport
from ._command import Answer, Costs, Note, Path, _answer, _Arguments, _checked, _columns
from ._command import command
from ._oneport import Error, UsageError


def plan(
    collective: str,
    p: int | None = None,
    *,
    bytes: int | str | None = None,
    elements: int | None = None,
    algorithm: str | None = None,
    ports: str | None = None,
    root: int | str | None = None,
    segments: int | str | None = None,
    costs: Costs | None = None,
    **options: Any,
) -> Schedule:
    """Plans a schedule; without `algorithm`, by the one with the least model time.

    `bytes` or `elements` is the size of the vector, or of one rank's block; with `dtype` an element
    has its size, otherwise it is a byte.
    """
    arguments = _Arguments("plan", collective).add_all(
        p=p, bytes=bytes, elements=elements, algorithm=algorithm, ports=ports, root=root,
        segments=segments, costs=costs, **options,
    )
    return Schedule._planned(arguments, {"costs": costs, **options})


#: What is not given beside other costs.
_COSTS = {"alpha", "beta", "gamma", "gamma_copy", "profile"}
#: The name of a schedule where others stand beside it, and in the titles of pictures.
_MINE = "<schedule>"


class Schedule:
    """A program for every rank that together perform one collective: data, which never changes."""

    __slots__ = ("_core", "_defaults")
    _core: _oneport.Schedule
    #: Element type and costs of the plan, for what is asked later.
    _defaults: dict[str, Any]

    @classmethod
    def _planned(cls, arguments: _Arguments, options: Mapping[str, Any]) -> Schedule:
        parts, core = _oneport.plan(arguments.words, arguments.files)
        _checked(parts)
        assert core is not None
        schedule = cls.__new__(cls)
        schedule._core = core
        schedule._defaults = {name: options.get(name) for name in ("dtype", "costs")}
        return schedule

    @classmethod
    def load(cls, path: Path, **options: Any) -> Schedule:
        """Reads a file: the JSON form, GOAL or MSCCL XML, recognised by its content."""
        arguments = _Arguments("plan").add_all(schedule=path, **options)
        return cls._planned(arguments, options)

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Schedule:
        """Reads any of these forms from a text."""
        arguments = _Arguments("plan", "--schedule=-").add_all(**options)
        arguments.files["-"] = text
        return cls._planned(arguments, options)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **options: Any) -> Schedule:
        """Reads the JSON form as a dict."""
        return cls.from_json(json.dumps(data), **options)

    def to_json(self) -> str:
        """The JSON form, as ``oneport plan --json`` prints it."""
        return self._core.json()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form as a dict."""
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def save(self, path: Path, format: str | None = None, **options: Any) -> None:
        """Writes a file: .json, .goal, .xml (MSCCL), .dot, .svg or .html by the end of its name, or
        a folder with `format` "simgrid". Options are those of ``export`` and ``draw``."""
        ends = {".json": "plan", ".goal": "goal", ".xml": "msccl", ".dot": "dot",
                ".svg": "draw", ".html": "draw"}
        end = os.path.splitext(os.fspath(path))[1].lower()
        format = format or ends.get(end)
        if format is None:
            raise UsageError(f"no format for '{os.fspath(path)}': name one of {', '.join(ends)}")
        words = ["plan", "--format=json"] if format == "plan" else [format]
        if format not in ("plan", "draw"):
            words.insert(0, "export")
        self._call(*words, output=path, **options)

    def _arguments(self, *words: str, _file: str = "-", **options: Any) -> _Arguments:
        for given, value in self._defaults.items():
            others = _COSTS if given == "costs" else set()
            if options.get(given) is None and not others & options.keys():
                options[given] = value
        arguments = _Arguments(*words, f"--schedule={_file}").add_all(**options)
        arguments.files[_file] = self.to_json()
        return arguments

    def _call(self, *words: str, **options: Any) -> str:
        arguments = self._arguments(*words, **options)
        return _checked(_oneport.call(arguments.words, arguments.files))[0]

    @property
    def collective(self) -> str:
        """The name of the collective."""
        return self._core.collective

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._core.ranks

    def __len__(self) -> int:
        """Number of steps of all ranks together."""
        return len(self._core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._core == other._core

    def __hash__(self) -> int:
        return hash((self.collective, self.ranks, len(self)))

    def __repr__(self) -> str:
        return f"<oneport.Schedule: {self.collective}, {self.ranks} ranks, {len(self)} steps>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.to_json(), self._defaults)

    def check(self, **options: Any) -> Report:
        """Proves the schedule, or says what is wrong: see `Report`."""
        return _answer(self._arguments("check", **options), Report, found_wrong=True)

    def simulate(self, costs: Costs | None = None, *, arrivals: Any = None, **options: Any) -> Simulation:
        """Times the schedule exactly in the cost model, by default under the costs of its plan;
        `arrivals` has a time for each rank, or is what ``--arrivals`` takes."""
        options |= {"costs": costs, "arrivals": arrivals}
        return _answer(self._arguments("simulate", **options), Simulation)

    def compare(self, costs: Costs | None = None, **options: Any) -> Comparison:
        """Times all algorithms for the same problem beside the schedule."""
        return _answer(self._arguments("compare", _file=_MINE, costs=costs, **options), Comparison)

    def draw(self, picture: str = "gantt", **options: Any) -> str:
        """A picture (SVG): gantt, tree or traffic; or a page (HTML) or a trace (JSON)."""
        return self._call("draw", f"--as={picture}", _file=_MINE, **options)

    def run(
        self,
        inputs: Sequence[Any],
        op: str | Callable[[Any, Any], Any] | None = None,
        *,
        commutes: bool = True,
    ) -> list[Any]:
        """Runs the schedule on a thread for each rank, and returns the output of each rank.

        `inputs` has an object for each rank with as many elements as its input spans, such as a
        NumPy array, which is read where it is (buffer protocol); `None` for ranks without input.
        Outputs are arrays over the memory of the run, or, if no input is one of NumPy, of the
        module `array`. `op` is the name of an operator, or a function of two elements, which is
        slow; it must be associative, and `commutes` says whether it is commutative, too.
        """
        outputs = self._core.run(list(inputs), op, commutes)
        numpy = sys.modules.get("numpy")
        if numpy and any(isinstance(input, numpy.ndarray) for input in inputs):
            return [numpy.asarray(output) for output in outputs]
        return [_array(output) for output in outputs]

    def _repr_svg_(self) -> str | None:
        return _or_none(lambda: self.draw("gantt"))

    def _repr_html_(self) -> str | None:
        page = _or_none(lambda: self.draw("page"))
        return page and _framed(page)


def _unpickled(text: str, defaults: dict[str, Any]) -> Schedule:
    return Schedule.from_json(text, **defaults)


def _array(memory: _oneport.Memory) -> Any:
    """The elements as an array of the standard library."""
    from array import array

    typestr = memory.__array_interface__["typestr"]
    codes = {array(code).itemsize: code for code in ("fd" if typestr[1] == "f" else "bhiq")}
    code = codes[int(typestr[2:])]
    return array(code.upper() if typestr[1] == "u" else code, memory.tobytes())


def _or_none(draw: Callable[[], str]) -> str | None:
    """A picture, or `None` of what is too large for one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        try:
            return draw()
        except Error:
            return None


def _framed(page: str, height: int = 720) -> str:
    """A page inside a notebook: in a frame, which keeps its styles and scripts to itself."""
    from html import escape

    frame = f'<iframe style="width: 100%; height: {height}px; border: 0" srcdoc='
    return f'{frame}"{escape(page)}"></iframe>'


class Report(Answer):
    """What `Schedule.check` finds. It is true if the schedule is right; ``report["errors"]`` are
    errors as data: rank, step, message and more."""

    def __bool__(self) -> bool:
        return bool(self["ok"])

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What is wrong."""
        errors: list[dict[str, Any]] = self["errors"]
        return errors


class Simulation(Answer):
    """Model times: ``simulation["time"]``, rounds, messages, bounds."""

    @property
    def time(self) -> float:
        """The model time."""
        return float(self["time"])

    def steps(self) -> dict[str, list[Any]]:
        """A row for each transfer and computation of each rank, as a dict of columns, which pandas
        takes: rank, step, work, peer, port, bytes, start, end, critical."""
        words = ["plan", *(word for word in self._arguments.words[1:] if word != "--json")]
        parts, core = _oneport.plan(words, self._arguments.files)
        _checked(parts)
        assert core is not None
        return core.table()


class Comparison(Answer):
    """Algorithms by model time: ``comparison["rows"]``. It plots itself in notebooks."""

    def columns(self) -> dict[str, list[Any]]:
        """The rows as a dict of columns, which pandas takes."""
        return _columns(self["rows"])

    def _repr_svg_(self) -> str:
        return self._again("--output=<plot>.svg")[1]["<plot>.svg"]


class Synthesis(Answer):
    """A schedule of the fewest rounds, and what is proved: rounds, lower, optimal."""

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, if one was found."""
        found = self["schedule"]
        return None if found is None else Schedule.from_dict(found)


class Steady(Answer):
    """The best throughput of a series of operations on a platform, with its schedule."""

    #: The schedule of as many operations as ``steady["schedule"]["messages"]`` says.
    schedule: Schedule


def compare(
    collective: str,
    p: Any = None,
    *,
    bytes: Any = None,
    elements: int | None = None,
    algorithm: str | None = None,
    ports: str | None = None,
    root: int | str | None = None,
    segments: int | str | None = None,
    costs: Costs | None = None,
    **options: Any,
) -> Comparison:
    """Times all algorithms for a collective; of several `p` or `bytes`, such as ``"2..64"`` or a
    list, there is a row for each."""
    arguments = _Arguments("compare", collective).add_all(
        p=p, bytes=bytes, elements=elements, algorithm=algorithm, ports=ports, root=root,
        segments=segments, costs=costs, **options,
    )
    return _answer(arguments, Comparison)


def synthesize(collective: str, p: int | None = None, **options: Any) -> Synthesis:
    """Searches for a schedule of the fewest rounds, and proves that none is shorter. Ctrl-C or
    `budget` ("10s") ends the search."""
    return _answer(_Arguments("synthesize", collective).add_all(p=p, **options), Synthesis)


def steady(platform: Mapping[str, Any] | Path | None = None, **options: Any) -> Steady:
    """The best throughput of a series of operations on a platform: a dict, a file, or made by
    `generate`, such as "ring:5"."""
    arguments = _Arguments("steady")
    if isinstance(platform, Mapping):
        arguments.files["<platform>"] = json.dumps(platform)
        arguments.words.append("<platform>")
    elif platform is not None:
        arguments.words.append(os.fspath(platform))
    arguments.add_all(**options, json=True)
    words = arguments.words + ["--output=<schedule>"]
    output, files = _checked(_oneport.call(words, arguments.files))
    found = Steady(output, arguments)
    found.schedule = Schedule.from_json(files["<schedule>"])
    return found


def algorithms(collective: str | None = None) -> Any:
    """The collectives and their algorithms, as ``oneport list --json`` prints them."""
    return dict(command("list", *([collective] if collective else [])))
