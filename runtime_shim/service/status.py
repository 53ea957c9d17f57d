"""What a service does: `sassxlate service status`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sassxlate.disasm.containers.demangle import demangle
from sassxlate.runtime_shim.service.jobs import Job, Waiter
from sassxlate.runtime_shim.service.scheduler import Scheduler
from sassxlate.runtime_shim.service.workers import Worker, resident

_MOST = 200  # queued jobs that are told of one by one
_NAME_MAX = 1000  # characters of a kernel's name
_SHOWN = 60  # of a short one
_MIB = 1 << 20


def of(scheduler: Scheduler) -> dict[str, Any]:
    """The jobs, as JSON; memory in bytes, times in seconds."""
    queued = list(scheduler.queued())
    busy = [w for w in scheduler.workers if w.job is not None]
    return {
        "cores": scheduler.width,
        "workers": len(scheduler.workers),
        "memory": resident(os.getpid()) + sum(resident(w.pid) for w in scheduler.workers),
        "queued": len(queued),
        "jobs": [
            *(_under_way(worker, worker.job) for worker in busy if worker.job is not None),
            *({"state": "queued", **_job(job)} for job in queued[:_MOST]),
        ],
    }


def _under_way(worker: Worker, job: Job) -> dict[str, Any]:
    return {
        "state": "running" if worker.paused_at is None else "paused",
        **_job(job),
        "pid": worker.pid,
        "processor_s": round(worker.used(), 3),
        "memory": resident(worker.pid),
    }


def _job(job: Job) -> dict[str, Any]:
    request = job.request
    kernel = request.get("kernel")
    return {
        "op": request.get("op"),
        "kernel": None if kernel is None else str(kernel)[:_NAME_MAX],
        "tier": _tier(request),
        "priority": job.priority.name.lower(),
        "seconds": round(time.monotonic() - job.began, 3),
        "waiting": [_waiter(waiter) for waiter in job.waiting],
    }


def _tier(request: Mapping[str, Any]) -> str | None:
    """Of the emulated device, whose code is made: the one of stencils, or the compiled one."""
    op = request.get("op")
    if op == "stencils":
        return "baseline"
    return "llvm" if op == "compile" or (op == "ahead" and request.get("compile")) else None


def _waiter(waiter: Waiter) -> dict[str, Any]:
    seconds = round(time.monotonic() - waiter.since, 3)
    return {"pid": waiter.pid, "program": _program(waiter.pid), "seconds": seconds}


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


_OPERATORS = re.compile(r"operator\s*(?:<<=?|>>=?|<=>|<=?|>=?|->\*?|\(\))")


def short_name(mangled: str, most: int = _SHOWN) -> str:
    """A kernel's name for people: demangled, without its result, parameters and template
    arguments; at most ``most`` characters."""
    text = demangle(mangled)
    if text != mangled:
        text = _bare(
            _OPERATORS.sub("operator", text.replace("(anonymous namespace)", "{anonymous}"))
        )
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _bare(text: str) -> str:
    made, depth = "", 0
    for character in text:
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and not depth:
            break
        elif not depth:
            made += character
    return made.strip().rsplit(" ", 1)[-1] or text


def text(one: Mapping[str, Any]) -> list[str]:
    """A service's status as lines: itself, then a line for each job, the most urgent first."""
    jobs: Sequence[Mapping[str, Any]] = one["jobs"]
    running = sum(job["state"] == "running" for job in jobs)
    paused = sum(job["state"] == "paused" for job in jobs)
    head = (
        f"service {one['pid']}: {one['target']}, up {one['uptime_s']:.0f} s, {running} running, "
        f"{paused} paused, {one['queued']} queued, {one['cores']} cores, "
        f"{one['memory'] / _MIB:.0f} MiB"
    )
    order = {"wait": 0, "better": 1, "prepare": 2, "guess": 3}
    state = {"running": 0, "paused": 1, "queued": 2}
    ordered = sorted(jobs, key=lambda job: (state[job["state"]], order[job["priority"]]))
    return [head, *map(_line, ordered)]


def _line(job: Mapping[str, Any]) -> str:
    what = str(job["op"]) if job["tier"] is None else f"{job['op']} ({job['tier']})"
    kernel = "" if job["kernel"] is None else short_name(job["kernel"])
    parts = [f"  {job['state']:<8}{job['priority']:<8} {what:<19} {kernel}".rstrip()]
    if "processor_s" in job:
        parts.append(f"{job['processor_s']:.1f} s of CPU, {job['memory'] / _MIB:.0f} MiB")
    else:
        parts.append(f"for {job['seconds']:.1f} s")
    for waiter in job["waiting"]:
        parts.append(f"{waiter['program']} ({waiter['pid']}) waits for {waiter['seconds']:.1f} s")
    return "; ".join(parts)


__all__ = ["of", "short_name", "text"]
