package metrics

import _ "embed"

// Dashboard is one for Grafana, in JSON, of the metrics that are told here.
//
//go:embed dashboard.json
var Dashboard string
