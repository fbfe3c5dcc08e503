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

import atexit as _atexit
import signal as _signal
import sys as _sys

from . import _oneport
from ._builder import Builder, Rank, record, s
from ._command import Answer, Note, command
from ._oneport import Error, UsageError, __version__
from ._schedule import (
    Comparison, Guidelines, Profile, Report, Schedule, Simulation, Steady, Synthesis, Tuning, algorithms,
    calibrate, compare, guidelines, plan, steady, synthesize, tune,
)

__all__ = [
    "Answer", "Builder", "Comparison", "Error", "Guidelines", "Note", "Profile", "Rank", "Report",
    "Schedule", "Simulation", "Steady", "Synthesis", "Tuning", "UsageError", "__version__", "algorithms",
    "calibrate", "command", "compare", "guidelines", "plan", "record", "s", "steady", "synthesize",
    "tune",
]

# Threads of runs must not enter an interpreter that is being taken down.
_atexit.register(_oneport.close)


def _main() -> int:
    """The command `oneport`."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        # Ctrl-C ends the command at once, as it does without Python, or as a command itself has it.
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    return _oneport.main(_sys.argv[1:])
