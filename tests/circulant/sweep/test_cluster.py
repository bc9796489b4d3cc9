"""A real scheduler and three workers on this machine: every point once, whatever happens to a worker."""
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from circulant.sim.refusal import Refusal
from circulant.sweep import cluster
from circulant.sweep.cluster import compute
from circulant.sweep.grid import read
from circulant.sweep.processes import Task
from circulant.sweep.run import run

pytest.importorskip("distributed", reason="needs the extra 'cluster'")


@pytest.fixture(scope="module")
def tasks():
    path = Path(__file__).with_name("cluster_tasks.py")
    spec = spec_from_file_location("cluster_tasks", path)
    module = module_from_spec(spec)
    sys.modules["cluster_tasks"] = module
    spec.loader.exec_module(module)
    return module


class Cluster:
    """A scheduler and workers in processes of their own.

    Parameters:
        folder: of their files.
    """

    def __init__(self, folder):
        self._folder, self._all = folder, []
        file = folder / "scheduler.json"
        self._start("scheduler", ["--port", "0", "--no-dashboard", "--scheduler-file", file])
        deadline = time.monotonic() + 120
        while not file.exists():
            assert time.monotonic() < deadline, "the scheduler must start"
            time.sleep(0.1)
        time.sleep(0.2)
        self.address = json.loads(file.read_text())["address"]

    def worker(self, name, **environment):
        return self._start("worker", [self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name,
                                      "--local-directory", self._folder / name, "--death-timeout", "60"],
                           CIRCULANT_CACHE=str(self._folder / f"cache-{name}"), **environment)

    def workers(self, count):
        """Wait until so many are there."""
        with cluster_client(self.address) as client:
            client.wait_for_workers(count, timeout=120)

    def _start(self, kind, arguments, **environment):
        with (self._folder / f"{kind}-{len(self._all)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=log,
                env={**os.environ, "PYTHONPATH": f"{Path(__file__).parents[3]}:{Path(__file__).parent}",
                     "OMP_NUM_THREADS": "1", **environment})
        self._all.append(process)
        return process

    def close(self):
        for process in self._all:
            process.kill()
            process.wait()


def cluster_client(address):
    from distributed import Client

    return Client(address, timeout=60, set_as_default=False)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for name in ("one", "two"):
            made.worker(name)
        made.worker("slow", SLOW="0.3")
        made.workers(3)
        yield made
    finally:
        made.close()


def graph(tasks, folder, count=8):
    """A model that ``count`` points wait for."""
    return {"model": Task(partial(tasks.model, str(folder)))} | {
        f"point{number}": Task(partial(tasks.point, str(folder), number), "model") for number in range(count)}


def test_every_point_once_although_a_worker_is_killed_and_one_is_slow(three, tasks, tmp_path):
    killed = []

    def kill():
        while not (tmp_path / "victim").exists():
            time.sleep(0.05)
        killed.append(int((tmp_path / "victim").read_text()))
        os.kill(killed[0], signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    results = list(compute(three.address, graph(tasks, tmp_path)))
    assert sorted(results) == sorted([("model", 100), *((f"point{number}", 100 + number) for number in range(8))])
    assert killed, "a worker was killed in the middle of a task"
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    again = {word for word, pid in ran if int(pid) == killed[0]}  # What it had done is lost with it.
    for word in dict(results):
        assert sum(word == each for each, _ in ran) <= (2 if word in again else 1), f"{word} ran too often"


def test_what_a_task_raises_is_a_result_with_its_reason(three, tasks, tmp_path):
    """What waits for a model that fails says why, and the others go on."""
    made = {"model": Task(partial(tasks.model, str(tmp_path))), "broken": Task(tasks.broken, "model"),
            "point": Task(partial(tasks.point, str(tmp_path), 1), "model")}
    results = dict(compute(three.address, made))
    assert results["broken"]["reason"] == "ValueError: no point at 100" and results["point"] == 101


@pytest.mark.soak
def test_a_sweep_on_a_cluster_gives_the_rows_of_one_in_this_process(three, sweep_file, monkeypatch, tmp_path):
    """Models travel to workers whose caches are empty, and are kept here, too."""
    points = read(sweep_file("block_size = [1, 2]\nweight_bits = [4, 8]\nmultipliers = [24]")).points
    spread = run(points, jobs=three.address)
    assert all(not row["reason"] for row in spread)
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "other"))
    assert run(points) == spread


