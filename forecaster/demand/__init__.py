"""From samples to total demand: what is the latest value, how old is it, what did one pod carry.

Pure arithmetic on windows. Fetching is done by `sources`, keeping by `store`, forecasting by `forecasting`.
"""
