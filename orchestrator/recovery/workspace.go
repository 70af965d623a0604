package recovery

import (
	"context"
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// sumWorkspace adds to the end of a dead thread what it has changed in a workspace of its
// own, and sends it to other machines. Tidy, called when that is recorded, removes a workspace without changes.
func (s *Sweeper) sumWorkspace(ctx context.Context, left records.Thread, o *thread.Outcome) (tidy func()) {
	none := func() {}
	meta, err := left.Meta().Read()
	if err != nil || s.Workspaces == nil || !meta.OwnWorkspace() || o.State == thread.Continued || o.Changes != nil {
		return none
	}
	if err := s.Workspaces.Check(ctx, *meta.Workspace); errors.As(err, new(*workspace.ElsewhereError)) {
		return none // files here, if any, are older
	}
	changes, err := s.Workspaces.Changes(ctx, *meta.Workspace)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it died before it had any
	case err != nil:
		s.Log.Warn().Err(err).Str("thread_id", string(left.ID())).Msg("could not tell what a dead thread has changed in its workspace")
		return none
	default:
		o.Changes = &changes
		if said := changes.IgnoredWarning(); said != "" {
			o.Warnings = append(o.Warnings, said)
		}
		if err := workspace.Send(ctx, s.Workspaces, left, &meta); err != nil {
			s.Log.Warn().Err(err).Str("thread_id", string(left.ID())).Msg("other machines cannot have what a dead thread has changed in its workspace")
		}
		if changes.Count() > 0 {
			return none
		}
	}
	return func() {
		if _, err := s.Workspaces.Tidy(ctx, *meta.Workspace); err != nil {
			s.Log.Warn().Err(err).Str("thread_id", string(left.ID())).Msg("could not remove the workspace of a dead thread")
		}
	}
}
