"""Schedules as data: forms, tables, builders, programs, notebooks, documentation."""

import copy
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import oneport
import pytest
from oneport import Builder, Schedule, record, s

ROOT = Path(__file__).parents[2]


def test_forms(tmp_path):
    plan = oneport.plan("allgather", 5, bytes=4, algorithm="ring")
    assert Schedule.from_dict(plan.to_dict()) == plan == Schedule.from_json(plan.to_json())
    assert pickle.loads(pickle.dumps(plan)) == plan == copy.copy(plan)
    assert plan != oneport.plan("allgather", 5, bytes=4, algorithm="bruck")
    for same in (plan, pickle.loads(pickle.dumps(plan)), copy.copy(plan)):
        assert same.algorithm == same.simulate().algorithm == "ring" and "by ring" in repr(same)
        assert same.draw() == plan.draw()
    # Answers, too: other processes return them.
    answers = [plan.simulate(), plan.check(), oneport.compare("scan", 3)]
    for answer in answers:
        again = pickle.loads(pickle.dumps(answer))
        assert again == answer and str(again) == str(answer) and again.json == answer.json
    assert pickle.loads(pickle.dumps(answers[0])).steps() == answers[0].steps()
    # What is read has a name at most.
    read = Schedule.from_json(plan.to_json())
    assert (read.algorithm, read.name) == (None, "ring")
    for name in ("a.json", "a.goal", "a.xml", "a.dot", "a.svg", "a.html"):
        plan.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    assert Schedule.load(tmp_path / "a.json") == plan
    assert Schedule.load(tmp_path / "a.goal").ranks == 5
    assert Schedule.load(tmp_path / "a.xml").check()
    plan.save(tmp_path / "grid", format="simgrid")
    assert (tmp_path / "grid").is_dir()


def test_steps_are_columns():
    plan = oneport.plan("reduce", 4, elements=10, dtype="f64", algorithm="chain", segments=2)
    simulation = plan.simulate({"alpha": 100, "beta": 1, "gamma": 0.5})
    table = simulation.steps()
    assert list(table)[:3] == ["rank", "step", "work"]
    assert {len(column) for column in table.values()} == {18}
    assert max(table["end"]) == simulation.time == simulation["time"]
    assert sum(b for b, work in zip(table["bytes"], table["work"]) if work == "send") == 240
    costs = {"alpha": [[0, 1], [2, 0]], "beta": [[0, 0], [0, 0]], "gamma": [0, 0]}
    pair = oneport.plan("broadcast", 2, bytes=8)
    assert pair.simulate(costs).steps()["end"] == [1, 1]
    # The costs of the plan are those of what is asked later.
    planned = oneport.plan("broadcast", 2, bytes=8, costs=costs)
    assert planned.simulate().time == pickle.loads(pickle.dumps(planned)).simulate().time == 1
    assert planned.simulate(alpha=0, beta=1).time == 8
    # Infinite costs, and none on the diagonal, are links that there are not.
    numpy = pytest.importorskip("numpy")
    matrix = {"alpha": numpy.ones((2, 2)), "beta": numpy.where(numpy.eye(2), numpy.inf, 1.0), "gamma": numpy.zeros(2)}
    assert pair.simulate(matrix).time == 9
    # Late by nothing is late, too.
    assert [pair.simulate(alpha=1, beta=0, arrivals=[0, late]).after_last_arrival for late in (0, 5)] == [1, 1]
    one, many = (oneport.compare("reduce", p, bytes=80).columns() for p in (4, [3, 4]))
    assert set(many) <= set(one) and "command" not in many and set(one["bytes"]) == set(many["bytes"]) == {80}
    compared = one
    assert compared["time"] == sorted(compared["time"]) and "binomial" in compared["algorithm"]
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(table)["critical"].any()


