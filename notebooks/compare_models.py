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
# # Which model forecasts these workloads best, and can its quantiles be believed?
#
# Every model is put back to the same moments of the past, sees only what was known then, forecasts an hour, and is
# scored against what came.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
import yaml

from forecaster.app.notebook import measured, recorded  # noqa: F401  the other one is yours
from forecaster.config.settings import parse
from models.leaderboard import compare

panel = recorded("cpu")
# panel = measured("http://localhost:9090", "cpu")  # your own Prometheus: this line instead
names = ["last-value", "seasonal-naive-day", "hour-of-week", "harmonic", "nearest-day", "ridge", "theta", "adaptive"]
board = compare(panel, names, count=6)
board.table().round(3)

# %% [markdown]
# - `sQL_rel` is the loss of all quantiles relative to the same time yesterday: 0.6 means that four tenths of the error
#   are gone. Above 1, do not use the model.
# - `cost_rel` is the same for a reserve at p95, when a missing core costs as much as nineteen idle ones.
# - `cov95` is the share of values at or below p95. Right is 0.95; less means too little reserve.
# - `ms` is the time for one series, fitted and asked, on this machine.
#
# `adaptive` brings a prior that was trained on the first part of public traces, and the bundled recording is made of
# such traces: on it, its lead is flattering. Your own Prometheus is the fair judge.

# %%
board.plot()

# %% [markdown]
# ## Is one model best for all?
# Loss per workload, relative to the best model on it: 1 is the best, 1.5 is half as much loss again.

# %%
losses = board.per_series()
losses.div(losses.min(axis=1), axis=0).round(2).sort_index(axis=1)

# %% [markdown]
# ## Can the quantiles be believed?
# Asked for more levels, the share of values below each quantile should lie on the diagonal. A curve below it on the
# right is a model that is too sure of itself: its p95 is exceeded too often.

# %%
levels = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
some = ["seasonal-naive-day", "hour-of-week", "nearest-day", "ridge"]
entries = compare(panel, some, count=8, levels=levels).entries
figure, axes = plt.subplots(figsize=(5, 5))
axes.plot([0, 1], [0, 1], color="0.7", linestyle=":")
for name, entry in entries.items():
    axes.plot(levels, np.nanmean(entry.score.coverage, axis=0), marker="o", markersize=3, label=name)
_ = (axes.set(xlabel="level of the quantile", ylabel="share of values below it"), axes.legend())

# %% [markdown]
# ## Choose
# The least loss among those whose p95 holds what it promises, within four points.

# %%
table = board.table()
honest = table[(table["cov95"] - 0.95).abs() <= 0.04]
chosen = (honest if len(honest) else table).index[0]
fragment = {"forecast": {"model": chosen}}
parse(fragment, "this notebook")  # refused with a reason if a word of it is wrong
print(yaml.safe_dump(fragment, sort_keys=False))
