"""The webhook of new pods stands beside the metrics: whatever it is sent, their loop is free."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import tracemalloc
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from forecaster.serving import new_pods
from forecaster.serving.new_pods import NewPodAdmission
from tests.support.admitting import admitting_in, sized, web
from tests.support.builders import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.publish.new_pods import NewPods, NewPodsFile
    from forecaster.serving.reply import HttpReply

PATIENCE = timedelta(seconds=20).total_seconds()


class SlowFile:
    """The file of the newest cycle, which is read only when the test says so."""

    paused = False

    def __init__(self) -> None:
        self.free = threading.Event()

    def latest(self) -> NewPods | None:
        assert self.free.wait(PATIENCE)
        return None


class DearFile:
    """A file that takes so much of a processor that the share of a namespace is used up for ten seconds."""

    paused = False

    def latest(self) -> NewPods | None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return None


def review(pod: dict[str, Any], namespace: str = "shop") -> bytes:
    request = {"uid": "u", "namespace": namespace, "operation": "CREATE", "object": pod}
    return json.dumps({"request": request}).encode()


async def rollout(admission: NewPodAdmission, file: SlowFile) -> tuple[HttpReply, list[HttpReply]]:
    """Answers to one pod too many, and then to all others, while the loop goes on."""
    waiting = [asyncio.create_task(admission.answered("POST", review(web()))) for _ in range(new_pods.MAX_WAITING)]
    await asyncio.sleep(0)
    refused = await asyncio.wait_for(admission.answered("POST", review(web())), PATIENCE)
    file.free.set()
    return refused, await asyncio.gather(*waiting)


def test_a_container_whose_name_is_no_text_is_answered_too(tmp_path: Path) -> None:
    """Before, it was a fault of ours with forty lines in the log, as often as any pod of the cluster sent it."""
    admitting = admitting_in(tmp_path)
    admitting.cycle(sized())
    for name in ([], {}):
        pod = web()
        pod["spec"]["initContainers"] = [{"name": name}]
        assert admitting.made(pod) == pod


def test_pods_wait_beside_the_loop_and_one_too_many_is_made_as_it_is() -> None:
    file = SlowFile()
    admission = NewPodAdmission(cast("NewPodsFile", file), lambda: NOON)
    refused, answered = asyncio.run(rollout(admission, file))
    assert refused.status == 503
    assert [reply.status for reply in answered] == [200] * new_pods.MAX_WAITING
    assert admission.outcomes == {"busy": 1, "not-known": new_pods.MAX_WAITING}


def test_a_pod_with_more_containers_than_any_real_one_is_not_read(tmp_path: Path) -> None:
    admitting = admitting_in(tmp_path)
    admitting.cycle(sized())
    pod = web()
    pod["spec"]["containers"] += [{"name": f"c{number}", "image": "nginx"} for number in range(100)]
    assert admitting.made(pod) == pod


def test_what_is_no_review_is_refused_and_no_name_that_it_gives_is_kept() -> None:
    file = SlowFile()
    file.free.set()
    admission = NewPodAdmission(cast("NewPodsFile", file), lambda: NOON)
    deep = b'{"request":{"namespace":"shop","a":' + b'{"a":' * 5000
    assert asyncio.run(admission.answered("POST", deep)).status == 400
    tracemalloc.start()
    for number in range(50):
        asyncio.run(admission.answered("POST", review(web(), f"{number:0200000}")))
    assert tracemalloc.get_traced_memory()[0] < 1_000_000
    tracemalloc.stop()


async def flooded(admission: NewPodAdmission, count: int) -> float:
    """Seconds until so many reviews are answered that were asked for at once."""
    pod = web()
    pod["spec"]["containers"] *= 90
    began = time.perf_counter()
    await asyncio.gather(*(admission.answered("POST", review(pod)) for _ in range(count)))
    return time.perf_counter() - began


def test_whoever_asks_without_end_has_a_share_of_the_process_and_the_metrics_the_rest() -> None:
    """The thread of reviews rests after each for several times what it took, whatever else the machine does."""
    file = SlowFile()
    file.free.set()
    admission = NewPodAdmission(cast("NewPodsFile", file), lambda: NOON)
    used: list[float] = []
    answer = admission.answer

    def measured(method: str, body: bytes) -> HttpReply:
        began = time.thread_time()
        try:
            return answer(method, body)
        finally:
            used.append(time.thread_time() - began)

    admission.answer = measured  # type: ignore[method-assign]
    took = asyncio.run(flooded(admission, 40))
    assert len(used) == 40
    assert took >= (1 + new_pods.REST_SHARE) * sum(used[:-1])


def test_a_namespace_that_asks_without_end_waits_and_takes_no_answer_from_others() -> None:
    admission = NewPodAdmission(cast("NewPodsFile", DearFile()), lambda: NOON, credit=0.0)

    async def ask(namespace: str) -> tuple[int, float]:
        began = time.monotonic()
        answered = await admission.answered("POST", review(web(), namespace))
        return answered.status, time.monotonic() - began

    async def story() -> list[tuple[int, float]]:
        return [await ask("shop"), *await asyncio.gather(ask("shop"), ask("other"))]

    (first, _), (again, waited), (other, _) = asyncio.run(story())
    assert (first, again, other) == (200, 503, 200)
    assert waited >= new_pods.SHARE_TAKEN_WAIT
