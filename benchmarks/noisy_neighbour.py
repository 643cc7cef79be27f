"""Measure what one hostile tenant of 50 costs the others: `python -m benchmarks.noisy_neighbour [--record]`.

The tenant writes as much as the bounds of an owner allow, against the same fleet without it. Measured are the CPU of a
cycle, minutes until the others have their floors, how long the HPAs' metrics take, and the webhook under a rollout of
1,000 pods beside all that. Times of answers depend on this machine and its load, which the page names; clients are
open-loop (benchmarks/load, which needs Go). `--record` writes a dated page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from benchmarks.cycle import build, run
from benchmarks.fleet import NOON, Fleet, FleetSource
from benchmarks.record import record
from benchmarks.serving import recommendation
from benchmarks.serving_load import Load, built, targets_of
from forecaster.actuators.resize.initial import MAX_CONTAINERS
from forecaster.config.settings import parse
from forecaster.domain.event import MAX_EVENTS
from forecaster.domain.policies import CHANGES_AT_ONCE, CHANGES_EACH
from forecaster.domain.window import MINUTE
from forecaster.kube.client import UnreachableError
from forecaster.kube.lease import REQUEST_SECONDS
from forecaster.publish.new_pods import NewPods, NewPodSize, new_pods_path, write_new_pods
from forecaster.resources.objects import CustomResource, autoscaler_of_resource
from forecaster.sources.stated import NAMES_MAX, VALUE_MAX, AnnotatedObject, cluster_policies
from tests.support.admitting import web
from tests.support.bad_objects import hostile
from tests.support.fake_api_server import FakeApiServer
from tests.support.hands import STATED, WISHED, Hands, object_of, path_of, value_of
from tests.support.published import publisher
from tests.support.secure_serving import HPA, SecureServing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.cycle.run import Cycle
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.workload import Workload
    from forecaster.kube.connections import RawRequest

TENANTS, EACH = 50, 10
LARGE = 10_000
"""Workloads of a large fleet, a fiftieth of them the noisy tenant's: what it costs grows with its own."""
OBJECTS = 300
"""PredictiveAutoscalers of the noisy tenant, all of them written anew each minute."""
STEADY = 2 * CHANGES_EACH
"""Cycles that are measured: two of them take over everything that changes all the time."""
MINUTES_FITTED = 5
WRITE_SECONDS = 0.02
"""Seconds that an idle API server takes for a write."""
PACE, PODS, PODS_PACE, SECONDS = 200, 1_000, 100, 10
BURST = 10
"""Seconds within which a flood has had what its namespace may have at once."""


@dataclass(frozen=True)
class Tenants(Fleet):
    """Workloads of the fleet, ten in each of 50 namespaces."""

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        named = (
            replace(workload, id=workload.id._replace(namespace=tenant(number % TENANTS)))
            for number, workload in enumerate(super().workloads)
        )
        return tuple(sorted(named, key=lambda workload: workload.id))


def tenant(number: int) -> str:
    return f"tenant-{number:02}"


NOISY = tenant(0)


class Written(NamedTuple):
    """Objects that the noisy tenant writes in a minute; each number and text differs from the minute before."""

    objects: list[bytes]
    annotated: list[AnnotatedObject]

    def read(self) -> ClusterPolicies:
        """Decode the objects as the watches of live facts do."""
        decoded = (msgspec.json.decode(document, type=CustomResource) for document in self.objects)
        return cluster_policies(autoscalers=[*map(autoscaler_of_resource, decoded)], workloads=self.annotated)


def worst(fleet: Fleet, minute: int) -> Written:
    """Objects of the noisy tenant: as much as the bounds of an owner allow."""
    own = [workload.id for workload in fleet.workloads if workload.id.namespace == NOISY]
    resources = [
        _resource(own[number].name if number < len(own) else f"gone-{number}", minute + number)
        for number in range(OBJECTS)
    ]
    noise = {f"forecaster.dev/x{number}-{minute}": "x" * VALUE_MAX for number in range(NAMES_MAX)}
    noted = [
        AnnotatedObject(f"Deployment {id_}", id_, {**noise, "forecaster.dev/quantile": f"0.9{minute % 10}"})
        for id_ in own
    ]
    return Written(resources, noted)


def _resource(name: str, turn: int) -> bytes:
    events = [
        {
            "name": f"e{turn}-{number}",
            "replicas": 3,
            "cron": f"{(turn + number) % 60} {number % 24} * * *",
            "duration": "1h",
        }
        for number in range(MAX_EVENTS)
    ]
    horizontal = {"leadTime": f"{60 + turn % 600}s", "window": f"{61 + turn % 500}s", "events": events}
    meta = {"name": name, "namespace": NOISY, "uid": name, "resourceVersion": str(turn)}
    spec = {"scaleTargetRef": {"name": name}, "mode": "publish", "horizontal": horizontal}
    return msgspec.json.encode({"metadata": meta, "spec": spec})


