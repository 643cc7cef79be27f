"""Recommenders that others wrote, restated exactly: selectable as policies and the baselines of every report.

One package per tool. Nothing here reads a clock or a cluster; what belongs to our own sizing stays one folder up.
"""
