"""`external.metrics.k8s.io` and `custom.metrics.k8s.io` as an aggregated API: from a request to a reply, pure.

What does not belong here: sockets, TLS, who may ask (`door`, `tls`, `access`), and what the numbers are (`values`).
"""
