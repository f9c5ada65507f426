{{/*
The configuration of the servers of this chart. What each role may do is that of deploy/nats/cluster.conf; users of
dispatchers are made for the groups in the values.
*/}}
{{- define "proofmill.nats.config" -}}
{{- $name := include "proofmill.fullname" . -}}
{{- $prefix := .Values.bus.prefix -}}
{{- $nats := .Values.nats -}}
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
server_name: $SERVER_NAME
pid_file: /run/nats/nats.pid
# Before a stop a server asks its clients to go to another.
lame_duck_grace_period: 5s
lame_duck_duration: 30s
{{- if $nats.tls.secret }}

tls {
  cert_file: /etc/nats/tls/tls.crt
  key_file: /etc/nats/tls/tls.key
  # Whoever connects shows a certificate of this authority, too.
  ca_file: /etc/nats/tls/ca.crt
  verify: true
}
{{- end }}

jetstream {
  store_dir: /data
  # What is acknowledged survives a loss of power.
  sync_interval: always
}
{{- if gt (int $nats.replicas) 1 }}

cluster {
  name: {{ $name }}
  listen: 0.0.0.0:6222
  authorization { user: routes, password: $ROUTES_PASSWORD }
  {{- if $nats.tls.secret }}
  tls {
    cert_file: /etc/nats/tls/tls.crt
    key_file: /etc/nats/tls/tls.key
    ca_file: /etc/nats/tls/ca.crt
    verify: true
  }
  {{- end }}
  # With the password in them, which a server does not add by itself.
  routes = [
    {{- range $number := until (int $nats.replicas) }}
    $ROUTE_{{ $number }}
    {{- end }}
  ]
}
{{- end }}

{{- $roles := .Files.Get "files/cluster.conf" | regexFind "(?s)# Roles answer .*?\\nauthorization \\{" | trimSuffix "authorization {" }}
{{- if not $roles }}
{{- fail "files/cluster.conf: the part with what each role may do is not where it was" }}
{{- end }}

{{- $users := include "proofmill.nats.users" . | fromJson }}
{{- /* A server refuses permissions that no user has: those of the dispatchers of the file, whose users are made below. */}}
{{- range regexFindAll "[A-Z]+_MAY = " $roles -1 }}
{{- $block := trimSuffix " = " . }}
{{- if not (has $block (values $users)) }}
{{- $roles = regexReplaceAll (printf "(?s)(?:# [^\\n]*\\n)*%s = \\{.*?\\n\\}\\n" $block) $roles "" }}
{{- end }}
{{- end }}

{{ regexReplaceAll "\\bproofmill([._])" $roles (printf "%s${1}" $prefix) | trim }}

authorization {
  users = [
    {{- range $user, $may := $users }}
    {
      user: {{ $user | quote }}, password: ${{ include "proofmill.nats.variable" $user }}
      {{- if kindIs "string" $may }}
      permissions: ${{ $may }}
      {{- else }}
      permissions: {
        publish = [
          "$JS.API.INFO", "$JS.API.STREAM.INFO.{{ $prefix }}_leases", "$JS.API.STREAM.INFO.{{ $prefix }}_blobs"
          "$JS.API.STREAM.MSG.GET.{{ $prefix }}_blobs", "$JS.API.DIRECT.GET.{{ $prefix }}_blobs.{{ $prefix }}.blob.*.*"
          "{{ $prefix }}.blob.*.*"
          {{- range $may.groups }}
          "{{ $prefix }}.leader.*.dispatcher.{{ . }}.{{ $user }}"
          {{- end }}
          {{- if $may.leads }}
          "{{ $prefix }}.shards.*", "{{ $prefix }}.shard.*.*"
          {{- end }}
        ]
        subscribe = [
          "_INBOX.{{ $prefix }}.dispatcher.{{ $user }}.>", "{{ $prefix }}.hello.*"
          {{- range $may.groups }}
          "{{ $prefix }}.client.*.dispatcher.{{ . }}.{{ $user }}.*"
          {{- end }}
          {{- if $may.makes }}
          "{{ $prefix }}.shards.*", "{{ $prefix }}.shard.{{ $user }}.*"
          {{- end }}
        ]
        allow_responses = $ANSWERS
      }
      {{- end }}
    }
    {{- end }}
  ]
}
{{- end -}}

{{/* Name of the variable with a user's password. */}}
{{- define "proofmill.nats.variable" -}}
PASSWORD_OF_{{ . | upper | replace "-" "_" }}
{{- end -}}

{{/* Users as JSON: name to the permissions' name in cluster.conf, or to the rights of a dispatcher. */}}
{{- define "proofmill.nats.users" -}}
{{- $users := dict .Values.coordinator.user "COORDINATOR_MAY" .Values.collector.user "COLLECTOR_MAY"
  .Values.sequencer.user "SEQUENCER_MAY" .Values.source.user "SOURCE_MAY" .Values.scaler.user "OPERATOR_MAY" "operator" "OPERATOR_MAY" -}}
{{- if .Values.console.enabled -}}
{{- $_ := set $users .Values.console.user "CONSOLE_MAY" -}}
{{- end -}}
{{- range $group := (include "proofmill.groups" . | fromJson).groups -}}
{{- $known := get $users $group.user | default (dict "groups" list "leads" false "makes" false) -}}
{{- if kindIs "string" $known -}}
{{- fail (printf "dispatchers: %s is the user of another role" $group.user) -}}
{{- end -}}
{{- $_ := set $users $group.user (dict "groups" (concat $known.groups $group.groups | uniq)
  "leads" (or $known.leads $group.leadsShards) "makes" (or $known.makes $group.makesShards)) -}}
{{- end -}}
{{- toJson $users -}}
{{- end -}}

{{/* The Secrets of the users, as JSON: user to name. */}}
{{- define "proofmill.nats.secrets" -}}
{{- $secrets := dict "operator" (include "proofmill.bus.secret" (dict "root" $ "user" "operator" "secret" "")) -}}
{{- range list .Values.coordinator .Values.collector .Values.sequencer .Values.source .Values.scaler -}}
{{- $_ := set $secrets .user (include "proofmill.bus.secret" (dict "root" $ "user" .user "secret" .busSecret)) -}}
{{- end -}}
{{- with .Values.console -}}
{{- if .enabled -}}
{{- $_ := set $secrets .user (include "proofmill.bus.secret" (dict "root" $ "user" .user "secret" .busSecret)) -}}
{{- end -}}
{{- end -}}
{{- range (include "proofmill.groups" . | fromJson).groups -}}
{{- $_ := set $secrets .user (include "proofmill.bus.secret" (dict "root" $ "user" .user "secret" .busSecret)) -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end -}}
