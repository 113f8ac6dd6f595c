"""The functions are the commands of the program: the same options, the same rows, the same errors."""

import csv
import datetime
import inspect
import io
import json
import keyword
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import flowsieve as fs
from flowsieve import _native

ROOT = Path(__file__).resolve().parents[2]
# A result has what a summary would say.
HIDDEN = {"format", "output", "summary", "quiet", "verbose", "json", "delay"}


def functions():
    """Each command with its function."""
    for command in json.loads(_native.describe())["commands"]:
        tasks = command["commands"] or [None]
        for task in tasks:
            if task is None:
                yield command["name"], command, getattr(fs, command["name"])
            elif command["name"] == "index":
                yield f"index {task['name']}", task, getattr(fs.Index, task["name"])
            else:
                yield f"{command['name']} {task['name']}", task, getattr(fs, f"{command['name']}_{task['name']}")


@pytest.mark.parametrize(("name", "command", "function"), list(functions()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_function_has_the_options_of_its_command(name, command, function):
    parameters = inspect.signature(function).parameters
    expected = {}
    for argument in command["arguments"]:
        hidden = HIDDEN - ({"output"} if name == "filter union" else set())
        # Its rows would come at an end that never comes.
        hidden |= {"follow"} if name == "top" else set()
        if argument["name"] in hidden or argument["name"] == "archive":
            continue
        option = (argument["option"] or argument["name"]).replace("-", "_")
        default = argument["default"] if argument["takes_value"] else False
        expected[option + "_" if keyword.iskeyword(option) else option] = (default, argument["is_required"], argument["option"] is None)
    found = {
        name: (
            None if parameter.default is inspect.Parameter.empty else parameter.default,
            parameter.default is inspect.Parameter.empty,
            parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
        for name, parameter in parameters.items()
        if name not in ("self", "archive", "progress")
    }
    assert found == expected
    named = {*found, *parameters} - {"self"}
    assert all(f" {name}: " in function.__doc__ for name in named)
    assert "`-`" not in function.__doc__ and "- is standard output" not in function.__doc__


def test_lists_in_a_help_keep_their_lines():
    lines = [line.split() for line in fs.filter_query.__doc__.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("yes", "no", "apart", "unknown")] == ["yes", "no", "apart", "unknown"]


def test_what_the_declarations_write_is_up_to_date():
    subprocess.run([sys.executable, str(ROOT / "scripts" / "python-api")], check=True)


def cells(table):
    """The rows as CSV has them, but with times as integers."""
    return [
        ["" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row.values()]
        for row in table
    ]


def csv_cells(text, like):
    rows = list(csv.DictReader(io.StringIO(text)))
    return [[row[name] for name in like.column_names] for row in rows]


def value(text):
    """A number; a time as nanoseconds since the epoch, as rows have it."""
    if re.fullmatch(r"[\d-]+T[\d:]+\.\d{9}Z", text):
        seconds = datetime.datetime.fromisoformat(text[:19] + "+00:00").timestamp()
        return int(seconds) * 10**9 + int(text[20:29])
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def same(found, expected):
    """Equal, numbers and times by their value."""
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected):
        for a, b in zip(mine, theirs, strict=True):
            assert a == b or value(a) == value(b)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"element": "flow", "slice": "2s", "filter": "cmdbf", "memory": "16KiB"},
        {"element": "dns", "queries_only": True, "slice": "all"},
        {"where": "tcp port 80", "no_exact": True},
        {"from_": "+2s", "to": "+5s", "undirected": True},
        {"want": ["src,dst:2", "src"], "expect": 1000},
        {"slice": datetime.timedelta(milliseconds=1500), "align": "first"},
    ],
)
def test_counts_are_those_of_the_program(trace, shell, options):
    words = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            one = "1500ms" if isinstance(one, datetime.timedelta) else one
            words += [option] if one is True else [f"{option}={one}"]
    counted = fs.count(trace, **options)
    same(cells(counted.slices), csv_cells(shell("count", *words, "--format=csv", trace), counted.slices))
    document = json.loads(shell("count", *words, "--format=json", trace))
    assert counted.document["totals"] == document["totals"]
    assert counted.document["parameters"] == document["parameters"]
    assert counted.totals.packets == document["totals"]["packets"]
    assert counted.inputs[0].container == "pcap" and counted.complete


def test_streams_have_the_rows_of_the_program(trace, shell):
    flows = fs.flows(trace)
    rows = [row for table in flows.flows for row in cells(table)]
    assert flows.totals.flows == len(rows) == 3953
    with_columns = fs.flows(trace).flows.read()
    same(rows, csv_cells(shell("flows", "--format=csv", trace), with_columns))
    export = fs.export(trace, all=True)
    assert sum(len(table) for table in export.rows) == export.totals.rows == 8000
    elements = fs.export(trace, element="host-pair").rows.read()
    same(cells(elements), csv_cells(shell("export", "--element=host-pair", trace), elements))


