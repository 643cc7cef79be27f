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
from datetime import timedelta

from forecaster.app.notebook import checked_yaml, load
from models.leaderboard import compare

panel = load("cpu")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# panel = load("cpu", "http://localhost:9090")  # your own Prometheus: this line instead
# panel = load("cpu", "week.zip")  # or a bundle of `forecaster export`, CSV, Parquet
names = ["last-value", "hour-of-week", "nearest-day", "ridge", "adaptive"]
hour = panel.bins(timedelta(hours=1))
board = compare(panel, names, steps=hour, count=12, levels=(0.05, 0.25, 0.5, 0.75, 0.9, 0.95))
board

# %% [markdown]
# - `sQL_rel` is the loss of all quantiles relative to the same time yesterday: 0.6 means that four tenths of the error
#   are gone. Above 1, do not use the model. `low` and `high` are its error bar: with a dozen
#   origins, the figure of all moments of these days mostly lies within.
# - `cost_rel` is the same for a reserve at p95, when a missing core costs as much as nineteen idle ones.
# - `cov95` is the share of values at or below p95. Right is 0.95; less means too little reserve.
# - `unanswered` is the share of questions to which the model itself had no answer.
# - `ms` is the time to fit and forecast one series, on this machine.
#
# `adaptive` brings a prior that was trained on the first part of public traces, and the bundled recording is made of
# such traces: on it, its lead is flattering. Your own Prometheus is the fair judge.

# %%
board.plot()

# %% [markdown]
# ## When did it go wrong?
# Loss at each origin. A peak that all models share is a surprise that no history announced; one that a single model has
# is a fault of that model.

# %%
board.plot_origins(["seasonal-naive-day", "nearest-day", "ridge", "adaptive"])

# %% [markdown]
# Forecasts at the worst origins, each beside the demand that followed.

# %%
board["nearest-day"].plot()

# %% [markdown]
# ## Is one model best for all?
# Loss per workload, relative to the best model on it: 1 is the best, 1.5 is half as much loss again.

# %%
losses = board.per_series()
losses.div(losses.min(axis=1), axis=0).round(2).sort_index(axis=1)

# %% [markdown]
# ## Can the quantiles be believed?
# Below zero, more values than promised lie above the quantile: the model is too sure of itself, and its p95 is no
# reserve. A bar that reaches zero is no evidence against it.

# %%
board.plot_calibration(["seasonal-naive-day", "hour-of-week", "nearest-day", "ridge", "adaptive"])

# %% [markdown]
# ## Choose
# No winner is named where a model left more than a tenth of the questions unanswered: it chose the easier ones. Nor
# where chance explains the difference to the next best: then keep what you run.

# %%
winner = board.winner()
print(winner)

# %%
print(checked_yaml({"forecast": {"model": winner.name or "adaptive"}}))
