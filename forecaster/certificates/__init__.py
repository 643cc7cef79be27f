"""Certificates of our own for the aggregated API: issued, stored in a Secret, trusted by APIServices, renewed in time.

`issue` makes one, `renew` says whether one is due, and carries the steps out in their order.
"""
