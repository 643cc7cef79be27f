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
namespaces = Counter(workload.id.namespace for workload in load.workloads if workload.autoscaler)
namespace = namespaces.most_common(1)[0][0]  # or "shop"
load = load.take([i for i, workload in enumerate(load.workloads) if workload.id.namespace == namespace][:4])
[str(workload.id) for workload in load.workloads]

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
titles = {strategy.name: strategy.title for strategy in outcome.strategies}
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
worst = max(outcome.workloads, key=lambda result: result.curves["hpa"].own.missing)
plots.trajectory(outcome, str(worst.workload.id), load)

# %% [markdown]
# ## The price
# `quantile` says what a missing pod costs beside an idle one: 4 times as much at 0.8, 9 at 0.9, 19 at 0.95. The
# table shows the pod-hours, the money and the shortage at each quantile.

# %%
tried = {level: replayed(quantile=level) for level in (0.8, 0.9, 0.95)}
money = {
    name: sum(
        result.curves["policy"].own.pod_hours * assumed.prices.of_pod(result.workload.resources)
        for result in outcome.workloads
    )
    for name, outcome in tried.items()
}
own = {name: outcome.own("policy") for name, outcome in tried.items()}
table = pd.DataFrame(
    {
        "pod-hours": {name: account.pod_hours for name, account in own.items()},
        "money": money,
        "short, % of demand": {name: 100 * account.missing_share for name, account in own.items()},
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
