"""From samples to total demand: the latest value, its age, and the capacity of a pod.

Pure arithmetic on windows. Fetching is done by `sources`, keeping by `store`, forecasting by `forecasting`.
"""
