"""The cluster's own rules about requests and limits, exact: one rule family a file, pure functions over values.

Kubernetes 1.37; where 1.36 and older differ, `server.Server` says so. `manifest` alone knows the wire form of objects.
Sections (§6.x) are those of docs/admission.md. What a recommendation has to pass is in `vertical.admission`.
"""
