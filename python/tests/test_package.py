"""The wheel: its command, its import, its types."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import entry_points, metadata
from pathlib import Path

import pytest
from conftest import ROOT, command

import throng


def test_the_command_comes_with_the_wheel(tmp_path):
    shown = command("--version")
    assert shown.returncode == 0 and throng.__version__ in shown.stdout
    assert command("run").returncode == 2
    missing = command("run", str(tmp_path / "none.toml"))
    assert missing.returncode == 3 and "cannot be read" in missing.stderr and "Traceback" not in missing.stderr
    [script] = entry_points(group="console_scripts", name="throng")
    assert script.value == "throng._command:main"
    module = subprocess.run([sys.executable, "-m", "throng", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == shown.stdout


def test_the_distribution_needs_nothing():
    about = metadata("throng-anon")
    assert about["Version"] == throng.__version__
    needed = [line for line in about.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert needed == [] and about["Requires-Python"] == ">=3.10"
    assert (Path(throng.__file__).parent / "py.typed").exists()


def test_nothing_else_is_imported():
    script = "import sys, throng; print([m for m in ('pandas', 'polars', 'pyarrow', 'numpy', 'datafusion') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_import_is_quick():
    script = "import time; begun = time.perf_counter(); import throng; print(time.perf_counter() - begun)"
    times = []
    for _ in range(5):
        shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        times.append(float(shown.stdout))
    print(f"import takes {statistics.median(times) * 1000:.0f} ms")
    assert min(times) < 0.1, times


def test_the_readme_works_as_it_stands(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(compile(text, "README.md", "exec"), names)
    assert len(names["released"]) > 2900 and list(names["released"]) == ["age", "sex", "region", "diagnosis"]


def test_every_public_name_is_documented():
    for name in throng.__all__:
        assert name == "__version__" or getattr(throng, name).__doc__, name


def test_every_exception_has_the_exit_code_of_the_guide():
    guide = (ROOT / "src" / "guide" / "operating.rs").read_text()
    classes = [value for value in vars(throng).values() if isinstance(value, type) and issubclass(value, throng.Error)]
    assert len(classes) == 9
    for error in classes:
        assert f"//! | {error.exit_code} | " in guide, error
    assert [error for error in classes if error.retryable] == [throng.RetryError]


@pytest.mark.skipif("THRONG_WHEEL" not in os.environ, reason="python/test names the wheel")
def test_a_fresh_environment_takes_seconds(tmp_path):
    wheel = Path(os.environ["THRONG_WHEEL"])
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    begun = time.monotonic()
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel]
    subprocess.run(pip, check=True)
    took = time.monotonic() - begun
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.0f} MB, pip install takes {took:.1f} s")
    shown = subprocess.run([tmp_path / "venv" / "bin" / "throng", "--version"], capture_output=True, text=True, check=True)
    assert throng.__version__ in shown.stdout and took < 60
