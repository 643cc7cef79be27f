"""The replay as a list of steps: what can be replayed, what everybody foresees, every lane, and the comparison."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from forecaster.cycle.stopwatch import Stopwatch
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.window import MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.comparison import Compared, Comparison, Curve
from forecaster.replay.contestants import OURS, Source, at_share, line_up
from forecaster.replay.fast.batch import covers
from forecaster.replay.fast.run import play_all
from forecaster.replay.foresee import Question, foresee
from forecaster.replay.gated import Course, acting_of, spoken
from forecaster.replay.lane import Lane, Played, with_targets_at
from forecaster.replay.perfect import bound, needed_span, perfect
from forecaster.replay.refusal import lead_time_of, setup_or_reason
from forecaster.replay.scalar import play
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.sight import sight_of
from forecaster.replay.terms import Terms
from forecaster.replay.traces import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.replay.contestants import Contestant
    from forecaster.replay.foresight import Foresight
    from forecaster.replay.gated import Stood
    from forecaster.replay.sight import Sight
    from forecaster.replay.traces import Traces

    Foresee = Callable[[Sight, Sequence[Signal], Question], Foresight]

USUAL = Terms()
EVERYBODY = line_up(OURS)


class Scene(NamedTuple):
    """What can be replayed: the sight of it, setups by row, and why the others cannot."""

    sight: Sight
    setups: Mapping[int, Setup]
    policies: Mapping[int, Policy]
    left_out: Mapping[WorkloadId, str]


class Place(NamedTuple):
    """Where a lane belongs."""

    row: int
    contestant: str
    share: float


def compare(
    traces: Traces,
    policies: Policies | None = None,
    contestants: Sequence[Contestant] = EVERYBODY,
    *,
    begin: datetime | None = None,
    until: datetime | None = None,
    terms: Terms = USUAL,
    foresee: Foresee = foresee,
    seconds: Callable[[], float] = lambda: 0.0,
) -> Comparison:
    """Replay `traces` from `begin` to `until`, by default their last day; what lies before is history.

    `policies` are the defaults unless given, `seconds` is a clock for durations only.
    """
    until = traces.end if until is None else until
    begin = until - DAY if begin is None else begin
    watch, policies = Stopwatch(seconds), policies or Policies(Policy())
    scene = scene_of(traces, policies, begin, until, terms)
    foresights = Foresights(scene, terms, foresee, watch)
    places, lanes = _unzipped(lanes_of(scene, contestants, terms, foresights))
    with watch.step("decisions"):
        played, scalar = play_lanes(lanes, scene.sight)
    compared = _compared(scene, dict(zip(places, played, strict=True)))
    gates = {traces.workloads[row].id: stood for row, stood in foresights.stood.items()}
    return Comparison(begin, until, contestants, compared, scene.left_out, dict(watch.steps), scalar, gates)


def scene_of(traces: Traces, policies: Policies, begin: datetime, until: datetime, terms: Terms) -> Scene:
    """What can be replayed and what cannot."""
    sight = sight_of(traces, begin, max(0, (until - begin) // MINUTE))
    setups, chosen, left_out = {}, {}, {}
    for row, workload in enumerate(traces.workloads):
        chosen[row] = policies.of(workload.id)
        found = setup_or_reason(row, workload, chosen[row], sight, terms)
        if isinstance(found, Setup):
            setups[row] = found
        else:
            left_out[workload.id] = found
    return Scene(sight, setups, chosen, left_out)


@dataclass(slots=True)
class Foresights:
    """What each contestant foresees, made once for each model and span."""

    scene: Scene
    terms: Terms
    foresee: Foresee
    watch: Stopwatch
    made: dict[tuple[str, PeakSpan], Foresight]
    stood: dict[int, tuple[Stood, ...]]
    """Where the forecast stood on each row, if somebody is gated."""

    def __init__(self, scene: Scene, terms: Terms, foresee: Foresee, watch: Stopwatch) -> None:
        self.scene, self.terms, self.foresee, self.watch, self.made = scene, terms, foresee, watch, {}
        self.stood = {}

    def of(self, contestant: Contestant, row: int) -> Foresight | None:
        """What this contestant foresees of one workload; nothing for the HPA alone."""
        if contestant.source is Source.NOTHING:
            return None
        span = self._span(contestant, row)
        key = (contestant.model or contestant.source.value, span)
        if key not in self.made:
            with self.watch.step(f"forecasts of {key[0]}"):
                self.made[key] = self._made(contestant, span)
        return self._behind_gates(key) if contestant.gated else self.made[key]

    def acting(self, contestant: Contestant, row: int) -> NDArray[np.bool_] | None:
        """[minute] whether the gate lets this contestant's forecast have its say; None where nobody is gated."""
        return acting_of(self.stood[row], self.scene.sight.minutes) if contestant.gated else None

    def _behind_gates(self, key: tuple[str, PeakSpan]) -> Foresight:
        """The same forecasts, in which yesterday's load speaks where a gate lets it."""
        gated = (f"{key[0]} behind its gate", key[1])
        if gated not in self.made:
            with self.watch.step("gates"):
                course = Course(self.scene.sight, self.terms)
                self.stood = self.stood or {row: course.of(row, self.scene.policies[row]) for row in self.scene.setups}
                self.made[gated] = spoken(self.made[key], self.stood, course)
        return self.made[gated]

    def _span(self, contestant: Contestant, row: int) -> PeakSpan:
        if contestant.source is Source.TRUTH:
            return needed_span(self.scene.setups[row])
        policy = self.scene.policies[row].horizontal
        return PeakSpan(lead_time_of(policy, self.terms), policy.window)

    def _made(self, contestant: Contestant, span: PeakSpan) -> Foresight:
        if contestant.source is Source.TRUTH:
            return perfect(self.scene.sight, span)
        signals = sorted({target.signal for one in self.scene.setups.values() for target in one.scaler.targets})
        return self.foresee(self.scene.sight, signals, Question(contestant.model, span, every=self.terms.every))