def test_other_commands_have_the_rows_of_the_program(trace, shell, tmp_path):
    top = fs.top(trace, number=5)
    same(cells(top.keys), csv_cells(shell("top", "-n5", "--format=csv", trace), top.keys))
    compared = fs.compare(trace, memory="4KiB", filter=["mdbf", "cmdbf"])
    words = ["compare", "--memory=4KiB", "--filter=mdbf,cmdbf", trace]
    lines = list(csv.DictReader(io.StringIO(shell(*words, "--format=csv"))))
    rows = [dict(row) for row in compared.rows]
    # Options are in another order.
    for row in (*lines, *rows):
        assert ": flowsieve compare " in row.pop("command")
    same(cells(rows), [list(line.values()) for line in lines])
    assert compared.structures == json.loads(shell(*words, "--format=json"))["structures"]
    each = fs.compare(trace, each=True)
    assert (each.parameters.pair, each.parameters.expected_from) == (["mdbf", "cmdbf"], None)
    plan = fs.plan(expect=10_000, memory="64KiB")
    same(cells(plan.rows), csv_cells(shell("plan", "--expect=10000", "--memory=64KiB", "--format=csv"), plan.rows))
    with pytest.raises(AttributeError, match="Plan has no totals"):
        _ = plan.totals
    kept = tmp_path / "kept.pcap"
    dropped = fs.dedup(trace, write=kept)
    assert dropped.totals.kept + dropped.totals.dropped == 8000
    assert fs.count(kept, slice="all").totals.packets == dropped.totals.kept
    made = tmp_path / "made.pcap"
    fs.generate(write=made, packets=1000)
    assert fs.count(made).totals.packets == 1000
    names = fs.reproduce(list=True).rows["name"]
    assert "cmdbf-table-1" in names


def test_an_index_is_searched(trace, shell, tmp_path):
    index = fs.Index.build(tmp_path / "archive", trace, region="2s")
    source = fs.export(trace, element="src").rows.read()["src"][0]
    found = index.search(src=source)
    words = ["index", "search", str(tmp_path / "archive"), f"--src={source}", "--format=csv"]
    same(cells(found.rows), csv_cells(shell(*words), found.rows))
    assert len(found.rows) > 0
    assert index.stats().document["captures"] == 1
    assert len(index.verify().rows) == 0


def test_other_libraries_take_the_rows(trace):
    pyarrow, polars, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "polars", "duckdb"))
    pytest.importorskip("pandas")
    counted = fs.count(trace)
    exact = counted.slices["exact"]
    assert counted.slices.to_arrow()["exact"].to_pylist() == exact
    assert counted.slices.to_polars()["exact"].to_list() == exact
    assert counted.slices.to_pandas()["exact"].tolist() == exact
    slices = counted.slices
    assert duckdb.sql("select sum(exact) from slices").fetchall() == [(sum(exact),)]
    flows = fs.flows(trace)
    reader = pyarrow.RecordBatchReader.from_stream(flows.flows)
    assert sum(batch.num_rows for batch in reader) == 3953 == flows.totals.flows
    assert polars.DataFrame(fs.export(trace, all=True).rows).height == 8000


def test_problems_are_exceptions_and_warnings(trace, tmp_path):
    with pytest.raises(fs.Error, match="no such file") as missing:
        fs.count(tmp_path / "missing.pcap")
    assert missing.value.path == str(tmp_path / "missing.pcap")
    with pytest.raises(fs.Error, match="not a capture") as text:
        fs.flows(ROOT / "README.md").flows.read()
    assert (text.value.path, text.value.offset) == (str(ROOT / "README.md"), 0)
    with pytest.raises(fs.UsageError, match="a size is a number of bytes"):
        fs.count(trace, memory="3 parrots")
    with pytest.raises(fs.UsageError, match="--undirected needs two ends"):
        fs.count(trace, element="src", undirected=True)
    with pytest.raises(fs.Error, match="no file matches"):
        fs.count(tmp_path / "*.pcap")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(trace).read_bytes()[:100_003])
    with pytest.warns(fs.InputWarning, match="cut.pcap") as warned:
        counted = fs.count(cut)
    # It names the line of whoever called.
    assert warned[0].filename == __file__
    assert not counted.complete
    assert "cut.pcap" in counted.inputs[0].error
    assert 0 < counted.totals.packets < 8000
    # What is read twice says so, and is no damage.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.count(trace)


def test_progress_is_reported_in_three_ways(long_trace):
    size = Path(long_trace).stat().st_size
    seen = []
    fs.count(long_trace, threads=1, progress=lambda *done: seen.append(done))
    assert seen == sorted(seen)
    assert all(0 <= done <= total == size for done, _, total in seen if total is not None)
    assert seen[-1] == (size, 1_600_000, size)

    class Bar:
        total, n = None, 0

        def update(self, more):
            self.n += more

    bar = Bar()
    fs.count(long_trace, threads=1, progress=bar)
    assert bar.n == bar.total == size


