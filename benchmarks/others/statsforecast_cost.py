"""CPU seconds a series of AutoETS and AutoARIMA: `python statsforecast_cost.py SERIES.npy`, where statsforecast is.

SERIES.npy is [series, hour]; a model is fitted to each and forecasts the next hour. One JSON object to stdout. It needs
nothing of this repository, so that it runs in an environment of its own.
"""

import json
import sys
import time

import numpy as np
from statsforecast.models import AutoARIMA, AutoETS

LEVELS = [80]


def main() -> None:
    series, seconds = np.load(sys.argv[1]), {}
    for model in (AutoETS(season_length=24), AutoARIMA(season_length=24)):
        model.forecast(y=series[0], h=1, level=LEVELS)  # compiles what it needs
        begin = time.process_time()
        for values in series:
            model.forecast(y=values, h=1, level=LEVELS)
        seconds[type(model).__name__] = (time.process_time() - begin) / len(series)
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main()
