"""What was read of a result, who may read it, and what may go in: states, pickles, `with`, forks, inputs that are no paths."""

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import flowsieve as fs
from flowsieve._table import plain

ROOT = Path(__file__).resolve().parents[2]
STREAMS = {"flows": ("flows", 3953), "export": ("rows", 6106)}
BEHIND = ["totals", "inputs", "parameters", "document", "complete"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A capture whose flows are several tables."""
    path = tmp_path_factory.mktemp("large") / "large.pcap"
    fs.generate(write=path, packets=150_000, snaplen=64)
    return str(path)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("command", STREAMS)
def test_what_stands_behind_the_rows_needs_them_and_spoils_none(large, command, begun):
    rows, _ = STREAMS[command]
    options = {"all": True} if command == "export" else {"idle": "1ms"}
    result = getattr(fs, command)(large, **options)
    tables = iter(getattr(result, rows))
    seen = len(next(tables)) if begun else 0
    for name in BEHIND:
        assert f".{rows}.read()" in repr(result)
        with pytest.raises(fs.Error, match="known when all rows were read"):
            getattr(result, name)
    seen += sum(len(table) for table in tables)
    assert all(getattr(result, name) for name in BEHIND)
    assert seen == getattr(result.totals, rows) > 65_536
    assert result.complete and result.inputs[0].container == "pcap"


def test_rows_are_read_once(trace):
    pyarrow = pytest.importorskip("pyarrow")
    for read in (
        lambda rows: rows.read(),
        lambda rows: list(rows),
        lambda rows: pyarrow.RecordBatchReader.from_stream(rows).read_all(),
    ):
        for again in (lambda rows: rows.read(), lambda rows: list(rows), pyarrow.table):
            flows = fs.flows(trace)
            read(flows.flows)
            with pytest.raises(fs.Error, match="read already"):
                again(flows.flows)
            assert flows.totals.flows == 3953
    # A library that looks at the names first does not take rows away.
    flows = fs.flows(trace)
    assert pyarrow.RecordBatchReader.from_stream(flows.flows).schema.names[0] == "start_ns"
    assert len(flows.flows.read()) == 3953


def test_one_reader_has_all_rows_or_another_gets_an_error(large):
    pyarrow = pytest.importorskip("pyarrow")
    rows = fs.export(large, all=True).rows
    first, second = [pyarrow.RecordBatchReader.from_stream(rows) for _ in range(2)]
    begun = len(first.read_next_batch())
    with pytest.raises((OSError, pyarrow.ArrowException), match="read already"):
        second.read_all()
    for read in (rows.read, lambda: next(iter(rows))):
        with pytest.raises(fs.Error, match="read already"):
            read()
    assert begun + len(first.read_all()) == 150_000
    # A loop that was left is a reader, too.
    rows = fs.export(large, all=True).rows
    loop = iter(rows)
    begun = len(next(loop))
    for read in (rows.read, rows.to_arrow, lambda: next(iter(rows)), lambda: pyarrow.table(rows)):
        with pytest.raises((fs.Error, OSError, pyarrow.ArrowException), match="read already"):
            read()
    assert begun + sum(map(len, loop)) == 150_000


@pytest.fixture
def cut(trace, tmp_path):
    """A capture that is cut off in a packet."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(Path(trace).read_bytes()[:100_001])
    return str(path)


def test_a_library_that_pulls_the_rows_of_a_damaged_capture_makes_it_warn(trace, cut):
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    for pull in (pyarrow.table, polars.DataFrame, lambda rows: pyarrow.RecordBatchReader.from_stream(rows).read_all()):
        with pytest.warns(fs.InputWarning, match="the file ends inside") as said:
            flows = fs.flows(cut)
            assert len(pull(flows.flows)) > 0
            # From another thread, which may need a moment.
            for _ in range(200):
                if said:
                    break
                time.sleep(0.01)
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not flows.complete
            assert len(pull(fs.flows(trace).flows)) == 3953
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="the file ends inside"):
            pyarrow.table(fs.flows(cut).flows)


def test_a_failure_stays_the_same(tmp_path):
    flows = fs.flows(tmp_path / "missing.pcap")
    for look in (lambda: flows.flows.read(), lambda: flows.totals, lambda: list(flows.flows)):
        with pytest.raises(fs.Error, match="no such file") as error:
            look()
        assert error.value.path == str(tmp_path / "missing.pcap")


