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
# # How do I use a model of my own?
#
# Write it in twenty lines, let the contract test it, see it on the leaderboard, name it in the settings: first one that
# looks at each series alone, then one that learns from the whole fleet.
#
# ## Write
# A model is a frozen dataclass with a `name` and `fit(panel)`. `FittedRule` makes the fitted model of one more method,
# `paths`: quantiles of the coming steps for all series at once, as an array. Order and sign of quantiles, bounds, gaps,
# updates, peaks and reasons are taken care of. This file lies beside the notebook; change it and run again.

# %%
# %matplotlib inline
from pathlib import Path
from tempfile import mkdtemp

from IPython.display import Code
from median_of_days import MedianOfDays
from pooled_ridge import PooledRidge, trained

import models
from forecaster.app.notebook import checked_yaml, load
from models.checks import CHECKS, check_model
from models.leaderboard import compare

Code(filename="median_of_days.py")

# %% [markdown]
# ## Test
# The contract that every model keeps: honest shapes, other units, other weeks, another future, and a dozen kinds of bad
# data, from all gaps to spikes of 1e12. It raises `ContractError` with the promise that broke.

# %%
check_model(MedianOfDays())
print(f"{len(CHECKS)} checks passed")

# %% [markdown]
# ## Compare
# Beside the others, on the same past. Two settings of one model need two names.

# %%
panel = load("cpu")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# panel = load("cpu", "http://localhost:9090")  # your own Prometheus: this line instead
# panel = load("cpu", "week.zip")  # or a bundle of `forecaster export`, CSV, Parquet
my_models = [MedianOfDays(), MedianOfDays(days=3, name="median-of-3-days")]
board = compare(panel, [*my_models, "last-value", "nearest-day"], count=8)
board

# %%
board.plot()

# %% [markdown]
# Read both halves: a small loss with a p95 that is exceeded far more often than one time in twenty is no reserve. Seven
# days are too few to know one day in twenty. `models.residuals` makes honest quantiles of past errors for any model
# that knows what it expects; `models/nearest_day.py` shows how.
#
# ## Pooled over the fleet
# A series alone has seen two weeks; the fleet together has seen years. This one is a regression of scikit-learn on what
# all series have in common. It says `pooled = True`, and the contract then has other promises for it: that no unit, order
# or name of another series changes a forecast.

# %%
check_model(PooledRidge())
half = (panel.end - panel.start) / 2
path = Path(mkdtemp()) / "pooled_ridge.npz"
trained(panel.until(panel.start + half), path, origin="the first half of this panel")

# %% [markdown]
# ## Weights
# A pooled model learns once and ships its weights, or learns anew at every fit: the service fits up to 128 workloads
# together, so weights of a file are the way to learn from more. They are plain numbers with their origin, never a
# pickle: a pickle is a program, and the service would run it. Compare both on the second half, which the weights have
# not seen.

# %%
second = panel.last(half)
pooled = ["pooled_ridge:PooledRidge", "pooled_ridge:PooledRidge(weights='pooled_ridge.npz')"]
board = compare(second, [*pooled, "last-value", "nearest-day"], count=8)
board

# %%
board["pooled_ridge:PooledRidge"].plot(count=2)

# %% [markdown]
# On the recording, chance explains its lead on yesterday: eleven series are little to pool. Run the cell above on your
# own panel to see what it is worth there.
#
# ## Hyper-parameters
# Write hyper-parameters in brackets behind the name, wherever a model is named: in settings, `replay --model`, and here.
# A misspelt parameter is refused with a list of those that the model has.

# %%
alphas = [f"pooled_ridge:PooledRidge(alpha={alpha})" for alpha in (0.1, 1.0, 10.0, 100.0)]
compare(second, alphas, count=6).table().round(3)[["sQL_rel", "low", "high", "cov95"]]

# %%
try:
    models.create("pooled_ridge:PooledRidge(alhpa=3)")
except models.QuestionError as error:
    print(error)

# %% [markdown]
# ## Serve
# One setting. `forecast.model` takes an import path, `module:Name`, as well as a name of the catalogue. The service
# imports the model when it starts and runs the contract on it once; a model that breaks it is refused with the promise
# that broke. All that the service needs is to find the files: put their folder into `PYTHONPATH`.
#
#     PYTHONPATH=notebooks forecaster once --config settings.yaml --prometheus http://localhost:9090

# %%
print(checked_yaml({"forecast": {"model": pooled[1]}}))
