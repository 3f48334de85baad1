{{- define "parallelrun.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "parallelrun.labels" -}}
app.kubernetes.io/name: parallelrun
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "parallelrun.meta" -}}
name: {{ include "parallelrun.name" .root }}-{{ .component }}
labels:
  {{- include "parallelrun.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "parallelrun.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "parallelrun.name" .)) -}}
{{- end -}}

{{- define "parallelrun.hasRedisSecret" -}}
{{- if or (not .Values.redis.url) .Values.redis.existingSecret }}true{{ end -}}
{{- end -}}

{{- define "parallelrun.redisUrl" -}}
{{- .Values.redis.url | default (printf "redis://%s-redis.%s.svc:6379/0" (include "parallelrun.name" .) .Release.Namespace) -}}
{{- end -}}

{{- define "parallelrun.dataClaim" -}}
{{- .Values.data.existingClaim | default (printf "%s-data" (include "parallelrun.name" .)) -}}
{{- end -}}

{{- define "parallelrun.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.user }}
runAsGroup: {{ .Values.group }}
fsGroup: {{ .Values.group }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "parallelrun.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "parallelrun.pull" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Services answer on the loopback interface only. */}}
{{- define "parallelrun.probe" -}}
exec:
  command: [python, -IS, -c, "import urllib.request as r; r.urlopen('http://127.0.0.1:{{ .port }}{{ .path }}', timeout=3)"]
periodSeconds: {{ .period | default 10 }}
timeoutSeconds: 10
failureThreshold: {{ .failures | default 6 }}
{{- end -}}

{{/* What every service is told: the URL of Redis, its own password there, and the folder. */}}
{{- define "parallelrun.settings" -}}
- name: PARALLELRUN_REDIS_URL
  value: {{ include "parallelrun.redisUrl" .root | quote }}
{{- if include "parallelrun.hasRedisSecret" .root }}
- name: PARALLELRUN_REDIS_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ include "parallelrun.redisSecret" .root }}
      key: {{ .component }}
{{- end }}
- name: PARALLELRUN_ROOT
  value: /data
{{- end -}}

{{/* What only the API and the provisioner are told, and no node. */}}
{{- define "parallelrun.computesKey" -}}
{{- if .Values.provisioner.replicas }}
- name: PARALLELRUN_COMPUTES_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "parallelrun.name" . }}-computes
      key: key
{{- end }}
{{- end -}}

{{- define "parallelrun.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: data
  mountPath: /data
{{- range $number, $volume := .Values.volumes }}
- name: volume-{{ $number }}
  mountPath: {{ $volume.path }}
  readOnly: {{ $volume.readOnly | default false }}
{{- end }}
{{- end -}}

{{- define "parallelrun.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
- name: data
  persistentVolumeClaim:
    claimName: {{ include "parallelrun.dataClaim" . }}
{{- range $number, $volume := .Values.volumes }}
- name: volume-{{ $number }}
  persistentVolumeClaim:
    claimName: {{ $volume.claim }}
    readOnly: {{ $volume.readOnly | default false }}
{{- end }}
{{- end -}}

{{/* A Deployment of one service. root, component, command, port, and as text: env, probes. */}}
{{- define "parallelrun.deployment" -}}
{{- $values := index .root.Values .component }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "parallelrun.meta" . | nindent 2 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "parallelrun.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "parallelrun.labels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: {{ eq .component "provisioner" }}
      {{- if eq .component "provisioner" }}
      serviceAccountName: {{ include "parallelrun.name" .root }}-provisioner
      {{- end }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .grace | default 30 }}
      securityContext:
        {{- include "parallelrun.podSecurity" .root | nindent 8 }}
      {{- include "parallelrun.pull" .root | indent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ .root.Values.image.control | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: [parallelrun-{{ .component }}]
          env:
            {{- include "parallelrun.settings" . | nindent 12 }}
            {{- with .env }}{{ . | nindent 12 }}{{ end }}
            {{- if ne .component "api" }}
            - name: PARALLELRUN_HEALTH_PORT
              value: {{ .port | quote }}
            {{- end }}
          {{- if and .root.Values.storesSecret (has .component (list "master" "concatenator")) }}
          envFrom:
            - secretRef:
                name: {{ .root.Values.storesSecret }}
          {{- end }}
          {{- if eq .component "api" }}
          ports:
            - name: http
              containerPort: {{ .port }}
              protocol: TCP
          {{- end }}
          # A busy machine may take its time to start it.
          startupProbe:
            {{- include "parallelrun.probe" (dict "path" "/livez" "port" .port "period" 2 "failures" 150) | nindent 12 }}
          livenessProbe:
            {{- include "parallelrun.probe" (dict "path" "/livez" "port" .port) | nindent 12 }}
          readinessProbe:
            {{- include "parallelrun.probe" (dict "path" "/readyz" "port" .port) | nindent 12 }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            {{- include "parallelrun.containerSecurity" .root | nindent 12 }}
          volumeMounts:
            {{- include "parallelrun.mounts" .root | nindent 12 }}
            {{- with .mounts }}{{ . | nindent 12 }}{{ end }}
      volumes:
        {{- include "parallelrun.volumes" .root | nindent 8 }}
        {{- with .volumes }}{{ . | nindent 8 }}{{ end }}
{{- end -}}
