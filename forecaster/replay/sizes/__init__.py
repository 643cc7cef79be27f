"""Requests and limits replayed over recorded usage: what a recommender would have asked for, and what came of it."""
