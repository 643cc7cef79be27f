# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What would it have cost, what would have been short, and which price is mine?
#
# A replay plays recorded demand through the exact HPA, minute by minute, with pods that take time to start, and decides
# with the function that the service decides with.

# %%
# %matplotlib inline
from collections import Counter
from datetime import timedelta

import pandas as pd

from forecaster.app.notebook import checked_yaml, load_traces
from forecaster.app.traces import REQUESTS_METRIC
from forecaster.config.settings import parse
from forecaster.domain.workload import Prices
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.strategies import strategies_with
from forecaster.report import plots

load = load_traces()  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# load = load_traces("http://localhost:9090")  # your own Prometheus: this line instead
# load = load_traces("week.zip")  # what `forecaster export week.zip` wrote: your demand, your HPAs
namespace = Counter(one.id.namespace for one in load.workloads if one.autoscaler).most_common(1)[0][0]  # or "shop"
load = load.take([i for i, one in enumerate(load.workloads) if one.id.namespace == namespace][:4])
[str(one.id) for one in load.workloads]

# %% [markdown]
# Pods start in three minutes, a decision is made every quarter of an hour, and a core costs three cents an hour.

# %%
common = {"horizontal": {"requests_metric": REQUESTS_METRIC}}
assumed = Assumptions(start_ups=(timedelta(minutes=3),), every=15, prices=Prices(core_hour=0.03, gib_hour=0.004))


def replayed(**horizontal):
    policy = {"policy": {"horizontal": {**common["horizontal"], **horizontal}}}
    policies, begin = parse(policy, "replay").policies, load.end - timedelta(hours=8)
    return compare(load, policies, strategies_with("adaptive"), begin=begin, assumed=assumed)


outcome = replayed()

# %% [markdown]
# ## The frontier
# Every strategy has a knob: the targets. Lean targets are cheap and short, safe ones dear. The large marks are the targets
# that the owners set. What lies below and left of the HPA's line is better than any target you could set for it.

# %%
plots.frontier(outcome)

# %%
titles = {one.name: one.title for one in outcome.strategies}
pd.DataFrame(
    {
        "pod-hours": outcome.own(name).pod_hours,
        "short, % of demand": 100 * outcome.own(name).missing_share,
        "shortage at the HPA's cost": outcome.ratio(name),
        "saved at the HPA's shortage": outcome.saved(name),
    }
    for name in titles
).set_axis(titles.values()).round(3)

# %% [markdown]
# ## The worst workload, minute by minute

# %%
worst = max(outcome.workloads, key=lambda one: one.curves["hpa"].own.missing)
plots.trajectory(outcome, str(worst.workload.id), load)

# %% [markdown]
# ## The price
# `quantile` says what a missing pod costs beside an idle one: 4 times as much at 0.8, 9 at 0.9, 19 at 0.95. What each
# spends and leaves short, with money for the pods.

# %%
tried = {level: replayed(quantile=level) for level in (0.8, 0.9, 0.95)}
money = {
    name: sum(
        one.curves["policy"].own.pod_hours * assumed.prices.of_pod(one.workload.resources) for one in each.workloads
    )
    for name, each in tried.items()
}
own = {name: each.own("policy") for name, each in tried.items()}
table = pd.DataFrame(
    {
        "pod-hours": {name: one.pod_hours for name, one in own.items()},
        "money": money,
        "short, % of demand": {name: 100 * one.missing_share for name, one in own.items()},
    }
)
table.round(3)

# %% [markdown]
# ## Settings
# The cheapest that leaves no more than a tenth of a percent of the demand short; else the safest. `forecaster tune` does
# this for each workload, over blocks of days, with an interval.

# %%
good = table[table["short, % of demand"] <= 0.1]
chosen = good["money"].idxmin() if len(good) else table["short, % of demand"].idxmin()
match = {"namespace": namespace, "name": "*"}
print(checked_yaml({"overrides": [{"match": match, "policy": {"horizontal": {"quantile": float(chosen)}}}]}))
