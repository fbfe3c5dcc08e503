"""Schedules, what is found about them, and the functions that make or compare them."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _oneport
from ._command import (
    Answer, Costs, Note, Path, Progress, Table, _answer, _Call, _checked, _columns, _command_line, _dtype,
    _plain, _Value, command,
)
from ._oneport import Error, UsageError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._answers import (
        ComparisonFields, GuidelinesFields, GuidelinesRows, ProfileFields, ReportFields,
        SimulationFields, SteadyFields, SynthesisFields, TuningFields,
    )
    from ._options import (
        CalibrateMore, CheckOptions, CompareMore, CompareOfSchedule, DrawOptions, GuidelinesMore,
        LoadOptions, PlanMore, SimulateMore, SteadyOptions, SynthesizeOptions, TuneMore,
    )
else:
    ComparisonFields = GuidelinesFields = ProfileFields = ReportFields = object
    SimulationFields = SteadyFields = SynthesisFields = TuningFields = object


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
    **options: Unpack[PlanMore],
) -> Schedule:
    """Plans a schedule; without `algorithm`, by the one with the least model time.

    `bytes` or `elements` is the size of the vector, or of one rank's block; with `dtype` an element
    has its size, otherwise it is a byte.
    """
    call = _Call("plan").add_all(
        collective=collective, p=p, bytes=bytes, elements=elements, algorithm=algorithm, ports=ports,
        root=root,
        segments=segments, costs=costs, **options,
    )
    return Schedule._planned(call, {"costs": costs, **options})


#: Costs: a call that gives one of them has none of the plan's.
_COSTS = ("costs", "alpha", "beta", "gamma", "gamma_copy", "profile")
#: What is kept of the plan for later calls.
_KEPT = ("dtype", *_COSTS)
#: Options that only say which schedule is planned, and those that only say what is drawn: a command
#: that plans and draws has both.
_OF_PLANS = {
    "collective", "ranks", "root", "algorithm", "bytes", "segment", "segments", "segment_sizes", "rules",
    "op", "ordered", "ports", "ported", "sizes", "dist", "block", "rho", "seed",
}
_OF_PICTURES = {
    "as", "critical_path", "dark", "width", "plain", "output", "trace", "format", "form", "json",
}


def _without(options: Mapping[str, _Value], names: set[str]) -> dict[str, _Value]:
    return {name: value for name, value in options.items() if name not in names}


class _OfSchedule(_Call):
    """A call of the command with a schedule in memory."""

    def __init__(self, schedule: Schedule, *words: str) -> None:
        super().__init__(*words)
        self.options["schedule"] = schedule._core
        self._plan = schedule._plan

    def command(self) -> str | None:
        """A planned schedule is planned again, by the same command if that can do so; one of one's
        own is in a file."""
        if self._plan is None:
            return None
        own = _without(self.options, {"schedule"})
        # Both must have the same costs and the like; `compare` plans all algorithms.
        if _without(own, _OF_PICTURES) == _without(self._plan, _OF_PLANS) and self.words != ["compare"]:
            return _command_line(self.words, self._plan | own)
        planned = _command_line(["plan"], self._plan | {"output": "schedule.json"})
        return f"{planned} && {_command_line(self.words, self.options)}"


class Schedule:
    """A program for every rank that together perform one collective: data, which never changes."""

    __slots__ = ("_core", "_defaults", "_plan")
    _core: _oneport.Schedule
    #: Element type and costs of the plan, for what is asked later.
    _defaults: dict[str, Any]
    #: The options of the command that plans it; `None` for one that was read.
    _plan: dict[str, _Value] | None

    @classmethod
    def _planned(cls, call: _Call, options: Mapping[str, Any]) -> Schedule:
        done, core = _oneport.plan(call.options)
        _checked(done)
        assert core is not None
        schedule = cls.__new__(cls)
        schedule._core = core
        kept = {name: options[name] for name in _KEPT if options.get(name) is not None}
        form = {"dtype": _dtype}
        schedule._defaults = {name: form.get(name, _plain)(value) for name, value in kept.items()}
        schedule._plan = call.options if core.algorithm else None
        return schedule

    @classmethod
    def load(cls, path: Path, **options: Unpack[LoadOptions]) -> Schedule:
        """Reads a file: the JSON form, GOAL or MSCCL XML, recognised by its content."""
        return cls._planned(_Call("plan").add_all(schedule=path, **options), options)

    @classmethod
    def from_json(cls, text: str, **options: Unpack[LoadOptions]) -> Schedule:
        """Reads any of these forms from a text."""
        call = _Call("plan").add_all(**options)
        call.options["schedule"] = text.encode()
        return cls._planned(call, options)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **options: Unpack[LoadOptions]) -> Schedule:
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
        in any `format` of ``export``, such as "simgrid", a folder. Options are those of ``export``
        and ``draw``."""
        ends = {".json": "plan", ".goal": "goal", ".xml": "msccl", ".dot": "dot",
                ".svg": "draw", ".html": "draw"}
        end = os.path.splitext(os.fspath(path))[1].lower()
        format = format or ends.get(end)
        if format is None:
            raise UsageError(f"no format for '{os.fspath(path)}': name one of {', '.join(ends)}")
        if format == "plan":
            options["format"] = "json"
        words = [format] if format in ("plan", "draw") else ["export", format]
        self._text(*words, output=path, **options)

    def _call(self, *words: str, **options: Any) -> _Call:
        has_costs = any(options.get(name) is not None for name in _COSTS)
        for name, value in self._defaults.items():
            if options.get(name) is None and not (has_costs and name in _COSTS):
                options[name] = value
        return _OfSchedule(self, *words).add_all(**options)

    def _text(self, *words: str, **options: Any) -> str:
        return _checked(self._call(*words, **options).call()).output

    @property
    def collective(self) -> str:
        """The name of the collective."""
        return self._core.collective

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._core.ranks

    @property
    def name(self) -> str | None:
        """What tables and pictures call it: its algorithm, or a name of its own."""
        return self._core.name

    @property
    def algorithm(self) -> str | None:
        """The algorithm that planned it; `None` for one that was read or built."""
        return self._core.algorithm

    def __len__(self) -> int:
        """Number of steps of all ranks together."""
        return len(self._core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._core == other._core

    def __hash__(self) -> int:
        return hash((self.collective, self.ranks, len(self)))

    def __repr__(self) -> str:
        by = f" by {self.name}" if self.name else ""
        return f"<oneport.Schedule: {self.collective}{by}, {self.ranks} ranks, {len(self)} steps>"

    def check(self, **options: Unpack[CheckOptions]) -> Report:
        """Proves the schedule, or says what is wrong: see `Report`."""
        return _answer(self._call("check", **options), Report)

    def simulate(
        self, costs: Costs | None = None, *, arrivals: Any = None, **options: Unpack[SimulateMore]
    ) -> Simulation:
        """Times the schedule exactly in the cost model, by default under the costs of its plan;
        `arrivals` has a time for each rank, or is what ``--arrivals`` takes."""
        call = self._call("simulate", costs=costs, arrivals=arrivals, **options)
        return _answer(call, Simulation)

    def compare(self, costs: Costs | None = None, **options: Unpack[CompareOfSchedule]) -> Comparison:
        """Times all algorithms for the same problem beside the schedule."""
        return _answer(self._call("compare", costs=costs, **options), Comparison)

    def draw(self, picture: str = "gantt", **options: Unpack[DrawOptions]) -> str:
        """A picture (SVG): gantt, tree or traffic; or a page (HTML) or a trace (JSON)."""
        return self._text("draw", **{"as": picture, **options})

    def run(
        self,
        inputs: Sequence[Any],
        op: str | Callable[[Any, Any], Any] | None = None,
        *,
        commutes: bool = True,
        deadline: float | None = None,
        check: bool = True,
    ) -> list[Any]:
        """Runs the schedule on a thread for each rank, and returns the output of each rank.

        `inputs` has an object for each rank with as many elements as its input spans, such as a
        NumPy array, which is read where it is (buffer protocol); `None` for ranks without input.
        They have the `dtype` that the schedule was planned with, if it was with one.
        Outputs are arrays over the memory of the run, or, if no input is one of NumPy, of the
        module `array`. `op` is the name of an operator, or a function of two elements, which is
        slow; it must be associative, and `commutes` says whether it is commutative, too.

        Ctrl-C ends the run. `deadline` is for how many seconds a rank waits for another before the
        run ends in an error (10). A schedule that was not planned is proved before it runs for the
        first time, and is not run if it is wrong; with ``check=False`` it is run as it is.
        """
        dtype = self._defaults.get("dtype")
        outputs = self._core.run(list(inputs), op, commutes, dtype, deadline, check)
        numpy = sys.modules.get("numpy")
        if numpy and any(isinstance(input, numpy.ndarray) for input in inputs):
            return [numpy.asarray(output) for output in outputs]
        return [_array(output) for output in outputs]

    def _repr_svg_(self) -> str | None:
        return _or_none(lambda: self.draw("gantt"))

    def _repr_html_(self) -> str | None:
        page = _or_none(lambda: self.draw("page"))
        return page and _framed(page)


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


class Report(Answer, ReportFields):
    """What `Schedule.check` finds. It is true if the schedule is right, and false if it is wrong;
    ``report.errors`` are errors as data: rank, step, message and more."""

    @property
    def is_correct(self) -> bool:
        """Whether the schedule is right."""
        return bool(self)


class Simulation(Answer, SimulationFields):
    """Model times: ``simulation.time``, rounds, messages, bounds."""

    @property
    def time(self) -> float:
        """The model time."""
        return float(self["time"])

    def steps(self) -> dict[str, list[Any]]:
        """A row for each transfer and computation of each rank, as a dict of columns, which pandas
        takes: rank, step, work, peer, port, bytes, start, end, critical."""
        done, core = _oneport.plan(_without(self._call.options, {"json"}))
        _checked(done)
        assert core is not None
        return core.table()


class Comparison(Table, ComparisonFields):
    """Algorithms by model time: ``comparison["rows"]``. It plots itself in notebooks."""

    def columns(self) -> dict[str, list[Any]]:
        """The rows as a dict of columns, which pandas takes: the same names for one point and for
        many, but that a single one has the root, segments and more of each row, too."""
        if "collective" not in self:
            rows = [{**row, "time": row["model_time"]} for row in self["rows"]]
            return {name: column for name, column in _columns(rows).items() if name != "command"}
        point = {name: self[name] for name in ("collective", "ports", "ranks")}
        rows = []
        for row in self["rows"]:
            of_all = {
                "bytes": self["vector_bytes"] or 0,
                "algorithm": row["algorithm"],
                "model_time": row["model_time"],
                "time_unit": self["time_unit"],
                "lower_bound": self["lower_bound"],
                "x_bound": row["x_bound"],
                "x_best": row["x_best"],
                "median_ns": row["wall"]["median"] if "wall" in row else None,
                "rounds": row["rounds"],
                "messages": row["messages"],
                "volume_bytes": row["bytes"],
                "segment_bytes": row["segment"],
            }
            others = {
                name: value
                for name, value in row.items()
                if name not in ("bytes", "segment", "ratio", "wall", "levels")
            }
            rows.append({**point, **of_all, **others})
        return _columns(rows)

    def _repr_svg_(self) -> str:
        options = self._call.options
        self._call.options = _without(options, {"json"}) | {"output": ["<plot>.svg"]}
        try:
            return _checked(self._call.call()).files["<plot>.svg"]
        finally:
            self._call.options = options


class Tuning(Table, TuningFields):
    """What `tune` has measured: ``tuning["rows"]`` by size, algorithm and segment size."""

    def columns(self) -> dict[str, list[Any]]:
        """The rows as a dict of columns, which pandas takes. `median_ns`, as a comparison calls it,
        is `wall`."""
        return _columns([{**row, "median_ns": row["wall"]} for row in self["rows"]])


class Guidelines(Table, GuidelinesFields):
    """Which guidelines between collectives hold. It is true if all do."""

    @property
    def violations(self) -> list[GuidelinesRows]:
        """The rows of guidelines that do not hold."""
        return [row for row in self["rows"] if not row["holds"]]


class Profile(Answer, ProfileFields):
    """What messages, combining and copying cost on a machine."""


class Synthesis(Answer, SynthesisFields):
    """A schedule of the fewest rounds, and what is proved: rounds, lower, optimal."""

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, if one was found."""
        found = self["schedule"]
        return None if found is None else Schedule.from_dict(found)


class Steady(Answer, SteadyFields):
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
    progress: Progress = False,
    **options: Unpack[CompareMore],
) -> Comparison:
    """Times all algorithms for a collective; of several `p` or `bytes`, such as ``"2..64"`` or a
    list, there is a row for each. ``progress=True`` shows how far it is, as in all functions that
    may take long."""
    call = _Call("compare", collective).add_all(
        p=p, bytes=bytes, elements=elements, algorithm=algorithm, ports=ports, root=root,
        segments=segments, costs=costs, progress=progress, **options,
    )
    return _answer(call, Comparison)


def tune(
    collective: str,
    p: int | None = None,
    *,
    bytes: Any = None,
    algorithm: str | None = None,
    budget: str | float | None = None,
    costs: Costs | None = None,
    progress: Progress = False,
    **options: Unpack[TuneMore],
) -> Tuning:
    """Measures algorithms and segment sizes on the threads of this machine, for `budget` ("10s", or
    seconds), and finds the best for each of the sizes `bytes`, such as ``"1KiB..1MiB"`` or a list.
    ``rules="file.json"`` writes which to choose when. Ctrl-C ends it."""
    call = _Call("tune", collective).add_all(
        p=p, bytes=bytes, algorithm=algorithm, budget=budget, costs=costs, progress=progress, **options
    )
    return _answer(call, Tuning)


def guidelines(
    *collectives: str,
    p: Any = None,
    bytes: Any = None,
    native: bool = False,
    costs: Costs | None = None,
    progress: Progress = False,
    **options: Unpack[GuidelinesMore],
) -> Guidelines:
    """Checks that no collective takes longer than what can stand in for it: all, or those that are
    named; in the model, or with `native` measured, too."""
    call = _Call("guidelines", *collectives).add_all(
        p=p, bytes=bytes, native=native, costs=costs, progress=progress, **options
    )
    return _answer(call, Guidelines)


def calibrate(
    *, quick: bool = False, progress: Progress = False, **options: Unpack[CalibrateMore]
) -> Profile:
    """Measures what messages, combining and copying cost on this machine: a profile, for the
    keyword `profile` of `plan`, `compare` and others. ``output="machine.json"`` writes it."""
    call = _Call("calibrate").add_all(quick=quick, progress=progress, **options)
    return _answer(call, Profile)


def synthesize(collective: str, p: int | None = None, **options: Unpack[SynthesizeOptions]) -> Synthesis:
    """Searches for a schedule of the fewest rounds, and proves that none is shorter. Ctrl-C or
    `budget` ("10s") ends the search."""
    return _answer(_Call("synthesize", collective).add_all(p=p, **options), Synthesis)


def steady(
    platform: Mapping[str, Any] | Path | None = None,
    *,
    progress: Progress = False,
    **options: Unpack[SteadyOptions],
) -> Steady:
    """The best throughput of a series of operations on a platform: a dict, a file, or made by
    `generate`, such as "ring:5"."""
    call = _Call("steady").add(platform=platform, json=True, output="<schedule>", **options)
    call.progress = progress
    done = _checked(call.call())
    found = Steady(done, call)
    found.schedule = Schedule.from_json(done.files["<schedule>"])
    return found


def algorithms(collective: str | None = None) -> Any:
    """The collectives and their algorithms, as ``oneport list --json`` prints them."""
    return dict(command("list", *([collective] if collective else [])))
