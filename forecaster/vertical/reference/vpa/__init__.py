"""The Vertical Pod Autoscaler 1.8: recommender, admission and updater, as functions of what they are given.

Amounts are its own integers: millicores and bytes. Instants are nanoseconds since year 1 (`instants.py`).
"""
