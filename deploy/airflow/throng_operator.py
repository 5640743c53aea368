"""An operator that runs a job on the worker itself, by the Python module, and a DAG that uses it.

Use it where the worker has the memory and the disk of a run; `throng_census.py` starts a pod for each run instead. The worker
needs the wheel `throng-anon`, the DAG processor does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException


class ThrongRunOperator(BaseOperator):
    """Runs a job and returns what the release is; tries again only what may pass.

    Args:
        job: The job file on the worker.
        run_id: Identity of the run. A run that has been released is not repeated.
        settings: Keys of the job file to override.
        limits: Keyword arguments of `throng.run`: `memory_limit`, `spill_dir`, `spill_limit`, `partitions`.
    """

    template_fields = ("job", "run_id", "settings")

    def __init__(
        self,
        *,
        job: str,
        run_id: str = "{{ ds_nodash }}",
        settings: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.run_id = run_id
        self.settings = dict(settings or {})
        self.limits = dict(limits or {})

    def execute(self, context: Any) -> dict[str, Any]:
        import throng

        phases: list[str] = []

        def report(progress: throng.Progress) -> None:
            if progress.phase not in phases:
                phases.append(progress.phase)
                self.log.info("%s", progress.phase)

        try:
            release = throng.run(
                throng.Job(self.job, self.settings), run_id=self.run_id, on_progress=report, **self.limits
            )
        except throng.Error as error:
            failed = AirflowException if error.retryable else AirflowFailException
            raise failed(f"{error.kind}: {error}") from error
        self.log.info("%s rows in classes of %s or more", release.rows, release.smallest_class)
        return {
            "run": release.run,
            "sink": release.sink,
            "rows": release.rows,
            "smallest_class": release.smallest_class,
            "done_before": release.done_before,
        }


with DAG(
    dag_id="throng_census_on_worker",
    description="Anonymise the census of the day on the worker and publish the verified release",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
    tags=["throng", "privacy"],
    doc_md=__doc__,
) as dag:
    ThrongRunOperator(
        task_id="release",
        job="/jobs/census.toml",
        settings={"source.url": "s3://lake/raw/census/day={{ ds }}/"},
        limits={"memory_limit": "6GiB", "spill_dir": "/spill", "spill_limit": "90GiB"},
        execution_timeout=timedelta(hours=6),
    )
