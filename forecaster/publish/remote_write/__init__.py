"""Offers into a receiver of Prometheus remote write. No rule of what is offered."""
