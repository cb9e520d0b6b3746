{{/* Names and labels that all objects of a release share. */}}
{{- define "streams.name" -}}
{{- printf "%s-alpheus" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "streams.labels" -}}
app.kubernetes.io/name: alpheus-streams
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "streams.selector" -}}
app.kubernetes.io/name: alpheus-streams
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The service's address, for hosts. */}}
{{- define "streams.url" -}}
{{- if .Values.serviceUrl -}}
{{ .Values.serviceUrl }}
{{- else -}}
https://{{ include "streams.name" . }}-service:7400
{{- end -}}
{{- end -}}

{{/* Liveness and readiness apart: a restart heals a process that does not answer, and nothing else. */}}
{{- define "streams.probes" -}}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 5
  failureThreshold: 60
{{- end -}}

{{- define "streams.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Copies keys out of secrets, for the process's user alone: what Kubernetes mounts is root's, or readable for a group, and
     such keys are refused. The image needs no shell for it. After a secret has changed, restart the pod. */}}
{{- define "streams.keys" -}}
- name: keys
  image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [private-copy, /from/identity, --to, /identity]
  resources:
    {{- toYaml .Values.resources.host | nindent 4 }}
  securityContext:
    {{- include "streams.security" . | nindent 4 }}
{{- end -}}
