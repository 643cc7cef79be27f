"""Forecasts written into Prometheus (remote write 1.0), beside what came true, for Grafana and PromQL.

`samples` says what is written, `wire` how it is spelled, `writer` sends it beside the cycle and never in its way.
"""
