{{/* Names and labels that all objects of a release share. */}}
{{- define "alpheus.name" -}}
{{- printf "%s-window-sums" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "alpheus.labels" -}}
app.kubernetes.io/name: alpheus-window-sums
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "alpheus.selector" -}}
app.kubernetes.io/name: alpheus-window-sums
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Settings of Flink, the same in every pod. */}}
{{- define "alpheus.flink" -}}
jobmanager.rpc.address: {{ include "alpheus.name" . }}
blob.server.port: 6124
taskmanager.rpc.port: 6122
taskmanager.data.port: 6121
web.submit.enable: false
web.cancel.enable: false
parallelism.default: {{ mul .Values.taskManagers .Values.taskSlots }}
taskmanager.numberOfTaskSlots: {{ .Values.taskSlots }}
execution.checkpointing.storage: filesystem
execution.checkpointing.dir: {{ .Values.checkpoints.dir }}
execution.checkpointing.savepoint-dir: {{ .Values.checkpoints.dir }}
execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
{{- if .Values.job.restore }}
execution.state-recovery.path: {{ .Values.job.restore }}
{{- end }}
high-availability.type: kubernetes
high-availability.storageDir: {{ .Values.checkpoints.dir }}/ha
kubernetes.cluster-id: {{ include "alpheus.name" . }}-{{ .Values.job.generation }}
kubernetes.namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "alpheus.mounts" -}}
- {name: conf, mountPath: /conf, readOnly: true}
{{- if .Values.checkpoints.claim }}
- {name: checkpoints, mountPath: /checkpoints}
{{- end }}
{{- if .Values.job.settingsSecret }}
- {name: secret, mountPath: /secret, readOnly: true}
{{- end }}
{{- if .Values.job.ingestSecret }}
- {name: ingest, mountPath: /ingest, readOnly: true}
{{- end }}
{{- end -}}

{{- define "alpheus.volumes" -}}
- name: conf
  configMap:
    name: {{ include "alpheus.name" . }}
{{- if .Values.checkpoints.claim }}
- name: checkpoints
  persistentVolumeClaim:
    claimName: {{ .Values.checkpoints.claim }}
{{- end }}
{{- if .Values.job.settingsSecret }}
- name: secret
  secret:
    secretName: {{ .Values.job.settingsSecret }}
{{- end }}
{{- if .Values.job.ingestSecret }}
- name: ingest
  secret:
    secretName: {{ .Values.job.ingestSecret }}
{{- end }}
{{- end -}}
