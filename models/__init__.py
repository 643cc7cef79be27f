"""Forecasting on panels of series."""
