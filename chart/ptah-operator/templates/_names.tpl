{{/*
The names are fixed, because there is one installation per cluster and other objects name them literally.
*/}}
{{- define "ptah.name" -}}ptah-operator{{- end -}}

{{- define "ptah.serviceAccount" -}}ptah-operator{{- end -}}

{{- define "ptah.coordinationNamespace" -}}
{{- .Values.coordination.namespace | default .Release.Namespace -}}
{{- end -}}

{{- define "ptah.image" -}}
{{- .Values.image.repository }}@{{ .Values.image.digest -}}
{{- end -}}

{{- define "ptah.selector" -}}
app.kubernetes.io/name: ptah-operator
app.kubernetes.io/component: manager
{{- end -}}

{{- define "ptah.labels" -}}
app.kubernetes.io/name: ptah-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ptah.managerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ptah.serviceAccount" . }}
{{- end -}}
