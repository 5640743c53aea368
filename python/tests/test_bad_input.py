"""What goes wrong is an exception that says what to do; the process goes on, and nothing is published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import CENSUS, command

import throng


def test_an_unknown_column_is_named(small):
    with pytest.raises(throng.Error, match="agee") as raised:
        throng.anonymize(small, k=5, quasi=["agee"], others="kept")
    assert raised.value.kind in ("job", "input")


def test_a_forgotten_column_is_an_error(small):
    with pytest.raises(throng.Error, match="ward"):
        throng.anonymize(small, k=5, identifiers="name", quasi="age")


def test_a_type_that_cannot_be_generalised_is_named():
    table = pa.table({"where": [[1, 2]] * 20})
    with pytest.raises(throng.Error, match="where"):
        throng.anonymize(table, k=5, quasi=["where"]).to_arrow()


@pytest.mark.parametrize("data", [42, None, {"age": [1]}, [1, 2], "people.parquet"])
def test_what_is_no_table_is_a_type_error(data):
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        throng.anonymize(data, k=5, quasi=["age"])


def test_a_stream_that_was_read_before(small):
    reader = small.to_reader()
    reader.read_all()
    with pytest.raises(throng.Error):
        throng.anonymize(reader, k=5, identifiers="name", quasi="age", kept="ward").to_arrow()


def test_a_closed_stream(small):
    reader = small.to_reader()
    reader.close()
    with pytest.raises((throng.InputError, pa.ArrowInvalid, ValueError)):
        throng.anonymize(reader, k=5, identifiers="name", quasi="age", kept="ward")


def test_a_capsule_that_is_used_twice(small):
    class Twice:
        capsule = small.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    arguments = {"k": 5, "identifiers": "name", "quasi": "age", "kept": "ward"}
    throng.anonymize(Twice(), **arguments)
    with pytest.raises(throng.InputError):
        throng.anonymize(Twice(), **arguments)


def test_an_object_that_answers_with_something_else():
    class Liar:
        def __arrow_c_stream__(self, requested_schema=None):
            return "no capsule"

    with pytest.raises(TypeError):
        throng.anonymize(Liar(), k=5, quasi=["age"])


def test_an_exception_in_a_python_iterator(small):
    def batches():
        yield from small.to_batches()
        raise RuntimeError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(small.schema, batches())
    with pytest.raises(throng.InputError, match="the disk is on fire"):
        throng.anonymize(reader, k=5, identifiers="name", quasi="age", kept="ward")


def test_a_rule_that_cannot_be_met(small):
    with pytest.raises(throng.PrivacyError) as raised:
        throng.anonymize(small, k=301, identifiers="name", quasi="age", kept="ward").to_arrow()
    assert raised.value.exit_code == 5 and not raised.value.retryable


def test_too_little_memory(census, policy):
    with pytest.raises(throng.ResourcesError):
        throng.anonymize(census, policy, memory_limit="100KB").to_arrow()


def test_a_spill_limit_counts_what_is_spooled(census, policy):
    with pytest.raises(throng.ResourcesError, match="spill_limit"):
        throng.anonymize(census.to_reader(), policy, spill_limit=10_000)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, TypeError),
        ({"k": 5, "quasi": ["age"], "sensitive": ["age"]}, ValueError),
        ({"k": 5, "quasi": ["age"], "memory_limit": "much", "others": "kept"}, throng.JobError),
        ({"k": 5, "quasi": ["age"], "partitions": 0, "others": "kept"}, ValueError),
        ({"k": 1, "quasi": ["age"], "others": "kept"}, throng.JobError),
        ({"k": 5, "quasi": {"age": {"hierarchie": {}}}, "others": "kept"}, throng.JobError),
        ({"k": 5, "quasi": ["age"], "method": "mondrain", "others": "kept"}, throng.JobError),
    ],
)
def test_wrong_arguments(small, arguments, error):
    with pytest.raises(error):
        throng.anonymize(small, **arguments)


def test_messages_are_those_of_the_command(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text('version = 1\nsource.url = "none"\nsink.url = "out"\nprivacy.k = 1\n[columns]\nage.role = "quasi"\n')
    with pytest.raises(throng.JobError) as raised:
        throng.run(job)
    failed = command("run", str(job))
    assert failed.returncode == raised.value.exit_code == 3
    assert str(raised.value) in failed.stderr
    assert f"{job}: " in str(raised.value)


def run_python(text: str, *arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_ctrl_c_ends_a_run_and_nothing_is_published(tmp_path):
    made = command("generate", "--rows", "60000", str(tmp_path / "people.parquet"), "--quiet")
    assert made.returncode == 0, made.stderr
    script = """
        import sys, throng
        from pathlib import Path
        folder = Path(sys.argv[1])
        policy = throng.Policy(k=10, quasi=["age", "sex", "region", "postcode"], sensitive=["diagnosis"], others="identifier")
        def report(progress):
            print(progress.phase, flush=True)
        try:
            throng.run(policy.to_job(folder / "people.parquet", folder / "out"), on_progress=report, spill_dir=folder / "spill")
        except KeyboardInterrupt:
            print("interrupted")
    """
    running = run_python(script, str(tmp_path))
    for line in running.stdout:
        if line.strip() == "group":
            running.send_signal(signal.SIGINT)
            break
    output, errors = running.communicate(timeout=60)
    assert running.returncode == 0 and output.strip().endswith("interrupted"), (output, errors)
    assert not list(tmp_path.glob("out/_manifest/*")) and not list(tmp_path.glob("out/data/**/*.parquet"))
    assert not list(tmp_path.glob("spill/*"))


def test_ctrl_c_ends_a_reading(tmp_path):
    script = """
        import sys, throng
        import pyarrow as pa
        table = pa.table({"a": list(range(120_000)), "b": [i * 7919 % 120_001 for i in range(120_000)]})
        released = throng.anonymize(table, k=10, quasi=["a", "b"], spill_dir=sys.argv[1], partitions=1)
        print("begin", flush=True)
        try:
            released.to_arrow()
        except KeyboardInterrupt:
            print("interrupted")
    """
    running = run_python(script, str(tmp_path))
    assert running.stdout.readline().strip() == "begin"
    time.sleep(0.3)
    begun = time.monotonic()
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=60)
    assert output.strip() == "interrupted" and running.returncode == 0, (output, errors)
    assert time.monotonic() - begun < 10
    assert not list(tmp_path.glob("*"))


def test_an_exception_of_on_progress_ends_a_run(tmp_path, policy):
    def refuse(progress):
        if progress.phase == "group":
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        throng.run(policy.to_job(CENSUS, tmp_path / "out"), on_progress=refuse)
    assert not list(tmp_path.glob("out/_manifest/*"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_after_work_was_done(small, tmp_path):
    arguments = {"k": 5, "identifiers": "name", "quasi": "age", "kept": "ward"}
    released = throng.anonymize(small.to_reader(), **arguments, spill_dir=tmp_path)
    opened = released.to_reader()
    assert released.measures.rows == 300
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = throng.anonymize(small, **arguments).to_arrow().num_rows == 300
            refused = False
            try:
                opened.read_all()
            except pa.ArrowException as error:
                refused = "forked" in str(error)
            del released, opened
            status = 0 if same and refused else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    # The child has not removed what the parent reads.
    assert opened.read_all().num_rows == released.to_arrow().num_rows == 300
    del released, opened
    assert not list(Path(tmp_path).glob("*"))