def test_a_builder():
    b = Builder("reduce", 3, 4, root=1, ports="uni")
    b.transfer(0, 1, s[0:2], s[2:], combine="theirs_first").transfer(2, 1, s[:], combine="mine_first")
    plan = b.build()
    report = plan.check()
    assert report and report["keeps_order"]
    outputs = plan.run([b"abcd", b"ABCD", b"0123"], lambda x, y: (x * 3 + y) % 251, commutes=False)
    assert outputs[1][0] == ((97 * 3 + 65) % 251 * 3 + 48) % 251
    # Buffers, ports and local steps of one's own.
    b = Builder("broadcast", 2, 4, ported=2)
    b.layout(1, 8, output=s[4:8])
    b.send(0, 1, s[0:4], port=1).recv(1, 0, range(0, 4), port=1).copy(1, s[0:4], s[4:8])
    assert b.build().check()
    m = Builder("multicast", 4, 2, targets=[2])
    assert m.transfer(0, 2, s[:]).build().check()


def test_a_program_for_each_rank():
    def ring(rank, p, ctx):
        """An allgather: in each of p - 1 rounds a block goes to the right."""
        block = lambda r: s[r % p * 2 : r % p * 2 + 2]
        for i in range(p - 1):
            ctx.send((rank + 1) % p, block(rank - i))
            ctx.recv((rank - 1) % p, block(rank - i - 1))

    named = record(ring, "allgather", 5, elements=2, name="to the right")
    assert named.name == named.simulate().algorithm == "to the right" and named.algorithm is None
    assert "allgather by to the right, p = 5" in named.draw() and "by to the right" in repr(named)
    assert "to the right" in named.compare().columns()["algorithm"]
    assert Schedule.from_dict(named.to_dict()).name == "to the right"
    assert Builder("broadcast", 1, name="alone").build().name == "alone"
    ranks = record(ring, "allgather", 5, elements=2)
    assert ranks.check() and ranks.simulate({"alpha": 1, "beta": 0})["rounds"] == 4
    assert bytes(ranks.run([bytes([r, r]) for r in range(5)])[3]) == bytes(r // 2 for r in range(10))

    def chain(rank, p, ctx):
        if rank + 1 < p:
            ctx.recv_combine(rank + 1, ctx.all)
        if rank > 0:
            ctx.send(rank - 1, *ctx.input)

    assert record(chain, "reduce", 6, elements=3, ports="uni").check()["keeps_order"]
    with pytest.raises(ZeroDivisionError):
        record(lambda rank, p, ctx: 1 // 0, "barrier", 2)


def test_synthesis_and_series():
    found = oneport.synthesize("allgather", 5, ports="uni")
    assert found["optimal"] and found["rounds"] == 5 and found.schedule.check()
    graph = {"links": [[0, 1, 0], [0, 0, 1], [1, 0, 0]]}
    assert oneport.synthesize("broadcast", graph=graph)["rounds"] == 2
    edges = [{"src": 0, "dst": 1, "cost": "1/2"}, {"src": 1, "dst": 2, "cost": 1}]
    platform = {"nodes": 3, "source": 0, "targets": [1, 2], "edges": edges}
    series = oneport.steady(platform, messages=4)
    assert series["throughput"]["fraction"] == "1"
    assert series.schedule.ranks == 3 and series["schedule"]["messages"] == 4


def test_pictures():
    plan = oneport.plan("broadcast", 6, bytes=60)
    assert plan._repr_svg_().startswith("<svg") and "--schedule" not in plan._repr_svg_()
    page = plan._repr_html_()
    assert page.startswith("<iframe") and "&lt;!DOCTYPE html&gt;" in page
    assert oneport.plan("broadcast", 65)._repr_html_() is None
    assert oneport.compare("broadcast", 6, bytes=60)._repr_svg_().startswith("<svg")
    assert "two-tree" in str(oneport.compare("reduce", 8))


def test_remarks_are_warnings():
    with pytest.warns(oneport.Note, match="the schedule is wrong"):
        Builder("broadcast", 2, 4).build()


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("f32", "f32"), ("float", "f64"), (float, "f64"), (int, "i64"), ("double", "f64"), ("<f4", "f32"),
        ("f8", "f64"), ("i8", "i8"), ("<i8", "i64"), ("d", "f64"), ("float16", "f16"), ("bfloat16", "bf16"),
    ],
)
def test_element_types(dtype, name):
    plan = oneport.plan("reduce", 3, elements=8, dtype=dtype)
    assert plan.simulate().vector_bytes == 8 * {"i8": 1, "f16": 2, "bf16": 2, "f32": 4}.get(name, 8)
    numpy = pytest.importorskip("numpy")
    if dtype not in ("f32", "i8", "bfloat16"):
        data = numpy.ones(8, dtype)
        assert plan.run([data] * 3, "sum")[0].dtype == data.dtype
        for same in (data.dtype, data.dtype.type, data.dtype.str):
            assert oneport.plan("reduce", 3, elements=8, dtype=same) == plan


