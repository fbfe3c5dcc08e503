"""Plan, prove, time and run collective communication under the one-port model.

    >>> import oneport
    >>> schedule = oneport.plan("reduce", 8, elements=1000, dtype="f64", segments=4)
    >>> assert schedule.check()
    >>> schedule.simulate(costs={"alpha": 1000, "beta": 0.5})["time"]
    >>> schedule.run([numpy.ones(1000)] * 8, op="sum")[0]

Functions take the options of the command of the same name as keywords: ``node_ports=2`` for
``--node-ports 2``, ``True`` for an option without a value, a list for values between commas. What
the command remarks on standard error is a warning (`Note`), what it refuses an exception (`Error`).
"""

import signal
import sys

from . import _oneport
from ._builder import Builder, Rank, record, s
from ._command import Answer, Note, command
from ._oneport import Error, UsageError
from ._schedule import (
    Comparison, Report, Schedule, Simulation, Steady, Synthesis, algorithms, compare, plan, steady,
    synthesize,
)

__all__ = [
    "Answer", "Builder", "Comparison", "Error", "Note", "Rank", "Report", "Schedule", "Simulation",
    "Steady", "Synthesis", "UsageError", "algorithms", "command", "compare", "plan", "record", "s",
    "steady", "synthesize",
]


def _main() -> int:
    """The command `oneport`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C ends the command at once, as it does without Python, or as a command itself has it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _oneport.main(sys.argv[1:])
