"""A count in pieces has the answer of one run, to the bit, whatever the pieces; without an engine."""

import functools
import gzip
import json
import os
import pickle
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsieve as fs
from flowsieve import _divided
from flowsieve._divided import Divided, ReadAhead, RemoteFile, counted_here, done_here, words_of
from flowsieve._results import Counts, Export, Flows, Top
from flowsieve._run import Command

ROOT = Path(__file__).resolve().parents[2]
TRACES = [str(ROOT / "traces" / name) for name in ("generated.pcap", "netns-dns.pcap", "netns-mirror.pcap", "netns-web-loss.pcap")]
SHARED = os.environ.get("FLOWSIEVE_TRACES")
STRUCTURES = [
    "subset", "bloom", "mdbf", "cmdbf", "bfm", "cbfm", "wcbfm", "cartesian", "counting", "split-counting", "scalable",
    "dleft", "hll", "exact",
]  # fmt: skip


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
    ],
    ids=str,
)
def test_rankings_have_it(options):
    whole = fs.top(TRACES, **options)
    divided = Top(done_here("top", TRACES, 100_000, 10_000, **options)[0])
    assert divided.keys.to_arrow().equals(whole.keys.to_arrow())
    assert divided.document == whole.document


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "idle": "500ms"}, {"active": "1s", "names": "zeek"}], ids=str)
def test_lists_of_flows_have_it(options):
    pyarrow = pytest.importorskip("pyarrow")
    whole = fs.flows(TRACES, **options)
    flows = whole.flows.to_arrow()
    command, shards = done_here("flows", TRACES, 100_000, 10_000, **options)
    divided = Flows(command)
    assert divided.flows.to_arrow().num_rows == 0
    rows = pyarrow.concat_tables([pyarrow.table(shard) for shard in shards])
    start = flows.column_names[0]
    places = [name for name in rows.column_names if name.startswith("begun_")]
    rows = rows.sort_by([(name, "ascending") for name in [start, *places]]).drop_columns(places)
    assert rows.combine_chunks().equals(flows.combine_chunks())
    assert divided.document == whole.document


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
    pyarrow = pytest.importorskip("pyarrow")
    whole = fs.export(captures, **options)
    expected = whole.rows.to_arrow()
    command, shards = done_here("export", captures, 100_000, 10_000, **options)
    divided = Export(command)
    assert divided.rows.to_arrow().num_rows == 0
    rows = pyarrow.concat_tables([pyarrow.table(shard) for shard in shards]) if shards else expected[:0]
    places = [name for name in rows.column_names if name.startswith("begun_")]
    rows = rows.sort_by([(name, "ascending") for name in places]).drop_columns(places) if places else rows
    if not rows.combine_chunks().equals(expected.combine_chunks()):
        order = [(name, "ascending") for name in expected.column_names]
        assert rows.sort_by(order).combine_chunks().equals(expected.sort_by(order).combine_chunks())
        assert not options.get("all"), "packets are in the order of the trace"
    assert divided.document == whole.document


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
    divided = Divided(words_of("count", {}), [gone])
    os.remove(gone)
    with pytest.raises(fs.Error, match="gone.pcap"):
        list(divided.share().read(divided.pieces[0]))
    with pytest.raises(fs.Error, match="captures: name at least one"):
        counted_here([])


#: Runs with their rows in memory: those of one process, and those in pieces.
COMMANDS = {
    "count": (fs.count, Counts, "slices"),
    "top": (fs.top, Top, "keys"),
    "flows": (fs.flows, Flows, "flows"),
    "export": (fs.export, Export, "rows"),
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
    function, _, rows = COMMANDS[command]

    def run():
        result = function(captures)
        table = getattr(result, rows)
        return result, [table if isinstance(table, fs.Table) else table.read()]

    return ended(run)


def in_pieces(command, captures, task_bytes=100_000):
    def run():
        done, shards = done_here(command, captures, task_bytes, skip_unreadable=True)
        result = COMMANDS[command][1](done)
        if command in ("flows", "export"):
            result._rows.read()
            return result, [fs.Table(shard) for shard in shards]
        return result, [getattr(result, COMMANDS[command][2])]

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
def test_a_file_that_changes_after_the_plan_is_named_and_asked_for_once(tmp_path, monkeypatch, command, replaced):
    """The first range is unreadable, which was asked for again and again."""
    gone = tmp_path / "gone.pcap"
    share = Divided.share

    def change(self):
        assert len(self.pieces) > 4
        if replaced is None:
            gone.unlink()
        else:
            gone.write_bytes(replaced)
        return share(self)

    monkeypatch.setattr(Divided, "share", change)
    for captures in ([gone], [gone, TRACES[1]]):
        gone.write_bytes(Path(TRACES[0]).read_bytes())
        end, said = in_pieces(command, captures)
        if len(captures) == 1:
            assert end[0] is fs.Error and "gone.pcap" in end[1]
        else:
            document, complete, _ = end
            assert not complete and "gone.pcap" in document["inputs"][0]["error"]
            assert document["totals"]["packets"] == fs.count(TRACES[1]).totals.packets
            assert len(said) == 1 and "gone.pcap" in said[0]


def test_ranges_that_are_not_read_are_bounded_and_named(tmp_path):
    """Every range of a file is unreadable, or answers otherwise whenever it is read."""
    divided = Divided(words_of("count", {}), TRACES[:1], 100_000)
    share = divided.share()
    parts = {piece: list(share.read(piece))[-1][2] for piece in divided.pieces}

    def unread(piece):
        return divided.job.unread(piece, f"{TRACES[0]}: nothing to read")

    with pytest.raises(fs.Error, match="generated.pcap: nothing to read"):
        divided.join([unread(piece) for piece in divided.pieces])
    assert divided.join([parts[piece] for piece in divided.pieces]) == []
    # The second range never begins where the first one ended.
    first, second, *others = divided.pieces
    start = {"offset": json.loads(others[0])["bytes"]["start"], "packets": 7}
    moved = unread(json.dumps({**json.loads(second), "start": start}))
    inputs = [parts[first], moved, *(parts[piece] for piece in others)]
    [again] = divided.join(inputs)
    assert json.loads(again)["range"] == 1 and json.loads(again)["start"]
    with pytest.raises(fs.Error, match="generated.pcap: this file changed") as error:
        divided.join([*inputs, moved])
    assert error.value.path == TRACES[0]
    # Nobody reads it at all.
    with pytest.raises(fs.Error, match="generated.pcap: .* again and again"):
        for _ in range(len(divided.pieces)):
            divided.join(inputs)


def test_the_text_of_a_run_has_its_version_and_all_that_it_depends_on():
    of_text = _divided._native.DividedJob.of_text
    for command in COMMANDS:
        text = json.loads(Divided(words_of(command, {}), TRACES[:1]).job.text())
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
    divided = Divided(words_of("count", {}), TRACES[:1])
    piece = json.loads(divided.pieces[0])
    with pytest.raises(fs.Error, match="unknown field `colour`"):
        list(divided.share().read(json.dumps({**piece, "colour": 1})))


def test_what_cannot_be_divided_is_refused_by_name(tmp_path):
    for chosen, name in (
        ({"html": tmp_path / "x.html"}, "--html"),
        ({"save_filter": tmp_path / "x", "slice": "all"}, "--save-filter"),
        ({"follow": True}, "--follow"),
    ):
        with pytest.raises(fs.UsageError, match=name):
            counted_here(TRACES[0], **chosen)
    with pytest.raises(fs.UsageError, match="no option colour"):
        counted_here(TRACES[0], colour="red")


def test_a_share_can_go_to_another_process():
    divided = Divided(words_of("count", {"element": "flow"}), TRACES, 100_000)
    share = pickle.loads(pickle.dumps(divided.share()))
    assert list(share.read(divided.pieces[0])) == list(divided.share().read(divided.pieces[0]))
    # Reading again gives the same bytes.
    assert list(share.read(divided.pieces[1])) == list(share.read(divided.pieces[1]))


def test_small_files_are_read_by_one_task(tmp_path):
    for number in range(400):
        (tmp_path / f"{number:03}.pcap").write_bytes(Path(TRACES[1]).read_bytes()[:2000])
    divided = Divided(words_of("count", {}), tmp_path)
    assert len(divided.pieces) == 400 and len(divided.tasks()) == 1


def test_hostile_bytes_are_refused():
    divided = Divided(words_of("count", {}), TRACES[:1])
    share = divided.share()
    rows = list(share.read(divided.pieces[0]))
    assert divided.join([data for _, shard, data in rows if shard < 0]) == []
    reduce = share.reducer(divided.job.table())
    slice_, shard, part = rows[0]
    for place in range(0, len(part), max(1, len(part) // 50)):
        with pytest.raises(fs.Error):
            reduce(slice_, shard, [part[:place]])
    with pytest.raises(fs.Error):
        divided.join([b"nothing"])
    with pytest.raises(fs.Error, match="no run"):
        _divided._native.DividedJob.of_text("{}")


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

    def test_they_are_divided_into_ranges(self, stored):
        divided = Divided(words_of("count", {}), "memory://captures/generated.pcap", 100_000)
        assert len(divided.pieces) > 4

    def test_files_are_read_ahead_and_a_short_answer_is_an_error(self, stored, monkeypatch):
        monkeypatch.setattr(_divided, "REQUEST_BYTES", 1000)
        whole = Path(TRACES[0]).read_bytes()
        file = RemoteFile("memory://captures/generated.pcap")(100)
        read = b"".join(iter(lambda: file.read(333), b""))
        assert read == whole[100:]
        monkeypatch.setattr(stored, "cat_file", lambda *_, **__: b"short")
        with pytest.raises(OSError, match="5 of 1000 bytes came"):
            ReadAhead(stored, "/captures/generated.pcap", 0).read(10)

    def test_what_stays_broken_raises_and_what_heals_is_read(self, stored, monkeypatch):
        divided = Divided(words_of("count", {}), "memory://captures/generated.pcap")
        honest = type(stored).cat_file
        failures = [OSError("503 slow down")]

        def sometimes(self, path, start=None, end=None, **more):
            if failures:
                raise failures.pop()
            return honest(self, path, start, end, **more)

        monkeypatch.setattr(type(stored), "cat_file", sometimes)
        share = divided.share()
        with pytest.raises(Exception, match="503"):
            list(share.read(divided.pieces[0]))
        rows = list(share.read(divided.pieces[0]))
        divided.join([data for _, shard, data in rows if shard < 0])
        reduce = share.reducer(divided.job.table())
        places = {(slice_, shard) for slice_, shard, _ in rows if shard >= 0}
        tallies = [reduce(*place, [data for *at, data in rows if tuple(at) == place])[0] for place in places]
        assert Counts(Command.over(divided.report(tallies))).totals.packets == 8000
