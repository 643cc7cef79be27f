"""Choice of sizes for containers and pods, and their risk: past days, prices, the cheapest level. Pure.

Arrays have a row per container; `pod` turns rows into requests and limits with sentences. The origin of history is not
known here; whether the cluster takes a size is decided in `vertical.admission`, other rules are in
`vertical.recommenders`.
"""
