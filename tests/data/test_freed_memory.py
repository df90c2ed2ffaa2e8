"""Workers whose memory is nearly full return what they have freed."""

from types import SimpleNamespace

import distributed
import psutil
import pytest

from mixbin.data import freed_memory


@pytest.fixture
def trims(monkeypatch):
    """Counts how often memory is returned, with 500 bytes in use."""
    seen = []
    monkeypatch.setattr(freed_memory, "_trim", lambda: seen.append(1))
    memory = SimpleNamespace(rss=500)
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: memory))
    return seen


@pytest.mark.parametrize(("limit", "expected"), [(1000, 0), (800, 1), (0, 0), (None, 0)])
def test_from_six_tenths_of_the_limit_on(limit, expected, trims, monkeypatch):
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=limit))
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    freed_memory.return_freed_memory_of_worker()
    assert len(trims) == expected
    assert freed_memory.called(max, 3, 4) == 4
    with pytest.raises(ZeroDivisionError):
        freed_memory.called(divmod, 1, 0)
    assert len(trims) == 3 * expected


def test_threads_that_are_no_workers_have_no_limit(trims):
    freed_memory.return_freed_memory_of_worker()
    assert not trims


def test_the_client_returns_memory():
    freed_memory.return_freed_memory()
