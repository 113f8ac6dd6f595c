"""A count in pieces has the answer of one run, to the bit, whatever the pieces; without an engine."""

import contextlib
import datetime
import functools
import gzip
import json
import multiprocessing
import os
import pickle
import random
import struct
import time
import types
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsieve as fs
from flowsieve import _memory, _native, _remote, _spark, pieces
from flowsieve._remote import RemoteFile
from flowsieve._table import plain
from flowsieve.pieces import BUDGET, Plan, words_of

ROOT = Path(__file__).resolve().parents[2]
TRACES = [str(ROOT / "traces" / name) for name in ("generated.pcap", "netns-dns.pcap", "netns-mirror.pcap", "netns-web-loss.pcap")]
SHARED = os.environ.get("FLOWSIEVE_TRACES")
STRUCTURES = [
    "subset", "bloom", "mdbf", "cmdbf", "bfm", "cbfm", "wcbfm", "cartesian", "counting", "split-counting", "scalable",
    "dleft", "hll", "exact",
]  # fmt: skip


def parts_of(plan, budget=BUDGET):
    """Returns the parts that all tasks emit, and the ends of their pieces."""
    shuffled, tasks = [], plan.tasks
    while tasks:
        ends = []
        for task in tasks:
            for piece in task.pieces:
                for row in task.worker.read(piece, budget):
                    if row[1] < 0:
                        ends.append(row[2])
                    else:
                        shuffled.append(row)
        tasks = pieces.join(plan, ends)
    return shuffled


def done_here(command, captures, task_bytes=None, budget=BUDGET, skip_unreadable=False, planned=None, **options):
    """A run in pieces, all in this process."""
    plan = pieces.plan(command, captures, task_bytes=task_bytes, skip_unreadable=skip_unreadable, **options)
    if planned is not None:
        planned(plan)
    parts = parts_of(plan, budget)
    return pieces.report(plan, [pieces.reduce(plan.reducer(), parts)])


def counted_here(captures, task_bytes=None, budget=BUDGET, **options):
    return done_here("count", captures, task_bytes, budget, **options)


def equal(divided, whole):
    """Every column and every field, floats by their bits."""
    assert divided.slices.to_arrow().equals(whole.slices.to_arrow())
    assert divided.document == whole.document


@functools.lru_cache(maxsize=None)
def at_once(captures, options):
    return fs.count(list(captures), **dict(options))


options = st.fixed_dictionaries(
    {},
    optional={
        "element": st.sampled_from(["host-pair", "flow", "dns", "src", "dst"]),
        "filter": st.sampled_from(STRUCTURES),
        "memory": st.sampled_from(["4KiB", "64KiB"]),
        "slice": st.sampled_from(["1s", "300ms", "all"]),
        "align": st.sampled_from(["epoch", "first"]),
        "tunnel": st.sampled_from(["outer", "inner"]),
        "exact_limit": st.sampled_from(["4GiB", "1MiB"]),
        "no_exact": st.booleans(),
        "where": st.sampled_from(["tcp", "net 10.0.0.0/8", "udp port 53"]),
        "from_": st.sampled_from(["+500ms", "2023-11-14T22:13:22"]),
        "seed": st.integers(0, 5),
    },
)


@settings(deadline=None, max_examples=60)
@given(
    options=options,
    captures=st.lists(st.sampled_from(TRACES), min_size=1, max_size=3, unique=True),
    task_bytes=st.sampled_from([50_000, 300_000, 1 << 30]),
    budget=st.sampled_from([1_000, 100_000, 16 << 20]),
)
def test_pieces_have_the_answer_of_one_run(options, captures, task_bytes, budget):
    if options.get("filter") == "exact":
        options.pop("no_exact", None)
    whole = at_once(tuple(captures), tuple(sorted(options.items())))
    equal(counted_here(captures, task_bytes, budget, **options), whole)


def test_a_directory_without_captures_is_an_input_that_was_not_read(tmp_path):
    (tmp_path / "empty").mkdir()
    captures = [str(tmp_path / "empty"), TRACES[0]]
    with pytest.warns(fs.InputWarning, match="there is no capture in this directory"):
        whole = fs.count(captures)
    with pytest.warns(fs.InputWarning, match="there is no capture in this directory"):
        divided = counted_here(captures, 100_000)
    equal(divided, whole)
    assert not whole.complete and not divided.complete and not whole.totals.complete
    assert [one.path for one in whole.inputs] == captures and "no capture" in whole.inputs[0].error


@pytest.mark.parametrize("filter", STRUCTURES)
@pytest.mark.parametrize("element", ["host-pair", "flow", "dns", "src"])
def test_every_structure_has_it(filter, element):
    whole = fs.count(TRACES[:2], element=element, filter=filter)
    equal(counted_here(TRACES[:2], 100_000, 10_000, element=element, filter=filter), whole)


def test_combinations_and_directions_have_it():
    for chosen in (
        {"want": ["src,dst:2", "src", "dst"], "expect": 1000},
        {"undirected": True},
        {"element": "dns", "queries_only": True, "dns_port": [5353]},
        {"fpr": 0.01, "expect": 1000},
    ):
        equal(counted_here(TRACES, 100_000, **chosen), fs.count(TRACES, **chosen))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": "dst", "distinct": "src", "slice": "1s", "number": 5},
        {"by": ["src", "dst"], "distinct": "dst-port", "slice": "2s"},
        {"by": "src", "distinct": "domain", "min": 2},
        {"where": "tcp", "memory": "64KiB"},
        {"slice": "all", "sort": "bytes", "number": 3},
        {"slice": "all", "sort": "bytes", "no_exact": True, "memory": "8KiB"},
        {"slice": "1s", "by": ["src", "dst"], "sort": "packets", "no_exact": True, "memory": "8KiB", "number": 5},
        {"slice": "all", "by": ["src", "dst"], "distinct": "dst-port", "number": 2, "min": 1, "memory": "8KiB"},
        {"slice": "all", "exact_limit": "1MiB", "number": 7},
        {"slice": "all", "exact_limit": "4KiB"},
    ],
    ids=str,
)
def test_rankings_have_it(options):
    whole = fs.top(TRACES, **options)
    divided = done_here("top", TRACES, 100_000, 10_000, **options)
    assert divided.keys.to_arrow().equals(whole.keys.to_arrow())
    assert divided.document == whole.document


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "idle": "500ms"}, {"active": "1s", "names": "zeek"}], ids=str)
def test_lists_of_flows_have_it(options):
    pytest.importorskip("pyarrow")
    whole = fs.flows(TRACES, **options)
    flows = plain(whole.flows.to_arrow())
    divided = done_here("flows", TRACES, 100_000, 10_000, **options)
    assert divided.to_arrow().combine_chunks().equals(flows.combine_chunks())
    assert divided.document == whole.document