def test_a_cluster_that_loses_all_its_workers(tasks, tmp_path):
    made = Cluster(tmp_path)
    try:
        worker = made.worker("only")
        made.workers(1)
        results = []

        def kill():
            while not (tmp_path / "victim").exists():
                time.sleep(0.05)
            worker.kill()

        threading.Thread(target=kill, daemon=True).start()
        with pytest.raises(Refusal, match=r"A cluster must have a worker, but tcp://\S+ has lost all of its 1; start "
                                          r"some by `dask worker tcp://\S+`, then the same command goes on"):
            results += compute(made.address, {"point": Task(partial(tasks.point, str(tmp_path), 3, 0))}, patience=1.0)
        assert not results
    finally:
        made.close()


def test_workers_that_end_or_stop_cost_nothing_but_themselves(tasks, tmp_path, monkeypatch):
    """One ends while it is asked what it is, one is stopped by then: the third does all."""
    made = Cluster(tmp_path)
    monkeypatch.setattr(cluster, "_identity", tasks.identity)
    monkeypatch.setattr(cluster, "ANSWER", 2)
    monkeypatch.setattr(cluster, "SILENCE", 3)
    try:
        made.worker("well")
        made.worker("dies", DIES="1")
        stopped = made.worker("stopped")
        made.workers(3)
        stopped.send_signal(signal.SIGSTOP)
        (tmp_path / "victim").touch()  # None has to wait.
        began = time.monotonic()
        results = dict(compute(made.address, graph(tasks, tmp_path)))
        assert results == {"model": 100} | {f"point{number}": 100 + number for number in range(8)}
        assert time.monotonic() - began < 60
    finally:
        made.close()


def test_a_port_that_takes_a_connection_and_says_nothing(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(Refusal, match=r"within 1 s, but tcp://\S+ does not: nothing comes from there; start"):
            list(compute(f"tcp://127.0.0.1:{server.getsockname()[1]}", {}))
        assert time.monotonic() - began < 5


def test_an_address_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER", 1)
    began = time.monotonic()
    with pytest.raises(Refusal, match=r"--cluster must be the address of a Dask scheduler that answers within 1 s, but "
                                      r"tcp://127\.0\.0\.1:1 does not: .*; start one by `dask scheduler`"):
        list(compute("tcp://127.0.0.1:1", {}))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("answer", "why"), [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "what answers is no Dask scheduler"),
                                              (b"", "")])
def test_what_answers_is_no_scheduler(monkeypatch, answer, why):
    """A page of the dashboard, a port that closes at once."""
    monkeypatch.setattr(cluster, "ANSWER", 1)
    with socketserver.TCPServer(("127.0.0.1", 0), type("Other", (socketserver.BaseRequestHandler,), {
            "handle": lambda self: self.request.sendall(answer)})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(Refusal, match=rf"--cluster must be the address of a Dask scheduler .* does not: {why}"):
            list(compute(f"tcp://127.0.0.1:{server.server_address[1]}", {}))
        server.shutdown()


def test_an_address_without_a_port():
    with pytest.raises(Refusal, match="but nonsense does not: missing port number in address 'nonsense'; start one"):
        list(compute("nonsense", {}))


def test_workers_of_another_circulant_are_refused(three, monkeypatch):
    monkeypatch.setattr(cluster.store, "sources", lambda: "others")
    with pytest.raises(Refusal, match=r"Every worker must have this circulant, .* with the same sources, but "):
        list(compute(three.address, {}))
