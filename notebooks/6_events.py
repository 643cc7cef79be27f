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
# # What do sales, broadcasts and holidays do to this load, and does it help to say so?
#
# A model learns what repeats by the clock. It cannot know that the sale is on Friday this time; you can.

# %%
# %matplotlib inline
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from forecaster.app.notebook import checked_yaml, load
from forecaster.report.plots import with_spans
from models import Calendar, Event, Eventful, HourOfWeek, Panel, create
from models.calendar import public_holidays
from models.leaderboard import compare

fleet = load("requests")  # the bundled recording, or the Prometheus of FORECASTER__PROMETHEUS__URL
# fleet = load("requests", "http://localhost:9090")  # your own Prometheus: this line instead
# fleet = load("requests", "week.zip")  # or a bundle of `forecaster export`, CSV, Parquet
requests = fleet.to_frame()
key = (requests.mean() / requests.diff().abs().mean()).idxmax()  # the calmest; or fleet.key("shop/web")
panel = fleet[key]

# %% [markdown]
# The recording has no sale that is written down, so four are made: on four days, at different hours, two hours have 1.8
# times the requests. (On your own data: fill in `sales` and leave the rest of this cell out.)

# %%
days = (panel.end - panel.start) // timedelta(days=1)
hours = [(days // 4, 13), (days // 2, 16), (3 * days // 4, 10), (days - 1, 14)]
begins = [panel.start + timedelta(days=day, hours=hour) for day, hour in hours]
sales = {f"sale {i}": (begin, begin + timedelta(hours=2)) for i, begin in enumerate(begins, 1)}
values = panel.values.copy()
for begin, end in sales.values():
    first, last = (begin - panel.start) // panel.step, (end - panel.start) // panel.step
    values[:, first:last] *= 1.8
with_sales = Panel(values, panel.start, panel.step, panel.keys)
with_spans(with_sales.plot(), sales)

# %% [markdown]
# ## With events and without
# `Eventful` takes the effect of past events out of history, and gives coming ones the effect that past ones of the same
# name had. Here are forecasts with and without events, made just before the last sale.

# %%
events = tuple(Event("sale", begin, end) for begin, end in sales.values())
last_begin = begins[-1]
past = with_sales.until(last_begin - timedelta(minutes=30))
plain, with_events = create("nearest-day"), Eventful(create("nearest-day"), events)
half_an_hour, ahead = (panel.bins(timedelta(minutes=minutes)) for minutes in (30, 180))
for model in (plain, with_events):
    median = model.fit(past).forecast(ahead, (0.05, 0.5, 0.95)).quantile(0.5)[0]
    during = median[half_an_hour : ahead - half_an_hour].mean()
    print(f"{model.name}: {during:.0f} requests a second during the sale")
came = with_sales.around(last_begin, timedelta(0), timedelta(hours=2)).values.mean()
print(f"what came: {came:.0f}")

# %%
with_events.fit(past).forecast(ahead, (0.05, 0.5, 0.95)).plot(with_sales)

# %% [markdown]
# A name that has not been seen before changes nothing: there is nothing to learn from. Then say how many pods, below.
#
# ## Holidays and time zones
# People live by local time, with days of 23 and 25 hours, and stay at home on holidays. A calendar says where. It helps
# only a model that goes by the clock, and only if people, not machines, make the load.


# %%
@dataclass(frozen=True)
class Named:
    """A model under another name, so that two settings of one can be compared."""

    name: str
    model: object

    def fit(self, panel):
        return self.model.fit(panel)


# %%
off = public_holidays("US", [panel.start.year])
print("holidays within the recording:", *sorted(day for day in off if panel.start.date() <= day <= panel.end.date()))
local = Named("hour-of-week, New York", HourOfWeek(Calendar("America/New_York", ("US",))))
board = compare(panel, [local, "hour-of-week", "nearest-day"], count=8)
board.table().round(3)[["sQL_rel", "low", "high", "cov95"]]

# %% [markdown]
# ## Settings
# Known events are a floor from a lead time before they begin until they end. How many pods: what the last sale needed at
# its peak, at a hundred requests a second for each pod.

# %%
peak = float(np.nanmax([with_sales.around(begin, timedelta(0), timedelta(hours=2)).values.max() for begin in begins]))
event = {"name": "sale", "cron": "0 14 * * 5", "duration": "2h", "time_zone": "America/New_York"}
namespace, _, name = key.split("/")
match = {"namespace": namespace, "name": name}
policy = {"horizontal": {"events": [{**event, "replicas": int(np.ceil(peak / 100))}]}}
print(checked_yaml({"overrides": [{"match": match, "policy": policy}]}))
