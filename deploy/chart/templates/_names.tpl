{{- define "forecaster.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Another name for other settings, as kustomize does it: a change rolls the Deployment. */ -}}
{{- define "forecaster.settingsName" -}}
forecaster-settings-{{ include "forecaster.settings" . | sha256sum | trunc 10 }}
{{- end }}
