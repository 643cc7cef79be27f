"""What survives a cycle: the rings of history with their snapshot on disk, and the ledger of decisions and errors.

Arrays and SQL stay here. Nothing here asks a source, decides, or reads the clock: instants are arguments.
"""
