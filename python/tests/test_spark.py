"""The same answer on Spark: the long tests on a real cluster on this machine, a master and two workers, each a process."""

import datetime
import contextlib
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="pip install flowsieve[spark]")
if shutil.which("java") is None:
    pytest.skip("Spark needs a Java runtime", allow_module_level=True)

import flowsieve as fs  # noqa: E402
from flowsieve import _spark, pieces  # noqa: E402
from flowsieve import spark as on_spark  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SHARED = os.environ.get("FLOWSIEVE_TRACES")
TRACES = [str(ROOT / "traces" / name) for name in ("generated.pcap", "netns-dns.pcap", "netns-mirror.pcap", "netns-web-loss.pcap")]
CORES = 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def master(request, tmp_path_factory):
    """The address of a standalone cluster; without long tests one process has to do, which starts sooner."""
    if not any(item.get_closest_marker("long") for item in request.session.items):
        yield f"local[{CORES}]"
        return
    home = Path(pyspark.__file__).parent
    work = tmp_path_factory.mktemp("spark")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work / "local"),
    }
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    program = str(home / "bin" / "spark-class")
    kinds = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]]
    for number in range(2):
        kinds.append(
            ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", str(free_port()),
             "--work-dir", str(work / f"worker{number}"), address]
        )  # fmt: skip
    processes = []
    for kind, *words in kinds:
        log = (work / f"{kind}{len(processes)}.log").open("w")
        command = [program, f"org.apache.spark.deploy.{kind}", *words]
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True))
        if kind.startswith("master"):
            until(lambda: can_connect(port), 60)
    yield address
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def can_connect(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def session(master, tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(master)
        .appName("tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "600m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        # Compiled quickly, and not for long.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("shuffle")))
        .config("spark.task.maxFailures", "4")
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


def executors() -> list[int]:
    """Processes that run tasks."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
    return found


def after_planning(patch, what):
    """Does this when a run was planned, and before its first job."""
    enter = _spark.Run.__enter__

    def begin(self):
        what()
        return enter(self)

    patch.setattr(_spark.Run, "__enter__", begin)


def equal(counted, whole):
    assert counted.slices.to_arrow().equals(whole.slices.to_arrow())
    assert counted.document == whole.document


PLANS = [
    {},
    {"element": "flow", "filter": "cmdbf", "slice": "300ms"},
    {"element": "dns", "filter": "mdbf", "slice": "all"},
    {"filter": "dleft", "no_exact": True, "memory": "16KiB"},
    {"where": "tcp", "from_": "+500ms", "align": "first", "undirected": True},
    {"want": ["src,dst:2", "src"], "expect": 1000},
    {"element": "src", "filter": "hll", "tunnel": "inner"},
]


def test_a_report_replaces_no_capture_and_leaves_no_name(tmp_path):
    capture, link, report = tmp_path / "a.pcap", tmp_path / "link", tmp_path / "report"
    capture.write_bytes(b"capture")
    link.symlink_to(report)
    for output, word in [
        (capture, "one of the captures"),
        (tmp_path / "missing" / "x", "does not exist"),
        (tmp_path, "no regular file"),
        ("/proc/report", "cannot be written"),
    ]:
        with pytest.raises(fs.UsageError, match=word):
            on_spark.check_output(output, [str(capture)])
    on_spark.check_output(link, [str(capture)])
    report.write_bytes(b"old")
    report.chmod(0o600)
    on_spark.write_output(link, b"new")
    assert report.read_bytes() == b"new" and link.is_symlink() and report.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError):
        on_spark.write_output(tmp_path, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pcap", "link", "report"]


@pytest.mark.parametrize("options", [PLANS[0], *(pytest.param(plan, marks=pytest.mark.long) for plan in PLANS[1:])], ids=str)
def test_the_answer_is_that_of_one_process(session, options):
    equal(on_spark.count(session, TRACES, task_bytes=200_000, **options), fs.count(TRACES, **options))


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize("partitions", [None, 3, 20])
def test_it_is_so_whatever_the_partitions(session, monkeypatch, most, partitions):
    """Whether the reducers or the driver join the pieces, and whether a reducer has all slices of its shards."""
    if most is not None:
        monkeypatch.setattr(_spark, "_MOST_ENDS", most)
    equal(on_spark.count(session, TRACES, task_bytes=200_000, partitions=partitions), fs.count(TRACES))


@pytest.mark.parametrize("threads, tasks, shards, buckets", [(2, 4, 8, 2), (2, 30, 8, 8), (16, 100, 8, 50), (2, 30, None, 15)])
def test_a_reduce_task_has_whole_shards_where_they_are_enough(threads, tasks, shards, buckets):
    assert _spark._buckets(threads, tasks, shards) == buckets


def test_each_task_is_a_partition(session):
    with _spark.Run(session, pieces.plan("count", TRACES, task_bytes=100_000), 3) as run:
        tasks = run._plan.tasks
        assert run._map(tasks, 1).rdd.getNumPartitions() == len(tasks) > 8


def test_a_range_that_begins_at_a_wrong_place_is_read_again(session, tmp_path):
    """Payloads that look like records, so that the beginning of a range is guessed wrong."""
    data = Path(TRACES[0]).read_bytes()
    inner = data[24 : 24 + 60_000]
    record = data[24:40]
    fake = record[:8] + len(inner).to_bytes(4, "little") * 2 + inner
    trap = tmp_path / "trap.pcap"
    trap.write_bytes(data[:24] + fake * 20 + data[24:])
    plan = pieces.plan("count", trap, task_bytes=100_000)
    ends = [end for task in plan.tasks for end in pieces.map(task)[0]]
    assert pieces.join(plan, ends), "a guess was wrong"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.InputWarning)
        equal(on_spark.count(session, trap, task_bytes=100_000), fs.count(trap))


@pytest.mark.parametrize("slice", ["1s", "all"])
def test_rankings_are_those_of_one_process(session, slice):
    ranked = on_spark.top(session, TRACES, task_bytes=200_000, slice=slice, number=5)
    whole = fs.top(TRACES, slice=slice, number=5)
    assert ranked.keys.to_arrow().equals(whole.keys.to_arrow())
    assert ranked.document == whole.document


@pytest.mark.parametrize("group", [None, "mine"])
def test_progress_is_that_of_all_tasks(session, group, monkeypatch):
    monkeypatch.setattr(_spark, "_LOOK_SECONDS", 0.01)
    context = session.sparkContext
    context.setLocalProperty("spark.jobGroup.id", group)
    seen = []
    try:
        for _ in range(2):
            seen.clear()
            counted = on_spark.count(session, TRACES[0], task_bytes=100_000, progress=lambda *now: seen.append(now))
            assert counted.totals.packets == 8000
            assert context.getLocalProperty("spark.jobGroup.id") == group
            done, nothing, total = seen[-1]
            # Those that read, and those that reduce.
            assert done == total > len(pieces.plan("count", TRACES[0], task_bytes=100_000).tasks) and nothing == 0
            assert all(one <= other for (one, *_), (other, *_) in zip(seen, seen[1:]))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def settings_of(session):
    return {name: session.conf.get(name, None) for name in _spark._SETTINGS}


def test_progress_that_fails_ends_the_run(session, monkeypatch):
    monkeypatch.setattr(_spark, "_LOOK_SECONDS", 0.01)
    before, kept = settings_of(session), session.sparkContext._jsc.getPersistentRDDs().size()

    def fail(done, packets, total):
        raise ZeroDivisionError("no progress")

    # With more buckets than shards a run has two jobs, and keeps a frame.
    with pytest.raises(ZeroDivisionError, match="no progress"):
        on_spark.count(session, TRACES[0], task_bytes=20_000, partitions=9, slice="100ms", progress=fail)
    assert settings_of(session) == before
    assert session.sparkContext._jsc.getPersistentRDDs().size() == kept
    assert not session.sparkContext.getJobTags()
    assert on_spark.count(session, TRACES[0]).totals.packets == 8000


def test_wrong_arguments_are_refused(session):
    for partitions in (0, -1, "3"):
        with pytest.raises(fs.UsageError, match="^partitions: give a whole number"):
            on_spark.count(session, TRACES[0], partitions=partitions)
    with pytest.raises(fs.UsageError, match="^progress: "):
        on_spark.count(session, TRACES[0], progress=5)


def test_settings_are_restored_by_the_last_of_overlapping_runs(session):
    from pyspark.sql import SparkSession

    before = settings_of(session)
    assert before != _spark._SETTINGS
    divided = pieces.plan("count", TRACES[0])
    first, second = (_spark.Run(one, divided, None) for one in (session, SparkSession.getActiveSession()))
    first.__enter__()
    second.__enter__()
    assert settings_of(session) == _spark._SETTINGS
    first.__exit__(None, None, None)
    assert settings_of(session) == _spark._SETTINGS
    second.__exit__(None, None, None)
    assert settings_of(session) == before and not _spark._runs


def test_a_run_that_may_not_fit_says_so_first(session, monkeypatch):
    assert _spark.room_of_task(session) > 1 << 20
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        on_spark.count(session, TRACES[0])
    monkeypatch.setattr(_spark, "room_of_task", lambda _: 100)
    with pytest.warns(RuntimeWarning, match="give workers more memory, or count with more shards") as said:
        on_spark.count(session, TRACES[0])
    assert [one.filename for one in said if one.category is RuntimeWarning] == [__file__]


def equal_rows(listed, rows, whole, expected):
    """The data frame has the rows of one process; then it is freed."""
    assert rows.columns == expected.column_names
    collected = rows.collect()
    for name in expected.column_names:
        values = [row[name] for row in collected]
        wanted = expected[name]
        if values and isinstance(values[0], datetime.datetime):
            # Spark keeps microseconds.
            epoch = datetime.datetime(1970, 1, 1)
            values = [(one - epoch) // datetime.timedelta(microseconds=1) for one in values]
            wanted = [one // 1000 for one in wanted]
        assert values == wanted, name
    assert listed.document == whole.document
    with pytest.raises(TypeError, match="the rows are in Spark"):
        pickle.dumps(listed)


def test_flows_are_those_of_one_process(session):
    flows = fs.flows(TRACES, idle="2s")
    with on_spark.flows(session, TRACES, task_bytes=200_000, idle="2s") as listed:
        equal_rows(listed, listed.flows, flows, flows.flows.read())


@pytest.mark.parametrize(
    "options", [{}, *(pytest.param(more, marks=pytest.mark.long) for more in ({"all": True, "where": "udp"}, {"element": "dns", "slice": "all"}))], ids=str
)
def test_exports_are_those_of_one_process(session, options):
    alone = fs.export(TRACES, **options)
    with on_spark.export(session, TRACES, task_bytes=200_000, **options) as exported:
        equal_rows(exported, exported.rows, alone, alone.rows.read())


@pytest.mark.long
def test_names_of_others_are_those_of_one_process(session):
    # A time of Spark has microseconds.
    named = on_spark.flows(session, TRACES[1], names="zeek").flows.selectExpr("unix_micros(ts)").collect()
    assert [micros for (micros,) in named] == [ns // 1000 for ns in fs.flows(TRACES[1], names="zeek").flows.read()["ts"]]


def ended(run):
    """How a run ends: its document, completeness and how many rows it has, or its error; and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", fs.InputWarning)
        try:
            result, rows = run()
            end = (result.document, result.complete, rows)
        except fs.Error as error:
            end = (type(error), str(error), error.path)
    return end, [str(one.message) for one in said if issubclass(one.category, fs.InputWarning)]


@pytest.mark.parametrize(("command", "rows"), [("count", "slices"), ("top", "keys"), ("flows", "flows"), ("export", "rows")])
def test_inputs_with_problems_end_a_run_as_that_of_one_process(session, tmp_path, command, rows):
    data = Path(TRACES[0]).read_bytes()
    (tmp_path / "cut.pcap").write_bytes(data[:300_001])
    (tmp_path / "damaged.pcap").write_bytes(data[:400_000] + b"\xff" * 1000 + data[401_000:])
    (tmp_path / "text.pcap").write_bytes(b"no capture" * 100)
    (tmp_path / "unreadable.pcap").symlink_to("/proc/self/mem")
    (tmp_path / "same.pcap").symlink_to(TRACES[1])
    (tmp_path / "folder").mkdir()
    bad = [str(tmp_path / name) for name in ("text.pcap", "vanished.pcap", "unreadable.pcap")]
    all_kinds = [*bad, *(str(tmp_path / name) for name in ("cut.pcap", "damaged.pcap", "same.pcap", "folder")), TRACES[1]]
    for captures in (all_kinds, bad):

        def alone(captures=captures):
            result = getattr(fs, command)(captures)
            table = getattr(result, rows)
            return result, len(table if isinstance(table, fs.Table) else table.read())

        def spread(captures=captures):
            result = getattr(on_spark, command)(session, captures, task_bytes=100_000, skip_unreadable=True)
            table = getattr(result, rows)
            return result, len(table) if isinstance(table, fs.Table) else table.count()

        expected = ended(alone)
        assert ended(spread) == expected
        assert expected[0][1] is False and len(expected[1]) > 5 if captures is all_kinds else expected[0][0] is fs.Error


def test_a_file_that_is_replaced_after_the_plan_is_named(session, tmp_path, monkeypatch):
    """Its first range was asked for again and again."""
    gone = tmp_path / "gone.pcap"
    gone.write_bytes(Path(TRACES[0]).read_bytes())
    after_planning(monkeypatch, lambda: gone.write_bytes(b"no capture any more" * 100_000))
    with pytest.warns(fs.InputWarning, match="gone.pcap"):
        counted = on_spark.count(session, [gone, TRACES[1]], task_bytes=100_000)
    assert "gone.pcap" in counted.inputs[0].error and not counted.complete
    assert counted.totals.packets == fs.count(TRACES[1]).totals.packets


@pytest.mark.long
@pytest.mark.skipif(SHARED is None, reason="FLOWSIEVE_TRACES names no captures")
def test_it_is_so_for_real_captures(session):
    captures = sorted(str(path) for path in Path(SHARED).rglob("*.pcap*") if 10_000 < path.stat().st_size < 8_000_000)[:40]
    assert len(captures) > 20
    for options in ({"slice": "1min"}, {"element": "flow", "slice": "all", "filter": "bloom"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fs.InputWarning)
            whole = fs.count(captures, **options)
        equal(on_spark.count(session, captures, task_bytes=2 << 20, **options), whole)


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Captures that overlap in time, large enough that a stage takes a while."""
    folder = tmp_path_factory.mktemp("large")
    for seed in range(6):
        fs.generate(write=folder / f"{seed}.pcap", packets=400_000, seed=seed, snaplen=64, duration="20s")
    return str(folder)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["map", "reduce"])
def test_an_executor_that_is_killed_changes_nothing(session, large, stage):
    whole = fs.count(large, element="flow")
    before = executors()
    assert before
    tracker = session.sparkContext.statusTracker()
    killed = []

    def kill():
        # The first stage reads; those behind it with several stages shuffle and reduce.
        while not done.is_set() and not killed:
            for number in tracker.getActiveStageIds():
                info = tracker.getStageInfo(number)
                if info is None or info.numCompletedTasks + info.numActiveTasks == 0:
                    continue
                is_map = info.numTasks == tasks
                if (stage == "map") == is_map and info.numCompletedTasks >= 1:
                    for victim in executors()[:1]:
                        os.kill(victim, signal.SIGKILL)
                        killed.append(victim)
                    return
            time.sleep(0.005)

    task_bytes = 4 << 20
    tasks = len(pieces.plan("count", large, task_bytes=task_bytes).tasks)
    assert tasks > 6
    done = threading.Event()
    thread = threading.Thread(target=kill)
    thread.start()
    counted = on_spark.count(session, large, task_bytes=task_bytes, partitions=tasks + 5, element="flow")
    done.set()
    thread.join()
    assert killed, "nothing was killed"
    equal(counted, whole)


@pytest.mark.long
def test_a_cut_capture_is_listed_and_a_missing_one_raises(session, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(TRACES[0]).read_bytes()[:300_001])
    with pytest.warns(fs.InputWarning, match="cut.pcap"):
        counted = on_spark.count(session, [cut, TRACES[1]])
    assert not counted.complete
    assert "cut.pcap" in counted.inputs[0].error and counted.inputs[1].error is None
    with pytest.warns(fs.InputWarning):
        equal(counted, fs.count([str(cut), TRACES[1]]))
    with pytest.raises(fs.Error, match="missing.pcap"):
        on_spark.count(session, [cut, tmp_path / "missing.pcap"])


def test_a_file_that_the_workers_cannot_read_raises_with_its_name(session, tmp_path, monkeypatch):
    gone = tmp_path / "gone.pcap"
    gone.write_bytes(Path(TRACES[0]).read_bytes())
    after_planning(monkeypatch, lambda: gone.unlink(missing_ok=True))
    with pytest.raises(fs.Error, match="gone.pcap"):
        on_spark.count(session, [gone, TRACES[1]])
    gone.write_bytes(Path(TRACES[0]).read_bytes())
    with pytest.warns(fs.InputWarning, match="gone.pcap"):
        counted = on_spark.count(session, [gone, TRACES[1]], skip_unreadable=True)
    assert "gone.pcap" in counted.inputs[0].error and not counted.complete
    assert counted.totals.packets == fs.count(TRACES[1]).totals.packets


@pytest.fixture
def store():
    """A small object store: HTTP with ranges, that fails as often as it is told to."""
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.answer(False)

        def do_GET(self):
            self.answer(True)

        def answer(self, is_wanted):
            name = self.path.rsplit("/", 1)[1]
            failing = "Range" in self.headers and state["failures"] > 0
            if failing:
                state["failures"] -= 1
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = (ROOT / "traces" / name).read_bytes()
            begin, end = 0, len(body)
            if "Range" in self.headers:
                first, last = self.headers["Range"].removeprefix("bytes=").split("-")
                begin, end = int(first), min(int(last) + 1, len(body))
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")
            else:
                self.send_response(200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(end - begin))
            self.end_headers()
            if is_wanted:
                self.wfile.write(body[begin:end])

    state = {"failures": 0}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", state
    server.shutdown()


@pytest.mark.long
def test_an_object_store_that_fails_once_is_asked_again(session, store):
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")
    address, state = store
    captures = [f"{address}/{os.path.basename(path)}" for path in TRACES]
    whole = fs.count(TRACES)
    counted = on_spark.count(session, captures, task_bytes=200_000)
    assert counted.slices.to_arrow().equals(whole.slices.to_arrow())
    # The driver looks at heads of files, too: failures begin with the workers.
    with pytest.MonkeyPatch.context() as patch:
        after_planning(patch, lambda: state.update(failures=1))
        counted = on_spark.count(session, captures)
    assert state["failures"] == 0
    assert counted.slices.to_arrow().equals(whole.slices.to_arrow())


@pytest.mark.long
def test_an_object_store_that_stays_broken_raises(session, store):
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")
    address, state = store
    with pytest.MonkeyPatch.context() as patch:
        after_planning(patch, lambda: state.update(failures=10**9))
        with pytest.raises(Exception, match="503|generated.pcap"):
            on_spark.count(session, [f"{address}/generated.pcap"])


@pytest.mark.long
def test_skew_changes_nothing(session, tmp_path):
    fs.generate(write=tmp_path / "dense.pcap", packets=200_000, duration="500ms", snaplen=64)
    fs.generate(write=tmp_path / "thin.pcap", packets=20_000, duration="30s", seed=2, snaplen=64)
    whole = fs.count(tmp_path, element="flow")
    equal(on_spark.count(session, tmp_path, task_bytes=1 << 20, element="flow"), whole)


@pytest.mark.long
def test_many_small_files_are_packed(session, tmp_path):
    data = Path(TRACES[1]).read_bytes()
    for number in range(400):
        (tmp_path / f"{number:03}.pcap").write_bytes(data)
    counted = on_spark.count(session, tmp_path)
    assert len(counted.inputs) == 400
    equal(counted, fs.count(tmp_path))


@pytest.mark.long
def test_spark_submit_ends_as_the_program_ends(master, program, tmp_path):
    """The output, the sentences and the exit code are the program's."""
    script = subprocess.run([sys.executable, "-m", "flowsieve.spark"], capture_output=True, text=True, check=True).stdout.strip()
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    cut, text = tmp_path / "cut.pcap", tmp_path / "text.pcap"
    cut.write_bytes(Path(TRACES[0]).read_bytes()[:300_001])
    text.write_bytes(b"no capture" * 100)
    for captures, code, more in (
        (TRACES, 0, ["-o", str(tmp_path / "counts.json")]),
        ([str(cut), TRACES[1], TRACES[1]], 1, []),
        ([str(cut), TRACES[1], TRACES[1]], 1, ["--quiet"]),
        ([str(text)], 1, []),
    ):
        ends = []
        for words in ([str(home / "bin" / "spark-submit"), "--master", "local[2]", script], [program, "count"]):
            words = [*words, "--slice", "1s", "--format", "json", *more, *captures]
            ended = subprocess.run(words, capture_output=True, text=True, env=environment)
            said = [line for line in ended.stderr.splitlines() if line.startswith("flowsieve: ")]
            output = Path(more[1]).read_text() if code == 0 else ended.stdout
            ends.append((ended.returncode, said, json.loads(output) if output else None))
        assert ends[0] == ends[1]
        assert ends[0][0] == code
