"""Answers are those of the command, byte for byte; so is the console script."""

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import oneport
import pytest

COLLECTIVES = [
    "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather", "reduce_scatter",
    "alltoall", "scan", "exscan", "barrier",
]
pytestmark = pytest.mark.filterwarnings("ignore::oneport.Note")


#: What the command does not know of a plan that it reads.
OF_PLANS = ["algorithm", "algorithm_choice", "schedule", "root_choice", "segments", "segment", "segment_choice"]


def unnamed(text):
    """An answer without what is known of a schedule's plan."""
    return {name: value for name, value in json.loads(text).items() if name not in OF_PLANS}


@pytest.mark.parametrize("p", [2, 5, 8, 12])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_five_answers_for_a_collective(process, tmp_path, collective, p):
    options = {} if collective == "barrier" else {"bytes": 96 * p}
    words = [] if collective == "barrier" else ["--bytes", str(96 * p)]
    costs = {"alpha": 10, "beta": 0.25}
    words = [*words, "-p", str(p), "--ports", "uni"]
    given = ["--alpha", "10", "--beta", "0.25"]
    plan = oneport.plan(collective, p, ports="uni", costs=costs, **options)
    code, text, _ = process("plan", collective, *words, *given, "--json")
    assert (code, text) == (0, plan.to_json())

    compared = oneport.compare(collective, p, ports="uni", costs=costs, **options)
    assert (0, compared.json) == process("compare", collective, *words, *given, "--json")[:2]

    planned = lambda answer: {name: answer[name] for name in OF_PLANS[2:] + OF_PLANS[:1]}
    for name, answer in (("check", plan.check()), ("simulate", plan.simulate())):
        code, of_file, _ = process(name, "--schedule", "-", "--json", *given, input=text)
        assert (0, unnamed(answer.json)) == (code, unnamed(of_file))
        # Its plan is known, as if it was planned now.
        segment = ["--segment", str(answer["segment"])] if answer["segment"] else []
        same = ["-a", plan.algorithm, *segment]
        code, of_plan, _ = process(name, collective, *words, *same, *given, "--json")
        assert planned(answer) == planned(json.loads(of_plan))
    if collective == "barrier":
        return
    file = tmp_path / "mine.json"
    file.write_text(text)
    own = lambda rows: [row for row in rows if row["algorithm"].startswith(f"{plan.algorithm} (")]
    beside = dict(plan.compare())
    file_beside = json.loads(process("compare", "--schedule", str(file), "--json", *given)[1])
    [mine], [of_file] = own(beside["rows"]), own(file_beside["rows"])
    assert mine["algorithm"].endswith(" (this)") and of_file["algorithm"].endswith("mine.json)")
    mine |= {name: of_file.get(name) for name in ("algorithm", "segments", "segment", "schedule")}
    assert beside == file_beside


@pytest.mark.parametrize("dtype", ["u8", "f32", "f64"])
@pytest.mark.parametrize("algorithm", ["binomial", "chain", "bi-greedy", "butterfly"])
def test_options_are_keywords(process, algorithm, dtype):
    plan = oneport.plan("reduce", 7, elements=60, algorithm=algorithm, dtype=dtype, root=3)
    bytes = 60 * {"u8": 1, "f32": 4, "f64": 8}[dtype]
    words = ["-p", "7", "-a", algorithm, "--bytes", str(bytes), "--dtype", dtype, "--root", "3"]
    assert plan.to_json() == process("plan", "reduce", *words, "--json")[1]
    typed = ["--dtype", dtype]
    late = plan.simulate(arrivals=[0, 50, 0, 0, 0, 0, 2000], latency=40, overlap=True)
    given = ["--arrivals", "1:50,6:2000", "--latency", "40", "--overlap", *typed]
    file = plan.to_json()
    assert unnamed(late.json) == unnamed(process("simulate", "--schedule", "-", *given, "--json", input=file)[1])
    drawn = plan.draw("traffic", plain=True)
    assert drawn == process("draw", "--schedule", "-", "--as", "traffic", "--plain", *typed, input=file)[1]


