"""The steps of one cycle, one file each; `forecaster.cycle.run` puts them in order.

They know the ports and the pure rooms below, never an edge.
"""
