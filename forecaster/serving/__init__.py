"""The serving process: reads the published table and answers from it, whatever the computing process is doing.

`wire`, `table` and `publish` are the two sides of the hand-over; `process` is how the computing process keeps the
serving one alive; the rest runs inside it. Nothing here decides or computes, and nothing that the serving process
imports may load numpy, pandas, pydantic or models: it has to start at once and stay small.
"""
