{{- /* An image by its digest, else by its tag, else by the chart's appVersion. */ -}}
{{- define "fleetbroker.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .chart.AppVersion }}
{{- end -}}
{{- end -}}
