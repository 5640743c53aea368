"""Jobs from Python: the same releases and figures as from the command."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from conftest import CENSUS, command, rows_of

import throng


@pytest.fixture(scope="module")
def released(tmp_path_factory, policy):
    """A release, its job and the progress of its run."""
    folder = tmp_path_factory.mktemp("release")
    job = policy.to_job(CENSUS, folder / "out")
    heard = []
    release = throng.run(job, run_id="monday", on_progress=heard.append)
    return folder, job, release, heard


def test_a_run_publishes_what_its_manifest_says(released):
    folder, _, release, heard = released
    assert (release.run, release.done_before, release.k) == ("monday", False, 10)
    assert release.rows + release.suppressed == 3000 and release.smallest_class >= 10
    manifest = json.loads((folder / "out" / "_manifest" / "monday.json").read_text())
    assert manifest == release.raw
    assert sum(pq.read_metadata(folder / "out" / file).num_rows for file in release.files) == release.rows
    assert [progress.phase for progress in heard if progress.rows == 0][:1] == ["plan"]
    phases = list(dict.fromkeys(progress.phase for progress in heard))
    assert phases == ["plan", "survey", "group", "verify", "commit"]
    assert all(progress.total is None or progress.rows <= progress.total for progress in heard)


def test_a_run_is_not_repeated(released):
    _, job, release, _ = released
    again = throng.run(job, run_id="monday")
    assert again.done_before and again.raw == release.raw
    with pytest.raises(throng.ConflictError):
        throng.run(throng.Policy(k=20, quasi=["age"], others="identifier").to_job(CENSUS, job.sink), run_id="monday")


def test_the_command_agrees(released):
    folder, job, release, _ = released
    (folder / "job.toml").write_text(job.to_toml())
    listed = json.loads(command("verify", str(folder / "job.toml"), "--json").stdout)
    found = throng.verify(folder / "job.toml")
    assert found.raw == listed and found.holds and found.against_source
    alone = throng.verify(folder / "out")
    assert alone and not alone.against_source and alone.rows == release.rows
    assert [manifest["run"] for manifest in throng.releases(folder / "out")] == ["monday"]


def test_a_release_that_was_changed_does_not_hold(released, tmp_path):
    import shutil

    folder, _, release, _ = released
    shutil.copytree(folder / "out", tmp_path / "out")
    file = tmp_path / "out" / release.files[0]
    table = pq.read_table(file)
    pq.write_table(table.slice(1), file)
    found = throng.verify(tmp_path / "out")
    assert not found and found.findings
    with pytest.raises(throng.PrivacyError):
        found.raise_if_broken()


def test_attacks_sweeps_bounds_and_the_report(released):
    _, job, _, _ = released
    attack = throng.attack(job, public=CENSUS)
    assert 0 < attack.prosecutor_risk <= 0.1 and attack.reidentified is not None
    assert set(attack.sensitive) == {"diagnosis", "income"}
    trials = throng.sweep(job, k=[5, 20], method=["auto", "mondrian"], sample=1500)
    assert [(trial.method, trial.k) for trial in trials] == [
        ("auto", 5), ("auto", 20), ("mondrian", 5), ("mondrian", 20),
    ]  # fmt: skip
    assert trials.trials[0].gcp < trials.trials[1].gcp
    bounds = throng.bound(job, k=[10], rounds=1, sample=300)
    [bound] = bounds
    assert 0 <= bound.gcp <= bound.lost
    report = throng.report(job, sweep=trials)
    assert report.holds and report.compared and "<svg" in report.html
    assert not throng.report(job.sink).compared
    for shown in (attack, trials, bounds, report, throng.verify(job), throng.check(job)):
        assert shown._repr_html_().startswith(("<div>", "<iframe"))
    with pytest.raises(throng.JobError, match="no method"):
        throng.sweep(job, method="mondrain")


def test_a_check_lists_problems_as_the_command_does(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(f'version = 1\nsource.url = "{CENSUS}"\nsink.url = "out"\nprivacy.k = 5\ncolumns.age.role = "quasi"\n')
    found = throng.check(job)
    listed, _ = json.JSONDecoder().raw_decode(command("check", str(job), "--json").stdout)
    assert found.raw["problems"] == listed["problems"] and not found.fine
    assert any("diagnosis" in str(problem) for problem in found.problems)
    with pytest.raises(throng.JobError):
        found.raise_if_wrong()
    assert throng.check(throng.Job(job, {"defaults.role": "kept"})).fine


def test_a_profile_of_a_file_and_of_a_table_agree(census, tmp_path):
    of_file = throng.profile(CENSUS, write=tmp_path / "job.toml")
    of_table = throng.profile(census)
    assert of_file.rows == of_table.rows == 3000
    assert of_file.roles() == of_table.roles() and of_file.unique == of_table.unique
    assert "age" in of_file.quasi and of_file.unique > 0.5
    assert throng.check(tmp_path / "job.toml").fine
    with pytest.raises(throng.Error):
        throng.profile(CENSUS, write=tmp_path / "job.toml")
    with pytest.raises(ValueError, match="write"):
        throng.profile(census, write=tmp_path / "other.toml")
    assert "unique" in of_table._repr_html_()


def test_policies_are_one_however_they_are_written(policy_tables, tmp_path):
    by_keywords = throng.Policy(
        k=10,
        identifiers=["person_id", "name", "updated_at"],
        quasi={name: column for name, column in policy_tables["columns"].items() if column["role"] == "quasi"},
        sensitive=["diagnosis", "income"],
        kept=["household_size", "tags"],
        l_diversity={"column": "diagnosis", "l": 3},
        max_suppression=0.01,
        key_env="THRONG_TEST_KEY",
    )
    of_dict = throng.Policy.from_dict(policy_tables)
    assert by_keywords == of_dict and hash(by_keywords) == hash(of_dict)
    file = tmp_path / "policy.toml"
    file.write_text(by_keywords.to_job("in", "out").to_toml())
    assert throng.Policy.from_toml(file) == of_dict
    assert throng.Policy.from_toml(file.read_text()) == of_dict
    assert of_dict.roles["age"] == "quasi" and "k=10" in repr(of_dict)


def test_a_seed_is_warned_of(tmp_path):
    policy = throng.Policy(k=10, quasi=["age"], others="identifier", seed=7)
    with pytest.warns(UserWarning, match="seed"):
        first = throng.run(policy.to_job(CENSUS, tmp_path / "a"))
    with pytest.warns(UserWarning, match="seed"):
        second = throng.run(policy.to_job(CENSUS, tmp_path / "b"))
    assert rows_of(pq.read_table(tmp_path / "a" / "data")) == rows_of(pq.read_table(tmp_path / "b" / "data"))
    assert first.rows == second.rows == 3000
