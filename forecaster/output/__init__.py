"""Recommendations on a terminal or in a pipe: shared by the commands and the demo."""
