"""Filters: their laws, and that a notebook and the program have the same."""

import concurrent.futures
import ipaddress
import operator
import os
import pathlib
import pickle
import signal
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsieve as fs

numpy = pytest.importorskip("numpy")

STRUCTURES = ["subset", "bloom", "mdbf", "cmdbf", "bfm", "cbfm", "counting", "dleft", "scalable"]
WORDS = st.lists(st.integers(0, 2**64 - 1), max_size=200)


@pytest.mark.parametrize("structure", STRUCTURES)
@settings(deadline=None, max_examples=25)
@given(elements=WORDS)
def test_no_element_is_ever_denied(structure, elements):
    made = fs.Filter(structure, memory="64KiB", attributes=2)
    values = numpy.array(elements, dtype=numpy.uint64)
    made.insert(values, values)
    assert made.contains(values, values).all()
    assert all((int(value), int(value)) in made for value in values[:5])


@settings(deadline=None, max_examples=25)
@given(one=WORDS, two=WORDS)
def test_a_union_is_the_filter_of_both(one, two):
    def made(elements):
        made = fs.Filter("cmdbf", memory="4KiB", attributes=1)
        made.insert(elements)
        return made

    a, b, both = made(one), made(two), made(one + two)
    united = a | b
    probes = numpy.arange(3000, dtype=numpy.uint64)
    assert (united.contains(probes) == both.contains(probes)).all()
    assert a.contains(numpy.array(one, dtype=numpy.uint64)).all()


def test_values_of_every_kind_have_one_digest():
    made = fs.Filter("bloom", memory="64KiB")
    made.insert([1, -1, "text", b"bytes", ipaddress.ip_address("10.0.0.1")])
    for value in [1, numpy.uint64(1), numpy.int64(-1), 2**64 - 1, "text", b"text", "bytes", b"\x0a\0\0\1"]:
        assert made.contains(value) is True
    assert made.contains(2) is False
    assert made.contains(numpy.array([1, 2, -1])).tolist() == [True, False, True]


def test_queries_name_attributes(tmp_path):
    made = fs.Filter("mdbf", memory="64KiB", attributes=["src", "dst"])
    made.insert(["a", "b"], ["x", "y"])
    assert made.query(src="a") == "yes"
    assert made.query(src="c") == "no"
    # An MDBF keeps each attribute for itself; a CMDBF their combination as well.
    assert made.query(src="a", dst="x") == made.query(src="a", dst="y") == "apart"
    combined = fs.Filter("cmdbf", memory="64KiB", attributes=["src", "dst"])
    combined.insert(["a", "b"], ["x", "y"])
    assert [combined.query(src="a", dst=dst) for dst in "xyz"] == ["yes", "no", "no"]
    path = tmp_path / "f.fsieve"
    made.save(path)
    loaded = fs.Filter.load(path)
    assert loaded.query(src="b") == "yes" and loaded.attributes == ["src", "dst"]
    assert loaded.memory_bytes == made.memory_bytes
    with pytest.raises(fs.UsageError, match="there is no attribute port"):
        made.query(port=1)


def test_a_filter_of_a_count_is_asked(trace, tmp_path):
    path = tmp_path / "pairs.fsieve"
    counted = fs.count(trace, slice="all", filter="cmdbf", save_filter=path)
    pairs = fs.export(trace, element="host-pair", slice="all").rows.read()
    saved = fs.Filter.load(path)
    assert saved.element == "host-pair"
    for src, dst in list(zip(pairs["src"], pairs["dst"]))[:200]:
        assert saved.contains(src, dst)
        assert saved.query(src=src) == "yes"
    assert saved.query(src="203.0.113.77", dst="203.0.113.78") == "no"
    for ask in (lambda: saved.contains(["10.0.0.1"], ["10.0.0.2"]), lambda: saved.query(src=numpy.array(["10.0.0.1"]))):
        with pytest.raises(fs.UsageError, match="one element at a time; give single values, not columns"):
            ask()
    estimate = saved.estimate()
    assert estimate.lower <= counted.totals.exact <= estimate.upper


def test_of_a_crowded_filter_other_elements_are_not_known(trace, tmp_path):
    path = tmp_path / "flows.fsieve"
    counted = fs.count(trace, element="flow", slice="all", memory=64, save_filter=path)
    saved = fs.Filter.load(path)
    assert saved.stage > 0
    pairs = [("10.1.0.1", "10.2.0.1", 6, 1234, port) for port in range(64)]
    answers = [saved.query(**dict(zip(saved.attributes, pair))) for pair in pairs]
    assert answers.count("unknown") > 16
    for pair, answer in zip(pairs, answers):
        if answer == "unknown":
            with pytest.raises(fs.UsageError, match="not at this one"):
                saved.contains(*pair)
        else:
            assert saved.contains(*pair) == (answer == "yes")
    estimate = saved.estimate()
    assert estimate.lower <= counted.totals.exact <= estimate.upper


