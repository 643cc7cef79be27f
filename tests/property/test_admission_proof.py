"""Promises of the proof for all values: its nearest values pass, and a proof of values that pass changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.vertical.admission.context import AdmissionContext, Rollout
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.node import Occupancy
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.quota import Quota
from forecaster.vertical.cluster_rules.server import Server
from tests.support.cluster_rules import node, resident

GIB = 2**30 * 1000
CPU = st.integers(0, 80).map(lambda tenths: tenths * 100)
MEMORY = st.integers(0, 32).map(lambda quarters: quarters * GIB // 4)
NAMES = ("app", "proxy")


def amounts(cpu: st.SearchStrategy[int] = CPU, memory: st.SearchStrategy[int] = MEMORY) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={"cpu": cpu, "memory": memory})


def only_cpu(values: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={"cpu": values})


REQUIREMENTS = st.builds(Requirements, amounts(), amounts())
RATIO = st.integers(1, 4).map(lambda times: times * 1000)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    names = NAMES[: draw(st.integers(1, 2))]
    containers = tuple(Container(name, draw(REQUIREMENTS)) for name in names)
    init = tuple(
        Container("init", draw(REQUIREMENTS), sidecar=draw(st.booleans())) for _ in range(draw(st.integers(0, 1)))
    )
    return Pod(containers, init)


ITEMS = st.builds(
    LimitRangeItem,
    type=st.sampled_from(["Container", "Pod"]),
    min=amounts(),
    max=amounts(),
    ratio=amounts(RATIO, RATIO),
)


@st.composite
def quotas(draw: st.DrawFn) -> Quota:
    tracked = draw(
        st.sets(st.sampled_from(["requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "memory"]))
    )
    unit = {name: 100 if name.endswith("cpu") else GIB // 4 for name in tracked}
    hard = {name: draw(st.integers(0, 200)) * unit[name] for name in sorted(tracked)}
    return Quota(hard, {name: draw(st.integers(0, 60)) * unit[name] for name in hard}, name="quota")


@st.composite
def situations(draw: st.DrawFn) -> AdmissionContext:
    nodes = tuple(
        node(f"n{i}", cpu=str(draw(st.integers(1, 8))), memory="16Gi") for i in range(draw(st.integers(0, 2)))
    )
    return AdmissionContext(
        draw(pods()),
        Rollout(draw(st.integers(0, 5)), draw(st.integers(0, 2)), draw(st.integers(0, 2))),
        "shop/web",
        limit_ranges=tuple(LimitRange((item,)) for item in draw(st.lists(ITEMS, max_size=2))),
        quotas=tuple(draw(st.lists(quotas(), max_size=2))),
        occupancy=Occupancy(nodes, [resident(cpu="1", daemon=True)]) if nodes else None,
        static_cpu=draw(st.booleans()),
        server=Server(1, draw(st.sampled_from([33, 35, 37]))),
        accepts_qos_change=draw(st.booleans()),
    )


WANTED = st.fixed_dictionaries({"app": REQUIREMENTS})


@settings(max_examples=300, deadline=None)
@given(WANTED, situations())
def test_the_nearest_values_pass_and_are_their_own_nearest(
    proposed: dict[str, Requirements], context: AdmissionContext
) -> None:
    proof = prove(proposed, context)
    if proof.nearest is None:
        assert proof.refusals
        return
    again = prove(proof.nearest, context)
    assert again.accepted
    assert again.nearest == proof.nearest


@settings(max_examples=200, deadline=None)
@given(WANTED, situations())
def test_where_today_s_values_pass_there_is_always_a_nearest(
    proposed: dict[str, Requirements], context: AdmissionContext
) -> None:
    today = {
        container.name: container.resources for container in context.template.containers if container.name in proposed
    }
    assert prove(proposed, context).nearest is not None or not prove(today, context).accepted


@settings(max_examples=100, deadline=None)
@given(WANTED, situations())
def test_what_passes_is_left_alone(proposed: dict[str, Requirements], context: AdmissionContext) -> None:
    proof = prove(proposed, context)
    assert not proof.accepted or proof.nearest == proposed


@settings(max_examples=100, deadline=None)
@given(WANTED, situations())
def test_the_same_question_has_the_same_answer(proposed: dict[str, Requirements], context: AdmissionContext) -> None:
    assert prove(proposed, context) == prove(proposed, context)


@settings(max_examples=150, deadline=None)
@given(
    st.builds(Requirements, st.fixed_dictionaries({"cpu": CPU}), st.just({})),
    st.builds(LimitRangeItem, min=only_cpu(CPU), max=only_cpu(CPU), ratio=only_cpu(RATIO)),
)
def test_one_container_under_one_limit_range_always_finds_what_is_feasible(
    proposed: Requirements, item: LimitRangeItem
) -> None:
    """Feasible means that the minimum is not above the maximum, and that there is a value above zero for a ratio."""
    pod = Pod((Container("app", Requirements({"cpu": 500})),))
    context = AdmissionContext(pod, limit_ranges=(LimitRange((item,)),))
    proof = prove({"app": proposed}, replace(context, accepts_qos_change=True))
    least, most = item.min.get("cpu", 0), item.max.get("cpu", 2**60)
    if least > most:
        assert proof.nearest is None
    elif least > 0 or proposed.requests["cpu"] > 0:
        assert proof.nearest is not None or most == 0


@settings(max_examples=150, deadline=None)
@given(WANTED, situations(), st.integers(1, 5))
def test_more_nodes_never_leave_fewer_replicas_schedulable(
    proposed: dict[str, Requirements], context: AdmissionContext, more: int
) -> None:
    before = prove(proposed, context).free
    present, residents = (context.occupancy.nodes, context.occupancy.residents()) if context.occupancy else ([], [])
    grown = replace(context, occupancy=Occupancy([*present, *(node(f"m{i}") for i in range(more))], residents))
    after = prove(proposed, grown).free
    assert after is not None
    assert before is None or after.now >= before.now
