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
# # How do I get my own data in, and what is wrong with it?
#
# A panel is many series on one grid of time: total demand of each workload over all its pods, in cores, bytes or requests
# a second. One line reads one from whatever source you have.

# %%
# %matplotlib inline
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

from forecaster.app.notebook import checked_yaml, load
from models import Panel

panel = load("cpu")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# panel = load("cpu", "http://localhost:9090")  # a Prometheus, over `kubectl port-forward` if need be; it only reads
# panel = load("cpu", "demand.csv")  # or demand.parquet
# panel = load("cpu", "week.zip")  # what `forecaster export week.zip --length 7d` wrote; it brings HPAs and policies, too
panel

# %% [markdown]
# ## Tables
# One row a sample: `timestamp`, `value` and, of several series, `workload` and `signal`. Here is such a file as they come
# from the wild: one series begins late, one ends early, a scrape was missed here and there, one is sampled by the minute.

# %%
folder = Path(mkdtemp())
rng = np.random.default_rng(1)
long = panel.select(list(panel.keys[:3])).to_frame().melt(ignore_index=False, var_name="workload")
long = long.rename_axis("timestamp").reset_index()
first, second, third = (3 * panel.keys)[:3]
late = (long["workload"] == second) & (long["timestamp"] < panel.start + pd.Timedelta("3D"))
early = (long["workload"] == third) & (long["timestamp"] >= panel.end - pd.Timedelta("5h"))
missed = rng.random(len(long)) < 0.01
long[~(late | early | missed)].to_csv(folder / "demand.csv", index=False)
long[~(late | early | missed)].to_parquet(folder / "demand.parquet")

# %% [markdown]
# Whatever was repaired is listed above the table. A gap stays a gap: nothing is interpolated, and models carry the
# latest sample forward, as they would have had to at the time.

# %%
ragged = load("cpu", folder / "demand.csv")
ragged

# %%
ragged.plot()

# %% [markdown]
# A Parquet file gives the same panel. A frame of your own needs no file. A series is looked up by the parts of its name
# that matter.

# %%
same = load("cpu", folder / "demand.parquet")
assert np.array_equal(same.values, ragged.values, equal_nan=True)
of_frame = Panel.from_long(long[["timestamp", "workload", "value"]])
of_frame[first].to_frame().tail(3)

# %% [markdown]
# ## A bundle
# `forecaster export` writes demand, workloads with their HPAs, policies and decisions into one file. It holds no code and
# no secret; `forecaster replay --export week.zip` reads it as well.

# %%
from forecaster.app.notebook import load_traces
from forecaster.app.traces import bundle_of
from forecaster.config.settings import Settings
from forecaster.sources.bundle import read_bundle, write_bundle

write_bundle(folder / "week.zip", bundle_of(load_traces(days=3), Settings()))
bundle = read_bundle(folder / "week.zip")
pd.DataFrame(
    {
        "workload": str(workload.id),
        "cores": workload.resources.cpu_request,
        "HPA": workload.autoscaler and f"{workload.autoscaler.min_replicas} to {workload.autoscaler.max_replicas}",
    }
    for workload in bundle.workloads
).head()

# %% [markdown]
# ## Settings
# How old may a sample be before a workload is held? Longer than the usual gap, or every missed scrape is a hold; not much
# longer, or stale demand decides.

# %%
silence = ragged.to_frame()[first].isna().astype(int)
longest = int(silence.groupby((silence == 0).cumsum()).sum().max())
minutes = max(5, (longest + 1) * int(ragged.step.total_seconds() // 60))
print(checked_yaml({"policy": {"max_sample_age": f"{minutes}m"}}))