POLICY = {"mode": "publish", "horizontal": {"gate": False}}
"""A first look at 500 gates takes 40 s of CPU, and nothing that an owner states changes it."""


def cycle_cpu(workloads: int) -> dict[bool, list[float]]:
    """CPU seconds of cycles of the whole fleet, policies included, with the noisy tenant and without.

    Two services go on side by side, minute by minute, so that both meet the same machine.
    """
    fleet, seconds = Tenants(workloads), dict[bool, list[float]]()
    with ExitStack() as parts:
        cycles = {noisy: _fitted(fleet, parts) for noisy in (False, True)}
        for minute in range(MINUTES_FITTED, MINUTES_FITTED + 2 * CHANGES_AT_ONCE + STEADY):
            for noisy, cycle in cycles.items():
                written = worst(fleet, minute) if noisy else Written([], [])
                began = time.process_time()
                cycle.policies.take_over(written.read())
                cycle.run(NOON + minute * MINUTE)
                seconds.setdefault(noisy, []).append(time.process_time() - began)
    return {noisy: all_of[-STEADY:] for noisy, all_of in seconds.items()}


def _fitted(fleet: Fleet, parts: ExitStack) -> Cycle:
    settings = parse({"prometheus": {"url": "http://127.0.0.1:9"}, "policy": POLICY}, "benchmark")
    folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
    cycle, _ = build(settings, FleetSource(fleet), parts, folder)
    if len(run(cycle, 1, None, hurried=True)) > MINUTES_FITTED:
        raise SystemExit(f"not all is fitted after {MINUTES_FITTED} minutes")
    return cycle


@dataclass
class Trouble:
    """An API server whose writes take their time, and in the namespace of the noisy tenant for ever."""

    noisy: bool
    now: float = 0.0

    def seconds(self) -> float:
        return self.now

    def answer(self, request: RawRequest) -> Exception | None:
        hangs = self.noisy and request.method == "PATCH" and f"/namespaces/{NOISY}/" in request.target
        self.now += REQUEST_SECONDS if hangs else WRITE_SECONDS
        return UnreachableError(f"no answer within {REQUEST_SECONDS:g} s") if hangs else None


def minutes_to_floors(*, noisy: bool) -> list[int]:
    """Cycles until each HPA of the other tenants has its floor."""
    server, trouble = FakeApiServer(), Trouble(noisy)
    spaces = [(tenant(number), f"web-{place}") for number in range(TENANTS) for place in range(EACH)]
    for namespace, name in spaces:
        document = object_of("floor", name)
        if noisy and namespace == NOISY:
            hostile(document, "floor") if name == "web-0" else None
        server.add(path_of("floor", namespace, name), document)
    server.fault = trouble.answer
    hands = Hands(server, "floor", seconds=trouble.seconds)
    waiting, minutes = {space for space in spaces if space[0] != NOISY}, list[int]()
    for minute in range(1, 61):
        hands.cycle()
        done = {space for space in waiting if value_of(server.objects[path_of("floor", *space)]) == WISHED["floor"]}
        minutes += [minute] * len(done)
        waiting -= done
        if not waiting:
            return minutes
    raise SystemExit(f"{len(waiting)} HPAs have no floor after an hour; theirs is still {STATED['floor']}")


