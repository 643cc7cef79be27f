"""From demand and forecast to a decision that explains itself: pure, state and now in, decision and state out.

Joins the rooms `hpa` and `vertical`. What does not belong here: reading, forecasting, acting.
"""
