"""Filters: their laws, and that a notebook and the program have the same."""

import ipaddress

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
    estimate = saved.estimate()
    assert estimate.lower <= counted.totals.exact <= estimate.upper


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
    with pytest.raises(fs.UsageError, match="there are 2 attributes"):
        fs.Filter(attributes=2).insert(1)
    with pytest.raises(fs.UsageError, match="not of one length"):
        fs.Filter(attributes=2).insert([1, 2], [1])
    with pytest.raises(fs.Error, match="missing"):
        fs.Filter.load(tmp_path / "missing.fsieve")
