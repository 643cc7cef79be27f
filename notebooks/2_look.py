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
# # What does this workload do, and is it worth forecasting?
#
# A workload gains from a forecast when its load rises faster than pods start, and when the rise could have been known:
# because it comes at the same time every day, or because it announces itself. Both can be seen in its history.

# %%
# %matplotlib inline
import pandas as pd

from forecaster.app.notebook import checked_yaml, load
from models import StepWindow, create
from models.pictures import dress, figure_of

panel = load("cpu")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# panel = load("cpu", "http://localhost:9090")  # your own Prometheus: this line instead
# panel = load("cpu", "week.zip")  # or a bundle of `forecaster export`, CSV, Parquet
panel

# %% [markdown]
# The rest of this notebook looks at one workload: the one that moves most within an hour. Values are total cores
# over all pods, in means of five minutes; a gap in the line is a gap in the data.

# %%
cores = panel.to_frame()
hour, ten_minutes = panel.bins(pd.Timedelta("1h")), max(1, panel.bins(pd.Timedelta("10min")))
key = (cores.diff(hour).abs().mean() / cores.mean()).idxmax()  # or panel.key("shop/checkout")
workload = panel[key]
series = workload.to_frame()[key]
workload.plot()

# %% [markdown]
# ## Does it repeat?
# Each thin line is a day; the thick one is their median, by the local clock of the people who use it. Change the zone.

# %%
local = series.tz_convert("UTC")
by_day = pd.DataFrame({"day": local.index.date, "hour": local.index.hour + local.index.minute / 60, "cores": local})
table = by_day.pivot_table(index="hour", columns="day", values="cores")
figure, (axes,) = figure_of(height=2.8)
axes.plot(table.index, table, color="#0b5cad", alpha=0.25, linewidth=0.7)
axes.plot(table.index, table.median(axis=1), color="#0b5cad", linewidth=2)
axes.set(xlabel="hour of the day", xlim=(0, 24), ylim=(0, None))
dress(axes, f"{key}, cores: each day, and their median")
figure

# %% [markdown]
# The hour of the week shows weekends. A dark row among light ones is a day that differs.

# %%
by_hour = pd.DataFrame({"weekday": local.index.day_of_week, "hour": local.index.hour, "cores": local})
week = by_hour.pivot_table(index="weekday", columns="hour", values="cores", aggfunc="median")
figure, (axes,) = figure_of(height=2.4)
dress(axes, f"{key}, median cores by hour of the week")
axes.grid(visible=False)
figure.colorbar(axes.imshow(week, aspect="auto", cmap="Blues"), ax=axes, pad=0.01)
axes.set(xlabel="hour of the day", yticks=range(len(week)), yticklabels=[list("MTWTFSS")[i] for i in week.index])
figure

# %% [markdown]
# How much of what happens within an hour could have been known? `last value` explains nothing of a change; the same
# time yesterday explains the part that repeats by the clock.

# %%
day = panel.bins(pd.Timedelta("1D"))
change = series.diff(hour).abs().mean()
off_yesterday = (series - series.shift(day)).abs().mean()
print(f"within an hour it moves by {change:.2f} cores on average; it is off yesterday's by {off_yesterday:.2f}")

# %% [markdown]
# ## How fast does it rise?
# Autoscaling reacts after the fact, so what hurts is the rise within the time that a pod needs to start. Here is the
# largest rise of each day within ten minutes, as a share of the load before it.

# %%
before = series.shift(ten_minutes)
rise = (series / before - 1).where(before > series.median() / 4)
daily = rise.groupby(rise.index.date).max()
figure, (axes,) = figure_of(height=2.4)
axes.bar([f"{day:%a %d}" for day in daily.index], daily, color="#0b5cad", alpha=0.7, width=0.6)
dress(axes, f"{key}: largest rise within ten minutes, as a share of the load before")
figure

# %% [markdown]
# ## What is coming?
# The next hour, as quantiles: half of the time the load stays below p50, nineteen times in twenty below p95. The peak
# of the coming ten minutes is a forecast of its own; the number of pods is computed from it.

# %%
fitted = create("nearest-day").fit(workload)
forecast = fitted.forecast(hour, (0.05, 0.5, 0.95))
forecast.plot(panel)

# %%
peak = fitted.forecast_peak(StepWindow(1, ten_minutes), (0.5, 0.85, 0.95)).values[0]
print(f"peak of the next ten minutes: p50 {peak[0]:.2f}, p85 {peak[1]:.2f}, p95 {peak[2]:.2f} cores")
print(f"the newest sample: {series.iloc[-1]:.2f} cores")

# %% [markdown]
# ## Settings
# Where rises are steep, reserve for a higher quantile and tell how long a pod takes; where they are not, leave the
# workload to the HPA. The forecast never asks for less than the HPA does.

# %%
namespace, kind, name = key.split("/")
steep = bool(daily.median() > 0.5)
fragment = {
    "overrides": [
        {
            "match": {"namespace": namespace, "kind": kind, "name": name},
            "policy": {"horizontal": {"quantile": 0.95 if steep else 0.85, "lead_time": "3m"}},
        }
    ]
}
print(checked_yaml(fragment))