def lanes_of(
    scene: Scene, contestants: Sequence[Contestant], terms: Terms, foresights: Foresights
) -> Iterator[tuple[Place, Lane]]:
    """Every workload under every contestant at every share of its targets, the owner's own among them."""
    for row in scene.setups:
        replicas = scene.sight.traces.pods_at(row, scene.sight.begin)
        for share in dict.fromkeys((1.0, *terms.shares)):
            workload, shared = with_setup_at(scene, row, share)
            for one in contestants:
                policy = one.policy_of(scene.policies[row])
                shared_policy = at_share(policy, share) if policy else None
                foresight = foresights.of(one, row)
                lane = Lane(row, workload, shared, replicas, shared_policy, foresight, advisor=one.advisor)
                yield Place(row, one.name, share), replace(lane, acting=foresights.acting(one, row))


def play_lanes(lanes: Sequence[Lane], sight: Sight, *, tracks: bool = True) -> tuple[list[Played], int]:
    """Every lane, on arrays where they know its policy; and how many had to be played call by call."""
    alone = {i for i, lane in enumerate(lanes) if covers(lane, sight)}
    together = iter(play_all([lane for i, lane in enumerate(lanes) if i not in alone], sight, tracks=tracks))
    return [play(lane, sight) if i in alone else next(together) for i, lane in enumerate(lanes)], len(alone)


def with_setup_at(scene: Scene, row: int, share: float) -> tuple[Workload, Setup]:
    """A workload with its HPA's targets at this share, and its setup with them."""
    workload, setup = with_targets_at(scene.sight.traces.workloads[row], share), scene.setups[row]
    found = setup_of(
        workload,
        scene.policies[row].horizontal,
        capacity=setup.capacity,
        start_up=setup.start_up,
        timing=setup.timing,
        behavior=setup.scaler.behavior,
    )
    if isinstance(found, str):
        raise TypeError(f"{workload.id} could be replayed at its own targets, and not at others: {found}")
    return workload, found


def _unzipped(pairs: Iterator[tuple[Place, Lane]]) -> tuple[list[Place], list[Lane]]:
    places, lanes = [], []
    for place, lane in pairs:
        places.append(place)
        lanes.append(lane)
    return places, lanes


def _compared(scene: Scene, played: Mapping[Place, Played]) -> list[Compared]:
    points: dict[int, dict[str, dict[float, Played]]] = defaultdict(lambda: defaultdict(dict))
    for place, one in played.items():
        points[place.row][place.contestant][place.share] = one
    return [
        Compared(
            workload=scene.sight.traces.workloads[row],
            setup=scene.setups[row],
            curves={name: _curve(shares) for name, shares in points[row].items()},
            bound=bound(scene.setups[row], scene.sight, row),
        )
        for row in points
    ]


def _curve(shares: Mapping[float, Played]) -> Curve:
    return Curve({share: shares[share].account for share in sorted(shares, reverse=True)}, shares[1.0].track)
