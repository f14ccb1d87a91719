"""What no stopwatch around a call measures: chains that grow, threads, memory, imports, an installation."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import blake3
import numpy as np

import mmkey
from mmkey.study.bench import workloads
from mmkey.study.bench.workloads import Load

ROOT = Path(__file__).resolve().parents[1]


def growing_chain(tokens: int, pictures: int, repeats: int = 7) -> tuple[float, float]:
    """Seconds of a block, fed token by token: in the first and in the last tenth of a sequence whose media are declared
    at its start."""
    prompt = workloads.prompt(Load(tokens, pictures))
    request, engine = prompt.request(), workloads.engine("C")
    expected = engine.block_keys(request)
    blocks = tokens // workloads.BLOCK_SIZE
    times = np.zeros((repeats, blocks))
    for repeat in range(repeats):
        chain = engine.chain(mmkey.Request([], request.items, prompt.layout))
        for block in range(blocks):
            begin = time.thread_time()
            for token in prompt.token_list[block * workloads.BLOCK_SIZE : (block + 1) * workloads.BLOCK_SIZE]:
                chain.extend([token])
            times[repeat, block] = time.thread_time() - begin
        if not np.array_equal(chain.keys, expected):
            raise AssertionError("the chain's keys are not those of one call")
    of_block = np.median(times, axis=0)
    tenth = blocks // 10
    return float(np.median(of_block[:tenth])), float(np.median(of_block[-tenth:]))


def counter_speed_kept(algorithm: str, size: int, rounds: int = 15, seconds: float = 0.1) -> float:
    """A counting thread's speed while another hashes `size` bytes over and over, of its speed alone.

    Time in which the counter was ready and had no CPU, since other processes had it, does not count; time in which it
    waited for the interpreter's lock does.
    """
    data = bytes(size)
    over = threading.Event()

    def hash_on() -> None:
        while not over.is_set():
            mmkey.digest(data, algorithm)

    alone, beside = [], []
    for _ in range(rounds):
        alone.append(_counting_speed(seconds))
        over.clear()
        hashing = threading.Thread(target=hash_on)
        hashing.start()
        beside.append(_counting_speed(seconds))
        over.set()
        hashing.join()
    return statistics.median(beside) / statistics.median(alone)


def _counting_speed(seconds: float) -> float:
    """Counts a second that this thread was not kept waiting for a CPU."""
    waited, begin = _waited_for_cpu(), time.perf_counter()
    end, count = begin + seconds, 0
    while time.perf_counter() < end:
        count += 1
    return count / (time.perf_counter() - begin - (_waited_for_cpu() - waited))


def _waited_for_cpu() -> float:
    """Seconds that this thread has been ready to run without running (the second field, in nanoseconds)."""
    with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) * 1e-9


def updates_from_threads(algorithm: str, threads: int, updates: int) -> bool:
    """Whether an object that many threads update, with and without the interpreter's lock, is as one thread has it."""
    make, peer = {"sha256": (mmkey.sha256, hashlib.sha256), "blake3": (mmkey.blake3, blake3.blake3)}[algorithm]
    for size in (100, 20_000):
        piece = bytes(range(256)) * (size // 256 + 1)
        shared, expected = make(), peer()
        start = threading.Barrier(threads)

        def run(shared: mmkey.sha256 | mmkey.blake3 = shared, piece: bytes = piece, start=start) -> None:
            start.wait()
            for _ in range(updates):
                shared.update(piece)

        workers = [threading.Thread(target=run) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for _ in range(threads * updates):
            expected.update(piece)
        if shared.digest() != expected.digest():
            return False
    return True


_GROWTH = """
import sys, mmkey

def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))

path, algorithm = sys.argv[1:]
mmkey.digest_file(sys.executable, algorithm)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the high-water mark starts anew
before = status("VmRSS:")
mmkey.digest_file(path, algorithm)
print(status("VmHWM:") - before)
"""


def file_digest_growth(algorithm: str, size: int) -> int:
    """Bytes of resident memory that a process takes on top while it digests a file of `size` bytes."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(size)
        return int(_python(_GROWTH, file.name, algorithm))


def import_time(repeats: int = 15) -> float:
    """Seconds of CPU time of `import mmkey` after NumPy, from compiled bytecode, each in a process of its own."""
    code = "import time, numpy; begin = time.process_time(); import mmkey; print(time.process_time() - begin)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as cache:
        environment["PYTHONPYCACHEPREFIX"] = cache
        _python(code, environment=environment)
        return statistics.median(float(_python(code, environment=environment)) for _ in range(repeats))


def install_time() -> tuple[float, float]:
    """Seconds on the wall and of CPU time of `pip install .` in a new environment, from the files under git."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "mmkey")
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        environment = Path(folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        before, begin = _cpu_of_children(), time.perf_counter()
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", "."], cwd=tree, check=True)
        wall, cpu = time.perf_counter() - begin, _cpu_of_children() - before
        subprocess.run([environment / "bin" / "python", "-c", "import mmkey; mmkey.selftest()"], check=True, cwd=folder)
        return wall, cpu


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _python(code: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout
