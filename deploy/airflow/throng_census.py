"""One anonymised release of the census per day.

The run id is the day of the data interval, so clearing a task and backfilling are safe: a day that has been released is
not repeated, and a day whose policy or input has changed since is rejected (exit code 7) instead of overwritten.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from kubernetes.client import models as k8s

IMAGE = "registry.example.org/throng-census:0.1.0"

# Exit codes that another attempt cannot change: a fault of ours, usage, job file, input, privacy, resources, conflict.
PERMANENT = {1, 2, 3, 4, 5, 6, 7}


def exit_code(pod: k8s.V1Pod | None, container: str) -> int | None:
    """The exit code of a container that has ended."""
    statuses = (pod.status.container_statuses if pod and pod.status else None) or []
    for status in statuses:
        if status.name == container and status.state and status.state.terminated:
            return status.state.terminated.exit_code
    return None


class ThrongOperator(KubernetesPodOperator):
    """Runs `throng`; tries again only what may pass (exit code 75, lost nodes)."""

    def cleanup(self, pod, remote_pod, *args, **kwargs):
        try:
            super().cleanup(pod, remote_pod, *args, **kwargs)
        except Exception as error:
            code = exit_code(remote_pod, self.base_container_name)
            if code in PERMANENT:
                raise AirflowFailException(f"throng ended with exit code {code}; see its log") from error
            raise


with DAG(
    dag_id="throng_census",
    description="Anonymise the census of the day and publish the verified release",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
        "retry_exponential_backoff": True,
    },
    tags=["throng", "privacy"],
    doc_md=__doc__,
) as dag:
    ThrongOperator(
        task_id="release",
        name="throng-census",
        namespace="throng",
        image=IMAGE,
        arguments=[
            "run",
            "/jobs/census.toml",
            "--set",
            "source.url=s3://lake/raw/census/day={{ ds }}/",
            "--run-id",
            "{{ ds_nodash }}",
            "--json",
        ],
        env_vars={
            "THRONG_MEMORY_LIMIT": "6GiB",
            "THRONG_SPILL_DIR": "/spill",
            "THRONG_SPILL_LIMIT": "90GiB",
            "THRONG_LOG_FORMAT": "json",
            "AWS_REGION": "eu-central-1",
        },
        service_account_name="throng",
        container_resources=k8s.V1ResourceRequirements(
            requests={"cpu": "4", "memory": "8Gi"},
            limits={"memory": "8Gi"},
        ),
        security_context={"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
        container_security_context={
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        volumes=[k8s.V1Volume(name="spill", empty_dir=k8s.V1EmptyDirVolumeSource(size_limit="100Gi"))],
        volume_mounts=[k8s.V1VolumeMount(name="spill", mount_path="/spill")],
        termination_grace_period=60,
        startup_timeout_seconds=600,
        execution_timeout=timedelta(hours=6),
        on_finish_action="delete_succeeded_pod",
        get_logs=True,
        do_xcom_push=False,
    )
