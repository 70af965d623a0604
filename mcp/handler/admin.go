package handler

import (
	"context"
	_ "embed" // descriptions

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
)

var (
	//go:embed thread_health.md
	healthText string
	//go:embed reconcile_threads.md
	reconcileText string
)

type (
	healthInput struct {
		control.HealthRequest
		inProject
	}
	reconcileInput struct {
		control.ReconcileInput
		inProject
	}
)

func addThreadHealth(s *server.Server, projects Projects) {
	add(s, projects, "thread_health", healthText, looks("Health of the threads"),
		func(ctx context.Context, p *Project, call server.Call, in healthInput) (control.Health, error) {
			return operate[control.Health](ctx, p, call, "thread_health", in.HealthRequest)
		})
}

func addReconcileThreads(s *server.Server, projects Projects) {
	add(s, projects, "reconcile_threads", reconcileText, looks("Compare registry, ledger and folders"),
		func(ctx context.Context, p *Project, call server.Call, in reconcileInput) (control.Reconciliation, error) {
			return operate[control.Reconciliation](ctx, p, call, "reconcile_threads", in.ReconcileInput)
		})
}
