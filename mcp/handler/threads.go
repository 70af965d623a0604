package handler

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
)

var (
	//go:embed wait_threads.md
	waitText string
	//go:embed get_status.md
	statusText string
	//go:embed list_active.md
	listActiveText string
	//go:embed list_threads.md
	listThreadsText string
	//go:embed aggregate_results.md
	aggregateText string
	//go:embed read_transcript.md
	transcriptText string
	//go:embed cancel_thread.md
	cancelText string
	//go:embed kill_thread.md
	killText string
	//go:embed approve_thread.md
	approveText string
)

type (
	waitInput struct {
		control.WaitInput
		inProject
	}
	threadInput struct {
		control.ThreadInput
		inProject
	}
	listActiveInput struct {
		control.ListActiveInput
		inProject
	}
	listInput struct {
		control.ListInput
		inProject
	}
	aggregateInput struct {
		control.AggregateInput
		inProject
	}
	approveInput struct {
		control.ApproveInput
		inProject
	}
	transcriptInput struct {
		control.TranscriptInput
		inProject
	}
)

// defaultWait is the longest wait_threads of an MCP client that names no
// timeout, in seconds: below the time-outs of clients, which begin at 60.
const defaultWait = 45.0

func addWaitThreads(s *server.Server, projects Projects) {
	add(s, projects, "wait_threads", waitText, looks("Wait for threads"),
		func(ctx context.Context, p *Project, call server.Call, in waitInput) (control.WaitResult, error) {
			if in.Timeout == nil {
				wait := defaultWait
				in.Timeout = &wait
			}
			return operate[control.WaitResult](ctx, p, call, "wait_threads", in.WaitInput)
		})
}

func addGetStatus(s *server.Server, projects Projects) {
	add(s, projects, "get_status", statusText, looks("Look at a thread"),
		func(ctx context.Context, p *Project, _ server.Call, in threadInput) (control.Status, error) {
			return p.Control.Status(ctx, in.ThreadID)
		})
}

func addListActive(s *server.Server, projects Projects) {
	add(s, projects, "list_active", listActiveText, looks("List working threads"),
		func(ctx context.Context, p *Project, call server.Call, in listActiveInput) (control.List, error) {
			return fittingPage(call.Room, &in.Limit, func() (control.List, error) {
				return operate[control.List](ctx, p, call, "list_active", in.ListActiveInput)
			})
		})
}

func addListThreads(s *server.Server, projects Projects) {
	add(s, projects, "list_threads", listThreadsText, looks("List threads"),
		func(ctx context.Context, p *Project, call server.Call, in listInput) (control.List, error) {
			return fittingPage(call.Room, &in.Limit, func() (control.List, error) {
				return operate[control.List](ctx, p, call, "list_threads", in.ListInput)
			})
		})
}

// fittingPage lists again with a lower limit where a page is longer than the
// answer may be; next_cursor then begins earlier.
func fittingPage(room int, limit *int, list func() (control.List, error)) (control.List, error) {
	for {
		page, err := list()
		if err != nil || len(page.Threads) < 2 {
			return page, err
		}
		raw, err := json.Marshal(page)
		if err != nil || len(raw) <= room {
			return page, err
		}
		*limit = max(1, min(len(page.Threads)-1, len(page.Threads)*room/len(raw)))
	}
}

func addAggregateResults(s *server.Server, projects Projects) {
	add(s, projects, "aggregate_results", aggregateText, looks("Gather results"),
		func(ctx context.Context, p *Project, call server.Call, in aggregateInput) (control.Aggregate, error) {
			return operate[control.Aggregate](ctx, p, call, "aggregate_results", in.AggregateInput)
		})
}

func addReadTranscript(s *server.Server, projects Projects) {
	add(s, projects, "read_transcript", transcriptText, looks("Read a transcript"),
		func(ctx context.Context, p *Project, call server.Call, in transcriptInput) (control.TranscriptPage, error) {
			return operate[control.TranscriptPage](ctx, p, call, "read_transcript", in.TranscriptInput)
		})
}

func addCancelThread(s *server.Server, projects Projects) {
	add(s, projects, "cancel_thread", cancelText, server.Annotations{
		Title: "Cancel a thread", Destructive: true, Idempotent: true,
	}, func(ctx context.Context, p *Project, call server.Call, in threadInput) (control.Stopped, error) {
		return operate[control.Stopped](ctx, p, call, "cancel_thread", in.ThreadInput)
	})
}

func addKillThread(s *server.Server, projects Projects) {
	add(s, projects, "kill_thread", killText, server.Annotations{
		Title: "Kill a thread", Destructive: true, Idempotent: true,
	}, func(ctx context.Context, p *Project, call server.Call, in threadInput) (control.Stopped, error) {
		return operate[control.Stopped](ctx, p, call, "kill_thread", in.ThreadInput)
	})
}

// addApproveThread is destructive, as it spends money or ends a thread: clients
// that ask their person about such calls shall ask.
func addApproveThread(s *server.Server, projects Projects) {
	add(s, projects, "approve_thread", approveText, server.Annotations{
		Title: "Answer a thread that waits", Destructive: true,
	}, func(ctx context.Context, p *Project, call server.Call, in approveInput) (control.Approved, error) {
		return operate[control.Approved](ctx, p, call, "approve_thread", in.ApproveInput)
	})
}
