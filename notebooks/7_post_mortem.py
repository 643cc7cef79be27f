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
# # It ran short. What was known, what was decided, and what would another setting have done?
#
# With `state.tape: FILE` the service writes down all that its source answered and all that it decided. A tape is played
# again to the last digit, with the settings of that time or with others. Where no service ran, one is made of what a
# Prometheus has of that hour.

# %%
# %matplotlib inline
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd

from forecaster.app.clock import current
from forecaster.app.notebook import checked_yaml, prometheus_of
from forecaster.app.past_tape import measured_tape, recorded_tape
from forecaster.app.tape_replay import retell
from forecaster.domain.decision import Reason, Scale
from forecaster.horizontal.explain import explanation
from forecaster.report import plots

tape, hour = Path(mkdtemp()) / "tape", timedelta(hours=1)
settings = prometheus_of()  # that of FORECASTER__PROMETHEUS__URL; or prometheus_of("http://localhost:9090")
if settings:
    measured_tape(tape, settings, current() - hour - timedelta(minutes=5), hour)
else:
    recorded_tape(tape, datetime(2021, 10, 19, 11, 35, tzinfo=UTC), hour)
# tape = Path("tape")  # or the file that `state.tape` of your service names

# %% [markdown]
# ## What was decided
# Every cycle again. If one decision were not the same, something went into it that is not on the tape, and nothing below
# could be believed.

# %%


def played(changed=None):
    rows, told = [], {}
    for cycle in retell(tape, changed):
        for one in (each for each in cycle.outcome.recommendations if each.signals):
            view = one.signals[0]
            count = one.replicas.replicas if isinstance(one.replicas, Scale) else None
            needed = None if view.measured is None or not view.pod else view.measured / view.pod
            row = {"pods": one.replicas_now, "recommended": count, "needed": needed, "same": cycle.same}
            raised = one.replicas.reason is Reason.FORECAST
            rows.append({"workload": str(one.id), "at": cycle.at, **row, "raised": raised})
            told[str(one.id), cycle.at] = one
    return pd.DataFrame(rows).set_index(["workload", "at"]), told


fleet, told = played()
cycles = fleet["same"].groupby("at").all()
print(f"{len(cycles)} cycles played again, {int((~cycles).sum())} of them decided something else")

# %% [markdown]
# ## When was it short?
# `needed` is the measured demand in full pods. The workload is the one whose demand was furthest above its pods, in shares
# of them; the incident is the minute of it.

# %%
lack = (fleet["needed"].astype(float) / fleet["pods"] - 1).dropna()
workload = lack.groupby("workload").max().idxmax()  # or "shop/checkout"
then, incident = fleet.loc[workload], lack[workload].idxmax()
lines = {name: then[name].tolist() for name in ("pods", "needed", "recommended")}
print(
    f"{incident:%H:%M} UTC: {then.loc[incident, 'pods']} pods, and the demand filled {then.loc[incident, 'needed']:.1f}"
)
plots.counts(then.index.tolist(), lines, title=f"{workload}: pods, and how many the demand filled", marks=[incident])

# %% [markdown]
# ## What was known, a lead time before?
# The decision in sentences, as `forecaster explain` and the service say them.

# %%
before = max([at for at in then.index if at <= incident - timedelta(minutes=3)], default=then.index[0])
print("\n".join(explanation(told[workload, before])))

# %% [markdown]
# ## What would another setting have done?
# The same answers, other policies. Pods are those that there were: what another count would have changed is not on the
# tape, so compare what was recommended, minute by minute, with what the demand came to need. Each setting has a gate of
# its own: where the forecast raised nothing, it had no say under that setting, and what is left is the HPA's formula.

# %%
tries = {
    "as it was": None,
    "quantile 0.95": {"policy": {"horizontal": {"quantile": 0.95}}},
    "lead time 6m": {"policy": {"horizontal": {"lead_time": "6m"}}},
}
found = {name: then if changed is None else played(changed)[0].loc[workload] for name, changed in tries.items()}
needed = then["needed"].astype(float)
table = pd.DataFrame(
    {
        "pod-minutes": {name: float(one["recommended"].astype(float).sum()) for name, one in found.items()},
        "short, pod-minutes": {
            name: float((needed.shift(-3) - one["recommended"].astype(float)).clip(lower=0).sum())
            for name, one in found.items()
        },
        "raised, minutes": {name: int(one["raised"].sum()) for name, one in found.items()},
    }
)
price = 9  # of a missing pod beside an idle one, as `quantile: 0.9` has it
table["cost"] = table["pod-minutes"] + price * table["short, pod-minutes"]
table.round(1)

# %%
lines = {"needed": needed.tolist(), **{name: one["recommended"].tolist() for name, one in found.items()}}
plots.counts(then.index.tolist(), lines, title=f"{workload}: recommended under each setting", marks=[incident])

# %% [markdown]
# ## What the ledger says
# Without a tape there is the database: what was decided whenever it changed. `forecaster history` prints it, and a bundle
# of `forecaster export` has it in `changes`. Here are the changes of this tape.

# %%
changed = then["recommended"].ne(then["recommended"].shift())
then[changed][["pods", "recommended"]].assign(
    why=[told[workload, at].replicas.message for at in then.index[changed]]
).tail(8)

# %% [markdown]
# ## Settings
# The setting that would have cost least, pods and what was missing together, if it saves a tenth: one hour is little to
# go by. It may be the one there was: an incident that nothing announced is no fault of a policy.

# %%
best = table["cost"].idxmin()
best = best if table.loc[best, "cost"] < 0.9 * table.loc["as it was", "cost"] else "as it was"
namespace, name = workload.split("/")
policy = (tries[best] or {"policy": {"horizontal": {"quantile": 0.9}}})["policy"]
print(f"# {best}: {table.loc[best, 'cost']:.0f} pod-minutes with what was missing")
print(checked_yaml({"overrides": [{"match": {"namespace": namespace, "name": name}, "policy": policy}]}))
