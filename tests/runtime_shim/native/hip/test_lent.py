"""Threads that run what they wait for: which helpers their launches get."""

from __future__ import annotations

import pytest

from .conftest import Script

# The waiting thread's share of the processor time says whether it ran the launches. On one
# processor it mostly does, since the thread that was woken for them has to wait for its turn.
_TURN = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
function = hip.function(hip.load(build([Kernel("bump")])), "bump")
word, stream = hip.host_malloc(4), hip.stream()
for groups in map(int, os.environ["GROUPS_OF_LAUNCHES"].split()):
    args = struct.pack("<QII", word, 1, 3_000_000 // groups)
    assert hip.launch(function, groups, 1, args, stream=stream) == 0
own, all_threads = time.thread_time(), time.process_time()
assert hip.hipStreamSynchronize(c_void_p(stream)) == 0
own, all_threads = time.thread_time() - own, time.process_time() - all_threads
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
print(own > 0.2 * all_threads, names.count("sx-worker\\n"))
sys.stderr.write(f"{own:.4f} of {all_threads:.4f} s")
"""


@pytest.mark.parametrize(("launches", "workers"), [("2", 0), ("1 2", 1), ("2 2", 1)])
def test_a_lent_threads_first_launch_alone_has_the_woken_thread(
    script: Script, launches: str, workers: int
) -> None:
    """Of two threads: that one runs a single launch's other workgroup; it may be gone when later
    launches begin, which therefore ask for a worker."""
    for _ in range(20):
        done = script(_TURN, SASSXLATE_THREADS="2", GROUPS_OF_LAUNCHES=launches)
        assert done.returncode == 0, done.stderr
        lent, started = done.stdout.split()
        if lent == "True":
            break
    else:
        pytest.fail("no turn in which the waiting thread ran the launches")
    assert int(started) == workers, done.stderr