def test_a_full_filter_has_no_upper_bound():
    made = fs.Filter("bloom", memory=64)
    made.insert(range(5_000))
    assert made.estimate().upper is None


def test_estimates_hold():
    made = fs.Filter("subset", memory="64KiB")
    made.insert(numpy.arange(20_000, dtype=numpy.uint64))
    made.insert(numpy.arange(20_000, dtype=numpy.uint64))
    estimate = made.estimate()
    assert abs(estimate.distinct - 20_000) < 5 * estimate.std_error + 1


def test_a_deletion_undoes_an_insertion():
    made = fs.Filter("counting", memory="64KiB")
    made.insert([1, 2])
    made.remove(1)
    assert made.contains([1, 2]).tolist() == [False, True]
    with pytest.raises(fs.UsageError, match="cannot be removed"):
        plain = fs.Filter("bloom")
        plain.insert(1)
        plain.remove(1)


def test_what_does_not_go_together_is_refused(tmp_path):
    with pytest.raises(fs.UsageError, match="no filter is called"):
        fs.Filter("sieve")
    with pytest.raises(fs.UsageError, match="is no size"):
        fs.Filter(memory="much")
    with pytest.raises(fs.UsageError, match="a name has no comma"):
        fs.Filter(attributes=["a,b", "b"])
    with pytest.raises(fs.UsageError, match="masked"):
        fs.Filter().insert(numpy.ma.array([5, 6], mask=[0, 1]))
    with pytest.raises(fs.UsageError, match="there are 2 attributes"):
        fs.Filter(attributes=2).insert(1)
    with pytest.raises(fs.UsageError, match="not of one length"):
        fs.Filter(attributes=2).insert([1, 2], [1])
    with pytest.raises(fs.Error, match="missing"):
        fs.Filter.load(tmp_path / "missing.fsieve")
    numbers = [("seed", -1), ("seed", "x"), ("expect", -1), ("expect", 1.5), ("shards", -1)]
    for name, wrong in [*numbers, ("attributes", 1.5), ("attributes", [1])]:
        with pytest.raises(fs.UsageError, match=f"^{name}: give .*not "):
            fs.Filter(**{name: wrong})
    with pytest.raises(fs.UsageError, match="^fpr: a rate is a number"):
        fs.Filter(fpr="x", expect=10)
    for unite in (lambda: fs.Filter() | 5, lambda: operator.ior(fs.Filter(), 5)):
        with pytest.raises(TypeError, match="unsupported operand"):
            unite()
    assert fs.Filter(attributes=numpy.int64(2), seed=numpy.int64(3)).attributes == ["a0", "a1"]


def test_bytes_of_every_kind_are_one_value():
    for kind in (bytes, bytearray, memoryview):
        made = fs.Filter("bloom")
        made.insert(kind(b"abc"))
        assert all(made.contains(same(b"abc")) is True for same in (bytes, bytearray, memoryview))
        assert made.query(a0=bytearray(b"abc")) == "yes"
        assert made.contains([kind(b"abc"), 97]).tolist() == [True, False] and made.estimate().distinct < 1.5
    # Views of other memory are columns of numbers.
    made.insert(memoryview(numpy.array([1, 2])))
    assert made.contains([1, 2, 3]).tolist() == [True, True, False]


def test_what_is_no_column_of_values_is_refused_in_a_sentence():
    made = fs.Filter("bloom")
    network = ipaddress.ip_network("10.0.0.0/30")
    for wrong, sentence in [
        (network, "not IPv4Network"),
        ([network], "not IPv4Network"),
        (numpy.array([[1, 2], [3, 4]]), "has 2; give each of its columns"),
        (numpy.array([["a", "b"]]), "has 2; give each of its columns"),
        ([numpy.array([1, 2])], "not ndarray"),
        (numpy.array(1.5), "not ndarray"),
        ("\ud800", "written as UTF-8"),
    ]:
        with pytest.raises(fs.UsageError, match=sentence):
            made.insert(wrong)
    assert made.estimate().distinct == 0
    made.insert(numpy.array(5))
    assert made.contains(5) is True


def test_texts_of_pyarrow_are_a_column():
    pyarrow = pytest.importorskip("pyarrow")
    for kind in (pyarrow.array, lambda texts: pyarrow.array(texts).dictionary_encode(), lambda texts: pyarrow.chunked_array([texts])):
        made = fs.Filter("bloom")
        made.insert(kind(["a", "b"]))
        assert made.contains(kind(["a", "c"])).tolist() == [True, False]
    for column in (["a", None], [1, None]):
        with pytest.raises(fs.UsageError, match="not NoneType"):
            made.insert(pyarrow.array(column))


@pytest.fixture
def saved(tmp_path):
    """A folder with a saved filter, and what it holds."""
    path = tmp_path / "folder" / "f.fsieve"
    path.parent.mkdir()
    fs.Filter("bloom").save(path)
    return path, path.read_bytes()


def other():
    """A filter with other bytes."""
    made = fs.Filter("bloom")
    made.insert([1, 2, 3])
    return made