class Answers:
    """The serving process as it is composed, with sizes of new pods, and clients with an open loop."""

    def __init__(self, folder: Path, parts: ExitStack) -> None:
        now, table = datetime.now(UTC), folder / "table"
        publisher(table).publish(now, [recommendation(number) for number in range(TENANTS * EACH)])
        block = {"requests": {"cpu": "300m", "memory": "128Mi"}, "limits": {}}
        sized = {"Deployment": {"web": NewPodSize({"app": block}, PODS, "sized")}}
        sizes = {"shop": sized, NOISY: sized}
        write_new_pods(new_pods_path(table), NewPods(now, 3600.0, "1.36", sizes))
        self.serving = parts.enter_context(SecureServing(folder, table, str(new_pods_path(table))))
        ca, proxy = self.serving.issuer.certificate, self.serving.proxy
        self.metrics = Load(built(folder), folder, ca, proxy, HPA["X-Remote-User"])
        self.server = f"https://localhost:{self.serving.port}"
        self.pods = self.metrics._replace(post=_review(folder / "pod", web()), user="")
        large = web()
        large["spec"]["containers"] = [
            {**large["spec"]["containers"][0], "name": f"c{n}"} for n in range(MAX_CONTAINERS)
        ]
        self.flood = self.metrics._replace(post=_review(folder / "large", large, NOISY), user="", connections=16)

    def metrics_answered(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Measure the answers of metrics to HPAs."""
        targets = targets_of(TENANTS * EACH)
        return self.metrics.ask(self.server, targets, rate=PACE, seconds=seconds, pid=self.serving.process.pid)

    def rollout_answered(self) -> dict[str, Any]:
        """Measure the webhook's answers to the API server in a rollout."""
        targets, seconds = ["/admit/pods"], PODS / PODS_PACE
        return self.pods.ask(self.server, targets, rate=PODS_PACE, seconds=seconds, pid=self.serving.process.pid)

    def flooded(self) -> dict[str, Any]:
        """Send dry runs of the largest pods that are read, as many as go, before the first requests for metrics."""
        seconds, pid = 2 * SECONDS + BURST + 1, self.serving.process.pid
        return self.flood.ask(self.server, ["/admit/pods"], rate=0, seconds=seconds, pid=pid)


def _review(path: Path, pod: Any, namespace: str = "shop") -> Path:
    request = {"uid": "u", "namespace": namespace, "operation": "CREATE", "object": pod, "dryRun": True}
    path.write_text(json.dumps({"request": request}))
    return path


def answers() -> list[str]:
    """Rows about the answers of the serving process."""
    with ExitStack() as parts, ThreadPoolExecutor(2) as beside:
        service = Answers(Path(parts.enter_context(tempfile.TemporaryDirectory())), parts)
        service.metrics_answered(2)
        quiet = service.metrics_answered()
        flood = beside.submit(service.flooded)
        begun = service.metrics_answered(SECONDS + BURST)
        noisy = service.metrics_answered()
        flood.result()
        alone = service.rollout_answered()
        rollout = beside.submit(service.rollout_answered)
        during = service.metrics_answered()
        return [
            *(
                _row(f"metrics of HPAs at {PACE}/s, {name}, ms", quiet["millis"][key], noisy["millis"][key])
                for name, key in WAITS
            ),
            *(
                _row(f"the same from the flood's beginning, {name}, ms", quiet["millis"][key], begun["millis"][key])
                for name, key in WAITS
            ),
            _figures_row(f"webhook, {PODS:,} pods at {PODS_PACE}/s alone, p50 and p99, ms", *_waits(alone)),
            _figures_row("webhook beside the metrics, p50 and p99, ms", *_waits(rollout.result())),
            *(
                _row(f"metrics during that rollout, {name}, ms", quiet["millis"][key], during["millis"][key])
                for name, key in WAITS
            ),
            _figures_row(
                "errors of metrics alone, beside the flood's beginning, beside the flood, during the rollout",
                *_errors(quiet, begun, noisy, during),
            ),
            _figures_row("errors of the webhook alone, beside the metrics", *_errors(alone, rollout.result())),
        ]


def _figures_row(title: str, *figures: object) -> str:
    return f"| {title} | | {' / '.join(map(str, figures))} | |"


def _waits(answered: dict[str, Any]) -> list[str]:
    return [f"{answered['millis'][key]:.1f}" for key in ("p50", "p99")]


def _errors(*answered: dict[str, Any]) -> list[int]:
    return [answer["errors"] for answer in answered]


WAITS = (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"))


def _row(title: str, without: float, with_it: float) -> str:
    return f"| {title} | {without:.2f} | {with_it:.2f} | {with_it / without:.2f} |"


def rows() -> Sequence[str]:
    """Each figure without and with the noisy tenant, and their ratio."""
    cpu = {workloads: cycle_cpu(workloads) for workloads in (TENANTS * EACH, LARGE)}
    floors = [minutes_to_floors(noisy=noisy) for noisy in (False, True)]
    return [
        *(
            _row(f"cycle over {workloads:,} workloads, CPU s, {name} of {STEADY}", *map(kind, by_noise.values()))
            for workloads, by_noise in cpu.items()
            for name, kind in (("median", statistics.median), ("mean", statistics.mean))
        ),
        _row("minutes to the others' floors, mean", *[statistics.mean(minutes) for minutes in floors]),
        _row("minutes to the others' floors, the last", *map(max, floors)),
        *answers(),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    head = ["| | without | with the noisy tenant | ratio |", "| --- | ---: | ---: | ---: |"]
    table = "\n".join([*head, *rows()])
    load = f"Load of the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores."
    print(f"{table}\n\n{load}")
    if options.record:
        print(
            record(
                "strangers",
                "Strangers: a noisy neighbour",
                "python -m benchmarks.noisy_neighbour --record",
                f"{table}\n\n{load}",
            )
        )


if __name__ == "__main__":
    main()
