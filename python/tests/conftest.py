"""What the tests have: the captures of the project, and the program."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "traces" / "generated.pcap"


@pytest.fixture(scope="session")
def trace() -> str:
    return str(TRACE)


@pytest.fixture(scope="session")
def long_trace(tmp_path_factory) -> str:
    """1.6 million packets, 200 times those of the trace: a run of them takes a while, and making them does not."""
    path = tmp_path_factory.mktemp("long") / "long.pcap"
    content = TRACE.read_bytes()
    with path.open("wb") as file:
        file.write(content[:24])
        for _ in range(200):
            file.write(content[24:])
    return str(path)


@pytest.fixture(scope="session")
def program() -> str:
    """The program of this checkout."""
    named = os.environ.get("FLOWSIEVE_PROGRAM")
    built = [Path(named)] if named else [ROOT / "target" / kind / "flowsieve" for kind in ("release", "debug")]
    there = [path for path in built if path.exists()]
    if not there:
        pytest.skip("the program is not built: cargo build")
    return str(max(there, key=lambda path: path.stat().st_mtime))


@pytest.fixture(scope="session")
def shell(program):
    """What the program prints."""

    def run(*words: str) -> str:
        return subprocess.run([program, *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout

    return run


@pytest.fixture(autouse=True)
def in_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
