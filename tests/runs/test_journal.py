"""Which thread writes, and when."""

import signal
import threading

import pytest

import gosprl
from gosprl.runs import files, verify

RIVER = gosprl.envs.make("riverswim6")


def test_a_short_run_is_written_by_its_own_thread(tmp_path, monkeypatch):
    threads = set()

    def noted(fd):
        threads.add(threading.current_thread())
        return files.Disk.fsync(fd)

    monkeypatch.setattr(files.disk, "fsync", noted)
    gosprl.collect(RIVER, 3, seed=0, out=tmp_path / "run")
    assert threads == {threading.current_thread()}
    assert verify(tmp_path / "run").ok


def test_ctrl_c_waits_for_the_last_write(tmp_path, monkeypatch):
    calls = 0

    def interrupted(fd):
        nonlocal calls
        calls += 1
        if calls == 2:
            signal.raise_signal(signal.SIGINT)
        return files.Disk.fsync(fd)

    monkeypatch.setattr(files.disk, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gosprl.collect(RIVER, 3, seed=0, out=tmp_path / "run")
    assert calls > 2
    checked = verify(tmp_path / "run")
    assert checked.ok
    assert (tmp_path / "run" / "certificate.json").exists()


def test_a_second_ctrl_c_does_not_wait_and_the_run_can_be_resumed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(files.disk, "fsync", lambda fd: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            gosprl.collect(RIVER, 3, seed=0, out=tmp_path / "run")
    assert not (tmp_path / "run" / "certificate.json").exists()
    expected = gosprl.collect(RIVER, 3, seed=0)
    result = gosprl.collect(RIVER, 3, seed=0, out=tmp_path / "run")
    assert result.steps == expected.steps
    assert verify(tmp_path / "run").ok
