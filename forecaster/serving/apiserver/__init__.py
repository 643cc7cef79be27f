"""A small client of the cluster's API server: whom to ask, how, and the few questions that serving has."""
