"""Kubernetes, Terraform and Airflow: see `check`, which makes the environment that this runs in."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import hcl2
import kubernetes_validate
import tfparse
import yaml

HERE = Path(__file__).parent
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

problems: list[str] = []
failed = False


def expect(holds: bool, message: str) -> None:
    """Remembers what does not hold."""
    if not holds:
        problems.append(message)


def size(text: str) -> int:
    """Bytes of a size such as 8Gi or 6GiB."""
    number, unit = re.fullmatch(r"(\d+)([KMG]iB?)", text).groups()
    return int(number) * UNITS[unit]


def exit_codes() -> set[int]:
    """The documented exit codes of failures, as the README lists them."""
    text = (HERE.parent / "README.md").read_text()
    return {int(code) for code in re.findall(r"^\| (\d+) \| ", text, flags=re.MULTILINE)} - {0}


def kubernetes() -> None:
    """Every manifest against the schema of its kind, and the promises of the README."""
    folder = HERE / "kubernetes"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        for manifest in yaml.safe_load_all((folder / name).read_text()):
            # The oldest version that the README promises, and the newest.
            for version in ("1.31", kubernetes_validate.latest_version()):
                try:
                    kubernetes_validate.validate(manifest, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    problems.append(f"{name}: {'.'.join(map(str, error.path))}: {error.message} ({version})")
    for generator in kustomization["configMapGenerator"]:
        for name in generator["files"]:
            expect((folder / name).exists(), f"kustomization.yaml: {name} is missing")

    cronjob = yaml.safe_load((folder / "cronjob.yaml").read_text())
    job = cronjob["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    [container] = pod["containers"]
    resources = container["resources"]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    memory = resources["limits"]["memory"]
    spill = volumes["spill"]["emptyDir"]["sizeLimit"]
    expect(cronjob["spec"]["concurrencyPolicy"] == "Forbid", "cronjob.yaml: two nights must not overlap")
    expect(resources["requests"]["memory"] == memory, "cronjob.yaml: memory request and limit differ")
    expect(size(env["THRONG_MEMORY_LIMIT"]) < size(memory), "cronjob.yaml: THRONG_MEMORY_LIMIT is not below the limit")
    expect(size(env["THRONG_SPILL_LIMIT"]) < size(spill), "cronjob.yaml: THRONG_SPILL_LIMIT is not below sizeLimit")
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    expect(mounts.get("spill") == env["THRONG_SPILL_DIR"], "cronjob.yaml: the spill volume is not the spill folder")
    expect(pod["restartPolicy"] == "Never", "cronjob.yaml: podFailurePolicy needs restartPolicy Never")
    actions = {}
    for rule in job["podFailurePolicy"]["rules"]:
        for code in rule.get("onExitCodes", {}).get("values", []):
            actions[code] = rule["action"]
    # An interrupted run (130) is what a drained node leaves: counted like any failure.
    wanted = {code: "Count" if code == 75 else "FailJob" for code in exit_codes() - {130}}
    expect(actions == wanted, f"cronjob.yaml: exit codes are treated as {actions}, documented are {wanted}")


def misaligned(text: str) -> list[int]:
    """Lines where `terraform fmt` would move an equal sign: attributes of one line each that follow one another, at the
    same depth, have them in one column."""
    wrong, run = [], []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        attribute = re.match(r"(\s*)([\w-]+)(\s*) = (.*)", line)
        alone = attribute is None or attribute[4].endswith(("{", "[", "("))
        if run and (alone or attribute[1] != run[-1][1]):
            longest = max(len(found[2]) for found in run)
            wrong += [number - 1 for found in run if len(found[2] + found[3]) != longest][:1]
            run = []
        if alone and attribute and attribute[3]:
            wrong.append(number)
        if not alone:
            run.append(attribute)
    return wrong


def plain(name: str) -> str:
    """A label without the quotes that the parser keeps."""
    return name.strip('"')


def terraform() -> None:
    """The module parses, evaluates, uses what it declares, and every reference has its object."""
    folder = HERE / "terraform"
    declared, used, variables = set(), {}, set()
    for path in sorted(folder.glob("*.tf")):
        text = path.read_text()
        document = hcl2.loads(text)
        for block in document.get("resource", []):
            declared |= {f"{plain(kind)}.{plain(name)}" for kind, named in block.items() for name in named}
        for block in document.get("data", []):
            declared |= {f"data.{plain(kind)}.{plain(name)}" for kind, named in block.items() for name in named}
        for block in document.get("variable", []):
            for name, body in block.items():
                variables.add(plain(name))
                expect("description" in body and "type" in body, f"{path.name}: variable {name} lacks description or type")
        for block in document.get("locals", []):
            declared |= {f"local.{name}" for name in block}
        code = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        for name in re.findall(r"\b(?:data\.)?aws_\w+\.\w+|\b(?:var|local)\.\w+", code):
            used.setdefault(name, path.name)
        expect(text.endswith("\n") and "\t" not in text, f"{path.name}: tabs, or no end of line at the end")
        for number, line in enumerate(text.splitlines(), 1):
            indent = len(line) - len(line.lstrip())
            expect(indent % 2 == 0 and line == line.rstrip(), f"{path.name}:{number}: not as `terraform fmt` writes it")
        for number in misaligned(text):
            problems.append(f"{path.name}:{number}: equal signs are not as `terraform fmt` aligns them")
    declared |= {f"var.{name}" for name in variables}
    for name, file in used.items():
        expect(name in declared, f"{file}: {name} is not declared")
    for name in variables:
        expect(f"var.{name}" in used, f"variables.tf: {name} is not used")

    # A root module that calls ours, as the README shows it, evaluated for real.
    readme = (folder / "README.md").read_text()
    call = re.search(r"```hcl\n(.*?)```", readme, flags=re.DOTALL).group(1)
    with tempfile.TemporaryDirectory() as root:
        module = Path(root) / "deploy" / "terraform"
        module.parent.mkdir()
        module.symlink_to(folder)
        (Path(root) / "main.tf").write_text(call.replace("manage_lifecycle = false", "manage_lifecycle = true"))
        parsed = tfparse.load_from_path(root)
    kinds = {kind for kind, blocks in parsed.items() if blocks}
    [task] = parsed["aws_ecs_task_definition"]
    expect(task["memory"] in (8192, "8192"), f"terraform: memory evaluates to {task['memory']}")
    statements = [s for d in parsed["aws_iam_policy_document"] for s in aslist(d.get("statement"))]
    by_sid = {statement.get("sid"): statement for statement in statements}
    for sid, prefix in (("ReadSource", "lake/raw/census/*"), ("WriteSink", "lake/published/census/*")):
        [resource] = by_sid[sid]["resources"]
        expect(str(resource).endswith(f":s3:::{prefix}"), f"terraform: {sid} is about {resource}")
        expect(all(not action.endswith("*") for action in by_sid[sid]["actions"]), f"terraform: {sid} is too wide")
    expect("aws_s3_bucket_lifecycle_configuration" in kinds, "terraform: the lifecycle rule is missing")


def aslist(value):
    """A block that may stand once or several times."""
    return value if isinstance(value, list) else [] if value is None else [value]


def airflow() -> None:
    """Airflow imports the DAG, and the operator gives up where it should."""
    home = tempfile.TemporaryDirectory()
    os.environ |= {
        "AIRFLOW_HOME": home.name,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.path.insert(0, str(HERE / "airflow"))
    import throng_census as dag_file
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
    from kubernetes.client import models as k8s

    [task] = dag_file.dag.tasks
    arguments = task.arguments
    expect(arguments[arguments.index("--run-id") + 1] == "{{ ds_nodash }}", "airflow: the run id is not the day")
    expect(dag_file.dag.max_active_runs == 1 and task.retries > 0, "airflow: overlapping days, or no second try")
    expect(size(task.env_vars["THRONG_MEMORY_LIMIT"]) < size(task.container_resources.limits["memory"]),
           "airflow: THRONG_MEMORY_LIMIT is not below the limit")

    def ended(code: int) -> Exception | None:
        terminated = k8s.V1ContainerStateTerminated(exit_code=code)
        status = k8s.V1ContainerStatus(
            name=task.base_container_name, image="", image_id="", ready=False, restart_count=0,
            state=k8s.V1ContainerState(terminated=terminated),
        )
        pod = k8s.V1Pod(status=k8s.V1PodStatus(phase="Failed", container_statuses=[status]))
        pod.metadata = k8s.V1ObjectMeta(name="throng", namespace="throng")
        dag_file.KubernetesPodOperator.cleanup = failing_cleanup
        try:
            task.cleanup(pod, pod)
        except AirflowException as error:
            return error
        return None

    def failing_cleanup(*_args, **_kwargs):
        raise AirflowException("the pod has failed")

    for code in exit_codes():
        permanent = isinstance(ended(code), AirflowFailException)
        expect(permanent == (code not in (75, 130)), f"airflow: exit code {code} is {'not ' * permanent}tried again")
    home.cleanup()


for check in (kubernetes, terraform, airflow):
    problems.clear()
    check()
    print(f"{check.__name__}: {f'{len(problems)} problems' if problems else 'fine'}")
    for problem in problems:
        print(f"  {problem}")
    failed |= bool(problems)
sys.exit(failed)
