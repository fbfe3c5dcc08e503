"""Random collective calls of a program that knows nothing of oneport, by mpi4py.

    mpi_calls.py FIRST PROGRAMS CALLS

Runs PROGRAMS random programs, from number FIRST on, of CALLS calls each: all collectives, on all
processes and on parts of them, types with and without gaps, in place or not, no data or some, any
root. Values are exact, so the results are the same whoever serves a call. Prints a digest of all that
each process has received: the same with and without the library.
"""

import hashlib
import random
import sys
from array import array

from mpi4py import MPI

INTEGERS = [("b", MPI.SIGNED_CHAR), ("i", MPI.INT), ("l", MPI.LONG)]
TYPES = INTEGERS + [("d", MPI.DOUBLE), ("f", MPI.FLOAT)]
OPERATORS = [MPI.SUM, MPI.PROD, MPI.MAX, MPI.MIN]
OF_BITS = [MPI.BAND, MPI.BOR, MPI.BXOR, MPI.LAND, MPI.LOR, MPI.LXOR]
SMALL = bytes(byte % 4 for byte in range(256))
digest = hashlib.sha256()


def vector(code, n, seed):
    """Small whole numbers."""
    return array(code, list(random.Random(seed).randbytes(n).translate(SMALL)))


def empty(code, n):
    return array(code, [9]) * n


def split(choices, n, p):
    """Blocks with gaps, in any order."""
    counts = [choices.choice([0, 1, n]) for _ in range(p)]
    places, end = [0] * p, 0
    for rank in choices.sample(range(p), p):
        end += choices.randrange(3)
        places[rank] = end
        end += counts[rank]
    return counts, places, end


def call(choices, comm, seed):
    """One call, described by `choices`, which all processes have alike."""
    p, me = comm.size, comm.rank
    name = choices.choice(
        "barrier bcast reduce allreduce scan exscan gather scatter allgather allgatherv alltoall "
        "alltoallv reduce_scatter reduce_scatter_block gatherv scatterv vectors pairs".split()
    )
    code, kind = choices.choice(TYPES)
    n, root = choices.choice([0, 1, 2, 5, 100, 3000]), choices.randrange(p)
    operators = OPERATORS + OF_BITS if (code, kind) in INTEGERS else OPERATORS
    operator, in_place = choices.choice(operators), choices.random() < 0.3
    mine = seed * 1000 + me
    here = MPI.IN_PLACE if in_place else None
    if name == "barrier":
        comm.Barrier()
        return array("b")
    if name == "bcast":
        data = vector(code, n, seed) if me == root else empty(code, n)
        comm.Bcast([data, kind], root)
        return data
    if name == "vectors":
        # Every second element, on some processes as single elements.
        data = vector(code, 2 * n, seed) if me == root else empty(code, 2 * n)
        every_second = kind.Create_vector(n, 1, 2).Commit()
        comm.Bcast([data, 1, every_second], root)
        every_second.Free()
        return data
    if name == "pairs":
        data = vector("i", 2 * n, mine)
        out = empty("i", 2 * n)
        comm.Allreduce([data, n, MPI.TWOINT], [out, n, MPI.TWOINT], choices.choice([MPI.MINLOC, MPI.MAXLOC]))
        return out
    if name in ("allreduce", "scan", "exscan"):
        function = {"allreduce": comm.Allreduce, "scan": comm.Scan, "exscan": comm.Exscan}[name]
        data, out = vector(code, n, mine), empty(code, n)
        function(here or [data, kind], [data if in_place else out, kind], operator)
        # What rank 0 gets of an exclusive scan is not defined.
        return array(code) if name == "exscan" and me == 0 else data if in_place else out
    if name == "reduce":
        data, out = vector(code, n, mine), empty(code, n)
        if me == root and in_place:
            comm.Reduce(MPI.IN_PLACE, [data, kind], operator, root)
            return data
        comm.Reduce([data, kind], [out, kind] if me == root else None, operator, root)
        return out
    if name == "gather":
        data, out = vector(code, n, mine), vector(code, n * p, mine)
        own = MPI.IN_PLACE if in_place and me == root else [data, kind]
        comm.Gather(own, [out, kind] if me == root else None, root)
        return out if me == root else data
    if name == "scatter":
        data, out = vector(code, n * p, mine), empty(code, n)
        own = MPI.IN_PLACE if in_place and me == root else [out, kind]
        comm.Scatter([data, kind] if me == root else None, own, root)
        return out
    if name in ("allgather", "alltoall"):
        function = {"allgather": comm.Allgather, "alltoall": comm.Alltoall}[name]
        data, out = vector(code, n * (p if name == "alltoall" else 1), mine), vector(code, n * p, mine)
        function(here or [data, kind], [out, kind])
        return out
    if name in ("reduce_scatter", "reduce_scatter_block"):
        counts = [n] * p if name == "reduce_scatter_block" else split(choices, n, p)[0]
        data, out = vector(code, sum(counts), mine), empty(code, counts[me])
        if name == "reduce_scatter_block":
            comm.Reduce_scatter_block([data, kind], [out, kind], operator)
        else:
            comm.Reduce_scatter([data, kind], [out, kind], counts, operator)
        return out
    counts, places, end = split(choices, n, p)
    if name == "allgatherv":
        data, out = vector(code, counts[me], mine), vector(code, end, mine)
        comm.Allgatherv(here or [data, kind], [out, counts, places, kind])
        return out
    if name == "gatherv":
        data, out = vector(code, counts[me], mine), vector(code, end, mine)
        own = MPI.IN_PLACE if in_place and me == root else [data, kind]
        comm.Gatherv(own, [out, counts, places, kind] if me == root else None, root)
        return out if me == root else data
    if name == "scatterv":
        data, out = vector(code, end, mine), empty(code, counts[me])
        own = MPI.IN_PLACE if in_place and me == root else [out, kind]
        comm.Scatterv([data, counts, places, kind] if me == root else None, own, root)
        return out
    # Of an irregular alltoall: block i of rank r has sizes[r][i] elements.
    sizes = [[choices.choice([0, 1, n]) for _ in range(p)] for _ in range(p)]
    sent, received = sizes[me], [sizes[rank][me] for rank in range(p)]
    starts = lambda counts: [sum(counts[:i]) for i in range(p)]
    data, out = vector(code, sum(sent), mine), empty(code, sum(received))
    comm.Alltoallv([data, sent, starts(sent), kind], [out, received, starts(received), kind])
    return out


world = MPI.COMM_WORLD
first, programs, calls = (int(word) for word in sys.argv[1:])
for number in range(first, first + programs):
    choices = random.Random(number)
    # A part of the processes, in another order.
    colour = [choices.randrange(2) for _ in range(world.size)][world.rank]
    part = world.Split(colour, -world.rank)
    for i in range(calls):
        # Parts have other sizes, so each has choices of its own.
        whole = choices.random() < 0.7
        seed = number * 100003 + i
        comm = world if whole else part
        digest.update(call(random.Random(seed * 2 + (0 if whole else colour)), comm, seed).tobytes())
    part.Free()
results = world.gather(digest.hexdigest())
if world.rank == 0:
    print("received", *[result[:16] for result in results], flush=True)
