"""Several recommenders over the same loads, each a point of slack against mishaps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.policy import VerticalPolicy
from forecaster.replay.sizes.account import Account, Summary
from forecaster.replay.sizes.foreseen import Foreseen
from forecaster.replay.sizes.replay import Sizer, replay
from forecaster.replay.sizes.sizers import Krr, Ours, Vpa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.replay.sizes.load import Load, Resource

VPA_MARGINS = (0.0, 0.15, 0.3, 0.5, 1.0)
OOM_PRICES = (20.0, 50.0, 150.0, 400.0, 1000.0)
THROTTLE_PRICES = (3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
FOLLOWING = {"horizon": "6h", "load_forecast": "follow", "change_price": 12}
"""Sizes that follow every forecast move more; twice the price of a change keeps them below the VPA's changes."""
MEMORY_SHARES = (0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A recommender with its settings. `family` groups the points of one curve."""

    family: str
    setting: str
    build: Callable[[Load, Foreseen], Sizer]
    """From a load and what is forecast of it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one contestant."""

    family: str
    setting: str
    summary: Summary


def compared(loads: Sequence[Load], contestants: Sequence[Contestant]) -> list[Compared]:
    """Every contestant over every load, the containers of all of them together."""
    foreseen = [Foreseen(load) for load in loads]
    return [Compared(one.family, one.setting, _over_all(foreseen, one).summary()) for one in contestants]


def backtested(load: Load, policy: VerticalPolicy) -> list[Compared]:
    """One policy beside the VPA's margins and KRR."""
    return compared([load], [Contestant("forecaster", "policy", partial(_ours, policy=policy)), *_others()])


def frontier(resource: Resource) -> list[Contestant]:
    """The VPA at several margins, KRR, and ours at several prices."""
    reference = _others()
    if resource == "cpu":
        free = {"cpu_limit": "none"}
        return [
            *reference,
            *(ours("forecaster, daily", f"price {p:g}", throttle_price=p, **free) for p in THROTTLE_PRICES),
            *(
                ours("forecaster, every 6 h", f"price {p:g}", throttle_price=p, horizon="6h", **free)
                for p in THROTTLE_PRICES
            ),
            *(
                ours("forecaster, every 6 h, follow", f"price {p:g}", throttle_price=p, **free, **FOLLOWING)
                for p in THROTTLE_PRICES
            ),
        ]
    return [
        *reference,
        *(ours("forecaster, request = limit", f"price {price:g}", oom_price=price) for price in OOM_PRICES),
        *(
            ours("forecaster, limit at the peak", f"request {share * 100:g} %", memory_limit="peak", memory_share=share)
            for share in MEMORY_SHARES
        ),
    ]


def _others() -> list[Contestant]:
    vpa = [Contestant("VPA", f"margin {margin:g}", partial(_vpa, margin=margin)) for margin in VPA_MARGINS]
    return [*vpa, Contestant("KRR", "simple", _krr)]


def ours(family: str, setting: str, **policy: object) -> Contestant:
    """Ours under a policy."""
    chosen = VerticalPolicy.model_validate(policy)
    return Contestant(family, setting, partial(_ours, policy=chosen))


def _ours(load: Load, foreseen: Foreseen, policy: VerticalPolicy) -> Sizer:
    return Ours(load.resource, len(load.names), policy, foreseen=foreseen)


def _vpa(load: Load, foreseen: Foreseen, margin: float) -> Sizer:  # noqa: ARG001  it looks back only
    return Vpa(load.resource, len(load.names), margin)


def _krr(load: Load, foreseen: Foreseen) -> Sizer:  # noqa: ARG001  it looks back only
    return Krr(load.resource, len(load.names))


def _over_all(foreseen: Sequence[Foreseen], contestant: Contestant) -> Account:
    accounts = [replay(one.load, contestant.build(one.load, one)) for one in foreseen]
    return Account(*(np.concatenate([getattr(one, column.name) for one in accounts]) for column in fields(Account)))
