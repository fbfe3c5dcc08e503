"""Runs on the memory of Python: sums, other types, operators, errors, threads, fork."""

import array
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import oneport
import pytest

RANDOM = np.random.default_rng(1)


def vectors(p, elements, dtype):
    return [RANDOM.integers(0, 10, elements).astype(dtype) for _ in range(p)]


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("p", [1, 2, 7, 8])
def test_sums(dtype, p):
    inputs = vectors(p, 50, dtype)
    total = np.sum(inputs, axis=0, dtype=dtype)
    for collective in ("reduce", "allreduce"):
        outputs = oneport.plan(collective, p, elements=50).run(inputs, "sum")
        assert outputs[0].dtype == total.dtype and np.array_equal(outputs[0], total)
    for out in outputs:
        assert np.array_equal(out, total)
    prefixes = oneport.plan("scan", p, elements=50).run(inputs, "sum")
    assert np.array_equal(prefixes, np.cumsum(inputs, axis=0, dtype=dtype))


@pytest.mark.parametrize("algorithm", ["binomial", "chain", "bi-greedy", "two-tree"])
def test_algorithms_move_the_same(algorithm):
    inputs = vectors(6, 40, "f4")
    plan = oneport.plan("reduce", 6, elements=40, dtype=np.float32, algorithm=algorithm, root=2)
    outputs = plan.run(inputs, "max")
    assert np.array_equal(outputs[2], np.maximum.reduce(inputs))
    assert [len(out) for out in outputs] == [0, 0, 40, 0, 0, 0]
    sent = oneport.plan("broadcast", 6, elements=40, algorithm="chain").run([inputs[0]] + [None] * 5)
    assert all(np.array_equal(out, inputs[0]) for out in sent)


def test_no_copies():
    inputs = vectors(4, 1000, "f8")
    out = oneport.plan("allreduce", 4, elements=1000).run(inputs, "sum")[0]
    # The array stands on the memory of the run, which it keeps alive and may write.
    assert isinstance(out.base, oneport._oneport.Memory) and not out.flags.owndata
    out += 1
    # Inputs of any shape are read where they are, read-only ones, too.
    square = np.arange(1000.0).reshape(10, 100)
    square.flags.writeable = False
    run = oneport.plan("allreduce", 2, elements=1000).run([square, square], "sum")
    assert np.array_equal(run[1].reshape(10, 100), 2 * square)


def test_other_memory():
    numbers = [array.array("d", [1, 2, 3]) for _ in range(3)]
    plan = oneport.plan("allreduce", 3, elements=3)
    assert plan.run(numbers, "sum")[1] == array.array("d", [3, 6, 9])
    assert plan.run([b"abc"] * 3, "max")[2] == array.array("B", b"abc")
    held = array.array("d", [1, 2, 3])

    def grow(a, b):
        # What a run reads cannot be resized meanwhile.
        with pytest.raises(BufferError):
            held.append(4)
        return a + b

    assert plan.run([held] * 3, grow)[0][0] == 3


def test_functions_combine():
    inputs = vectors(5, 30, "i8")
    plan = oneport.plan("allreduce", 5, elements=30)
    assert np.array_equal(plan.run(inputs, lambda a, b: max(a, b))[3], np.maximum.reduce(inputs))
    ordered = oneport.plan("reduce", 5, elements=30, ordered=True)
    assert np.array_equal(ordered.run(inputs, lambda a, b: a, commutes=False)[0], inputs[0])
    with pytest.raises(ZeroDivisionError):
        plan.run(inputs, lambda a, b: a // 0)
    with pytest.raises(TypeError):
        plan.run(inputs, lambda a, b: "text")
    # The next run is none the worse.
    assert np.array_equal(plan.run(inputs, "sum")[0], np.sum(inputs, axis=0))


def test_two_threads_run_at_once():
    plan = oneport.plan("allreduce", 2, elements=1)
    both = threading.Barrier(2, timeout=60)
    results = []

    def run(value):
        def add(a, b):
            # Neither run ends before both have begun.
            both.wait()
            return a + b

        plan_of_one = oneport.plan("reduce", 2, elements=1)
        results.append(plan_of_one.run([np.array([value])] * 2, add)[0][0])
        results.append(plan.simulate()["time"])

    threads = [threading.Thread(target=run, args=(value,)) for value in (1, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results)[:2] == [2, 20] and len(results) == 4


def test_threads_answer_alike():
    alone = [oneport.compare("allreduce", p, bytes=4096).json for p in range(2, 14)]
    found = {}

    def compare(p):
        found[p] = oneport.compare("allreduce", p, bytes=4096).json

    threads = [threading.Thread(target=compare, args=(p,)) for p in range(2, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[p] for p in range(2, 14)] == alone


def forked(p):
    inputs = [np.full(100, rank, "i4") for rank in range(p)]
    plan = oneport.plan("reduce", p, elements=100)
    return oneport.compare("reduce", p, bytes=100).json, int(plan.run(inputs, "sum")[0][0])


def test_a_forked_process():
    here = [forked(p) for p in (2, 4, 6)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(forked, (2, 4, 6)) == here


def forever():
    plan = oneport.plan("allreduce", 4, elements=10**6)
    while True:
        plan.run([np.ones(10**6)] * 4, lambda a, b: a + b)


@pytest.mark.parametrize(
    "long",
    [
        forever,
        lambda: oneport.command("run", "allreduce", p=2, bytes=8, repetitions=10**8 // 4),
        lambda: oneport.synthesize("allgather", 20, items=3),
        lambda: oneport.compare("allgather", "1000..4000", bytes="8..1GiB"),
    ],
)
def test_ctrl_c_ends_long_work(long):
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        long()


@pytest.mark.parametrize(
    "work",
    [
        "plan.run([array.array('d', [1] * 10000)] * 4, lambda a, b: a + b)",
        "plan.run([array.array('d', [1] * 10000)] * 4, 'sum')",
        "oneport.compare('allreduce', '2..8')",
    ],
)
def test_a_process_ends_while_threads_work(work):
    code = f"""
import array, threading, time, oneport
plan = oneport.plan("allreduce", 4, elements=10000)
def work():
    while True:
        {work}
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
