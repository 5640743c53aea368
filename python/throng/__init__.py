"""Throng anonymises large tables: every row leaves in a throng of at least k.

>>> import pyarrow as pa
>>> import throng
>>> people = pa.table({
...     "name": [f"person {i}" for i in range(300)],
...     "age": [20 + i * 7 % 50 for i in range(300)],
...     "illness": [["flu", "asthma", "none"][i % 3] for i in range(300)],
... })
>>> released = throng.anonymize(people, k=10, identifiers=["name"], quasi=["age"], sensitive=["illness"], l_diversity=3)
>>> released.to_arrow().column_names
['age', 'illness']

:func:`anonymize` takes anything with ``__arrow_c_stream__`` and returns the like. :func:`run` does a whole job, from files to a
verified release. The same job files serve the ``throng`` command, which comes with this package.
"""

from throng._anonymize import Anonymized, anonymize
from throng._errors import (
    ConflictError,
    Error,
    InputError,
    InternalError,
    InterruptedRunError,
    JobError,
    PrivacyError,
    ResourcesError,
    RetryError,
)
from throng._jobs import Job, attack, bound, check, profile, releases, report, run, sweep, verify
from throng._native import __version__
from throng._policy import Policy
from throng._results import (
    Attack,
    Bound,
    Bounds,
    Check,
    ColumnProfile,
    Finding,
    Measures,
    Problem,
    Profile,
    Progress,
    Release,
    Report,
    Sweep,
    Trial,
    Verification,
)

__all__ = [
    "Anonymized",
    "Attack",
    "Bound",
    "Bounds",
    "Check",
    "ColumnProfile",
    "ConflictError",
    "Error",
    "Finding",
    "InputError",
    "InternalError",
    "InterruptedRunError",
    "Job",
    "JobError",
    "Measures",
    "Policy",
    "PrivacyError",
    "Problem",
    "Profile",
    "Progress",
    "Release",
    "Report",
    "ResourcesError",
    "RetryError",
    "Sweep",
    "Trial",
    "Verification",
    "__version__",
    "anonymize",
    "attack",
    "bound",
    "check",
    "profile",
    "releases",
    "report",
    "run",
    "sweep",
    "verify",
]
