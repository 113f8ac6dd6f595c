"""The examples of the manual have the types that type checkers see, and rows their shapes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]
# Names that the examples use without defining them.
GIVEN = """
import tempfile
from typing import Any
import duckdb
from pyspark.sql import SparkSession
import flowsieve as fs
counted = fs.count("a.pcap")
content = b""
sources: list[int] = []
destinations: list[int] = []
spark: Any = None
client: Any = None
ray: Any = None
def store(table: Any) -> None: ...
"""


def test_examples_of_the_manual_pass_a_type_checker(tmp_path):
    for page in ("python", "cluster"):
        text = (ROOT / "docs" / f"{page}.md").read_text()
        examples = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        assert len(examples) > 2
        for number, example in enumerate(examples):
            (tmp_path / f"{page}{number}.py").write_text(GIVEN + example)
    words = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "python" / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    files = [*sorted(tmp_path.glob("*.py")), Path(__file__).parent / "typed.py"]
    words += ["--disable-error-code=no-redef", "--ignore-missing-imports", *map(str, files)]
    checked = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
