"""What to change about requests and limits, workload by workload: how far off, what it costs, would it be accepted.

Pure. The numbers come from the sizing, the proof from `admission`; here they become advice that a person can act on.
"""