@pytest.mark.parametrize("shards", [1, 3, 200])
def test_rows_do_not_depend_on_shards(monkeypatch, shards):
    monkeypatch.setattr(pieces, "LEAST_SHARDS", shards)
    test_lists_of_flows_have_it({"idle": "500ms"})
    equal_exports(TRACES[1:], {"slice": "all"})
    divided = done_here("flows", TRACES, 100_000)
    assert len(divided.shards) == shards or shards == 200


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"all": True},
        {"all": True, "names": "zeek"},
        {"slice": "300ms", "align": "first", "element": "host-pair"},
        {"slice": "all", "element": "dns"},
        {"element": "dns", "queries_only": True},
        {"element": "src", "where": "udp or tcp port 443"},
        {"undirected": True, "slice": "all", "names": "ecs"},
    ],
    ids=str,
)
def test_exports_have_it(options):
    equal_exports(TRACES, options)


@pytest.mark.skipif(SHARED is None, reason="FLOWSIEVE_TRACES names no captures")
@pytest.mark.parametrize("options", [{}, {"all": True}, {"element": "dns"}, {"undirected": True, "slice": "1min"}], ids=str)
def test_exports_of_real_captures_have_it(options):
    captures = sorted(path for path in Path(SHARED).rglob("*.pcap*") if 20_000 < path.stat().st_size < 2_000_000)[::12][:24]
    for capture in captures:
        equal_exports([capture], options)


def equal_exports(captures, options):
    """Rows of disordered slices stand behind all others in a run of one process, so both are brought into one order."""
    pytest.importorskip("pyarrow")
    whole = fs.export(captures, **options)
    expected = plain(whole.rows.to_arrow())
    divided = done_here("export", captures, 100_000, 10_000, **options)
    rows = divided.to_arrow()
    if not rows.combine_chunks().equals(expected.combine_chunks()):
        order = [(name, "ascending") for name in expected.column_names]
        assert rows.sort_by(order).combine_chunks().equals(expected.sort_by(order).combine_chunks())
        assert not options.get("all"), "packets are in the order of the trace"
    assert divided.document == whole.document


def test_a_query_for_the_root_is_an_element_without_bytes(tmp_path):
    query = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + b"\0\0\2\0\1"
    udp = struct.pack(">4H", 5353, 53, 8 + len(query), 0) + query
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    capture = tmp_path / "root.pcap"
    record = struct.pack("<4I", 10, 0, len(ip + udp), len(ip + udp))
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + record + ip + udp)
    assert fs.count(capture, element="domain").totals.exact == 1
    assert done_here("count", capture, element="domain").totals.exact == 1


@pytest.mark.parametrize(("command", "rows"), [("flows", "flows"), ("export", "rows")])
def test_lists_without_rows_and_relative_times_are_those_of_one_process(command, rows):
    pytest.importorskip("pyarrow")
    for options in ({"where": "port 9"}, {"from_": "+1s", "to": "+2s"}):
        whole = getattr(fs, command)(TRACES[0], **options)
        expected = plain(getattr(whole, rows).to_arrow())
        divided = done_here(command, TRACES[0], **options)
        assert divided.to_arrow().combine_chunks().equals(expected.combine_chunks())
        assert (expected.num_rows == 0) == ("where" in options)
        assert divided.document == whole.document


def test_tasks_of_no_size_are_refused():
    for options in ({"task_bytes": 0}, {"task_bytes": -1}, {"tasks": 0}, {"task_bytes": "1MB"}, {"tasks": 1.5}):
        with pytest.raises(fs.UsageError, match=f"^{list(options)[0]}: give a whole number of at least one"):
            pieces.plan("count", TRACES[0], **options)
    for buckets in (0, -1, "3"):
        with pytest.raises(fs.UsageError, match="^buckets: "):
            pieces.run("count", TRACES[0], submit=None, tasks=2, buckets=buckets)


def test_disordered_captures_have_it(tmp_path):
    data = Path(TRACES[0]).read_bytes()
    records, at = [], 24
    while at < len(data):
        end = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        records.append(data[at:end])
        at = end
    random.Random(3).shuffle(records)
    shuffled = str(tmp_path / "shuffled.pcap")
    Path(shuffled).write_bytes(data[:24] + b"".join(records))
    equal(counted_here([shuffled, TRACES[1]], 100_000), fs.count([shuffled, TRACES[1]]))


def test_damage_is_listed_and_what_is_missing_raises(tmp_path):
    cut = str(tmp_path / "cut.pcap")
    Path(cut).write_bytes(Path(TRACES[0]).read_bytes()[:300_001])
    with pytest.warns(fs.InputWarning):
        whole = fs.count([cut, TRACES[1]])
    with pytest.warns(fs.InputWarning, match="cut.pcap"):
        divided = counted_here([cut, TRACES[1]], 100_000)
    equal(divided, whole)
    assert "cut.pcap" in divided.inputs[0].error
    with pytest.raises(fs.Error, match="no such file"):
        counted_here([cut, str(tmp_path / "missing.pcap")])
    gone = str(tmp_path / "gone.pcap")
    Path(gone).write_bytes(Path(TRACES[0]).read_bytes())
    plan = pieces.plan("count", [gone])
    os.remove(gone)
    with pytest.raises(fs.Error, match="gone.pcap"):
        pieces.map(plan.tasks[0])
    with pytest.raises(fs.Error, match="captures: name at least one"):
        counted_here([])


#: Runs with their rows in memory: those of one process, and those in pieces.
COMMANDS = {
    "count": (fs.count, "slices"),
    "top": (fs.top, "keys"),
    "flows": (fs.flows, "flows"),
    "export": (fs.export, "rows"),
}


