"""Which size to choose, and at which risk: past days as the picture of the coming one, prices, the cheapest level.

Arrays have a row per container. Pure; what a container is called and where its history comes from is not known here.
"""
