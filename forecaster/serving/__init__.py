"""The serving process: reads the published table and answers from it, whatever the computing process does.

`server`, `connection` and `secured` take connections; `access_control` decides on each request, by
`authentication` and reviews; `external_metrics`, `rest`, `workloads`, `integrations` and `keda` answer, `upstream`
passes on what is not ours. Nothing here decides or computes, and nothing that it imports may load numpy, pandas,
pydantic or models: the process has to start at once and stay small.
"""