def ended(run):
    """How a run ends: its document, completeness and rows or its error; and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", fs.InputWarning)
        try:
            result, rows = run()
            count = sum(len(table) for table in rows)
            end = (result.document, result.complete, count)
        except fs.Error as error:
            end = (type(error), str(error), error.path)
    return end, [str(one.message) for one in said]


def alone(command, captures):
    function, rows = COMMANDS[command]

    def run():
        result = function(captures)
        table = getattr(result, rows)
        return result, [table if isinstance(table, fs.Table) else table.read()]

    return ended(run)


def in_pieces(command, captures, task_bytes=100_000, planned=None):
    def run():
        result = done_here(command, captures, task_bytes, skip_unreadable=True, planned=planned)
        return result, result.shards if command in ("flows", "export") else [getattr(result, COMMANDS[command][1])]

    return ended(run)


@pytest.fixture
def wrong_inputs(tmp_path):
    """Captures with which something is wrong, by what it is."""
    data = Path(TRACES[0]).read_bytes()
    broken = bytearray(data)
    # The length of a record in the second half.
    at = 24
    while at < 600_000:
        record = at
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    broken[record + 8 : record + 12] = b"\xff\xff\xff\x7f"
    files = {
        "good.pcap": data,
        "cut.pcap": data[:300_001],
        "damaged.pcap": broken,
        "head.pcap": data[:24],
        "text.pcap": b"no capture\n" * 50,
        "empty.pcap": b"",
        "cut.pcap.gz": gzip.compress(data)[:100_000],
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "same.pcap").symlink_to(tmp_path / "good.pcap")
    # Its first bytes cannot be read, not even by root.
    (tmp_path / "unreadable.pcap").symlink_to("/proc/self/mem")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "names",
    [
        ["good.pcap", "cut.pcap"],
        ["damaged.pcap", "good.pcap"],
        ["head.pcap"],
        ["text.pcap", "good.pcap"],
        ["text.pcap"],
        ["empty.pcap", "text.pcap"],
        ["good.pcap", "vanished.pcap"],
        ["vanished.pcap"],
        ["unreadable.pcap", "good.pcap"],
        ["unreadable.pcap", "vanished.pcap"],
        ["good.pcap", "same.pcap"],
        ["good.pcap", "good.pcap", "cut.pcap"],
        ["cut.pcap.gz", "good.pcap"],
        ["folder", "good.pcap"],
        ["folder"],
        ["text.pcap", *(f"vanished{number}.pcap" for number in range(12)), "good.pcap"],
    ],
    ids=lambda names: "+".join(names[:3]) if isinstance(names, list) else names,
)
def test_a_run_ends_as_that_of_one_process(wrong_inputs, command, names):
    captures = [str(wrong_inputs / name) for name in names]
    expected, said = alone(command, captures)
    assert in_pieces(command, captures) == (expected, said)
    is_whole = names in (["good.pcap", "same.pcap"], ["head.pcap"])
    assert is_whole == (expected[1] is True)
    assert said or names == ["head.pcap"] or isinstance(expected[0], type)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("replaced", [b"no capture any more" * 100_000, b"", b"\xd4\xc3\xb2\xa1", gzip.compress(os.urandom(999_999)), None])
def test_a_file_that_changes_after_the_plan_is_named_and_asked_for_once(tmp_path, command, replaced):
    """The first range is unreadable, which was asked for again and again."""
    gone = tmp_path / "gone.pcap"

    def change(plan):
        assert len(plan.pieces) > 4
        if replaced is None:
            gone.unlink()
        else:
            gone.write_bytes(replaced)

    for captures in ([gone], [gone, TRACES[1]]):
        gone.write_bytes(Path(TRACES[0]).read_bytes())
        end, said = in_pieces(command, captures, planned=change)
        if len(captures) == 1:
            assert end[0] is fs.Error and "gone.pcap" in end[1]
        else:
            document, complete, _ = end
            assert not complete and "gone.pcap" in document["inputs"][0]["error"]
            assert document["totals"]["packets"] == fs.count(TRACES[1]).totals.packets
            assert len(said) == 1 and "gone.pcap" in said[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_other_content_after_the_plan_is_named(tmp_path, command):
    """The same length and the same records, so that every range can be entered."""
    changed = tmp_path / "changed.pcap"
    data = Path(TRACES[0]).read_bytes()

    def change(plan):
        assert len(plan.pieces) > 4
        changed.write_bytes(data)

    changed.write_bytes(data)
    with pytest.raises(fs.Error, match="changed.pcap: this file changed"):
        done_here(command, [changed], 100_000, planned=change)
    (document, complete, _), said = in_pieces(command, [changed, TRACES[1]], planned=change)
    assert not complete and "this file changed" in document["inputs"][0]["error"] and len(said) == 1
    assert document["totals"]["packets"] == fs.count(TRACES[1]).totals.packets


def test_addresses_stay_as_they_were_written():
    assert _native.DividedJob.named(["count", "s3a://a/b", "--output=c"]) == (["s3a://a/b"], "c")
    with pytest.raises(fs.Error) as error:
        fs.count("s3a://a/b")
    assert error.value.path == "s3a://a/b"


def test_ranges_that_are_not_read_are_bounded_and_named():
    """Every range of a file is unreadable, or answers otherwise whenever it is read."""

    def planned():
        return pieces.plan("count", TRACES[:1], task_bytes=100_000)

    plan = planned()
    parts = {text: pieces.map(pieces.Task(plan.worker, [(text, TRACES[0], None)]))[0][0] for text in plan.pieces}

    def unread(piece):
        return plan.job.unread(piece, TRACES[0], f"{TRACES[0]}: nothing to read")

    with pytest.raises(fs.Error, match="generated.pcap: nothing to read"):
        pieces.join(planned(), [unread(piece) for piece in plan.pieces])
    assert pieces.join(planned(), [parts[piece] for piece in plan.pieces]) == []
    # The second range never begins where the first one ended.
    first, second, *others = plan.pieces
    start = {"offset": json.loads(others[0])["bytes"]["start"], "packets": 7}
    moved = unread(json.dumps({**json.loads(second), "start": start}))
    inputs = [parts[first], moved, *(parts[piece] for piece in others)]
    plan = planned()
    [again] = pieces.join(plan, inputs)
    again = json.loads(again.pieces[0][0])
    assert again["range"] == 1 and again["start"]
    with pytest.raises(fs.Error, match="generated.pcap: this file changed") as error:
        pieces.join(plan, [moved])
    assert error.value.path == TRACES[0]
    # Nobody reads it at all.
    plan = planned()
    pieces.join(plan, inputs)
    with pytest.raises(fs.Error, match="generated.pcap: .* again and again"):
        for _ in range(len(plan.pieces)):
            pieces.join(plan, [])


def test_the_text_of_a_run_has_its_version_and_all_that_it_depends_on():
    of_text = _native.DividedJob.of_text
    for command in COMMANDS:
        text = json.loads(pieces.plan(command, TRACES[:1]).worker.text)
        assert of_text(json.dumps(text)).text() == json.dumps(text, separators=(",", ":"))
        assert text["version"] == fs.__version__
        document = alone(command, TRACES[:1])[0][0]
        assert document["parameters"].items() <= text["parameters"].items()
        with pytest.raises(fs.Error, match="planned by flowsieve \"0.0.9\", and this worker has"):
            of_text(json.dumps({**text, "version": "0.0.9"}))
        with pytest.raises(fs.Error, match="unknown field `colour`"):
            of_text(json.dumps({**text, "colour": "red"}))
        for name in text:
            with pytest.raises(fs.Error, match=f"missing field `{name}`"):
                of_text(json.dumps({key: value for key, value in text.items() if key != name}))
        for name, value in text["parameters"].items():
            other = {**text["parameters"], name: "other"}
            with pytest.raises(fs.Error, match=f'^{name} is "other" for the driver and '):
                of_text(json.dumps({**text, "parameters": other}))
        with pytest.raises(fs.Error, match="^colour is 1 for the driver and nothing for this worker"):
            of_text(json.dumps({**text, "parameters": {**text["parameters"], "colour": 1}}))
    plan = pieces.plan("count", TRACES[:1])
    piece = json.loads(plan.pieces[0])
    with pytest.raises(fs.Error, match="unknown field `colour`"):
        list(plan.worker.read((json.dumps({**piece, "colour": 1}), TRACES[0], None)))


def test_what_cannot_be_divided_is_refused_by_name(tmp_path):
    for chosen, name in (
        ({"html": tmp_path / "x.html"}, "--html"),
        ({"save_filter": tmp_path / "x", "slice": "all"}, "--save-filter"),
        ({"follow": True}, "--follow"),
    ):
        with pytest.raises(fs.UsageError, match=name):
            counted_here(TRACES[0], **chosen)
    with pytest.raises(fs.UsageError, match="writes no --summary"):
        pieces.Plan(["count", "--summary", str(tmp_path / "x.json"), TRACES[0]], TRACES[:1], 2)
    with pytest.raises(fs.UsageError, match="no option colour"):
        counted_here(TRACES[0], colour="red")


def test_a_task_can_go_to_another_process_and_names_its_own_files():
    plan = pieces.plan("count", TRACES, element="flow", task_bytes=100_000)
    task = plan.tasks[0]
    copy = pickle.loads(pickle.dumps(task))
    assert pieces.map(copy) == pieces.map(task)
    # Reading again gives the same bytes.
    assert pieces.map(plan.tasks[1], 5) == pieces.map(plan.tasks[1], 5)
    assert TRACES[0].encode() in pickle.dumps(task) and TRACES[1].encode() not in pickle.dumps(task)


def test_small_files_are_read_by_one_task_and_tasks_by_all_threads(tmp_path):
    data = Path(TRACES[1]).read_bytes()[:2000]
    for number in range(400):
        (tmp_path / f"{number:03}.pcap").write_bytes(data)
    plan = pieces.plan("count", tmp_path)
    assert len(plan.pieces) == 400 and len(plan.tasks) == 1
    # Opening a file costs as much as reading 256 kB.
    assert 4 <= len(pieces.plan("count", tmp_path, tasks=4).tasks) <= 6
    large = tmp_path / "large.pcap"
    with large.open("wb") as file:
        file.truncate(1 << 20)
    with large.open("r+b") as file:
        file.write(data)
    os.truncate(large, 680 << 20)
    # 680 MB are more than two tasks of 256 MB, so two threads have four.
    plan = pieces.plan("count", large, tasks=2)
    assert len(plan.tasks) == 4
    sizes = [json.loads(text)["bytes"] for text in plan.pieces]
    assert max(one["start"] for one in sizes) < 0.8 * (680 << 20)


def test_hostile_bytes_are_refused():
    plan = pieces.plan("count", TRACES[:1])
    rows = parts_of(plan)
    reducer = plan.reducer()
    slice_, shard, part = rows[0]
    for place in range(0, len(part), max(1, len(part) // 50)):
        with pytest.raises(fs.Error):
            pieces.reduce(reducer, [(slice_, shard, part[:place])])
    with pytest.raises(fs.Error):
        pieces.join(plan, [b"nothing"])
    assert plan.worker.table_of(plan.pieces, [b"nothing"], 1) is None
    with pytest.raises(fs.Error, match="no run"):
        _native.DividedJob.of_text("{}")


def test_the_exact_count_of_a_ranking_of_everything_is_divided():
    for options, divided in [({"slice": "all"}, True), ({"slice": "1s"}, False), ({"slice": "all", "no_exact": True}, False)]:
        plan = pieces.plan("top", TRACES, task_bytes=100_000, **options)
        sizes = {}
        for _, shard, part in parts_of(plan):
            sizes[shard] = sizes.get(shard, 0) + len(part)
        # Filter and summary are in the first shard.
        assert sizes.pop(0) > 0 and bool(sizes) == divided
        assert not divided or (len(sizes) > 30 and max(sizes.values()) < sum(sizes.values()) / 4)


def test_the_memory_of_a_shard_is_stated_from_the_plan(tmp_path):
    large = tmp_path / "large.pcap"
    large.write_bytes(Path(TRACES[0]).read_bytes())
    # Behind the packets there is a hole.
    os.truncate(large, 80_000_000_000)
    elements = 80_000_000
    for command, options, expected in [
        ("count", {}, elements * 57 // 8),
        ("count", {"slice": "all", "no_exact": True, "shards": 16}, elements * 35 // 16),
        ("top", {"slice": "all"}, elements * 42),
        ("top", {"slice": "1s"}, elements * 111),
        ("top", {"slice": "1s", "no_exact": True}, elements * 42),
        ("flows", {}, 1_000_000_000 * 116 // 298),
        ("export", {}, 1_000_000_000 * 188 // 298),
    ]:
        plan = pieces.plan(command, large, **options)
        assert plan.shard_bytes() == expected, (command, options)
    plan = pieces.plan("count", large)
    assert plan.too_large(None) is None and plan.too_large(elements * 57 // 8) is None
    sentence = plan.too_large(elements)
    assert sentence == (
        "a reduce task may take 543 MB, if there is a new element in each 1,000 bytes, and has 76 MB; "
        "give workers more memory, or count with more shards"
    )
    assert "choose slices" in pieces.plan("top", large, slice="all").too_large(elements)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"master": "spark://driver:7077"}, 1 << 30),
        ({"master": "yarn", "executor.memory": "4g", "executor.cores": "2"}, 2 << 30),
        ({"master": "yarn", "executor.memory": "4096", "executor.cores": "4", "task.cpus": "2"}, 2 << 30),
        ({"master": "k8s://x", "executor.memory": "4gb", "executor.pyspark.memory": "512m"}, 512 << 20),
        ({"master": "yarn", "executor.memory": "much"}, None),
    ],
    ids=str,
)
def test_the_memory_of_a_task_is_that_of_its_executor_by_tasks(settings, expected):
    context = types.SimpleNamespace(getConf=lambda: {f"spark.{name}": value for name, value in settings.items()})
    assert _spark.room_of_task(types.SimpleNamespace(sparkContext=context)) == expected


@pytest.mark.parametrize(("command", "advice"), [("top", "shorter slices"), ("flows", "a packet in each 80 bytes"), ("export", "more memory$")])
@pytest.mark.parametrize("is_gathered", [False, True])
def test_a_run_that_may_not_fit_says_so_before_it_starts(monkeypatch, command, advice, is_gathered):
    options = {"slice": "1s"} if command == "top" else {}
    with ThreadPoolExecutor(2) as threads:
        # With references that are results, a worker is asked what it has.
        engine = {"submit": lambda function, *given: function(*given), "gather": list} if is_gathered else {"submit": threads.submit}
        run = functools.partial(pieces.run, command, TRACES[0], **engine, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            run()
        monkeypatch.setattr(pieces, "room", lambda: 100)
        with pytest.warns(RuntimeWarning, match=f"a reduce task may take .*{advice}") as said:
            run()
    assert [one.filename for one in said if one.category is RuntimeWarning] == [__file__]


def test_a_shard_that_will_not_fit_says_so_first(monkeypatch):
    plan = pieces.plan("count", TRACES, slice="all")
    parts = parts_of(plan)
    monkeypatch.setattr(_memory, "_LOOK_EVERY", 1000)
    monkeypatch.setattr(_memory, "room", lambda: 5000)
    with pytest.raises(fs.Error, match="shard 0 of slice 0 has more than .* choose shorter slices"):
        pieces.reduce(plan.reducer(), parts)
    assert _memory.room is not None


def engines():
    """Engines by name, each with what `run` needs of it."""
    with ThreadPoolExecutor(3) as threads:
        yield "threads", {"submit": threads.submit}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        yield "processes", {"submit": processes.submit}
    with contextlib.suppress(ImportError):
        from dask.distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            yield "dask", {"submit": functools.partial(client.submit, pure=False), "gather": client.gather}
    with contextlib.suppress(ImportError):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        call = ray.remote(lambda function, *arguments: function(*arguments))
        yield "ray", {"submit": call.remote, "gather": ray.get}
        ray.shutdown()


def test_engines_have_the_answer_of_one_process():
    """Byte for byte, whichever of them is installed."""
    names = []
    for name, engine in engines():
        names.append(name)
        for options in ({}, {"slice": "300ms", "element": "flow"}, {"slice": "all", "filter": "cmdbf"}):
            for buckets in (3, 20):
                run = pieces.run("count", TRACES, task_bytes=200_000, buckets=buckets, **engine, **options)
                equal(run, fs.count(TRACES, **options))
        ranked = pieces.run("top", TRACES, task_bytes=200_000, slice="all", **engine)
        alone = fs.top(TRACES, slice="all")
        assert ranked.keys.to_arrow().equals(alone.keys.to_arrow()) and ranked.document == alone.document
        flows = pieces.run("flows", TRACES, task_bytes=200_000, **engine)
        whole = fs.flows(TRACES)
        assert flows.to_arrow().combine_chunks().equals(plain(whole.flows.to_arrow()).combine_chunks())
        assert flows.document == whole.document
    assert names[:2] == ["threads", "processes"]


@pytest.mark.parametrize("raised", [fs.Error, KeyboardInterrupt])
def test_a_run_that_fails_leaves_nothing_to_do(raised):
    begun = []

    def mapped(task, buckets):
        begun.append(task)
        time.sleep(0.1)
        raise raised("stop")

    assert len(pieces.plan("count", TRACES[0], task_bytes=20_000).tasks) > 30
    with ThreadPoolExecutor(1) as pool, pytest.raises(raised, match="stop"):
        pieces.run("count", TRACES[0], submit=lambda _, *arguments: pool.submit(mapped, *arguments), task_bytes=20_000)
    assert len(begun) < 10


class TestRemote:
    """Files of fsspec: those in memory stand for an object store."""

    @pytest.fixture
    def stored(self):
        fsspec = pytest.importorskip("fsspec")
        system = fsspec.filesystem("memory")
        for path in TRACES:
            system.pipe_file(f"/captures/{os.path.basename(path)}", Path(path).read_bytes())
        yield system
        system.rm("/captures", recursive=True)

    def test_they_have_the_same_answer(self, stored):
        for chosen in ({}, {"align": "first", "from_": "2023-11-14T22:13:21"}, {"element": "flow", "slice": "all"}):
            remote = counted_here("memory://captures/*.pcap", 100_000, **chosen)
            whole = fs.count(sorted(TRACES), **chosen)
            assert remote.slices.to_arrow().equals(whole.slices.to_arrow())
            assert remote.document["totals"] == whole.document["totals"]

    def test_their_problems_are_said(self, stored):
        stored.pipe_file("/captures/cut.pcap", Path(TRACES[0]).read_bytes()[:300_001])
        names = ["memory://captures/" + name for name in ("cut.pcap", "missing.pcap", "generated.pcap", "generated.pcap")]
        with pytest.raises(fs.Error, match="^memory://captures/missing.pcap: no such file"):
            counted_here(names)
        (document, complete, _), said = in_pieces("count", names)
        assert not complete and [one["error"] is None for one in document["inputs"]] == [False, False, True, True]
        assert len(said) == 3
        assert said[0] == f"{names[2]} is named twice; its packets are counted twice"
        assert said[1].startswith(f"{names[0]}: the file ends inside")
        assert said[2].startswith(f"{names[1]}: no such file")

    def test_the_host_of_an_address_stays(self, stored):
        fsspec = pytest.importorskip("fsspec")

        class Hosts(fsspec.get_filesystem_class("memory")):
            protocol = "hosts"

            @classmethod
            def _strip_protocol(cls, path):
                inner = path.split("://")[-1].partition("/")[2] if "://" in path else path
                return "/" + inner.strip("/") if inner.strip("/") else ""

        fsspec.register_implementation("hosts", Hosts, clobber=True)
        for named in ("hosts://one:80/captures", "hosts://one:80/captures/", "hosts://one:80/captures/*.pcap"):
            files = pieces.plan("count", named).files
            assert files == sorted(f"hosts://one:80/captures/{os.path.basename(path)}" for path in TRACES)

    def test_names_with_marks_of_patterns_are_names_if_they_are_there(self, stored):
        for name in ("[x] 1?.pcap", "[x]/*.pcap"):
            stored.pipe_file(f"/captures/{name}", Path(TRACES[1]).read_bytes())
        for captures in ("memory://captures/[x] 1?.pcap", "memory://captures/[x]", "memory://captures/[x]/*.pcap"):
            assert counted_here(captures).totals.packets == fs.count(TRACES[1]).totals.packets
        assert len(pieces.plan("count", "memory://captures/netns-[dm]*.pcap").files) == 2

    def test_files_in_an_archive_keep_its_address(self, tmp_path):
        pytest.importorskip("fsspec")
        with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
            for path in sorted(TRACES):
                archive.write(path, os.path.basename(path))
        whole = fs.count(sorted(TRACES))
        for inner in ("*.pcap", ""):
            counted = counted_here(f"zip://{inner}::file://{tmp_path}/z.zip", 100_000)
            assert counted.slices.to_arrow().equals(whole.slices.to_arrow())
            assert counted.inputs[0].path == f"zip://generated.pcap::file://{tmp_path}/z.zip"

    def test_each_run_lists_anew(self, stored):
        fsspec = pytest.importorskip("fsspec")

        class Keeping(fsspec.get_filesystem_class("memory")):
            """Keeps listings, as the file systems of object stores do."""

            protocol = "keeping"
            kept = {}

            @classmethod
            def _strip_protocol(cls, path):
                return "/" + path.split("://")[-1].strip("/")

            def ls(self, path, detail=True, **more):
                files = self.kept.setdefault(path, super().ls(path, True))
                return files if detail else [one["name"] for one in files]

            def invalidate_cache(self, path=None):
                self.kept.clear()

        fsspec.register_implementation("keeping", Keeping, clobber=True)
        data = Path(TRACES[1]).read_bytes()
        for folder in ("day", "many"):
            for number in range(40 if folder == "many" else 1):
                stored.pipe_file(f"/captures/{folder}/{number}.pcap", data)
        for captures in ("keeping://captures/day/*", [f"keeping://captures/many/{number}.pcap" for number in range(40)]):
            before = counted_here(captures).totals.packets
            for folder in ("day", "many"):
                stored.pipe_file(f"/captures/{folder}/0.pcap", Path(TRACES[0]).read_bytes())
            after = counted_here(captures).totals.packets
            assert after - before == 8000 - fs.count(TRACES[1]).totals.packets
            stored.pipe_file("/captures/many/0.pcap", data)

    def test_they_are_divided_into_ranges(self, stored):
        assert len(pieces.plan("count", "memory://captures/generated.pcap", task_bytes=100_000).pieces) > 4

    def test_a_file_that_changed_is_named(self, stored):
        name = "memory://captures/generated.pcap"

        def change(plan):
            stored.pipe_file("/captures/generated.pcap", Path(TRACES[0]).read_bytes())

        with pytest.raises(fs.Error, match="^memory://captures/generated.pcap: this file changed after"):
            done_here("count", name, 100_000, planned=change)
        with pytest.warns(fs.InputWarning, match="generated.pcap: this file changed after"):
            counted = done_here("count", [name, TRACES[1]], 100_000, skip_unreadable=True, planned=change)
        assert not counted.complete and counted.totals.packets == fs.count(TRACES[1]).totals.packets

    @pytest.mark.parametrize("task_bytes", [None, 100_000])
    @pytest.mark.parametrize("captures", ["memory://captures/generated.pcap", "memory://captures/g*.pcap"])
    def test_a_file_that_changes_between_two_requests_is_named(self, stored, monkeypatch, task_bytes, captures):
        """The other content has the same records, so that nothing else is wrong with it."""
        honest = type(stored).cat_file
        monkeypatch.setattr(_remote, "HEAD_BYTES", 10_000)
        data = bytearray(Path(TRACES[0]).read_bytes())
        at = 24
        while at < len(data):
            data[at + 16 + 26] ^= 0x55
            at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        reading = []

        def replaced(self, path, start=None, end=None, **more):
            if reading and start > 150_000:
                stored.pipe_file("/captures/generated.pcap", bytes(data))
            return honest(self, path, start, end, **more)

        monkeypatch.setattr(type(stored), "cat_file", replaced)

        def changed(skips):
            reading.clear()
            stored.pipe_file("/captures/generated.pcap", Path(TRACES[0]).read_bytes())
            planned = [captures, TRACES[1]] if skips else captures
            return done_here("count", planned, task_bytes, skip_unreadable=skips, planned=lambda plan: reading.append(1))

        with pytest.raises(fs.Error, match="^memory://captures/generated.pcap: this file changed after"):
            changed(False)
        with pytest.warns(fs.InputWarning, match="generated.pcap: this file changed after"):
            counted = changed(True)
        assert not counted.complete
        # Of a divided file the ranges count that had been read.
        assert task_bytes or counted.totals.packets == fs.count(TRACES[1]).totals.packets

    @pytest.mark.parametrize("content", [b"no capture" * 100_000, b"", Path(TRACES[0]).read_bytes()[:300_001]])
    def test_a_small_file_that_was_replaced_is_named(self, stored, content):
        name = "memory://captures/netns-dns.pcap"
        with pytest.raises(fs.Error, match=f"^{name}: this file changed after"):
            done_here("count", name, planned=lambda plan: stored.pipe_file("/captures/netns-dns.pcap", content))

    def test_marks_that_both_sides_know_are_compared(self):
        def known(**about):
            return _remote._file("s3://a/b", about).known

        now = datetime.datetime(2026, 11, 23, 1, 2, 3, 4)
        listed = known(size=3, ETag='"a"', LastModified=now)
        assert _remote._is_same(listed, known(size=3, ETag="a", LastModified=now.replace(microsecond=0)))
        assert not _remote._is_same(listed, known(size=3, ETag='"b"', LastModified=now))
        assert not _remote._is_same(listed, known(size=4, ETag='"a"'))
        assert _remote._is_same(known(size=3), listed) and _remote._is_same(None, listed)
        # Two ways to write a time, of which one cannot be compared.
        assert _remote._is_same(known(size=0, created=now), known(size=0, created=now.timestamp()))
        assert _remote._is_same(known(size=0, created=now), known(size=0, created="today"))
        assert not _remote._is_same(known(size=0, created=now), known(size=0, created=now.timestamp() + 1))

    def test_files_are_read_ahead_and_a_short_answer_is_an_error(self, stored, monkeypatch):
        monkeypatch.setattr(_remote, "REQUEST_BYTES", 1000)
        monkeypatch.setattr(_remote, "HEAD_BYTES", 100)
        whole = Path(TRACES[0]).read_bytes()
        for end in (None, 50_000, 100):
            file = RemoteFile("memory://captures/generated.pcap", end=end)(100)
            assert b"".join(iter(lambda: file.read(333), b"")) == whole[100:]
        monkeypatch.setattr(stored, "cat_file", lambda *_, **__: b"short")
        with pytest.raises(fs.Error, match="generated.pcap: 5 of 100 bytes came"):
            RemoteFile("memory://captures/generated.pcap").begun(0)

    def test_what_stays_broken_raises_and_what_heals_is_read(self, stored, monkeypatch):
        plan = pieces.plan("count", "memory://captures/generated.pcap")
        honest = type(stored).cat_file
        failures = [OSError("503 slow down")]

        def sometimes(self, path, start=None, end=None, **more):
            if failures:
                raise failures.pop()
            return honest(self, path, start, end, **more)

        monkeypatch.setattr(type(stored), "cat_file", sometimes)
        with pytest.raises(Exception, match="503"):
            pieces.map(plan.tasks[0])
        parts = parts_of(plan)
        assert pieces.report(plan, [pieces.reduce(plan.reducer(), parts)]).totals.packets == 8000

    @pytest.mark.parametrize("asked", ["info", "cat_file"])
    def test_whatever_a_file_system_raises_is_listed_with_the_file(self, stored, monkeypatch, asked):
        """Its libraries raise errors of their own: no credentials, a status, an answer that ends early."""
        honest = getattr(type(stored), asked)
        name = "memory://captures/generated.pcap"

        class ClientPayloadError(Exception):
            pass

        def failing(self, path, *arguments, **more):
            if path.endswith("generated.pcap"):
                raise ClientPayloadError("answer ends early\nand more")
            return honest(self, path, *arguments, **more)

        monkeypatch.setattr(type(stored), asked, failing)
        for task_bytes in (None, 100_000):
            with pytest.raises(fs.Error, match=f"^{name}: .*ClientPayloadError: answer ends early") as error:
                done_here("count", name, task_bytes)
            assert error.value.path == name and "\n" not in str(error.value)
            with pytest.warns(fs.InputWarning, match=f"^{name}: .*answer ends early"):
                counted = done_here("count", [name, TRACES[1]], task_bytes, skip_unreadable=True)
            assert not counted.complete and counted.totals.packets == fs.count(TRACES[1]).totals.packets

    @pytest.mark.parametrize(("status", "sentence"), [(None, "nobody answers"), (503, "Refused: nobody answers"), (404, "no such file")])
    def test_only_what_is_missing_is_said_to_be_missing(self, stored, monkeypatch, status, sentence):
        class Refused(OSError if status is None else Exception):
            pass

        def info(self, path, **more):
            # The file system for HTTP does so.
            cause = Refused("nobody answers")
            cause.status = status or 404
            raise FileNotFoundError(path) from cause

        monkeypatch.setattr(type(stored), "info", info)
        with pytest.raises(fs.Error, match=f"^memory://captures/generated.pcap: {sentence}"):
            pieces.plan("count", "memory://captures/generated.pcap")

    @pytest.mark.parametrize("skips", [False, True])
    def test_what_an_address_needs_is_said(self, stored, skips):
        fsspec = pytest.importorskip("fsspec")
        fsspec.register_implementation("lacking", "no_such_package.System", clobber=True, errtxt="Install no_such_package for lacking://")
        for address, sentence in (
            ("lacking://a.pcap", "^lacking://a.pcap: Install no_such_package .* all workers$"),
            ("foo://a.pcap", "^foo://a.pcap: fsspec does not know this scheme"),
            ("MEMORY://captures/generated.pcap", "use a lower-case one such as s3"),
        ):
            with pytest.raises(fs.UsageError, match=sentence):
                pieces.plan("count", [address, TRACES[0]], skip_unreadable=skips)
        with pytest.raises(fs.UsageError, match="^storage_options: a dictionary"):
            pieces.plan("count", "memory://captures/generated.pcap", storage_options="key")

    def test_slices_begin_by_all_first_packets_or_not_at_all(self, stored, monkeypatch):
        honest = type(stored).cat_file
        failures = []

        def sometimes(self, path, start=None, end=None, **more):
            if failures and path.endswith("netns-dns.pcap"):
                raise failures.pop()
            return honest(self, path, start, end, **more)

        monkeypatch.setattr(type(stored), "cat_file", sometimes)
        for chosen in ({"align": "first"}, {"timezone": "Asia/Kolkata", "slice": "1d"}):
            for skips in (False, True):
                failures.append(OSError("503 slow down"))
                with pytest.raises(fs.Error, match="503 slow down"):
                    counted_here("memory://captures/*.pcap", skip_unreadable=skips, **chosen)

    def test_packets_of_an_input_that_is_listed_as_unread_do_not_count(self, stored, monkeypatch):
        names = [f"memory://captures/{name}.pcap" for name in ("generated", "netns-dns")]
        honest = type(stored).cat_file
        failing = []

        def refused(self, path, start=None, end=None, **more):
            if failing and path.endswith("generated.pcap"):
                raise OSError("503 slow down")
            return honest(self, path, start, end, **more)

        monkeypatch.setattr(type(stored), "cat_file", refused)
        plan = pieces.plan("count", names, skip_unreadable=True)
        parts = [part for task in plan.tasks for part in pieces.map(task)[1]]
        failing.append(True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not pieces.join(plan, [end for task in plan.tasks for end in pieces.map(task)[0]])
            counted = pieces.report(plan, [pieces.reduce(plan.reducer(), parts)])
        alone = fs.count(TRACES[1])
        assert not counted.complete and counted.totals.packets == alone.totals.packets
        assert counted.slices["packets"] == alone.slices["packets"]

    def test_requests_and_bytes_are_few(self, stored, monkeypatch):
        """Requests to the store, by method, with their bytes."""
        asked = []
        kind = type(stored)
        for name in ("info", "ls", "cat_file"):

            def counted(self, path, *arguments, honest=getattr(kind, name), name=name, **more):
                answer = honest(self, path, *arguments, **more)
                asked.append((name, len(answer) if name == "cat_file" else 0))
                return answer

            monkeypatch.setattr(kind, name, counted)

        def since():
            requests = [name for name, _ in asked], sum(size for _, size in asked)
            asked.clear()
            return requests

        data = Path(TRACES[0]).read_bytes()
        large = data + data[24:] * 24
        stored.pipe_file("/captures/large.pcap", large)
        monkeypatch.setattr(_remote, "REQUEST_BYTES", 1 << 20)
        asked.clear()
        plan = pieces.plan("count", "memory://captures/large.pcap", task_bytes=4 << 20)
        names, size = since()
        # One look at the size and the state, and one at the head, since it could be divided.
        assert names.count("info") == 1 and size == _remote.HEAD_BYTES
        assert len(plan.pieces) == len(large) // (4 << 20) > 2
        for task in plan.tasks:
            pieces.map(task)
            [(text, _, _)] = task.pieces
            span = json.loads(text)["bytes"]
            names, size = since()
            assert set(names) == {"info", "cat_file"} and names.count("info") == 1
            length = min(span["end"], len(large)) - span["start"]
            # The head, the range, and a little behind it.
            assert length <= size <= length + 3 * _remote.HEAD_BYTES
        # Sizes of many files come from a listing, or all at once; what is not divided has no look at its head.
        for number in range(100):
            stored.pipe_file(f"/captures/small/{number:03}.pcap", data[:10_000])
        asked.clear()
        for captures in ("memory://captures/small", "memory://captures/small/*.pcap"):
            plan = pieces.plan("count", captures)
            names, size = since()
            assert len(plan.files) == 100 and size == 0 and names.count("info") < 5
        plan = pieces.plan("count", [f"memory://captures/small/{number:03}.pcap" for number in range(100)])
        names, size = since()
        assert names.count("info") < 5 and names.count("ls") <= 3 and size == 0
        # Each file is charged 4 MB: 100 of them are two tasks of 256 MB.
        assert len(plan.tasks) == 2
        pieces.map(plan.tasks[0])
        names, size = since()
        # Behind each file, whether it is still the one that was listed.
        assert names == ["cat_file", "info"] * len(plan.tasks[0].pieces)


def test_a_server_of_s3_gives_the_same_answer(monkeypatch):
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    import s3fs

    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": f"http://{host}:{port}", "region_name": "eu-central-1"}}
    try:
        system = s3fs.S3FileSystem(**options)
        system.mkdir("captures")
        for path in TRACES:
            system.pipe_file(f"captures/{os.path.basename(path)}", Path(path).read_bytes())
        whole = fs.count(sorted(TRACES))
        for captures in ("s3://captures/*.pcap", "s3://captures", [f"s3://captures/{os.path.basename(path)}" for path in sorted(TRACES)]):
            with ThreadPoolExecutor(2) as pool:
                counted = pieces.run("count", captures, submit=pool.submit, task_bytes=300_000, storage_options=options)
            assert counted.slices.to_arrow().equals(whole.slices.to_arrow())
        with pytest.raises(fs.Error, match="^s3://captures/missing.pcap: no such file"):
            pieces.plan("count", "s3://captures/missing.pcap", storage_options=options)
    finally:
        server.stop()


@pytest.mark.parametrize("command", ["count", "flows", "export", "top"])
def test_a_report_that_lacks_parts_is_an_error(command):
    plan = pieces.plan(command, TRACES[0], task_bytes=100_000)
    parts = parts_of(plan)
    with pytest.raises(fs.Error, match="elements came"):
        pieces.report(plan, [pieces.reduce(plan.reducer(), parts[: len(parts) // 2])])


def test_a_report_that_lacks_the_count_of_all_slices_is_an_error():
    plan = pieces.plan("count", TRACES[0])
    parts = parts_of(plan)
    # More buckets than shards: the elements of a shard come from several.
    reduced = pieces.reduce(plan.reducer(1000), parts)
    assert reduced.wholes
    with pytest.raises(fs.Error, match="no tally of all slices"):
        pieces.report(plan, [reduced._replace(wholes=[])])


def test_tasks_of_a_cut_file_may_run_twice(tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(TRACES[0]).read_bytes()[:300_001])
    plan = pieces.plan("count", str(cut), task_bytes=50_000)
    tasks, parts = plan.tasks, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while tasks:
            mapped = [pieces.map(task) for task in [*tasks, *tasks]]
            parts += [part for one in mapped for part in one[1]]
            tasks = pieces.join(plan, [end for one in mapped for end in one[0]])
        counted = pieces.report(plan, [pieces.reduce(plan.reducer(), parts)])
        equal(counted, fs.count(str(cut)))
