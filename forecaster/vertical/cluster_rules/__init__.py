"""The cluster's own rules about requests and limits, exact: one family of rules per file, pure functions over values.

Kubernetes 1.37; `server.Server` has the differences of 1.36 and older. `manifest` alone knows the wire form of objects.
Sections (§6.x) are those of docs/admission.md. The rules that a recommendation has to pass are in `vertical.admission`.
"""
