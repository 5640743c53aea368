"""What goes wrong, by who has to act on it. Messages are those of the command, and hold no value of the data."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """A failure of Throng.

    >>> import throng
    >>> try:
    ...     throng.Policy(k=1, quasi=["age"])
    ... except throng.Error as error:
    ...     print(error.kind, error.exit_code)
    job 3
    """

    kind: ClassVar[str] = "internal"
    """The kind in one word, as the command prints it with ``--json``."""

    exit_code: ClassVar[int] = 1
    """The exit code with which the command ends for this kind."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later."""


class JobError(Error):
    """The job or the policy (or a hierarchy it names) is wrong."""

    kind = "job"
    exit_code = 3


class InputError(Error):
    """The input cannot be read or does not fit the policy."""

    kind = "input"
    exit_code = 4


class PrivacyError(Error):
    """A privacy rule cannot be met, or a release does not meet it."""

    kind = "privacy"
    exit_code = 5


class ResourcesError(Error):
    """Memory, disk or another limit is too small."""

    kind = "resources"
    exit_code = 6


class ConflictError(Error):
    """The sink holds something that this run must not overwrite."""

    kind = "conflict"
    exit_code = 7


class RetryError(Error):
    """A transient failure: the same call may succeed later."""

    kind = "retry"
    exit_code = 75
    retryable = True


class InterruptedRunError(Error):
    """Somebody stopped the run."""

    kind = "interrupted"
    exit_code = 130


class InternalError(Error):
    """A fault of Throng itself; please report it."""
