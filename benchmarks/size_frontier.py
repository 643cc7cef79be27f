"""The recommenders of sizes that benchmarks draw as curves of slack against mishaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.replay.sizers import SizeStrategy, ours, references

if TYPE_CHECKING:
    from forecaster.replay.size_replay import Resource

OOM_PRICES = (20.0, 50.0, 150.0, 400.0, 1000.0)
THROTTLE_PRICES = (3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
FOLLOWING = {"horizon": "6h", "load_forecast": "follow", "change_price": 12}
"""Sizes that follow every forecast move more; twice the price of a change keeps them below the VPA's changes."""
STATED_RISK = {"oom_kills_a_year": 366}
"""Only the price of an OOM kill decides."""
MEMORY_SHARES = (0.9, 0.95, 0.98, 0.99)


def size_frontier(resource: Resource) -> list[SizeStrategy]:
    """The VPA at several margins, KRR, and ours at several prices."""
    reference = references()
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
        ours("forecaster, default", "one OOM kill a year"),
        *(ours("forecaster, request = limit", f"price {p:g}", oom_price=p, **STATED_RISK) for p in OOM_PRICES),
        *(
            ours("forecaster, limit at the peak", f"request {share * 100:g} %", memory_limit="peak", memory_share=share)
            for share in MEMORY_SHARES
        ),
    ]
