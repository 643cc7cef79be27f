{{- /* Made by `python -m deploy.generate` from deploy/base and deploy/components; change it there. */ -}}
{{- define "forecaster.settings" -}}
10-base.yaml: |
  # What differs from the defaults; `forecaster settings` prints all there is.
  prometheus:
    url: http://prometheus.monitoring:9090
  serving:
    secure:
      enabled: true
      certificate_file: /etc/forecaster/certificates/tls.crt
      key_file: /etc/forecaster/certificates/tls.key
      # By this an API group that another server has is noticed, and left alone.
      service: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}
  state:
    directory: /var/lib/forecaster
    secret: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}-state
  policy:
    mode: publish
{{- if .Values.components.dask }}
40-shards.yaml: |
  sharding:
    enabled: true
    scheduler: tls://{{ include "forecaster.fullname" $ }}-scheduler:8786
    ca_file: /etc/forecaster/shards/ca.crt
    certificate_file: /etc/forecaster/shards/tls.crt
    key_file: /etc/forecaster/shards/tls.key
{{- end }}
{{- if .Values.components.floor }}
20-floor.yaml: |
  acting:
    lease: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}
  floor:
    enabled: true
{{- end }}
{{- if .Values.components.frontProxy }}
20-front-proxy.yaml: |
  serving:
    secure:
      upstream:
        server: https://keda-operator-metrics-apiserver.keda.svc:443
        ca_file: /etc/forecaster/upstream/ca.crt
{{- end }}
{{- if .Values.components.initial }}
45-initial.yaml: |
  resize:
    # The rights are those of the component vertical.
    enabled: true
    initial: true
{{- end }}
{{- if .Values.components.keda }}
20-keda.yaml: |
  keda:
    enabled: true
    certificate_file: /etc/forecaster/keda/tls.crt
    key_file: /etc/forecaster/keda/tls.key
    client_ca_file: /etc/forecaster/keda/ca.crt
{{- end }}
{{- if .Values.components.postgres }}
20-postgres.yaml: |
  state:
    database_file: /etc/forecaster/database/address
{{- end }}
{{- if .Values.components.replicas }}
30-replicas.yaml: |
  replicas:
    enabled: true
    ca_file: /etc/forecaster/certificates/ca.crt
  acting:
    lease: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}
{{- end }}
{{- if .Values.components.report }}
40-report.yaml: |
  serving:
    report: /reports/report.html
{{- end }}
{{- if .Values.components.resources }}
30-resources.yaml: |
  resources:
    enabled: true
{{- end }}
{{- if .Values.components.scale }}
30-scale.yaml: |
  acting:
    lease: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}
  scale:
    enabled: true
{{- end }}
{{- if .Values.components.vertical }}
40-vertical.yaml: |
  acting:
    lease: {{ $.Release.Namespace }}/{{ include "forecaster.fullname" $ }}
  resize:
    enabled: true
{{- end }}
{{- include "forecaster.statedSettings" $ }}
{{- end }}
