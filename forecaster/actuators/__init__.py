"""Effects on the cluster: each is a pure plan and a thin writer, safe to apply twice, with a dry run and an undo.

What is decided is read from the offer; no number is computed here. State lives on the objects, so that any replica, a
restart and `forecaster release` find it. Nothing of Prometheus, of forecasts or of serving belongs here.
"""
