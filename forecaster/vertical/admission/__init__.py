"""Would the cluster accept these requests and limits, and what would they change: every rule in one proof, pure.

`prove` is the door. The rules themselves are in `forecaster.vertical.rules`.
"""
