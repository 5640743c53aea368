"""Kubernetes, the cluster, Terraform and Airflow: see `check`, which makes the environment that this runs in."""

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
    """The documented exit codes of failures, as the guide lists them."""
    text = (HERE.parent / "src" / "guide" / "operating.rs").read_text()
    return {int(code) for code in re.findall(r"^//! \| (\d+) \| ", text, flags=re.MULTILINE)} - {0}


def manifests(folder: Path) -> dict[tuple[str, str], dict]:
    """Every manifest of a kustomization by kind and name, checked against the schema of its kind."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = {}
    for name in kustomization["resources"]:
        for manifest in yaml.safe_load_all((folder / name).read_text()):
            found[manifest["kind"], manifest["metadata"]["name"]] = manifest
            # The oldest version that the README promises, and the newest.
            for version in ("1.31", kubernetes_validate.latest_version()):
                try:
                    kubernetes_validate.validate(manifest, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    problems.append(f"{name}: {'.'.join(map(str, error.path))}: {error.message} ({version})")
    for generator in kustomization["configMapGenerator"]:
        for name in generator["files"]:
            expect((folder / name).exists(), f"kustomization.yaml: {name} is missing")
    return found


def known_settings() -> set[str]:
    """Settings that the command takes from its environment, as its source declares them."""
    sources = [source for room in ("cli", "arguments") for source in (HERE.parent / "src" / room).glob("*.rs")]
    return {name for source in sources for name in re.findall(r'"(THRONG_[A-Z_]+)"', source.read_text())}


def environment(container: dict, what: str) -> dict[str, str]:
    """The environment of a container; every setting of ours must be one that the command knows."""
    env = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    for name in env:
        known = not name.startswith("THRONG_") or name in known_settings()
        expect(known, f"{what}: the command knows no {name}")
    return env


def sizes(pod: dict, env: dict[str, str], folder: tuple[str, str], room: float, what: str) -> None:
    """Limits of the command lie within those of its container and its volume."""
    [container] = pod["containers"]
    resources = container["resources"]
    memory = resources["limits"]["memory"]
    volume, setting = folder
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    expect(resources["requests"]["memory"] == memory, f"{what}: memory request and limit differ")
    expect(size(env["THRONG_MEMORY_LIMIT"]) * room <= size(memory), f"{what}: THRONG_MEMORY_LIMIT leaves too little room")
    expect(size(env["THRONG_SPILL_LIMIT"]) < size(volumes[volume]["emptyDir"]["sizeLimit"]),
           f"{what}: THRONG_SPILL_LIMIT is not below sizeLimit")
    expect(mounts.get(volume) == env[setting], f"{what}: {setting} is not the volume {volume}")


def nightly(cronjob: dict, what: str) -> dict[str, str]:
    """A CronJob that keeps the promises of the README; its environment."""
    job = cronjob["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    env = environment(pod["containers"][0], what)
    expect(cronjob["spec"]["concurrencyPolicy"] == "Forbid", f"{what}: two nights must not overlap")
    sizes(pod, env, ("spill", "THRONG_SPILL_DIR"), 1.3, what)
    expect(pod["restartPolicy"] == "Never", f"{what}: podFailurePolicy needs restartPolicy Never")
    actions = {}
    for rule in job["podFailurePolicy"]["rules"]:
        for code in rule.get("onExitCodes", {}).get("values", []):
            actions[code] = rule["action"]
    # An interrupted run (130) is what a drained node leaves: counted like any failure.
    wanted = {code: "Count" if code == 75 else "FailJob" for code in exit_codes() - {130}}
    expect(actions == wanted, f"{what}: exit codes are treated as {actions}, documented are {wanted}")
    return env


def kubernetes() -> None:
    """Every manifest against the schema of its kind, and the promises of the README."""
    found = manifests(HERE / "kubernetes")
    nightly(found["CronJob", "throng-census"], "cronjob.yaml")


def cluster() -> None:
    """The parts of a cluster find each other, nobody else finds them, and their limits fit."""
    found = manifests(HERE / "cluster")
    pods = {
        "scheduler": found["Deployment", "throng-scheduler"]["spec"]["template"],
        "executor": found["StatefulSet", "throng-executor"]["spec"]["template"],
        "driver": found["CronJob", "throng-census-cluster"]["spec"]["jobTemplate"]["spec"]["template"],
    }
    driver = nightly(found["CronJob", "throng-census-cluster"], "cluster/cronjob.yaml")
    [scheduling] = pods["scheduler"]["spec"]["containers"]
    [executing] = pods["executor"]["spec"]["containers"]
    scheduler, executor = environment(scheduling, "scheduler.yaml"), environment(executing, "executors.yaml")
    # Resident memory of an executor is at most half as much again as its limit.
    sizes(pods["executor"]["spec"], executor, ("work", "THRONG_WORK_DIR"), 1.5, "executors.yaml")
    share = size(executor["THRONG_MEMORY_LIMIT"]) // int(executor["THRONG_CONCURRENCY"])
    expect(size(driver["THRONG_MEMORY_LIMIT"]) <= share, "cronjob.yaml: cells are sized for more than a task has")
    seconds = {name: int(env[name].removesuffix("s")) for env in (scheduler, executor)
               for name in ("THRONG_EXECUTOR_TIMEOUT", "THRONG_HEARTBEAT") if name in env}
    expect(seconds["THRONG_EXECUTOR_TIMEOUT"] >= 3 * seconds["THRONG_HEARTBEAT"],
           "an executor counts as lost before it has missed three heartbeats")

    service = found["Service", "throng-scheduler"]
    name, port = service["metadata"]["name"], scheduler["THRONG_PORT"]
    expect(driver["THRONG_CLUSTER"] == f"df://{name}:{port}", "cronjob.yaml: the driver looks elsewhere")
    expect((executor["THRONG_SCHEDULER"], executor["THRONG_SCHEDULER_PORT"]) == (name, port),
           "executors.yaml: executors look elsewhere")
    headless = found["StatefulSet", "throng-executor"]["spec"]["serviceName"]
    expect(executor["THRONG_ADVERTISE"] == f"$(POD_NAME).{headless}", "executors.yaml: nobody finds an executor")

    listening = {
        "scheduler": {int(port), int(port) + 1},
        "executor": {int(executor[key]) for key in ("THRONG_PORT", "THRONG_TASK_PORT", "THRONG_HEALTH_PORT")},
    }
    for part, ports in listening.items():
        [container] = pods[part]["spec"]["containers"]
        declared = {entry["containerPort"] for entry in container["ports"]}
        expect(declared == ports, f"{part}: listens at {ports}, declares {declared}")
    health = int(executor["THRONG_HEALTH_PORT"])
    for part, template in pods.items():
        labels = template["metadata"]["labels"]
        policy = found["NetworkPolicy", f"throng-{part}"]["spec"]
        expect(policy["podSelector"]["matchLabels"] == labels, f"network-policy.yaml: the {part} is left open")
        allowed = {entry["port"] for rule in policy["ingress"] for entry in rule["ports"]}
        # Probes come from the node, which policies leave alone.
        expect(allowed == listening.get(part, set()) - {health}, f"network-policy.yaml: {part} opens {allowed}")
        expect(all(rule["from"] for rule in policy["ingress"]), f"network-policy.yaml: anybody may reach the {part}")

    services = yaml.safe_load((HERE / "cluster" / "compose.yaml").read_text())["services"]
    flags = set(re.findall(r"--([a-z-]+)", " ".join(w for s in services.values() for w in s.get("command", []))))
    source = (HERE.parent / "src" / "cli" / "cluster.rs").read_text()
    known = {name.replace("_", "-") for name in re.findall(r"^    (\w+): ", source, flags=re.MULTILINE)}
    expect(flags <= known, f"compose.yaml: the command knows no {flags - known}")
    for name, service in services.items():
        if name.startswith("executor"):
            command = service["command"]
            expect(command[command.index("--advertise") + 1] == name, f"compose.yaml: nobody finds {name}")
            expect(command[command.index("--scheduler") + 1] in services, f"compose.yaml: {name} finds no scheduler")


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
    """Airflow imports the DAG, and the operator fails for good where it should."""
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
        expect(permanent == (code not in (75, 130)), f"airflow: exit code {code} is {'not ' * permanent}retried")
    home.cleanup()


for check in (kubernetes, cluster, terraform, airflow):
    problems.clear()
    check()
    print(f"{check.__name__}: {f'{len(problems)} problems' if problems else 'fine'}")
    for problem in problems:
        print(f"  {problem}")
    failed |= bool(problems)
sys.exit(failed)
