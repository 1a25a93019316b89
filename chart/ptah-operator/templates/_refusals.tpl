{{/*
What the values schema cannot say in a sentence that tells what to do.
*/}}
{{- define "ptah.refusals" -}}
{{- if .Values.image.tag -}}
{{- fail (printf "image.tag is %q: a tag can move, so ptah-operator is deployed by digest alone; remove image.tag and set image.digest to sha256:<64 hex digits>." .Values.image.tag) -}}
{{- end -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is not set: set it to the repository that holds the manager image, such as registry.example.com/ptah/manager." -}}
{{- end -}}
{{- if not .Values.image.digest -}}
{{- fail "image.digest is not set: set it to the digest of the manager image's manifest, sha256:<64 hex digits>." -}}
{{- end -}}
{{- if not (regexMatch "^sha256:[0-9a-f]{64}$" .Values.image.digest) -}}
{{- fail (printf "image.digest is %q: it must be sha256: followed by 64 lowercase hex digits." .Values.image.digest) -}}
{{- end -}}
{{- if or (contains "@" .Values.image.repository) (regexMatch ":[^/]*$" .Values.image.repository) (not (regexMatch "^[^[:space:]]+$" .Values.image.repository)) -}}
{{- fail (printf "image.repository is %q: it must name a repository without tag, digest or blanks; the digest belongs to image.digest." .Values.image.repository) -}}
{{- end -}}
{{- range $name := list "executorImage" "runnerImage" -}}
{{- $image := index $.Values.execution $name -}}
{{- if not $image -}}
{{- fail (printf "execution.%s is not set: set it to repository@sha256:<64 hex digits>." $name) -}}
{{- end -}}
{{- if not (regexMatch "^[^[:space:]@]+@sha256:[0-9a-f]{64}$" $image) -}}
{{- fail (printf "execution.%s is %q: a tag can move, so the image must be pinned as repository@sha256:<64 hex digits>." $name $image) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.execution.ptahVersion -}}
{{- fail "execution.ptahVersion is not set: set it to the version of ptah that execution.executorImage holds." -}}
{{- end -}}
{{- if not (regexMatch "^[0-9A-Za-z][0-9A-Za-z.+_-]*$" .Values.execution.ptahVersion) -}}
{{- fail (printf "execution.ptahVersion is %q: it must be a version such as 0.1.0." .Values.execution.ptahVersion) -}}
{{- end -}}
{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection) -}}
{{- fail (printf "replicaCount is %d without leaderElection: two managers would act at once; set leaderElection to true or replicaCount to 1." (int .Values.replicaCount)) -}}
{{- end -}}
{{- if and .Values.podDisruptionBudget.enabled (ge (int .Values.podDisruptionBudget.minAvailable) (int .Values.replicaCount)) (gt (int .Values.replicaCount) 1) -}}
{{- fail (printf "podDisruptionBudget.minAvailable is %d with %d replicas: no node could ever be drained; lower it or raise replicaCount." (int .Values.podDisruptionBudget.minAvailable) (int .Values.replicaCount)) -}}
{{- end -}}
{{- if or (eq .Release.Namespace "default") (hasPrefix "kube-" .Release.Namespace) -}}
{{- fail (printf "the release namespace is %q: install ptah-operator into a namespace of its own, such as ptah-system." .Release.Namespace) -}}
{{- end -}}
{{- range $key, $value := .Values.podLabels -}}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (regexMatch "^([a-z0-9.-]+\\.)?ptah\\.run/" $key) -}}
{{- fail (printf "podLabels has %q: the chart selects its Pods by labels of this kind; choose another key." $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
