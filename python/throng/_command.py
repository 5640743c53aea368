"""The ``throng`` command of the wheel."""

from __future__ import annotations

import signal
import sys

from throng import _native


def main() -> None:
    """Run the command with the arguments of the process and end with its exit code."""
    # The command stops by itself when it is interrupted; Python must not add a traceback to that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    sys.exit(_native.run_command(["throng", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