def test_results_end_with_their_block(large, trace):
    with fs.export(large, all=True) as export:
        assert len(next(iter(export.rows))) > 0
    for look in (lambda: export.totals, lambda: export.rows.read(), lambda: list(export.rows)):
        with pytest.raises(fs.Error, match="was closed"):
            look()
    export.close()
    # What was read stays.
    with fs.flows(trace) as flows:
        flows.flows.read()
    assert flows.totals.flows == 3953
    with fs.flows(trace).flows as stream:
        assert len(stream.read()) == 3953
    with fs.count(trace) as counted, pytest.raises(ZeroDivisionError), fs.top(trace):
        raise ZeroDivisionError
    assert counted.totals.packets == 8000


def test_a_run_without_end_is_ended_by_its_block(tmp_path, trace):
    (tmp_path / "a.pcap").write_bytes(Path(trace).read_bytes())
    with fs.count(tmp_path, follow=True) as counted:
        assert len(next(iter(counted.slices))) > 0
        assert "iterate over .slices" in repr(counted)
    with pytest.raises(fs.Error, match="was closed"):
        counted.totals  # noqa: B018


def test_progress_cannot_read_the_result_it_reports(large):
    said = []

    def report(*_):
        try:
            said.append(export.totals)
        except fs.Error as error:
            said.append(str(error))

    export = fs.export(large, all=True, progress=report)
    assert len(export.rows.read()) == 150_000
    # The last report comes when everything was read.
    assert said.pop() == export.totals
    assert said and all("while progress is reported" in sentence for sentence in said)


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_results_in_memory_can_be_pickled(trace, tmp_path, copied):
    index = fs.Index.build(tmp_path / "archive", trace)
    for result, rows in [
        (fs.count(trace), "slices"),
        (fs.top(trace), "keys"),
        (fs.compare(trace, memory="4KiB", filter="bloom"), "rows"),
        (fs.dedup(trace, dry_run=True), "slices"),
        (fs.plan(expect=1000), "rows"),
        (fs.reproduce(list=True), "rows"),
        (index.stats(), "rows"),
    ]:
        again = copied(result)
        assert getattr(again, rows).rows() == getattr(result, rows).rows()
        assert (again.document, again.complete) == (result.document, result.complete)
        assert repr(again) == repr(result)
        again.close()
    assert copied(index).archive == index.archive
    text = fs.generate(write=tmp_path / "x.pcap", packets=10)
    assert copied(text).text == text.text


def test_tables_filters_and_errors_can_be_pickled(trace, tmp_path):
    table = fs.flows(trace).flows.read()
    again = pickle.loads(pickle.dumps(table))
    assert again.rows() == table.rows() and again.column_names == table.column_names
    empty = fs.flows(trace, where="port 1").flows.read()
    assert pickle.loads(pickle.dumps(empty)).column_names == table.column_names
    made = fs.Filter("cmdbf", attributes=["a", "b"], seed=7, shards=2, memory="64KiB")
    made.insert([1, 2], ["x", b"y"])
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made) and (1, "x") in again and (1, "y") not in again
    again.insert([9], ["z"])
    assert (9, "z") not in made
    fs.count(trace, slice="all", save_filter=tmp_path / "saved")
    saved = fs.Filter.load(tmp_path / "saved")
    assert pickle.loads(pickle.dumps(saved)).element == "host-pair"
    with pytest.raises(fs.Error) as error:
        fs.count(tmp_path / "missing.pcap")
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.path) == (str(error.value), error.value.path)


def test_rows_that_are_read_as_they_come_say_why_they_cannot(trace):
    for result in (fs.flows(trace), fs.export(trace)):
        for one in (result, result._rows):
            with pytest.raises(TypeError, match="read as they come"):
                pickle.dumps(one)
        # Nothing was spoiled.
        assert len(result._rows.read()) == result.totals.__dict__[STREAMS[type(result).__name__.lower()][0]]