def test_other_commands_answer_alike(process, tmp_path):
    pairs = [
        (oneport.command("list"), "list"),
        (oneport.command("list", "reduce"), "list reduce"),
        (oneport.command("simulate", "scan", ranks=9), "simulate scan -p 9"),
        (
            oneport.command("plan", "broadcast", p=10**9, algorithm="circulant", table=True, rank=5),
            "plan broadcast -p 1000000000 -a circulant --table --rank 5",
        ),
        (oneport.steady(generate="fig3"), "steady --generate fig3"),
        (oneport.steady(generate="ring:5", ports="uni"), "steady --generate ring:5 --ports uni"),
        (oneport.synthesize("allgather", 5, ports="uni"), "synthesize allgather -p 5 --ports uni"),
        (oneport.synthesize("scan", 4, items=1), "synthesize scan -p 4 --items 1"),
        (oneport.plan("scan", 9).check(), None),
    ]
    # What has no option for JSON prints nothing else, or nothing.
    for name in ("compare", "schedule"):
        schema = oneport.command("schema", name)
        assert schema.json == process("schema", name)[1] and schema["title"]
    folder = tmp_path / "atlas"
    assert oneport.command("atlas", "scan", ranks=2, output=folder) == {} and (folder / "index.html").exists()
    with pytest.raises(oneport.UsageError, match="the output of 'export goal scan' is no JSON"):
        oneport.command("export", "goal", "scan", p=2, bytes=8)
    for answer, command in pairs:
        if command:
            assert answer.json == process(*command.split(), "--json")[1]
    assert oneport.algorithms("reduce") == pairs[1][0]
    schedule_of_one = pairs[3][0]
    assert schedule_of_one.rank == 5 and len(schedule_of_one.recv) == len(schedule_of_one.send) == 30
    # Elements of a message, not bytes of a vector.
    assert oneport.steady(generate="fig3", elements=8).json == process(
        *"steady --generate fig3 --elements 8 --json".split()
    )[1]


def test_what_is_wrong_is_data(process):
    wrong = oneport.plan("broadcast", 4, bytes=8, algorithm="binomial").to_dict()
    wrong["programs"][0].pop()
    del wrong["name"]
    schedule = oneport.Schedule.from_dict(wrong)
    report = schedule.check()
    assert not report and report.errors[0]["kind"] == "unmatched"
    code, text, _ = process("check", "--schedule", "-", "--json", input=schedule.to_json())
    assert (code, unnamed(text)) == (1, unnamed(report.json))
    # Words and fields, as the command has them, also of what is wrong.
    text = process("check", "--schedule", "-", input=schedule.to_json())[1]
    assert str(report).replace("own schedule", "from standard input") == text
    assert repr(report) == str(report).rstrip() and report.is_correct is report.ok is False
    with pytest.raises(AttributeError):
        report.okay
    run = oneport.command("run", schedule=schedule_file(schedule))
    assert not run and "no partner" in run.error and "no partner" in str(run)
    assert oneport.command("run", "reduce", p=2, bytes=8) and oneport.plan("scan", 3).check()


def schedule_file(schedule):
    path = Path(tempfile.mkdtemp()) / "schedule.json"
    schedule.save(path)
    return path


def test_measurements():
    tuned = oneport.tune("reduce", 2, bytes=["1KiB", "2KiB"], algorithm="chain", budget=0.1)
    assert set(tuned.columns()["algorithm"]) == {"chain"} and tuned.columns()["median_ns"][0] > 0
    assert "1 KiB  chain" in str(tuned)
    held = oneport.guidelines(p=2, bytes=[8, 1024])
    assert held and held.holds and held.violations == [] and "hold" in str(held)
    assert {"guideline", "left", "right"} <= held.columns().keys()
    # A profile is what other calls take.
    profile = oneport.calibrate(quick=True, force=True)
    assert profile.alpha > 0 and "gamma_copy" in str(profile)
    known = oneport.plan("broadcast", 2, bytes=8, profile=profile)
    assert known.simulate().time == oneport.compare("broadcast", 2, bytes=8, profile=profile).rows[0]["time"]


