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
import matplotlib.pyplot as plt
import pandas as pd
import yaml

from forecaster.app.notebook import measured, recorded  # noqa: F401  the other one is yours
from forecaster.config.settings import parse
from models import StepWindow, create

panel = recorded("cpu")
# panel = measured("http://localhost:9090", "cpu")  # your own Prometheus: this line instead
frame = panel.to_frame()
frame.describe(percentiles=[0.5, 0.95]).T.round(2)

# %% [markdown]
# One of them, from here on. Total cores over all pods, means of five minutes; a gap in the line is a gap in the data.

# %%
key = "web/Deployment/space-center"
if key not in frame:
    key = frame.max().idxmax()
series = frame[key]
axes = series.plot(figsize=(11, 3), linewidth=0.8, title=f"{key}, cores")
print(f"{series.isna().mean():.1%} of {len(series)} bins are gaps")

# %% [markdown]
# ## Does it repeat?
# Each thin line is a day; the thick one is their median, by the local clock of the people who use it. Change the zone.

# %%
local = series.tz_convert("UTC")
by_day = pd.DataFrame({"day": local.index.date, "hour": local.index.hour + local.index.minute / 60, "cores": local})
table = by_day.pivot_table(index="hour", columns="day", values="cores")
figure, axes = plt.subplots(figsize=(11, 3))
axes.plot(table.index, table, color="0.75", linewidth=0.6)
axes.plot(table.index, table.median(axis=1), color="k")
_ = axes.set(xlabel="hour of the day", ylabel="cores", xlim=(0, 24))

# %% [markdown]
# The hour of the week shows weekends. A dark row among light ones is a day that differs.

# %%
by_hour = pd.DataFrame({"weekday": local.index.day_of_week, "hour": local.index.hour, "cores": local})
week = by_hour.pivot_table(index="weekday", columns="hour", values="cores", aggfunc="median")
figure, axes = plt.subplots(figsize=(11, 2.5))
axes.imshow(week, aspect="auto", cmap="Greys")
_ = axes.set(xlabel="hour of the day", yticks=range(len(week)), yticklabels=[list("MTWTFSS")[i] for i in week.index])

# %% [markdown]
# How much of what happens within an hour could have been known? `last value` explains nothing of a change; the same
# time yesterday explains the part that repeats by the clock.

# %%
hour, day = 12, 24 * 12
change = series.diff(hour).abs().mean()
off_yesterday = (series - series.shift(day)).abs().mean()
print(f"within an hour it moves by {change:.2f} cores on average; it is off yesterday's by {off_yesterday:.2f}")

# %% [markdown]
# ## How fast does it rise?
# Autoscaling reacts after the fact, so what hurts is the rise within the time that a pod needs to start. Here is the
# largest rise of each day within ten minutes, as a share of the load before it.

# %%
rise = (series / series.shift(2) - 1).where(series.shift(2) > series.median() / 4)
daily = rise.groupby(rise.index.date).max()
axes = daily.plot.bar(figsize=(11, 2.5), title="largest rise within ten minutes, share")
_ = axes.set_xticklabels([f"{one:%a %d}" for one in daily.index], rotation=0)

# %% [markdown]
# ## What is coming?
# The next hour, as quantiles: half of the time the load stays below p50, nineteen times in twenty below p95. The peak
# of the coming ten minutes is asked for directly; it is what pods are counted by.

# %%
one = panel.select([key])
fitted = create("nearest-day").fit(one)
forecast = fitted.forecast(12, (0.05, 0.5, 0.95))
ahead = pd.date_range(forecast.origin, periods=12, freq=pd.Timedelta(forecast.step))
figure, axes = plt.subplots(figsize=(11, 3))
axes.plot(series.index[-60:], series.iloc[-60:], color="k", label="measured")
low, middle, high = forecast.values[0]
axes.fill_between(ahead, low, high, alpha=0.3, label="p5 to p95")
axes.plot(ahead, middle, label="p50")
_ = axes.legend(loc="upper left")

# %%
peak = fitted.forecast_peak(StepWindow(1, 2), (0.5, 0.85, 0.95)).values[0]
print(f"peak of the next ten minutes: p50 {peak[0]:.2f}, p85 {peak[1]:.2f}, p95 {peak[2]:.2f} cores")
print(f"the newest five minutes: {series.iloc[-1]:.2f} cores")

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
parse(fragment, "this notebook")  # refused with a reason if a word of it is wrong
print(yaml.safe_dump(fragment, sort_keys=False))
