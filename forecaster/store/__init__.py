"""State that survives a cycle: rings of history with a snapshot on disk, and the ledger of decisions.

Arrays and SQL stay here. Nothing here reads a source, decides, or reads the clock: instants are arguments.
"""
