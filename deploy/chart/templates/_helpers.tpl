{{- define "forecaster.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the service's objects, and the beginning of the names of all others. */ -}}
{{- define "forecaster.fullname" -}}
{{- $name := include "forecaster.name" . -}}
{{- $named := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ default $named .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "forecaster.serviceAccountName" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "forecaster.fullname" .) "default" -}}
{{ default $own .Values.serviceAccount.name }}
{{- end }}

{{- define "forecaster.selectorLabels" -}}
app.kubernetes.io/name: {{ include "forecaster.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "forecaster.labels" -}}
{{ include "forecaster.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: forecaster
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "forecaster.podLabels" -}}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with .Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- if eq .Values.prometheus.identity "azure" }}
azure.workload.identity/use: "true"
{{- end }}
{{- end }}

{{- define "forecaster.podAnnotations" -}}
{{- with .Values.podAnnotations -}}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "forecaster.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end -}}
{{- end }}

{{- /* OpenShift gives users and groups of its own and refuses others (restricted-v2). */ -}}
{{- define "forecaster.podSecurityContext" -}}
{{- $context := .Values.podSecurityContext -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" -}}
{{- end -}}
{{ with $context }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* Fields of a pod that values state: of a list of the root and of the fields that this pod has of its own. */ -}}
{{- define "forecaster.pod" -}}
{{- $root := first . -}}
{{- $own := rest . -}}
{{- with include "forecaster.podSecurityContext" $root }}
securityContext: {{- . | nindent 2 }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $root.Values.hostNetwork (not (has "hostNetwork" $own)) }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- range $field := list "affinity" "dnsConfig" "nodeSelector" "priorityClassName" "runtimeClassName" "tolerations" "topologySpreadConstraints" }}
{{- with (has $field $own) | ternary nil (index $root.Values $field) }}
{{ $field }}: {{- if kindIs "string" . }} {{ . }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "forecaster.container" -}}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- with .Values.containerSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "forecaster.env" -}}
{{ with .Values.env }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "forecaster.volumes" -}}
{{- with .Values.prometheus.existingSecret }}
- name: prometheus-login
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.prometheus.caConfigMap }}
{{- if .name }}
- name: prometheus-ca
  configMap: {name: {{ .name }}}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "forecaster.volumeMounts" -}}
{{- if .Values.prometheus.existingSecret }}
- {name: prometheus-login, mountPath: /etc/forecaster/prometheus/login, readOnly: true}
{{- end }}
{{- if .Values.prometheus.caConfigMap.name }}
- {name: prometheus-ca, mountPath: /etc/forecaster/prometheus/ca, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Files of the settings behind those of the components: what `prometheus` states, then `settings`. */ -}}
{{- define "forecaster.statedSettings" -}}
{{- $given := .Values.prometheus -}}
{{- $prometheus := dict -}}
{{- with $given.url }}{{ $_ := set $prometheus "url" . }}{{ end -}}
{{- with $given.username }}{{ $_ := set $prometheus "username" . }}{{ end -}}
{{- if and $given.existingSecret $given.username }}
{{- $_ := set $prometheus "password_file" "/etc/forecaster/prometheus/login/password" }}
{{- else if $given.existingSecret }}
{{- $_ := set $prometheus "bearer_token_file" "/etc/forecaster/prometheus/login/token" }}
{{- end -}}
{{- with $given.caConfigMap.name }}{{ $_ := set $prometheus "ca_file" (printf "/etc/forecaster/prometheus/ca/%s" $given.caConfigMap.key) }}{{ end -}}
{{- if eq $given.identity "service-account" }}
{{- $_ := set $prometheus "bearer_token_file" "/var/run/secrets/kubernetes.io/serviceaccount/token" }}
{{- else if $given.identity }}
{{- $_ := set $prometheus "identity" $given.identity }}
{{- end -}}
{{- with $prometheus }}
80-prometheus.yaml: |
  prometheus: {{- toYaml . | nindent 4 }}
{{- end }}
{{- with .Values.settings }}
90-values.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Another name for other settings, as kustomize does it: a change rolls the Deployment. */ -}}
{{- define "forecaster.settingsName" -}}
{{ include "forecaster.fullname" . }}-settings-{{ include "forecaster.settings" . | sha256sum | trunc 10 }}
{{- end }}
