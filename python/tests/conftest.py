"""The command that answers are compared with."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A shell that starts these tests in the background has them ignore Ctrl-C, of which some are.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def console():
    """The console script of this environment."""
    return shutil.which("oneport", path=str(Path(sys.executable).parent))


@pytest.fixture(scope="session")
def process(console):
    """Runs the command as a process: the binary that `ONEPORT_COMMAND` names, which has no Python
    in it, or else the console script. Returns exit code, output and errors."""
    command = os.environ.get("ONEPORT_COMMAND") or console

    def run(*arguments, input=None):
        done = subprocess.run([command, *arguments], input=input, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    return run
