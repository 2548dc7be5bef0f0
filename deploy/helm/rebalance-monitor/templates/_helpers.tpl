{{- define "rm.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "rm.fullname" -}}
{{- $name := include "rm.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* What selects the pods of a component: (list $ "job"). */ -}}
{{- define "rm.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "rm.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "rm.labels" -}}
{{- $root := index . 0 -}}
{{ include "rm.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- /* The label by which Prometheus names the scraped job, as the alerts expect it. */ -}}
{{- define "rm.scraped" -}}
rebalance-monitor/scraped-as: {{ index . 1 | eq "job" | ternary "rebalance-monitor" (printf "rebalance-monitor-%s" (index . 1)) }}
{{- end -}}

{{- define "rm.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is missing: build the image of deploy/container, push it, and say where it is" $image.repository -}}
{{- if $image.digest -}}{{ $repository }}@{{ $image.digest }}{{- else -}}{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}{{- end -}}
{{- end -}}

{{- define "rm.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "rm.fullname" .) "default") -}}
{{- end -}}

{{- define "rm.webSecret" -}}
{{- .Values.web.existingSecret | default (printf "%s-web" (include "rm.fullname" .)) -}}
{{- end -}}

{{- /* Kafka by environment: it goes before monitor.toml. */ -}}
{{- define "rm.env" -}}
{{- $kafka := .Values.kafka -}}
- {name: REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS, value: {{ required "kafka.bootstrapServers is missing: the Kafka with the mirror topic" $kafka.bootstrapServers | quote }}}
- {name: REBALANCE_MONITOR_KAFKA__SECURITY_PROTOCOL, value: {{ $kafka.securityProtocol }}}
{{- with .Values.cluster }}
- {name: REBALANCE_MONITOR_CLUSTER, value: {{ . | quote }}}
{{- end }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
- {name: REBALANCE_MONITOR_KAFKA__SASL_MECHANISM, value: {{ required "kafka.sasl.mechanism is missing" $kafka.sasl.mechanism }}}
- {name: REBALANCE_MONITOR_KAFKA__SASL_USERNAME, value: {{ required "kafka.sasl.username is missing" $kafka.sasl.username | quote }}}
- {name: REBALANCE_MONITOR_KAFKA__SASL_PASSWORD_FILE, value: /etc/rebalance-monitor/sasl/password}
{{- end }}
{{- if and (hasSuffix "SSL" $kafka.securityProtocol) $kafka.tls.existingSecret }}
- {name: REBALANCE_MONITOR_KAFKA__SSL_CA_FILE, value: /etc/rebalance-monitor/tls/{{ $kafka.tls.caKey }}}
{{- if $kafka.tls.certificateKey }}
- {name: REBALANCE_MONITOR_KAFKA__SSL_CERTIFICATE_FILE, value: /etc/rebalance-monitor/tls/{{ $kafka.tls.certificateKey }}}
- {name: REBALANCE_MONITOR_KAFKA__SSL_KEY_FILE, value: /etc/rebalance-monitor/tls/{{ required "kafka.tls.keyKey is missing" $kafka.tls.keyKey }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Files of all that read monitor.toml: (list $ "name of the ConfigMap"). */ -}}
{{- define "rm.mounts" -}}
{{- $values := (index . 0).Values -}}
- {name: config, mountPath: /etc/rebalance-monitor/config, readOnly: true}
{{- if hasPrefix "SASL" $values.kafka.securityProtocol }}
- {name: sasl, mountPath: /etc/rebalance-monitor/sasl, readOnly: true}
{{- end }}
{{- end -}}

{{- define "rm.volumes" -}}
{{- $values := (index . 0).Values -}}
- {name: config, configMap: {name: {{ index . 1 }}}}
{{- if hasPrefix "SASL" $values.kafka.securityProtocol }}
- name: sasl
  secret:
    secretName: {{ required "kafka.sasl.existingSecret is missing: the Secret with the password" $values.kafka.sasl.existingSecret }}
    items: [{key: {{ $values.kafka.sasl.passwordKey }}, path: password}]
{{- end }}
{{- end -}}

{{- /* The files of every container: TLS towards Kafka, /tmp, and the operator's own. */ -}}
{{- define "rm.commonMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: state, mountPath: /var/lib/rebalance-monitor}
{{- if and (hasSuffix "SSL" .Values.kafka.securityProtocol) .Values.kafka.tls.existingSecret }}
- {name: tls, mountPath: /etc/rebalance-monitor/tls, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rm.commonVolumes" -}}
- {name: tmp, emptyDir: {}}
{{- if and (hasSuffix "SSL" .Values.kafka.securityProtocol) .Values.kafka.tls.existingSecret }}
- {name: tls, secret: {secretName: {{ .Values.kafka.tls.existingSecret }}}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What stands before the command in every container: (list $ resources). */ -}}
{{- define "rm.container" -}}
{{- $values := (index . 0).Values -}}
image: {{ include "rm.image" (index . 0) | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml (index . 1) | nindent 2 }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* How every pod begins: (list $ "component" itsValues). Without service links: their variables begin as those of the monitor do. */ -}}
{{- define "rm.pod" -}}
{{- $root := index . 0 -}}
{{- $own := index . 2 -}}
serviceAccountName: {{ include "rm.serviceAccount" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $own $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Labels and annotations of a pod: (list $ "component" itsValues). */ -}}
{{- define "rm.podMetadata" -}}
{{- $own := index . 2 -}}
labels:
  {{- include "rm.labels" . | nindent 2 }}
  {{- include "rm.scraped" . | nindent 2 }}
  {{- with $own.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- /* Without the checksum for the tap: its clients would lose their connections for a key that it does not read. */}}
{{- $checksum := dict "checksum/config" ((index . 0).Values.config | sha256sum) }}
{{- with merge (eq (index . 1) "tap" | ternary dict $checksum) $own.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* /healthz for a restart, after two minutes for the start; /readyz for the Service. The name of the port. */ -}}
{{- define "rm.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 5
  failureThreshold: 24
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 2
{{- end -}}

{{- /* A Service for Prometheus alone, which scrapes what is not ready, too: (list $ "component"). */ -}}
{{- define "rm.metricsService" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "rm.fullname" $root }}-{{ index . 1 }}-metrics
  labels:
    {{- include "rm.labels" . | nindent 4 }}
    {{- include "rm.scraped" . | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "rm.selector" . | nindent 4 }}
  ports: [{name: metrics, port: 19930, targetPort: metrics}]
{{- end -}}
