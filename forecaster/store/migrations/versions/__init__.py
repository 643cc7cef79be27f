"""One revision a file; its number is the version of the tables that it makes."""