class Uploaded(io.BytesIO):
    name = "upload.pcap"


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda: b"\xd4\xc3\xb2\xa1", "bytes"),
        (lambda: bytearray(b"x"), "bytearray"),
        (lambda: memoryview(b"x"), "memoryview"),
        (lambda: Uploaded(), "Uploaded"),
        (lambda: open(ROOT / "traces" / "generated.pcap", "rb"), "BufferedReader"),
        (lambda: open(ROOT / "README.md"), "TextIOWrapper"),
        (lambda: 3, "int"),
        (lambda: None, "NoneType"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_no_path_is_refused_by_name(trace, tmp_path, monkeypatch, wrong, kind):
    monkeypatch.chdir(tmp_path)
    for name, call in [
        ("captures", lambda one: fs.count(one)),
        ("captures", lambda one: fs.flows([trace, one])),
        ("captures", lambda one: fs.Index("archive").add(one)),
        ("archive", lambda one: fs.Index(one).stats()),
        ("path", lambda one: fs.Filter.load(one)),
        ("path", lambda one: fs.Filter().save(one)),
    ]:
        with pytest.raises(fs.UsageError, match=f"^{name}: .* not .*{kind}"):
            call(wrong())
    with pytest.raises(fs.UsageError, match="^captures: a path is empty"):
        fs.count([trace, ""])
    if kind not in ("int", "NoneType"):
        with pytest.raises(fs.UsageError, match=f"^write: .*{kind}"):
            fs.dedup(trace, write=wrong())
        with pytest.raises(fs.UsageError, match=f"^where: .*{kind}"):
            fs.count(trace, where=wrong())
    assert list(tmp_path.iterdir()) == []


def test_values_of_other_libraries_work_and_others_are_refused(trace):
    import datetime
    import decimal
    import ipaddress
    import zoneinfo

    numpy = pytest.importorskip("numpy")
    assert fs.count(trace, seed=numpy.int64(3), threads=numpy.uint8(1)).parameters.seed == 3
    assert len(fs.top(trace, number=decimal.Decimal(3)).keys) == 3
    assert fs.count(trace, from_=datetime.date(2020, 1, 1), to=numpy.datetime64("2030-01-01")).totals.packets == 8000
    assert fs.count(Path(trace), where=f"host {ipaddress.ip_address('10.0.0.1')}").complete
    # The times of a table are nanoseconds, and a duration is relative to the first packet.
    starts = fs.count(trace).slices["start"]
    assert fs.count(trace, from_=starts[2], to=starts[4]).totals.packets == 2000
    second = datetime.timedelta(seconds=1)
    relative = fs.count(trace, from_=2 * second, to=4 * second)
    assert relative.slices.rows() == fs.count(trace, from_="+2s", to="+4s").slices.rows()
    assert fs.Filter(memory="64kib").memory_bytes == fs.Filter(memory=numpy.int64(1 << 16)).memory_bytes
    assert fs.count(trace, no_exact=numpy.True_).totals.exact is None
    assert repr(fs.Index(Path("archive"))) == "Index('archive')"
    with pytest.raises(fs.UsageError, match="^slice: this takes a value"):
        fs.count(trace, slice=True)
    assert fs.count(trace, timezone=zoneinfo.ZoneInfo("Europe/Berlin")).parameters.timezone == "Europe/Berlin"
    index = fs.Index("archive")
    for nothing in (lambda: fs.count([]), lambda: index.add([]), lambda: index.drop([]), lambda: fs.Index.build("archive", [])):
        with pytest.raises(fs.UsageError, match="^captures: name at least one$"):
            nothing()
    for switch in (1, "yes"):
        with pytest.raises(fs.UsageError, match=f"^no_exact: this is True or False, not {switch!r}$"):
            fs.count(trace, no_exact=switch)
    with pytest.raises(fs.UsageError, match="^slice: a value is text, .* not bytes$"):
        fs.count(trace, slice=b"1s")
    with pytest.raises(fs.UsageError, match="required arguments were not provided: --expect [^\n]*$"):
        fs.count(trace, fpr=0.01)
    for address in ("s3://bucket/x.pcap", "s3://bucket/*.pcap"):
        with pytest.raises(fs.UsageError, match="read it with flowsieve.pieces or flowsieve.spark"):
            fs.count(address)
    for wrong in (object(), {"a": object()}.values(), [None], lambda: 3):
        with pytest.raises(fs.UsageError, match="^dns_port: a value is"):
            fs.count(trace, dns_port=wrong)


def forked(program: str) -> str:
    """What a program prints whose child has to end within seconds."""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_gets_an_error_and_no_wait(large):
    out = forked(f"""
import flowsieve as fs, os, sys

export = fs.export({large!r}, all=True)
tables = iter(export.rows)
next(tables)
small = fs.count({str(ROOT / "traces" / "generated.pcap")!r})
made = fs.Filter("bloom")
made.insert([1, 2, 3])
child = os.fork()
if child == 0:
    for look in (lambda: next(tables), lambda: export.rows.read(), lambda: export.totals, lambda: export.rows.__arrow_c_stream__()):
        try:
            look()
        except fs.Error as error:
            assert "another one, made by a fork" in str(error), error
        else:
            raise AssertionError("no error")
    export.close()
    assert small.totals.packets == 8000
    made.insert([4])
    assert made.contains([1, 4, 5]).tolist() == [True, True, False] if hasattr(made.contains([1]), "tolist") else True
    assert fs.count({str(ROOT / "traces" / "generated.pcap")!r}).totals.packets == 8000
    del export, tables, look
    print("child", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("rows", sum(len(table) for table in tables), export.totals.rows)
""")
    assert out.startswith("child\nrows ") and out.endswith(" 150000\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_filter_that_was_in_use_at_the_fork_says_so():
    out = forked("""
import flowsieve as fs, os, threading, time, array

made = fs.Filter("counting", memory="64MiB")
column = [bytes([i % 256, i // 256 % 256, i // 65536]) for i in range(1_000_000)]
threading.Thread(target=made.insert, args=(column,), daemon=True).start()
# The values are taken over first; then the lock is held while they go in.
for _ in range(200):
    child = os.fork()
    if child == 0:
        begun = time.monotonic()
        try:
            made.contains(1)
        except fs.Error as error:
            assert "when the process was forked" in str(error), error
            assert time.monotonic() - begun < 5
            os._exit(3)
        os._exit(0)
    if os.waitpid(child, 0)[1] >> 8 == 3:
        print("said")
        break
    time.sleep(0.02)
""")
    assert out == "said\n"


def test_threads_that_read_at_once_lose_no_rows(large):
    export = fs.export(large, all=True)
    rows, errors = [], []

    def read():
        try:
            for table in export.rows:
                rows.append(len(table))
        except fs.Error as error:
            errors.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(rows) == 150_000 == export.totals.rows
    assert all("read already" in error for error in errors)


def test_tables_are_looked_at_as_in_other_libraries(trace):
    table = fs.flows(trace).flows.read()
    assert table.shape == (3953, len(table.columns)) and table.columns == list(table.schema) == table.column_names
    types = table.schema
    assert types["start"] == "timestamp[ns, UTC]" and types["src"] == types["dst"] == types["ended"] == "dictionary[string]"
    assert (types["src_port"], types["proto"], types["packets"], types["domain"]) == ("uint16", "uint8", "uint64", "string")
    rows = table.rows()
    assert table[0] == rows[0] and table[-1] == rows[-1] and table.head(3).rows() == rows[:3] == table[:3].rows()
    assert table[10:20].rows() == rows[10:20] and table[-5:].rows() == rows[-5:] and len(table[20:10]) == 0 == len(table.head(0))
    assert list(table) == rows
    some = table[["dst", "packets"]]
    assert some.shape == (3953, 2) and some[7] == {"dst": rows[7]["dst"], "packets": rows[7]["packets"]}
    for wrong, kind in (("colour", KeyError), (["src", "colour"], KeyError), (3953, IndexError), (-3954, IndexError), (slice(0, 9, 2), ValueError), (1.5, TypeError)):
        with pytest.raises(kind):
            table[wrong]
    assert pickle.loads(pickle.dumps(table[100:200])).rows() == rows[100:200]
    rows[0]["note"] = "mine"
    del rows[1]["src"]
    assert list(rows[0]) == [*table.columns, "note"] and list(rows[2]) == table.columns and "src" not in rows[1]


def test_columns_of_any_name_make_dictionaries():
    pyarrow = pytest.importorskip("pyarrow")
    for names in (["a", "b"], ["class", "b"], ["a b", "x = 1"], ["__class__", "é"], ["ﬁ", "a"]):
        sink = pyarrow.BufferOutputStream()
        table = pyarrow.table([pyarrow.array([1, 2]), pyarrow.array(["x", None])], names=names)
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        rows = fs._table.Table(fs._native.Table.from_bytes(sink.getvalue().to_pybytes())).rows()
        assert rows == [dict(zip(names, (1, "x"))), dict(zip(names, (2, None)))]


def test_addresses_are_dictionaries_but_not_in_pandas(large):
    pyarrow = pytest.importorskip("pyarrow")
    flows = fs.flows(large, idle="1ms").flows.read()
    arrow = flows.to_arrow()
    assert pyarrow.types.is_dictionary(arrow.schema.field("src").type)
    assert arrow["src"].to_pylist() == flows["src"] and arrow["ended"].to_pylist() == flows["ended"]
    polars = pytest.importorskip("polars")
    assert flows.to_polars()["src"].cast(polars.String).to_list() == flows["src"]
    pytest.importorskip("pandas")
    frame = flows.to_pandas()
    assert frame["src"].dtype == object and list(frame["src"]) == flows["src"]


def test_tables_in_memory_are_small_and_the_same_rows(large):
    pyarrow = pytest.importorskip("pyarrow")
    streamed = [table.to_arrow() for table in fs.flows(large, idle="1ms").flows]
    assert len(streamed) > 1
    whole = plain(pyarrow.concat_tables(streamed))
    flows = fs.flows(large, idle="1ms").flows.read()
    table = flows.to_arrow()
    assert plain(table).equals(whole) and flows.rows() == [dict(row) for row in pickle.loads(pickle.dumps(flows))]
    assert flows["community_id"] == whole["community_id"].to_pylist() and flows[-1]["bytes"] == whole["bytes"][-1].as_py()
    assert flows.nbytes <= 60 * len(flows) < table.get_total_buffer_size() and flows[:0].nbytes == 0
    nothing = flows[[]]
    assert nothing.shape == (len(flows), 0) and len(pickle.loads(pickle.dumps(nothing))) == len(flows)


def test_streams_show_their_first_rows_and_keep_them(large, trace):
    for result, rows in ((fs.flows(large, idle="1ms"), "flows"), (fs.export(large, all=True), "rows"), (fs.flows(trace, where="port 1"), "flows")):
        stream = getattr(result, rows)
        assert "as they come" in repr(result) and "as they come" in repr(stream)
        shown = result._repr_html_()
        assert shown == stream._repr_html_() and "as they come" in shown
        tables = list(stream)
        count = sum(map(len, tables))
        assert count == getattr(result.totals, rows) and ("<td>" in shown) == (count > 0)
        assert f"{count:,} {rows}" in repr(result) or count == 0
        assert f"{count:,} {rows}" in result._repr_html_() or count == 0
    pyarrow = pytest.importorskip("pyarrow")
    flows = fs.flows(trace)
    flows._repr_html_()
    assert pyarrow.table(flows.flows).num_rows == 3953
    closed = fs.flows(trace)
    closed.close()
    assert "was closed" in closed._repr_html_()


def test_captures_that_grow_are_not_waited_for_to_show_their_rows(trace, tmp_path):
    for result, rows in ((fs.count(tmp_path, follow=True), "slices"), (fs.flows(tmp_path, follow=True), "flows")):
        with result:
            assert f"iterate over .{rows}<" in result._repr_html_() and "iterate over them<" in getattr(result, rows)._repr_html_()
    # A pipe ends.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    counted = fs.count(pipe, follow=True)
    writer = threading.Thread(target=pipe.write_bytes, args=(Path(trace).read_bytes(),))
    writer.start()
    assert counted.slices.read()["packets"] == [1000] * 8
    writer.join()
    assert counted.totals.packets == 8000 and counted.parameters.slice_ns == 10**9 and "8,000 packets" in counted._repr_html_()


def test_a_moment_that_is_in_two_columns_is_in_memory_once(large):
    pytest.importorskip("pyarrow")
    rows = fs.flows(large, idle="1ms").flows.read()
    table = rows.to_arrow()
    for batch in table.to_batches():
        for name in ("start", "end"):
            number, moment = (batch.column(column).buffers()[1] for column in (f"{name}_ns", name))
            assert number.address == moment.address and batch.column(name).cast("int64") == batch.column(f"{name}_ns")
    # Pyarrow's own sum counts shared bytes twice.
    assert table.get_total_buffer_size() < table.nbytes - 15 * len(rows)
    assert pickle.loads(pickle.dumps(rows)).to_arrow().equals(table)


@pytest.mark.parametrize("looks", [True, False])
def test_rows_leave_the_garbage_collector_as_it_was(trace, looks):
    slices = fs.count(trace).slices
    (gc.enable if looks else gc.disable)()
    try:
        rows = slices.rows()
        assert gc.isenabled() == looks
        assert [row["start"] for row in rows] == slices["start"] == slices["start_ns"]
    finally:
        gc.enable()
