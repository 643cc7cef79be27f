"""Certificates of our own for the aggregated API: made, kept in a Secret, trusted by the APIServices, renewed in time.

`issue` makes one, `judge` says whether one is due, `keep` puts the steps in their order, `cluster` carries them out.
"""
