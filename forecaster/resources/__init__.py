"""Policies stated by objects of the cluster: annotations, PredictiveAutoscaler, PredictivePolicy; their schema.

Pure: an object becomes a layer of a policy, a decision becomes a status. Watching objects belongs to `sources`, writing
them to `actuators`.
"""
