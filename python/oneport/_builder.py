"""Schedules of one's own: step by step, or by a program that each rank has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

from . import _oneport
from ._oneport import UsageError
from ._schedule import Schedule

#: Where data stand in a buffer: a slice, as `s[0:4]` makes it.
Where = Union[slice, range]


class _Slices:
    """`s[0:4]` is a slice, `s[0:4, 8:12]` a tuple of slices."""

    def __getitem__(self, where: Any) -> Any:
        return where


s = _Slices()


class Builder:
    """A schedule step by step: each method appends to the programs of ranks.

    Buffers are laid out for `elements` elements of a vector, or of one rank's block; `layout`
    changes them. Places in buffers are slices: ``b.transfer(0, 1, s[0:4])``. `name` is what tables
    and pictures call the schedule.
    """

    def __init__(
        self,
        collective: str,
        p: int,
        elements: int = 1,
        *,
        root: int = 0,
        targets: Iterable[int] = (),
        ports: str = "bi",
        ported: int = 1,
        name: str | None = None,
    ) -> None:
        try:
            text = _oneport.laid_out(collective, p, elements, root, list(targets))
        except OverflowError as error:
            raise UsageError(f"ranks, elements and roots are numbers from 0: {error}") from None
        self._data: dict[str, Any] = json.loads(text) | {"ports": ports, "ported": ported}
        if name is not None:
            self._data["name"] = name

    def _of(self, rank: int, what: str) -> Any:
        items = self._data[what]
        if not isinstance(rank, int) or not 0 <= rank < len(items):
            raise UsageError(f"rank {rank} is not one of {len(items)} ranks (numbered from 0)")
        return items[rank]

    def _spans(self, rank: int, where: Iterable[Where | Sequence[Where]]) -> list[list[int]]:
        length = self._of(rank, "layout")["len"]
        spans = []
        for place in where:
            if isinstance(place, (tuple, list)):
                spans += self._spans(rank, place)
            elif isinstance(place, (slice, range)):
                ends = [place.start, place.stop, place.step]
                if any(end is not None and end > length for end in ends[:2]):
                    raise UsageError(
                        f"rank {rank}: {place} leaves the buffer of {length} elements"
                    )
                start, stop, step = slice(*ends).indices(length)
                if step != 1:
                    raise UsageError(f"{place}: elements of a slice are neighbours")
                spans.append([start, max(stop - start, 0)])
            else:
                raise UsageError(f"{place!r} is not a slice, such as s[0:4]")
        return spans

    def _step(self, rank: int, kind: str, **fields: Any) -> Builder:
        fields = {name: value for name, value in fields.items() if (name, value) != ("port", 0)}
        self._of(rank, "programs").append({kind: fields})
        return self

    def layout(self, rank: int, length: int, input: Any = (), output: Any = ()) -> Builder:
        """Sets the buffer of a rank: its length, and where its input and its output are."""
        layout = self._of(rank, "layout")
        layout["len"] = length
        for name, where in (("input", input), ("output", output)):
            places = where if isinstance(where, (tuple, list)) else [where]
            layout[name] = self._spans(rank, places)
        return self

    def send(self, rank: int, to: int, *where: Where, port: int = 0) -> Builder:
        """`rank` sends what stands there."""
        return self._step(rank, "send", to=to, spans=self._spans(rank, where), port=port)

    def recv(self, rank: int, source: int, *where: Where, port: int = 0) -> Builder:
        """`rank` receives from `source`."""
        spans = self._spans(rank, where)
        return self._step(rank, "recv", **{"from": source}, spans=spans, port=port)

    def recv_combine(
        self, rank: int, source: int, *where: Where, order: str = "mine_first", port: int = 0
    ) -> Builder:
        """`rank` receives from `source` and combines with what stands there, which is the left
        operand with `order` "mine_first", the right one with "theirs_first"."""
        fields: dict[str, Any] = {"from": source, "spans": self._spans(rank, where), "order": order}
        return self._step(rank, "recv_combine", **fields, port=port)

    def copy(self, rank: int, source: Any, target: Any) -> Builder:
        """`rank` copies within its buffer."""
        spans = (self._spans(rank, [source]), self._spans(rank, [target]))
        return self._step(rank, "copy", src=spans[0], dst=spans[1])

    def combine(self, rank: int, source: Any, target: Any, order: str = "mine_first") -> Builder:
        """`rank` combines `source` into `target`, the left operand with "mine_first"."""
        spans = (self._spans(rank, [source]), self._spans(rank, [target]))
        return self._step(rank, "combine", src=spans[0], dst=spans[1], order=order)

    def transfer(
        self, source: int, to: int, *where: Where, combine: str | None = None, port: int = 0
    ) -> Builder:
        """A send and a receive over the same places; with `combine` ("mine_first" or
        "theirs_first") the receiver combines."""
        self.send(source, to, *where, port=port)
        if combine is None:
            return self.recv(to, source, *where, port=port)
        return self.recv_combine(to, source, *where, order=combine, port=port)

    def build(self) -> Schedule:
        """The schedule. Whether it is right, `Schedule.check` says."""
        return Schedule.from_dict(self._data)


class Rank:
    """What a program of `record` has: its rank, and what `Builder` does for it."""

    def __init__(self, builder: Builder, rank: int) -> None:
        self._builder = builder
        #: The rank.
        self.rank = rank

    @property
    def all(self) -> slice:
        """The whole buffer."""
        return slice(0, self._builder._of(self.rank, "layout")["len"])

    @property
    def input(self) -> list[slice]:
        """Where its input is."""
        return self._places("input")

    @property
    def output(self) -> list[slice]:
        """Where its output must be."""
        return self._places("output")

    def _places(self, name: str) -> list[slice]:
        spans = self._builder._of(self.rank, "layout")[name]
        return [slice(start, start + length) for start, length in spans]

    def layout(self, length: int, input: Any = (), output: Any = ()) -> None:
        """As `Builder.layout`."""
        self._builder.layout(self.rank, length, input, output)

    def send(self, to: int, *where: Where, port: int = 0) -> None:
        """As `Builder.send`."""
        self._builder.send(self.rank, to, *where, port=port)

    def recv(self, source: int, *where: Where, port: int = 0) -> None:
        """As `Builder.recv`."""
        self._builder.recv(self.rank, source, *where, port=port)

    def recv_combine(
        self, source: int, *where: Where, order: str = "mine_first", port: int = 0
    ) -> None:
        """As `Builder.recv_combine`."""
        self._builder.recv_combine(self.rank, source, *where, order=order, port=port)

    def copy(self, source: Any, target: Any) -> None:
        """As `Builder.copy`."""
        self._builder.copy(self.rank, source, target)

    def combine(self, source: Any, target: Any, order: str = "mine_first") -> None:
        """As `Builder.combine`."""
        self._builder.combine(self.rank, source, target, order)


def record(
    program: Callable[[int, int, Rank], Any], collective: str, p: int, elements: int = 1, **options: Any
) -> Schedule:
    """The schedule in which each rank does what ``program(rank, p, ctx)`` does with its `Rank`.
    The program is called once for each rank, and moves no data. Options are those of `Builder`, such
    as `name`."""
    builder = Builder(collective, p, elements, **options)
    for rank in range(p):
        program(rank, p, Rank(builder, rank))
    return builder.build()