def test_progress_ends_with_all_that_was_read(trace):
    size = Path(trace).stat().st_size
    for run in (
        lambda report: fs.count(trace, where="port 80", progress=report),
        lambda report: fs.dedup(trace, dry_run=True, progress=report),
        lambda report: fs.flows(trace, progress=report).flows.read(),
        lambda report: list(fs.export(trace, all=True, progress=report).rows),
    ):
        seen = []
        run(lambda *done: seen.append(done))
        assert seen[-1] == (size, 8000, size)


@pytest.mark.parametrize("progress", [5, "bar"])
def test_other_progress_is_refused(long_trace, progress):
    with pytest.raises(fs.UsageError, match="^progress: give True, a bar"):
        fs.count(long_trace, progress=progress)


def test_control_c_ends_a_call(long_trace, tmp_path):
    """The bar presses Control-C when it is first moved, so the call is under way however fast the machine is."""
    program = f"""
import flowsieve as fs, signal, sys, time

class Bar:
    total = None
    pressed = None

    def update(self, bytes):
        if self.pressed is None:
            self.pressed = time.perf_counter()
            signal.raise_signal(signal.SIGINT)

bar = Bar()
try:
    fs.dedup({long_trace!r}, threads=1, write={str(tmp_path / "kept.pcap")!r}, progress=bar)
except KeyboardInterrupt:
    print(time.perf_counter() - bar.pressed)
    sys.exit(7)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 7, ended.stderr
    assert not (tmp_path / "kept.pcap").exists()
    assert float(ended.stdout) < 0.2


def test_threads_of_python_run_meanwhile(long_trace):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    fs.count(long_trace, element="flow")
    done.set()
    thread.join()
    assert len(ticks) > 20


def test_results_show_themselves(trace):
    counted = fs.count(trace)
    assert "8,000 packets in 8 slices" in repr(counted)
    assert "8,000 packets in 8 windows" in repr(fs.count(trace, slice="2s", every="1s"))
    assert "<svg" in counted._repr_html_() and "<table>" in counted._repr_html_()
    assert "<table>" in fs.top(trace)._repr_html_()


def test_a_seed_does_not_depend_on_the_command_before(trace):
    code = f"""
import flowsieve as fs
fs.{{}}
print(fs.count({str(trace)!r}, memory="256", filter="cmdbf").parameters.seed)
"""
    for before in ("reproduce(list=True)", f"top({str(trace)!r})"):
        assert subprocess.run([sys.executable, "-c", code.format(before)], capture_output=True, text=True, check=True).stdout == "0\n"


def test_times_and_numbers_of_python_are_what_they_say(trace):
    naive = fs.count(trace, from_=datetime.datetime(2023, 11, 14, 23, 13, 21), timezone="Europe/Berlin")
    text = fs.count(trace, from_="2023-11-14T23:13:21", timezone="Europe/Berlin")
    assert naive.parameters.from_ == text.parameters.from_ and naive.totals.packets == text.totals.packets < 8000
    assert fs.count(trace, slice=1e-2).parameters.slice_ns == 10**7
    with pytest.raises(fs.UsageError, match="name a file"):
        fs.dedup(trace, write="-")
    with pytest.raises(fs.UsageError):
        fs.Filter(seed=-1)
    with pytest.raises(fs.UsageError, match="different names"):
        fs.Filter(attributes=["a", "a"])


def test_a_comparison_of_each_capture_has_its_inputs(trace):
    each = fs.compare([trace], each=True, filter="bloom,subset")
    assert [one.packets for one in each.inputs] == [8000] and each.document["summary"]
    with pytest.raises(fs.UsageError, match="each=True"):
        each.verdicts


def test_a_saved_mdbf_contains_what_was_inserted(trace, tmp_path):
    saved = tmp_path / "saved"
    fs.count(trace, slice="all", filter="mdbf", save_filter=saved)
    loaded = fs.Filter.load(saved)
    for row in fs.export(trace, element="host-pair", slice="all").rows.read().rows(0, 100):
        assert (row["src"], row["dst"]) in loaded


def test_durations_of_pandas_keep_their_nanoseconds(trace):
    pandas = pytest.importorskip("pandas")
    assert fs.count(trace, slice=pandas.Timedelta("10000500ns")).parameters.slice_ns == 10_000_500


def test_a_deleted_capture_with_brackets_in_its_name_leaves_an_index(trace, tmp_path):
    capture = tmp_path / "x[1].pcap"
    capture.write_bytes(Path(trace).read_bytes())
    index = fs.Index.build(tmp_path / "index", capture)
    capture.unlink()
    assert index.stats().document["captures"] == 1
    index.drop(capture)
    assert index.stats().document["captures"] == 0


def test_notebooks_show_times_in_their_zone_with_their_fraction(trace):
    shown = fs.count(trace, slice="250ms", timezone="Europe/Berlin").slices._repr_html_()
    assert "2023-11-14 23:13:20.25+0100" in shown
