"""Grafana's dashboards, made of the table of panels in `dashboards`.

`document` knows Grafana's JSON model and nothing of forecaster; deploy/components/monitoring holds what is made.
"""
