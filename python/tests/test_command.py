"""Answers are those of the command, byte for byte; so is the console script."""

import os
import signal
import subprocess
import time

import oneport
import pytest

COLLECTIVES = [
    "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather", "reduce_scatter",
    "alltoall", "scan", "exscan", "barrier",
]
pytestmark = pytest.mark.filterwarnings("ignore::oneport.Note")


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

    of_file = lambda name, *rest: process(name, "--schedule", "-", "--json", *rest, input=text)[:2]
    assert (0, plan.check().json) == of_file("check", *given)
    assert (0, plan.simulate().json) == of_file("simulate", *given)
    if collective == "barrier":
        return
    file = tmp_path / "mine.json"
    file.write_text(text)
    beside = plan.compare().json.replace("<schedule>", str(file))
    assert (0, beside) == process("compare", "--schedule", str(file), "--json", *given)[:2]


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
    assert late.json == process("simulate", "--schedule", "-", *given, "--json", input=file)[1]
    drawn = plan.draw("traffic", plain=True).replace("<schedule>", "standard input")
    assert drawn == process("draw", "--schedule", "-", "--as", "traffic", "--plain", *typed, input=file)[1]


def test_other_commands_answer_alike(process):
    pairs = [
        (oneport.command("list"), "list"),
        (oneport.command("list", "reduce"), "list reduce"),
        (oneport.steady(generate="fig3"), "steady --generate fig3"),
        (oneport.steady(generate="ring:5", ports="uni"), "steady --generate ring:5 --ports uni"),
        (oneport.synthesize("allgather", 5, ports="uni"), "synthesize allgather -p 5 --ports uni"),
        (oneport.synthesize("scan", 4, items=1), "synthesize scan -p 4 --items 1"),
        (oneport.plan("scan", 9).check(), None),
    ]
    for answer, command in pairs:
        if command:
            assert answer.json == process(*command.split(), "--json")[1]
    assert oneport.algorithms("reduce") == pairs[1][0]


def test_what_is_wrong_is_data(process):
    wrong = oneport.plan("broadcast", 4, bytes=8, algorithm="binomial").to_dict()
    wrong["programs"][0].pop()
    schedule = oneport.Schedule.from_dict(wrong)
    report = schedule.check()
    assert not report and report.errors[0]["kind"] == "unmatched"
    code, text, _ = process("check", "--schedule", "-", "--json", input=schedule.to_json())
    assert (code, text) == (1, report.json)


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
    with pytest.raises(oneport.Error, match="Usage"):
        oneport.command("--help")
    assert os.getpid()
