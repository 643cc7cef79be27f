"""Living with others: one API group has one server in a cluster. Who has it, and how to stand in front of it."""
