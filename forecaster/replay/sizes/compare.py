"""Several recommenders over the same loads, each a point of slack against mishaps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.policy import VerticalPolicy
from forecaster.replay.sizes.account import Account, Summary
from forecaster.replay.sizes.replay import Sizer, replay
from forecaster.replay.sizes.sizers import Krr, Ours, Vpa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.replay.sizes.load import Load, Resource

VPA_MARGINS = (0.0, 0.15, 0.3, 0.5, 1.0)
OOM_PRICES = (20.0, 50.0, 150.0, 400.0, 1000.0)
THROTTLE_PRICES = (3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
MEMORY_SHARES = (0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A recommender with its settings. `family` groups the points of one curve."""

    family: str
    setting: str
    build: Callable[[Resource, int], Sizer]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one contestant."""

    family: str
    setting: str
    summary: Summary


def compared(loads: Sequence[Load], contestants: Sequence[Contestant]) -> list[Compared]:
    """Every contestant over every load, the containers of all of them together."""
    return [Compared(one.family, one.setting, _over_all(loads, one).summary()) for one in contestants]


def backtested(load: Load, policy: VerticalPolicy) -> list[Compared]:
    """One policy beside the VPA's margins and KRR."""
    mine = Contestant("forecaster", "policy", partial(Ours, policy=policy))
    return compared([load], [mine, *_others()])


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
    vpa = [Contestant("VPA", f"margin {margin:g}", partial(Vpa, margin=margin)) for margin in VPA_MARGINS]
    return [*vpa, Contestant("KRR", "simple", Krr)]


def ours(family: str, setting: str, **policy: object) -> Contestant:
    """Ours under a policy."""
    chosen = VerticalPolicy.model_validate(policy)
    return Contestant(family, setting, partial(Ours, policy=chosen))


def _over_all(loads: Sequence[Load], contestant: Contestant) -> Account:
    accounts = [replay(load, contestant.build(load.resource, len(load.names))) for load in loads]
    return Account(*(np.concatenate([getattr(one, column.name) for one in accounts]) for column in fields(Account)))
