"""Which size to choose for containers and pods, and at which risk: past days, prices, the cheapest level. Pure.

Arrays have a row per container; `pod` turns rows into requests and limits with sentences. Where history comes from is
not known here; whether the cluster takes a size is in `vertical.admission`, other rules in `vertical.recommenders`.
"""
