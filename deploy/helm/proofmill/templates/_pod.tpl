{{/*
The pod of a role: dict
  root, component,
  values      of the role: image, resources, extraArgs, extraEnv, nodeSelector and so on
  command     words of the program's command, such as `engine serve`
  args        as text, a line for each
  user        of the bus, if it speaks on the bus; names, whether its subjects have that user
  workflow    whether it reads the workflow
  state       text of the state volume's source; a folder that ends with the pod if empty
  keysClaim   claim with proving keys; keys, whether the command takes --keys
  secrets     list of dict name, secret: mounted at /etc/proofmill/NAME
  volumes, mounts, env, ports, probes   as text
  pauseSeconds  between the pod's removal from its Service and SIGTERM
  restartPolicy
*/}}
{{- define "proofmill.pod" -}}
{{- $values := .root.Values -}}
{{- $role := .values -}}
{{- $onBus := not (empty .user) -}}
{{- $secretFile := and $onBus (has $values.bus.auth (list "creds" "nkey")) -}}
metadata:
  labels:
    {{- include "proofmill.labels" . | nindent 4 }}
    {{- if $onBus }}
    proofmill/bus: client
    {{- end }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- if .workflow }}
    proofmill/workflow-digest: {{ toJson $values.workflow | sha256sum }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    kubectl.kubernetes.io/default-container: {{ .command | splitList " " | first }}
spec:
  serviceAccountName: {{ include "proofmill.fullname" .root }}
  automountServiceAccountToken: false
  # Otherwise a Service's address would come in variables such as PROOFMILL_…, which the program reads as options.
  enableServiceLinks: false
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  # SIGTERM finishes the work under way, for --drain-timeout at most; what is left then is handed back.
  terminationGracePeriodSeconds: {{ add $role.drainSeconds (.pauseSeconds | default 0) 30 }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- with $role.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $role.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $role.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $role.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $role.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if $role.topologySpreadConstraints }}
    {{- toYaml $role.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "proofmill.selector" . | nindent 10 }}
    {{- end }}
  containers:
    - name: {{ .command | splitList " " | first }}
      image: {{ include "proofmill.image" (dict "image" $role.image "default" $values.image "tag" .root.Chart.AppVersion) }}
      imagePullPolicy: {{ ($role.image | default dict).pullPolicy | default $values.image.pullPolicy }}
      # The image's entry point is the program, behind an init that reaps what provers leave.
      workingDir: /var/lib/proofmill
      args:
        {{- range splitList " " .command }}
        - {{ . }}
        {{- end }}
        {{- if .workflow }}
        - /etc/proofmill/workflow/workflow.toml
        {{- end }}
        {{- if $onBus }}
        {{- include "proofmill.bus.args" . | nindent 8 }}
        {{- end }}
        {{- with .args }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- if .keys }}
        - --keys=/var/lib/proofmill-keys/keys
        {{- end }}
        - --log={{ $values.log.filter }}
        - --log-format={{ $values.log.format }}
        {{- with $role.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        - name: HOME
          value: /var/lib/proofmill
        {{- if $onBus }}
        {{- $secret := include "proofmill.bus.secret" (dict "root" .root "user" .user "secret" $role.busSecret) }}
        {{- if eq $values.bus.auth "password" }}
        - name: PROOFMILL_BUS_PASSWORD
          valueFrom:
            secretKeyRef: {name: {{ $secret }}, key: password}
        {{- else if eq $values.bus.auth "token" }}
        - name: PROOFMILL_BUS_TOKEN
          valueFrom:
            secretKeyRef: {name: {{ $secret }}, key: token}
        {{- end }}
        {{- end }}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with $role.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if and $onBus $values.bus.blobsSecret }}
      envFrom:
        - secretRef: {name: {{ $values.bus.blobsSecret }}}
      {{- end }}
      {{- with .ports }}
      ports:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with .probes }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with .pauseSeconds }}
      lifecycle:
        preStop:
          sleep: {seconds: {{ . }}}
      {{- end }}
      resources:
        {{- include "proofmill.resources" $role | nindent 8 }}
      securityContext:
        {{- toYaml $values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/proofmill}
        - {name: tmp, mountPath: /tmp}
        {{- if .workflow }}
        - {name: workflow, mountPath: /etc/proofmill/workflow, readOnly: true}
        {{- end }}
        {{- if .keys }}
        - {name: keys, mountPath: /var/lib/proofmill-keys{{ if .keysClaim }}, readOnly: true{{ end }}}
        {{- end }}
        {{- if $secretFile }}
        - {name: bus, mountPath: /etc/proofmill/bus, readOnly: true}
        {{- end }}
        {{- if and $onBus $values.bus.tls.secret }}
        - {name: bus-tls, mountPath: /etc/proofmill/bus-tls, readOnly: true}
        {{- end }}
        {{- range .secrets }}
        - {name: {{ .name }}, mountPath: /etc/proofmill/{{ .name }}, readOnly: true}
        {{- end }}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $role.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if ne .state "template" }}
    - name: state
      {{- .state | default "emptyDir: {}" | nindent 6 }}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if .workflow }}
    - name: workflow
      configMap:
        name: {{ $values.workflow.existingConfigMap | default (printf "%s-workflow" (include "proofmill.fullname" .root)) }}
        defaultMode: 0555
    {{- end }}
    {{- if .keys }}
    - name: keys
      {{- if .keysClaim }}
      persistentVolumeClaim: {claimName: {{ .keysClaim }}, readOnly: true}
      {{- else }}
      emptyDir: {}
      {{- end }}
    {{- end }}
    {{- if $secretFile }}
    - name: bus
      secret:
        secretName: {{ include "proofmill.bus.secret" (dict "root" .root "user" .user "secret" $role.busSecret) }}
        defaultMode: 0440
    {{- end }}
    {{- if and $onBus $values.bus.tls.secret }}
    - name: bus-tls
      secret:
        secretName: {{ $values.bus.tls.secret }}
        defaultMode: 0440
    {{- end }}
    {{- range .secrets }}
    - name: {{ .name }}
      secret:
        secretName: {{ .secret }}
        defaultMode: 0440
    {{- end }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $role.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Resources of a role, with its cards. */}}
{{- define "proofmill.resources" -}}
{{- $resources := deepCopy .resources -}}
{{- if .gpus -}}
{{- $limits := mergeOverwrite (deepCopy ($resources.limits | default dict)) (dict "nvidia.com/gpu" (.gpus | toString)) -}}
{{- $_ := set $resources "limits" $limits -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* Probes of a process with a page: of the name of its port. While it drains it is not ready, which is no reason to kill it. */}}
{{- define "proofmill.probes" -}}
startupProbe: {tcpSocket: {port: {{ . }}}, periodSeconds: 2, failureThreshold: 300}
readinessProbe: {httpGet: {path: /healthz, port: {{ . }}}, periodSeconds: 5}
livenessProbe: {tcpSocket: {port: {{ . }}}, periodSeconds: 20}
{{- end -}}

{{/* The Service by which Prometheus finds every pod of a component: dict root, component. */}}
{{- define "proofmill.metrics" }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "proofmill.fullname" .root }}-{{ .component }}
  labels:
    {{- include "proofmill.labels" . | nindent 4 }}
    proofmill/job: proofmill
spec:
  clusterIP: None
  selector:
    {{- include "proofmill.selector" . | nindent 4 }}
  ports:
    - {name: metrics, port: 9464, targetPort: metrics}
{{- end -}}

{{/* A budget of disruptions: dict root, component. */}}
{{- define "proofmill.disruptions" -}}
{{- if .root.Values.disruptionBudgets.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "proofmill.fullname" .root }}-{{ .component }}
  labels:
    {{- include "proofmill.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "proofmill.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
