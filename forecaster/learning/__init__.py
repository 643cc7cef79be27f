"""Learned policies: the decision as a Markov decision process, trained in the replay and bounded by `decide`.

A learned policy says a count; it becomes the demand that so many pods are meant for and takes the forecast's place
in `decide`. So the floor of the measured demand, tolerance, stabilization, blast radius and bounds hold for it as
they do for any model. Weights are plain arrays; loading them runs no code.
"""
