"""Who is compared: the HPA alone, seasonal naive, models, our policy, gated or not, learned ones, perfect foresight."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from forecaster.decisions.quantile import stated_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forecaster.domain.policy import Policy
    from forecaster.replay.advice import Advisor

NAIVE = "seasonal-naive-day"
OURS = "adaptive"
"""What the service uses unless it is told otherwise."""


STEEP = 6
CHEAPEST, DEAREST = 0.01, 99.0


class Source(StrEnum):
    """Where a contestant's idea of the future comes from."""

    NOTHING = "nothing"
    MODEL = "model"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to scale: its name in reports, and what it looks ahead with."""

    name: str
    title: str
    source: Source
    model: str = ""
    advisor: Advisor | None = None
    """Who speaks in the model's place, having heard it."""
    gated: bool = False

    def policy_of(self, policy: Policy) -> Policy | None:
        """The workload's policy as this contestant follows it; None for the HPA alone.

        Whoever knows the truth may scale in by it, too. Only who is there for it is gated: a gate would hide what it
        is to judge.
        """
        if self.source is Source.NOTHING:
            return None
        changed: dict[str, object] = {"gate": self.gated}
        if self.advisor is not None:
            changed["sizing"] = "quantile"
        if self.source is Source.TRUTH:
            changed |= {"scale_in_by_forecast": True, "sizing": "quantile"}
        return with_horizontal(policy, changed)


def with_horizontal(policy: Policy, changed: Mapping[str, object]) -> Policy:
    """The policy with other values in its horizontal part, which have been checked already."""
    return policy.model_copy(update={"horizontal": policy.horizontal.model_copy(update=changed)})


def at_share(policy: Policy, share: float) -> Policy:
    """The policy where targets are at this share: sized by newsvendor a target has no say, and the price moves instead.

    Half the target is as safe as some sixty times the price; both run from a policy that is lean to one that is safe.
    """
    horizontal = policy.horizontal
    if horizontal.sizing != "newsvendor" or share == 1.0:
        return policy
    quantile = stated_quantile(horizontal)
    price = quantile / (1.0 - quantile) * share**-STEEP
    return with_horizontal(policy, {"price": min(max(price, CHEAPEST), DEAREST), "quantile": None})


HPA = Contestant("hpa", "the HPA alone", Source.NOTHING)
PERFECT = Contestant("perfect", "perfect foresight", Source.TRUTH)


def policy_with(model: str) -> Contestant:
    """Our policy with the model that the service uses."""
    return Contestant("policy", f"our policy ({model})", Source.MODEL, model)


def gated_with(model: str) -> Contestant:
    """Our policy behind its gate."""
    return Contestant("gated", "our policy, behind its gate", Source.MODEL, model, gated=True)


def learned_with(kind: str, model: str, advisor: Advisor) -> Contestant:
    """Our policy with a learned one that hears the model and speaks in its place."""
    return Contestant(f"learned-{kind}", f"learned policy, {kind}", Source.MODEL, model, advisor)


def line_up(
    model: str, others: Iterable[str] = (), *, learned: Mapping[str, Advisor] | None = None, gated: bool = False
) -> tuple[Contestant, ...]:
    """Everybody, each model once; `learned` are learned policies by kind, `gated` adds our policy behind its gate."""
    models = dict.fromkeys(one for one in (NAIVE, *others) if one != model)
    named = tuple(Contestant(one, _title(one), Source.MODEL, one) for one in models)
    taught = tuple(learned_with(kind, model, advisor) for kind, advisor in (learned or {}).items())
    judged = (gated_with(model),) if gated else ()
    return (HPA, *named, policy_with(model), *judged, *taught, PERFECT)


def _title(model: str) -> str:
    return "seasonal naive" if model == NAIVE else f"policy with {model}"
