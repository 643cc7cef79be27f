"""What objects of the cluster state of policies: annotations, PredictiveAutoscaler, PredictivePolicy; their schema.

Pure: what an object says becomes a layer of a policy, what was decided becomes a status. Watching objects is a matter
of `sources`, writing to them one of `actuators`.
"""