def test_examples_of_docstrings():
    calls = re.findall(r"``(command\(.*?\))``", oneport.command.__doc__.replace("\n", " "))
    assert len(calls) == 2
    for call in calls:
        assert eval(f"oneport.{call}")
    numpy = pytest.importorskip("numpy")
    shown = re.findall(r">>> (.*)", oneport.__doc__)
    assert len(shown) > 4
    names = {"numpy": numpy}
    for line in shown:
        exec(line, names)


def test_progress_is_told(capsys):
    told = []
    oneport.compare("allreduce", "2..40", bytes="1KiB..64KiB", progress=lambda *of: told.append(of))
    done, of, what = told[-1]
    assert 0 < done <= of and isinstance(what, str)
    oneport.compare("allreduce", "2..400", bytes="1KiB..64KiB", progress=True)
    assert "%" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        oneport.compare("allreduce", "2..40", bytes="1KiB..64KiB", progress=lambda *of: 1 // 0)


def foot(svg):
    """The command line at the foot of a picture."""
    import html

    text = html.unescape(" ".join(re.findall(r">([^<]*)</text>", svg)))
    return text[text.rindex("oneport 0.") :].split(": ", 1)[1]


@pytest.mark.parametrize(
    "plan",
    [
        lambda: oneport.plan("reduce", 6, elements=60, dtype="f8", algorithm="chain", segments=3),
        lambda: oneport.plan("broadcast", 5, bytes=4000, costs={"alpha": 10, "beta": 0.5}),
        lambda: oneport.plan("scan", 4, bytes=64, alpha=5, beta=1, root=None),
    ],
)
def test_a_foot_reproduces_the_figure(process, plan):
    plan = plan()
    svg = plan.draw()
    assert f"{plan.collective} by {plan.algorithm}, p" in svg
    words = shlex.split(foot(svg))
    assert words[0] == "oneport" and process(*words[1:])[1] == svg


def test_a_foot_with_other_costs_or_an_own_schedule(process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = oneport.plan("broadcast", 5, bytes=4000, costs={"alpha": 10, "beta": 0.5})
    bars = lambda svg: re.findall(r"<title>(rank [^<]*)", svg)
    drawn = plan.draw(alpha=1, beta=9)
    for command in foot(drawn).split(" && "):
        code, output, _ = process(*shlex.split(command)[1:])
        assert code == 0
    assert bars(output) == bars(drawn)
    own = oneport.Schedule.from_dict(plan.to_dict())
    own.save("schedule.json")
    drawn = own.draw()
    assert bars(process(*shlex.split(foot(drawn))[1:])[1]) == bars(drawn)


def test_the_console_script_is_the_command(process, console, tmp_path):
    for words, code in [("list scan", 0), ("plan reduce -p 0", 2), ("--version", 0), ("", 2)]:
        script = subprocess.run([console, *words.split()], capture_output=True, text=True)
        assert script.returncode == code
        if "--version" not in words:
            assert (code, script.stdout, script.stderr) == process(*words.split())
    # The command line that a picture names is the one that was typed.
    picture = tmp_path / "a.svg"
    words = ["draw", "broadcast", "-p", "4", "-o", str(picture)]
    assert subprocess.run([console, *words], capture_output=True).returncode == 0
    assert "oneport draw broadcast -p 4 -o " in picture.read_text()


def test_ctrl_c_ends_the_console_script(console):
    search = subprocess.Popen([console, *"synthesize allgather -p 20 --items 3".split()],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    search.send_signal(signal.SIGINT)
    # By its own handler, or before it has one.
    assert search.wait() in (130, -signal.SIGINT)


def test_no_process_ends(process):
    # What ends the command raises here, help included.
    with pytest.raises(oneport.UsageError):
        oneport.command("plan", "--frobnicate")
    with pytest.raises(oneport.UsageError, match="'--help' is no command: the commands are list, plan"):
        oneport.command("--help")
    with pytest.raises(oneport.UsageError, match="'comapre' is no command; did you mean 'compare'?"):
        oneport.command("comapre")
    assert os.getpid()
