package handler

import (
	"context"
	_ "embed" // descriptions

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
)

var (
	//go:embed resume_thread.md
	resumeText string
	//go:embed get_chain.md
	chainText string
	//go:embed chain_search.md
	chainSearchText string
)

type (
	resumeInput struct {
		control.ResumeInput
		inProject
	}
	// answer is embedded under a name that is not that of one of its fields.
	answer = control.Resumed
	// resumeOutput has null where the asked thread is the one that was resumed, which
	// the schema of an id does not allow.
	resumeOutput struct {
		answer
		OriginalThreadID any `json:"original_thread_id" jsonschema:"the asked thread, when a later one of its chain was resumed instead; else null"`
	}
	chainSearchInput struct {
		control.ChainSearchInput
		inProject
	}
)

// addResumeThread is about the open world: the thread it starts may use any tool.
func addResumeThread(s *server.Server, projects Projects) {
	add(s, projects, "resume_thread", resumeText, server.Annotations{
		Title: "Carry on a thread that has ended", Destructive: true, OpenWorld: true,
	}, func(ctx context.Context, p *Project, call server.Call, in resumeInput) (resumeOutput, error) {
		resumed, err := operate[control.Resumed](ctx, p, call, "resume_thread", in.ResumeInput)
		return resumeOutput{resumed, resumed.OriginalThreadID}, err
	})
}

func addGetChain(s *server.Server, projects Projects) {
	add(s, projects, "get_chain", chainText, looks("Show a chain of threads"),
		func(ctx context.Context, p *Project, call server.Call, in threadInput) (control.Chain, error) {
			return operate[control.Chain](ctx, p, call, "get_chain", in.ThreadInput)
		})
}

func addChainSearch(s *server.Server, projects Projects) {
	add(s, projects, "chain_search", chainSearchText, looks("Search the transcripts of a chain"),
		func(ctx context.Context, p *Project, call server.Call, in chainSearchInput) (control.ChainMatches, error) {
			return operate[control.ChainMatches](ctx, p, call, "chain_search", in.ChainSearchInput)
		})
}
