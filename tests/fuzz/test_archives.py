"""Damaged results and checkpoints: each loads to the same content, or is refused by one of our errors."""

import io
import json
import os
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

import mixbin as mb
from tests.fuzz.amount import amount, derandomized
from tests.instances import quadratic

FLIPS, CUTS = amount(150, 0.1), amount(40, 0.025)
SETTINGS = {"seed": 3, "starts": 2, "max_evaluations": 60}


def problem():
    return quadratic(mb.Budget(12, 4), 0, n_lam=1)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A result and a checkpoint in the middle of a run, as files, with what they hold."""
    folder = tmp_path_factory.mktemp("originals")
    result = mb.relax_and_penalize(problem(), **SETTINGS)
    result.save(folder / "result")
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == 15:
            event.stop()

    mb.relax_and_penalize(problem(), **SETTINGS, checkpoint=folder / "checkpoint", callbacks=[stop])
    return {kind: (folder / kind).read_bytes() for kind in ("result", "checkpoint")}


def content(kind, path):
    """All that a file says: of a checkpoint, the run that goes on from it."""
    result = mb.Result.load(path) if kind == "result" else mb.relax_and_penalize(problem(), **SETTINGS, checkpoint=path)
    arrays = [result.theta, result.lam, result.relaxed.theta, result.relaxed.lam]
    frame = result.trace.to_frame().drop(columns="seconds")
    return [array.tobytes() for array in arrays], frame.to_csv(), repr(result), str(result.certificate), result.seed


def refused_or_same(kind, path, expected):
    """Whether a file is refused; what is not must hold the same content."""
    try:
        found = content(kind, path)
    except mb.InvalidInput as error:
        message = str(error)
    else:
        assert found == expected
        return False
    assert str(path) in message
    return True


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.mark.usefixtures("no_waiting_for_the_disk")
@pytest.mark.parametrize("kind", ["result", "checkpoint"])
def test_flipped_bits(kind, originals, tmp_path):
    path, whole = tmp_path / kind, originals[kind]
    path.write_bytes(whole)
    expected = content(kind, path)
    rng = np.random.default_rng(0 if derandomized() else None)
    refused = 0
    for bit in rng.choice(8 * len(whole), min(FLIPS, 8 * len(whole)), replace=False):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        refused += refused_or_same(kind, path, expected)
    assert refused > FLIPS // 3, "most flips are in the data, whose checksum is compared"


@pytest.mark.usefixtures("no_waiting_for_the_disk")
@pytest.mark.parametrize("kind", ["result", "checkpoint"])
def test_truncated(kind, originals, tmp_path):
    path, whole = tmp_path / kind, originals[kind]
    path.write_bytes(whole)
    expected = content(kind, path)
    rng = np.random.default_rng(1 if derandomized() else None)
    for length in rng.choice(len(whole), min(CUTS, len(whole)), replace=False):
        path.write_bytes(whole[:length])
        assert refused_or_same(kind, path, expected)


# Made on purpose.


def members(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(parts, **keywords):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **keywords) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    return out.getvalue()


def npy(array, shape=None, **keywords):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **keywords)
    data = out.getvalue()
    return data if shape is None else data.replace(f"({array.size},)".encode(), shape, 1)


def without(name):
    return lambda parts: zipped([it for it in parts.items() if it[0] != name])


def with_member(name, data):
    return lambda parts: zipped((parts | {name: data}).items())


def encrypted(parts):
    raw = bytearray(zipped(parts.items()))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(sign)
        while at >= 0:
            raw[at + place] |= 1
            at = raw.find(sign, at + 4)
    return bytes(raw)


HOSTILE = {
    "no header": without("header.npy"),
    "no theta": without("theta.npy"),
    "no column": without("trace_G.npy"),
    "one more array": with_member("surprise.npy", npy(np.zeros(2))),
    "not an array": with_member("notes.txt", b"hello"),
    "a path": with_member("../theta.npy", npy(np.zeros(2))),
    "the same name twice": lambda parts: zipped([*parts.items(), ("theta.npy", parts["theta.npy"])]),
    "bzip2": lambda parts: zipped(parts.items(), compression=zipfile.ZIP_BZIP2),
    "lzma": lambda parts: zipped(parts.items(), compression=zipfile.ZIP_LZMA),
    "encrypted": encrypted,
    "pickled": with_member("theta.npy", npy(np.array([1, "a", None], dtype=object), allow_pickle=True)),
    "a huge shape": with_member("lam.npy", npy(np.zeros(1), b"(9999999999999,)")),
    "a negative shape": with_member("lam.npy", npy(np.zeros(1), b"(-1,)")),
    "a shape that overflows": with_member("lam.npy", npy(np.zeros(1), b"(4294967296, 4294967296, 0)")),
    "text for numbers": with_member("lam.npy", npy(np.array(["a"]))),
    "complex numbers": with_member("lam.npy", npy(np.array([1j]))),
    "whole numbers for theta": with_member("theta.npy", npy(np.zeros(12, dtype=np.int64))),
    "a record": with_member("lam.npy", npy(np.zeros(1, dtype=[("a", "f8")]))),
    "truth values of 7": with_member("theta.npy", npy(np.zeros(12, dtype=np.uint8)).replace(b"'|u1'", b"'|b1'")[:-1] + b"\x07"),
    "text that is not Unicode": with_member("trace_phase.npy", npy(np.full(3, 2**31, dtype="<u4")).replace(b"'<u4'", b"'<U1'")),
    "an empty array": with_member("theta.npy", b""),
    "a header that is a list": with_member("header.npy", npy(np.frombuffer(b"[1, 2]", dtype=np.uint8))),
    "a header that is a number": with_member("header.npy", npy(np.frombuffer(b"3", dtype=np.uint8))),
    "a header of nothing": with_member("header.npy", npy(np.frombuffer(b"", dtype=np.uint8))),
    "a deep header": with_member("header.npy", npy(np.frombuffer(b"[" * 300_000, dtype=np.uint8))),
    "a bomb": lambda parts: zipped(
        (parts | {"theta.npy": npy(np.zeros(10**7))}).items(), compression=zipfile.ZIP_DEFLATED, compresslevel=9
    ),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_archives(how, originals, tmp_path):
    path = tmp_path / "result"
    path.write_bytes(originals["result"])
    parts = members(originals["result"])
    with pytest.warns(UserWarning, match="Duplicate name") if how == "the same name twice" else nullcontext():
        path.write_bytes(HOSTILE[how](parts))
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result, or is damaged"):
        mb.Result.load(path)


def test_nothing_is_unpickled(originals, tmp_path, monkeypatch):
    """Also not where a file asks for it."""
    path = tmp_path / "result"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "unpickled"),)

    data = npy(np.array([Trap()], dtype=object), allow_pickle=True)
    path.write_bytes(with_member("theta.npy", data)(members(originals["result"])))
    with pytest.raises(mb.InvalidInput):
        mb.Result.load(path)
    assert not (tmp_path / "unpickled").exists()


def rewritten(parts, change):
    """The archive with its header changed as a dictionary."""
    header = json.loads(bytes(np.load(io.BytesIO(parts["header.npy"]))))
    change(header)
    return zipped((parts | {"header.npy": npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))}).items())


@pytest.mark.parametrize("number", [1, 2])
def test_results_of_earlier_formats_still_load(number, originals, tmp_path):
    """The first does not list its arrays, neither has settings or a lower bound."""
    path = tmp_path / "result"

    def older(header):
        header["format"] = number
        del header["settings"], header["certificate"]["lower_bound"], header["certificate"]["value"]
        if number == 1:
            del header["arrays"]

    path.write_bytes(rewritten(members(originals["result"]), older))
    loaded = mb.Result.load(path)
    assert loaded.settings == {}
    assert np.isnan(loaded.certificate.lower_bound)
    path.write_bytes(originals["result"])
    whole = mb.Result.load(path)
    assert loaded.trace.to_frame().equals(whole.trace.to_frame())
    assert whole.settings["method"] == "relax_and_penalize"


@pytest.mark.parametrize(
    "settings",
    [
        None,
        3,
        "starts",
        [],
        [["starts", 1]],
        {"starts": {}},
        {"starts": [[1]]},
        {"a": [{}]},
        {"preferred": 3},
        {"preferred": [1]},
    ],
    ids=str,
)
def test_settings_that_no_run_has(settings, originals, tmp_path):
    path = tmp_path / "result"
    path.write_bytes(rewritten(members(originals["result"]), lambda header: header.update(settings=settings)))
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result, or is damaged"):
        mb.Result.load(path)


def test_settings_cannot_be_left_out(originals, tmp_path):
    path = tmp_path / "result"
    path.write_bytes(rewritten(members(originals["result"]), lambda header: header.pop("settings")))
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result, or is damaged"):
        mb.Result.load(path)


def test_settings_are_shown_as_text(originals, tmp_path):
    path = tmp_path / "result"
    hostile = {"method": "<script>", "solver": "<b>" * 3, "preferred": ["<i>"], "starts": None}
    path.write_bytes(rewritten(members(originals["result"]), lambda header: header.update(settings=hostile)))
    assert "<script>" not in mb.Result.load(path)._repr_html_()
