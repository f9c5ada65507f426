{{/* Names and labels. */}}
{{- define "proofmill.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "proofmill.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "proofmill.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "proofmill.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels by which the pods of a component are selected: dict root, component. */}}
{{- define "proofmill.selector" -}}
app.kubernetes.io/name: {{ include "proofmill.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "proofmill.labels" -}}
{{ include "proofmill.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An image's name: dict image, default (the image whose fields stand for empty ones), tag. */}}
{{- define "proofmill.image" -}}
{{- $image := mergeOverwrite (deepCopy .default) (.image | default dict) -}}
{{- $repository := required "image.repository: the registry and name of the image made from deploy/container/Containerfile" $image.repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .tag) -}}
{{- end -}}
{{- end -}}

{{/* URL of the bus. */}}
{{- define "proofmill.bus.url" -}}
{{- if .Values.bus.url -}}
{{- .Values.bus.url -}}
{{- else if not .Values.nats.enabled -}}
{{- fail "bus.url: name the NATS servers, or enable those of this chart with nats.enabled" -}}
{{- else -}}
{{- $root := . -}}
{{- $scheme := ternary "tls" "nats" (not (empty .Values.nats.tls.secret)) -}}
{{- $urls := list -}}
{{- range $number := until (int .Values.nats.replicas) -}}
{{- $urls = append $urls (printf "%s://%s-nats-%d.%s-nats:4222" $scheme (include "proofmill.fullname" $root) $number (include "proofmill.fullname" $root)) -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}
{{- end -}}

{{/* Arguments that connect a role to the bus: dict root, user, names (whether subjects have its user). */}}
{{- define "proofmill.bus.args" -}}
{{- $bus := .root.Values.bus -}}
- --bus={{ include "proofmill.bus.url" .root }}
- --bus-prefix={{ $bus.prefix }}
- --replicas={{ $bus.replicas }}
- --connect-timeout={{ $bus.connectTimeout }}
{{- if eq $bus.auth "password" }}
- --bus-user={{ .user }}
{{- else if eq $bus.auth "creds" }}
- --bus-creds=/etc/proofmill/bus/creds
{{- else if eq $bus.auth "nkey" }}
- --bus-nkey=/etc/proofmill/bus/nkey
{{- end }}
{{- if and .names (has $bus.auth (list "creds" "nkey" "token")) }}
- --bus-identity={{ .user }}
{{- end }}
{{- if $bus.tls.secret }}
- --bus-ca=/etc/proofmill/bus-tls/ca.crt
{{- if $bus.tls.clientCertificate }}
- --bus-cert=/etc/proofmill/bus-tls/tls.crt
- --bus-key=/etc/proofmill/bus-tls/tls.key
{{- end }}
{{- end }}
{{- with $bus.blobs }}
- --blobs={{ . }}
{{- end }}
{{- end -}}

{{/* The Secret of a user of the bus: dict root, user, secret. */}}
{{- define "proofmill.bus.secret" -}}
{{- .secret | default (printf "%s-bus-%s" (include "proofmill.fullname" .root) .user) -}}
{{- end -}}

{{/* Dispatcher groups with their defaults, as JSON: {"groups": […]}. */}}
{{- define "proofmill.groups" -}}
{{- $groups := list -}}
{{- $names := dict -}}
{{- range .Values.dispatchers -}}
{{- $group := mergeOverwrite (deepCopy $.Values.dispatcherDefaults) (deepCopy .) -}}
{{- if hasKey $names $group.name -}}
{{- fail (printf "dispatchers: two groups are called %s" $group.name) -}}
{{- end -}}
{{- $_ := set $names $group.name true -}}
{{- $_ := set $group "user" ($group.user | default $group.name) -}}
{{- $_ := set $group "groups" ($group.groups | default $group.stages) -}}
{{- $groups = append $groups $group -}}
{{- end -}}
{{- dict "groups" $groups | toJson -}}
{{- end -}}
