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
# Write it in twenty lines, let the contract test it, see it on the leaderboard, name it in the settings.
#
# ## Write
# A model is a frozen dataclass with a `name` and `fit(panel)`. `Remembered` makes the fitted model of one more method,
# `paths`: quantiles of the coming steps for all series at once, as an array. Order and sign of quantiles, bounds, gaps,
# updates, peaks and reasons are taken care of. This file lies beside the notebook; change it and run again.

# %%
# %matplotlib inline
from pathlib import Path

import yaml
from IPython.display import Code
from median_of_days import MedianOfDays

import models
from forecaster.app.notebook import measured, recorded  # noqa: F401  the other one is yours
from forecaster.config.settings import parse
from models.checks import CHECKS, check_model
from models.leaderboard import compare

Code(filename=str(Path("median_of_days.py")))

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
panel = recorded("cpu")
# panel = measured("http://localhost:9090", "cpu")  # your own Prometheus: this line instead
ours = [MedianOfDays(), MedianOfDays(days=3, name="median-of-3-days")]
board = compare(panel, [*ours, "last-value", "seasonal-naive-day", "nearest-day"], count=6)
board.table().round(3)

# %%
board.plot()

# %% [markdown]
# Read both halves: a small loss with a p95 that is exceeded far more often than one time in twenty is no reserve. Seven
# days are too few to know one day in twenty. `models.residuals` makes honest quantiles of past errors for any model
# that knows what it expects; `models/nearest_day.py` shows how.
#
# ## Ship
# The setting `forecast.model` takes an import path, `module:Name`, as well as a name of the catalogue. The service
# imports the model when it starts and runs the contract on it once; a model that breaks it is refused with the promise
# that broke. All that the service needs is to find the file: put its folder into `PYTHONPATH`.
#
#     PYTHONPATH=notebooks forecaster once --config settings.yaml --prometheus http://localhost:9090

# %%
path = f"{MedianOfDays.__module__}:{MedianOfDays.__name__}"
assert models.create(path) == MedianOfDays()
fragment = {"forecast": {"model": path}}
parse(fragment, "this notebook")  # refused with a reason if a word of it is wrong
print(yaml.safe_dump(fragment, sort_keys=False))
