"""Requests and limits of one pod: pure arithmetic over per-pod usage."""
