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
# # What if a container had another request and limit?
#
# A request is paid whether it is used or not; a limit that is passed throttles, or kills. Which size is right depends on
# what a mishap costs you. Sizes are replayed over the usage of one pod: each is decided from the usage before it.

# %%
# %matplotlib inline
import numpy as np
import pandas as pd

from forecaster.app.notebook import checked_yaml, load
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.replay.size_replay import measured_load
from forecaster.replay.sizers import backtested_sizes, ours, size_outcomes
from models.pictures import dress, figure_of, key_of_lines, model_mark

panel = load("memory")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# panel = load("memory", "http://localhost:9090")  # your own Prometheus: this line instead
# panel = load("memory", "week.zip")  # or a bundle of `forecaster export`, CSV, Parquet
pods = 4  # usage is the total of all pods; sizes are those of one
usage = measured_load("memory", list(panel.keys), panel.values.astype(float) / pods)
panel

# %% [markdown]
# ## By hand
# The simplest what-if: one request for all time. How much of it would be idle, and how often would a pod have passed it?
# The workload is the one whose peak is furthest above its mean.

# %%
gib = panel.to_frame() / pods / 2**30
key = (gib.max() / gib.mean()).idxmax()  # or panel.key("shop/checkout")
per_pod = gib[key].dropna()
daily = per_pod.resample("D").max()
sizes = np.quantile(per_pod, [0.5, 0.75, 0.9, 0.99, 1.0]).round(2)
pd.DataFrame(
    {
        "request, GiB": sizes,
        "idle, share": [1 - np.minimum(per_pod, size).mean() / size for size in sizes],
        "time above": [(per_pod > size).mean() for size in sizes],
        "days with a mishap": [int((daily > size).sum()) for size in sizes],
    }
).round(3)

# %% [markdown]
# ## Decided day by day
# The policy of the service beside the VPA's recommender at several margins and KRR, on the second half of the days.
# `slack` is the part of the request that was not used, as a ratio of usage; `over_limit` counts kills, or throttled time
# of CPU.

# %%
outcomes = backtested_sizes(usage, VerticalPolicy())
table = pd.DataFrame(
    {"family": outcome.family, "setting": outcome.setting, **outcome.summary._asdict()} for outcome in outcomes
)
table.set_index(["family", "setting"]).round(3)

# %% [markdown]
# ## The price of a kill
# `oom_price` says how many hours of the whole request a kill is worth. Choose a point on the curve.

# %%
prices = (20, 50, 150, 400, 1000)
by_price = size_outcomes([usage], [ours("forecaster", f"{price}", oom_price=float(price)) for price in prices])
figure, (axes,) = figure_of(height=3.2)
slack, mishaps = "slack_of_total", "over_limit"
for i, (family, rows) in enumerate(table.groupby("family")):
    axes.plot(rows[slack], rows[mishaps], label=family, linestyle="none", **{**model_mark(i + 1), "markersize": 6})
curve = [outcome.summary._asdict() for outcome in by_price]
line = pd.DataFrame(curve)
axes.plot(line[slack], line[mishaps], label="forecaster, by price", **model_mark(0))
for price, point in zip(prices, curve, strict=True):
    axes.annotate(f"{price}", (point[slack], point[mishaps]), textcoords="offset points", xytext=(5, 5), fontsize=8)
axes.set(xlabel="requested and not used, as a ratio of what was used")
dress(axes, "Kills against slack: lower and further left is better")
key_of_lines(axes)
figure

# %% [markdown]
# ## Settings
# The cheapest price that leaves no mishap here, or the one with the fewest.

# %%
fewest = min(point[mishaps] for point in curve)
price = next(price for price, point in zip(prices, curve, strict=True) if point[mishaps] <= fewest)
print(checked_yaml({"policy": {"vertical": {"oom_price": float(price)}}}))
