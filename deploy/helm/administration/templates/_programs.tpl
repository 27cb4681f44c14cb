{{/* The programs: whom each calls (peers), who hears of its events (listeners), and who may call it by certificate. As
     deploy/k8s/base and components/mtls have it; a test compares what comes of both. */}}
{{- define "administration.programs" -}}
gateway:
  peers: [relations, billing, crm, support, work, automation]
  callers: [team-*]
  ports: {http: 7700, grpc: 7701, operators: 7711}
  configMaps: [mesh, gateway]
  reaches: [database]
svc-relations:
  peers: [billing, crm, support, work]
  listeners: [automation, "billing;client.anonymized;customer.updated", "support;client.anonymized", "work;client.anonymized"]
  callers: [gateway, svc-billing, svc-crm, svc-support, svc-work, svc-automation, team-*]
  reaches: [database, mail]
svc-billing:
  peers: [relations, work]
  listeners: [automation, "crm;quote.accepted", "work;file.stored;invoice.deleted;quote.deleted"]
  callers: [gateway, svc-relations, svc-support, svc-work, svc-automation, team-*]
  configMaps: [mesh, services, billing]
  reaches: [database, mail, internet]
svc-crm:
  peers: [relations]
  listeners: [automation, "work;deal.deleted"]
  callers: [gateway, svc-relations, svc-billing, svc-work, svc-automation, team-*]
  reaches: [database, mail]
svc-support:
  peers: [relations, billing, work]
  listeners: [automation, "work;file.removed;file.stored"]
  callers: [gateway, svc-relations, svc-automation, team-*]
  configMaps: [mesh, services, support]
  ports: {grpc: 7701, operators: 7711, mail: 7708}
  reaches: [database, mail, internet]
svc-work:
  peers: [relations, crm, billing]
  listeners: [automation]
  callers: [gateway, svc-relations, svc-billing, svc-crm, svc-support, svc-automation, team-*]
  reaches: [database, mail, internet]
svc-automation:
  peers: [relations, billing, crm, support, work]
  callers: [gateway, svc-relations, svc-billing, svc-crm, svc-support, svc-work, team-*]
  reaches: [database, mail, internet]
{{- end }}

{{/* administration.addresses (list of "service;type;…"): as PEERS and LISTENERS are written. */}}
{{- define "administration.addresses" -}}
{{- $all := list }}
{{- range . }}
{{- $parts := splitList ";" . }}
{{- $address := printf "%s=$(MESH_SCHEME)://svc-%s:7701" (first $parts) (first $parts) }}
{{- $all = append $all (join ";" (prepend (rest $parts) $address)) }}
{{- end }}
{{- join "," $all }}
{{- end }}

{{/* administration.image (dict "root" $ "name" program) */}}
{{- define "administration.image" -}}
{{- $digest := get .root.Values.image.digests .name }}
{{- printf "%s/%s" .root.Values.image.registry .name }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ .root.Values.image.tag }}{{ end }}
{{- end }}

{{/* administration.labels (dict "name" program "component" word) */}}
{{- define "administration.labels" -}}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: administration
{{- end }}

{{/* What holds for every pod: no rights, no API token, a read-only root. As deploy/k8s/base/every-pod.yaml. */}}
{{- define "administration.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "administration.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/administration, readOnly: true}
{{- end }}

{{/* administration.once (dict "root" $ "name" program "args" word): the pod of a job with the rights of the schema's owner. */}}
{{- define "administration.once" -}}
metadata:
  labels:
    {{- include "administration.labels" (dict "name" .name "component" .args) | nindent 4 }}
    reaches.database: "true"
spec:
  {{- include "administration.pod" . | nindent 2 }}
  serviceAccountName: {{ .name }}
  restartPolicy: Never
  containers:
    - name: program
      image: {{ include "administration.image" . }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: [{{ .args }}]
      env:
        - {name: DATABASE_URL_FILE, value: /run/secrets/administration/DATABASE_URL}
        - {name: LOG_FORMAT, value: json}
        {{- if eq .args "compact-log" }}
        - name: AUDIT_DAYS
          valueFrom:
            configMapKeyRef: {name: mesh, key: AUDIT_DAYS}
        {{- end }}
      resources:
        requests: {cpu: 50m, memory: 64Mi}
        limits: {memory: 256Mi}
      {{- include "administration.container" . | nindent 6 }}
  volumes:
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          - secret: {name: migrate-{{ .name | trimPrefix "svc-" }}}
          {{- include "administration.databaseAuthority" .root | nindent 10 }}
{{- end }}

{{/* The authority of the certificates of a database in the cluster. */}}
{{- define "administration.databaseAuthority" -}}
{{- if .Values.cloudnativePg.enabled }}
- secret: {name: database-ca, items: [{key: ca.crt, path: database-ca.crt}]}
{{- end }}
{{- end }}

{{/* Where programs and jobs reach the database, as `to` of a policy. */}}
{{- define "administration.database" -}}
{{- if .Values.cloudnativePg.enabled -}}
[{podSelector: {matchLabels: {cnpg.io/poolerName: database-pooler}}}, {podSelector: {matchLabels: {cnpg.io/cluster: database, cnpg.io/podRole: instance}}}]
{{- else -}}
[{ipBlock: {cidr: {{ .Values.networkPolicies.databaseCidr }}}}]
{{- end }}
{{- end }}

{{/* administration.settings (dict "root" $ "name" configMap "file" path): a ConfigMap's data, as YAML: what the base has,
     then what TLS and the pooler need, then the values'. */}}
{{- define "administration.settings" -}}
{{- $data := dict }}
{{- range splitList "\n" (.root.Files.Get .file) }}
{{- if and . (not (hasPrefix "#" .)) }}
{{- $pair := splitn "=" 2 . }}
{{- $_ := set $data $pair._0 $pair._1 }}
{{- end }}
{{- end }}
{{- if and (eq .name "mesh") .root.Values.mtls.enabled }}
{{- $tls := dict "TLS_CERT" "tls.crt" "TLS_KEY" "tls.key" "TLS_CA" "ca.crt" "TLS_TEAM_CA" "team-ca.crt" }}
{{- $_ := set $data "MESH_SCHEME" "https" }}
{{- range $key, $file := $tls }}{{ $_ := set $data $key (printf "/run/secrets/administration/%s" $file) }}{{ end }}
{{- end }}
{{- if and (eq .name "mesh") .root.Values.cloudnativePg.enabled }}
{{- $_ := set $data "DATABASE_POOLER" "true" }}
{{- end }}
{{- if and (eq .name "gateway") (or .root.Values.gatewayApi.enabled .root.Values.ingress.enabled) }}
{{- $_ := set $data "TRUST_FORWARDED" "true" }}
{{- end }}
{{- range $key, $value := get .root.Values.settings .name }}{{ $_ := set $data $key (toString $value) }}{{ end }}
{{- toYaml $data }}
{{- end }}

{{- define "administration.configMaps" -}}
{mesh: base/mesh.env, services: base/services.env, gateway: base/gateway/gateway.env, billing: base/billing/billing.env, support: base/support/support.env}
{{- end }}
