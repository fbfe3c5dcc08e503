"""Fifty wrong calls: each raises an exception with the library's words, none panics."""

import numpy as np
import oneport
import pytest
from oneport import Builder, Schedule, s

PLAN = oneport.plan("reduce", 4, elements=8, algorithm="binomial")
ONES = [np.ones(8)] * 4


def builder():
    return Builder("broadcast", 3, 4)


def deadlock():
    """Two ranks with one port each that both send first."""
    b = Builder("allgather", 2, 4, ports="uni")
    b.send(0, 1, s[0:4]).recv(0, 1, s[4:8])
    return b.send(1, 0, s[4:8]).recv(1, 0, s[0:4]).build()


WRONG = {
    "collective": lambda: oneport.plan("redoce", 4),
    "no ranks": lambda: oneport.plan("reduce", 0),
    "negative ranks": lambda: oneport.plan("reduce", -1),
    "too many ranks": lambda: oneport.plan("reduce", 10**30),
    "ranks in words": lambda: oneport.plan("reduce", "four"),
    "several ranks": lambda: oneport.plan("reduce", "2..4"),
    "root": lambda: oneport.plan("reduce", 4, root=4),
    "negative root": lambda: oneport.plan("reduce", 4, root=-1),
    "kind of cost": lambda: oneport.plan("reduce", 4, costs={"delta": 1}),
    "algorithm": lambda: oneport.plan("reduce", 4, algorithm="binomal"),
    "algorithm of others": lambda: oneport.plan("alltoall", 4, algorithm="binomial"),
    "ports": lambda: oneport.plan("reduce", 4, ports="tri"),
    "ported": lambda: oneport.plan("reduce", 4, ported=0),
    "bytes": lambda: oneport.plan("reduce", 4, bytes="much"),
    "negative bytes": lambda: oneport.plan("reduce", 4, bytes=-1),
    "no whole element": lambda: oneport.plan("reduce", 4, bytes=7, dtype="f64"),
    "bytes and elements": lambda: oneport.plan("reduce", 4, bytes=8, elements=8),
    "ranks twice": lambda: oneport.command("simulate", "reduce", p=4, ranks=4),
    "dtype": lambda: oneport.plan("reduce", 4, elements=8, dtype="f63"),
    "dtype of booleans": lambda: oneport.plan("reduce", 4, elements=8, dtype=bool),
    "dtype of complex numbers": lambda: oneport.plan("reduce", 4, elements=8, dtype="complex64"),
    "dtype of others": lambda: oneport.plan("reduce", 4, elements=8, dtype=">f8"),
    "NumPy's dtype of others": lambda: oneport.plan("reduce", 4, elements=8, dtype=np.dtype(">i4")),
    "inputs of another type": lambda: oneport.plan("reduce", 4, elements=8, dtype=float).run(
        [np.ones(8, "i8")] * 4, "sum"
    ),
    "deadline": lambda: PLAN.run(ONES, "sum", deadline=-1),
    "memory of a builder": lambda: Builder("allreduce", 10**9),
    "wrong schedule": lambda: builder().send(0, 1, s[0:4]).build().run([b"abcd", None, None]),
    "segments": lambda: oneport.plan("reduce", 4, segments=0),
    "option": lambda: oneport.plan("reduce", 4, segmens=2),
    "costs": lambda: oneport.plan("reduce", 4, costs={"alpha": -1}),
    "cost in words": lambda: oneport.plan("reduce", 4, costs={"alpha": "long"}),
    "cost matrix": lambda: oneport.plan("reduce", 4, costs={"alpha": [[0]], "beta": [[0]]}),
    "cost file": lambda: oneport.plan("reduce", 4, costs="nowhere.json"),
    "memory": lambda: oneport.plan("alltoall", 10**6, algorithm="pairwise"),
    "arrivals": lambda: PLAN.simulate(arrivals=[1, 2]),
    "arrivals in words": lambda: PLAN.simulate(arrivals="late"),
    "other ranks": lambda: PLAN.simulate(p=5),
    "file": lambda: Schedule.load("nowhere.json"),
    "folder": lambda: Schedule.load("."),
    "no schedule": lambda: Schedule.from_dict({}),
    "no JSON": lambda: Schedule.from_json("{"),
    "empty text": lambda: Schedule.from_json(""),
    "no ending": lambda: PLAN.save("reduce.xyz"),
    "no folder": lambda: PLAN.save("nowhere/reduce.json"),
    "picture": lambda: PLAN.draw("portrait"),
    "page of many": lambda: oneport.plan("reduce", 100).draw("page"),
    "inputs of too few": lambda: PLAN.run(ONES[:3], "sum"),
    "short inputs": lambda: PLAN.run([np.ones(7)] * 4, "sum"),
    "types": lambda: PLAN.run([*ONES[:3], np.ones(8, "f4")], "sum"),
    "strided": lambda: PLAN.run([np.ones(16)[::2]] * 4, "sum"),
    "big-endian": lambda: PLAN.run([np.ones(8, ">f8")] * 4, "sum"),
    "unaligned": lambda: PLAN.run([np.frombuffer(bytes(65), "f8", 8, 1)] * 4, "sum"),
    "objects": lambda: PLAN.run([np.array([None] * 8)] * 4, "sum"),
    "a list": lambda: PLAN.run([[1.0] * 8] * 4, "sum"),
    "no operator": lambda: PLAN.run(ONES),
    "operator": lambda: PLAN.run(ONES, "total"),
    "operator of integers": lambda: PLAN.run(ONES, "bxor"),
    "callable of halves": lambda: PLAN.run([np.ones(8, "f2")] * 4, max),
    "no partner": lambda: Builder("broadcast", 2, 1)
    .recv(1, 0, s[:])
    .build()
    .run([b"a", None], check=False),
    "a partner that waits": lambda: deadlock().run([b"abcd", b"efgh"], deadline=0.1, check=False),
    "builder of no ranks": lambda: Builder("broadcast", 0, 4).build(),
    "builder's root": lambda: Builder("broadcast", 3, 4, root=3).build(),
    "builder's rank": lambda: builder().send(3, 0, s[0:4]),
    "negative rank": lambda: builder().send(-1, 0, s[0:4]),
    "builder's peer": lambda: builder().send(0, 3, s[0:4]).build(),
    "slice too long": lambda: builder().send(0, 1, s[0:5]),
    "slice with steps": lambda: builder().send(0, 1, s[0:4:2]),
    "no slice": lambda: builder().send(0, 1, 4),
    "order": lambda: builder().recv_combine(0, 1, s[0:4], order="ours").build(),
    "negative elements": lambda: Builder("broadcast", 3, -1),
    "synthesis of many": lambda: oneport.synthesize("allgather", 65),
    "platform": lambda: oneport.steady({"nodes": 0}),
    "generator": lambda: oneport.steady(generate="cube:3"),
    "no platform": lambda: oneport.steady(),
    "command": lambda: oneport.command("optimise"),
    "subject": lambda: oneport.algorithms("binomal"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.filterwarnings("ignore::oneport.Note")
def test_wrong_calls_raise(what):
    with pytest.raises(oneport.Error) as raised:
        WRONG[what]()
    assert 10 < len(str(raised.value)) < 800


def test_there_are_fifty():
    assert len(WRONG) >= 50


@pytest.mark.filterwarnings("ignore::oneport.Note")
def test_errors_are_those_of_python_too():
    with pytest.raises(TypeError, match="unexpected keyword argument 'segmets': did you mean 'segments'"):
        oneport.plan("reduce", 4, segmets=4)
    with pytest.raises(ValueError):
        oneport.plan("reduce", 0)
    with pytest.raises(oneport.UsageError, match="op='sum'"):
        PLAN.run(ONES)
    # The first error, before anything runs or waits.
    with pytest.raises(oneport.Error, match="wrong schedule: .*(cycle|wait)"):
        deadlock().run([b"abcd", b"efgh"])