def test_a_save_that_fails_leaves_what_was_there(saved, tmp_path):
    path, content = saved
    target = tmp_path / "taken"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(fs.Error, match="taken.*cannot be saved"):
        other().save(target)
    assert [one.name for one in target.iterdir()] == ["inside"]
    with pytest.raises(fs.Error, match="cannot be saved"):
        other().save(tmp_path / "missing" / "f.fsieve")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "taken"]
    # No room for a file of this size: the write fails in the middle.
    script = f"""
import resource, signal, flowsieve as fs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    fs.Filter("bloom").save({str(path)!r})
except fs.Error as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "f.fsieve" in said and "cannot be saved" in said
    assert path.read_bytes() == content and [one.name for one in path.parent.iterdir()] == ["f.fsieve"]


def test_a_save_into_a_folder_that_is_read_only_leaves_nothing(saved):
    path, content = saved
    path.parent.chmod(0o555)
    # Root may write there all the same, so somebody else tries.
    script = f"""
import os, pathlib
import flowsieve as fs
made = fs.Filter("bloom")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    made.save({path.name!r})
except fs.Error as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=path.parent).stdout
    path.parent.chmod(0o755)
    assert "cannot be saved" in said
    assert path.read_bytes() == content and [one.name for one in path.parent.iterdir()] == ["f.fsieve"]


def test_a_save_takes_no_name_of_others(saved, tmp_path):
    path, content = saved
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    # Names that a temporary file might have: links to a file of somebody, and files.
    decoys = [f".flowsieve-{name}.tmp" for name in ("", "a", os.getpid(), f"{os.getpid()}.0", path.name)]
    decoys += [f"{path.name}.tmp", f"{path.name}.{os.getpid()}.tmp", f".{path.name}.tmp", f".flowsieve-{path.name}", *map(str, range(200))]
    for number, name in enumerate(decoys):
        if number % 2:
            (path.parent / name).symlink_to(victim)
        else:
            (path.parent / name).write_bytes(b"theirs")
    made = other()
    made.save(path)
    assert path.read_bytes() != content and fs.Filter.load(path).contains([1, 4]).tolist() == [True, False]
    assert victim.read_bytes() == b"mine"
    assert sorted(one.name for one in path.parent.iterdir()) == sorted([*decoys, path.name])
    for number, name in enumerate(decoys):
        assert (path.parent / name).read_bytes() == (b"mine" if number % 2 else b"theirs")


def test_a_save_leaves_links_pipes_and_devices_what_they_are(saved, tmp_path):
    path, _ = saved
    path.chmod(0o640)
    link = tmp_path / "link.fsieve"
    link.symlink_to(path)
    made = other()
    made.save(link)
    assert link.is_symlink() and fs.Filter.load(path).contains([1, 4]).tolist() == [True, False]
    assert path.stat().st_mode & 0o777 == 0o640
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        content = pool.submit(pipe.read_bytes)
        made.save(pipe)
        assert content.result() == path.read_bytes()
    assert pipe.is_fifo()
    # Nothing reads it again, and the user does not wait for ever.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            made.save(pipe)
    finally:
        signal.signal(signal.SIGALRM, before)
    if os.getuid() == 0:
        device = tmp_path / "null"
        try:
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            return
        made.save(device)
        assert device.is_char_device()


def test_nothing_is_saved_among_the_files_of_an_index(trace, tmp_path):
    index = fs.Index.build(tmp_path / "archive", trace)
    with pytest.raises(fs.Error, match="inside the directory of the index"):
        other().save(tmp_path / "archive" / "f.fsieve")
    assert index.verify().complete


def test_a_filter_of_a_damaged_capture_says_so(trace, tmp_path):
    damaged, half, whole = (str(tmp_path / name) for name in ("cut.pcap", "half", "whole"))
    pathlib.Path(damaged).write_bytes(pathlib.Path(trace).read_bytes()[:100_001])
    options = {"slice": "all", "filter": "bloom", "memory": "64KiB"}
    with pytest.warns(fs.InputWarning, match="the file ends inside"):
        fs.count(damaged, save_filter=half, **options)
    fs.count(trace, save_filter=whole, **options)
    with pytest.warns(fs.InputWarning, match="could not be read to its end when this filter was saved") as said:
        loaded = fs.Filter.load(half)
    assert said[0].filename == __file__
    assert not loaded.complete and "not complete" in repr(loaded)
    complete = fs.Filter.load(whole)
    assert complete.complete and "complete" not in repr(complete)
    for united in (complete | loaded, loaded | complete, pickle.loads(pickle.dumps(loaded))):
        assert not united.complete
    assert fs.Filter("bloom").complete


def test_integers_beyond_64_bits_are_refused():
    made = fs.Filter("bloom", memory="64KiB")
    made.insert([1, 2**64 - 1])
    for number in (2**64, -(2**63) - 1, int(ipaddress.ip_address("2001:db8::1"))):
        with pytest.raises(fs.UsageError, match="more than 64 bits"):
            made.contains(number)