def test_names():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", oneport.__version__)
    assert set(oneport.__all__) <= set(dir(oneport)) and not {"sys", "signal"} & set(dir(oneport))
    simulation = oneport.plan("reduce", 4).simulate()
    assert simulation.rounds == simulation["rounds"] and "rounds" in dir(simulation)
    assert repr(simulation).startswith("collective")


def test_import_needs_nothing_else():
    code = "import sys, oneport; print({'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert blocks


def test_the_notebook(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "python/notebooks/oneport.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [set(output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert {"text/html", "image/svg+xml"} <= set().union(*shown)


def test_stubs():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "-p", "oneport", "--strict"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


#: What a type checker finds in a line, or nothing.
TYPED = {
    'oneport.plan("reduce", 4, segmets=4)': "segmets",
    'oneport.plan("reduce", 4, overlap="yes")': "overlap",
    'oneport.compare("reduce", 4, eagre="all")': "eagre",
    'oneport.plan("reduce", 4).simulate(latancy=3)': "latancy",
    'oneport.tune("reduce", 2, clock="slow")': "clock",
    'oneport.plan("reduce", "four")': "p",
    'oneport.plan("reduce", 4, elements=8, dtype="f64", op="sum", costs={"alpha": 1}, node_ports=1, nodes=2)': None,
    'oneport.compare("reduce", "2..8", bytes=[8, 64], latency="1us", progress=True).columns()': None,
    'oneport.plan("reduce", 4).simulate(arrivals=[0, 1, 2, 3], explain=True, elements=4)': None,
    'oneport.plan("reduce", 4).draw("tree", dark=True, width="84mm")': None,
    'oneport.synthesize("allgather", 5, ports="uni", budget=10, progress=True)': None,
    'oneport.Schedule.load("mine.json", dtype=float, p=4)': None,
    'oneport.plan("reduce", 4).simulate().tiem': "tiem",
    'oneport.plan("reduce", 4).simulate().lower_bounds["latensy"]': "latensy",
    'oneport.plan("reduce", 4).check().errors[0]["mesage"]': "mesage",
    'oneport.compare("reduce", "2..8").rows[0]["algoritm"]': "algoritm",
    'oneport.calibrate(quick=True).alfa': "alfa",
    'oneport.plan("reduce", 4).simulate().time + oneport.plan("reduce", 4).simulate().lower_bound': None,
    'oneport.plan("reduce", 4).check().errors[0]["message"].upper()': None,
    'oneport.compare("reduce", 4).rows[0]["x_best"] + oneport.compare("reduce", "2..8").rows[0]["x_best"]': None,
    'oneport.steady(generate="ring:4").throughput["fraction"].upper()': None,
    'oneport.guidelines("reduce").violations[0]["statement"].upper()': None,
    'oneport.command("list").algorithms[0]': None,
}


def test_a_type_checker_finds_misspelt_options(tmp_path):
    pytest.importorskip("mypy")
    lines = ["import oneport", *TYPED]
    (tmp_path / "notebook.py").write_text("\n".join(lines) + "\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "notebook.py"],
                          capture_output=True, text=True, cwd=tmp_path)
    for number, (line, wrong) in enumerate(TYPED.items(), 2):
        found = [text for text in done.stdout.splitlines() if text.startswith(f"notebook.py:{number}: error")]
        assert bool(found) == bool(wrong), f"{line}: {done.stdout}"
        assert wrong is None or f'"{wrong}"' in found[0] or wrong == "p", found
