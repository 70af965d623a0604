package action

import (
	"errors"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Fault turns any error into a fault: one that is a fault already stays as it
// is, an error of the spaces gets its code, details and what to do next, and
// the rest is left to [tool.AsFault]. It returns nil for nil.
func Fault(err error) *tool.Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*tool.Fault](err); ok && f != nil {
		return f
	}
	if f := findFault(err); f != nil {
		return f
	}
	if f := contentFault(err); f != nil {
		return f
	}
	return tool.AsFault(err)
}

// findFault is for errors of finding items.
func findFault(err error) *tool.Fault {
	if errors.Is(err, item.ErrBadID) {
		return tool.Faultf(tool.CodeBadID, "%w", err).
			WithHint("An id is a path below the folder of its kind, without extension, such as rye/file-system/read.")
	}
	if e, ok := errors.AsType[*resolve.NotFoundError](err); ok {
		if e.Why != "" {
			return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("The id names what a thread has left: have it complete first; list_threads shows how it stands.").WithTry("rye-mcp threads list")
		}
		nearest := e.Nearest
		if nearest == nil {
			nearest = []string{}
		}
		f := tool.Faultf(tool.CodeNotFound, "%w", err).With("nearest_ids", nearest).WithHint("Find the right id with rye_search.")
		if len(e.Others) > 0 {
			give := "item_type " + string(e.Others[0])
			if e.Meant != e.ID {
				give += " and item_id " + e.Meant
			}
			f = f.With("item_types", e.Others).WithHint("Give %s, or find the right id with rye_search.", give)
		}
		if len(nearest) == 0 { // else a person is told these
			f = f.WithTry("rye-mcp items list")
		}
		return f
	}
	if e, ok := errors.AsType[*resolve.AmbiguousError](err); ok {
		return tool.Faultf(tool.CodeAmbiguous, "%w", err).With("item_types", e.Kinds).WithHint("Give item_type.")
	}
	if e, ok := errors.AsType[*resolve.UnreadableError](err); ok {
		return tool.Faultf(tool.CodeInvalidItem, "%w", err).With("path", e.Path)
	}
	return queryFault(err)
}

// queryFault is for errors of what is searched for.
func queryFault(err error) *tool.Fault {
	if e, ok := errors.AsType[*search.QueryError](err); ok {
		return tool.Faultf(tool.CodeInvalidQuery, "%w", err).With("query", short(e.Query)).With("position", e.Pos).
			WithHint(`Valid are words, "phrases", beginnings of words with *, AND, OR, NOT and parentheses; * alone lists everything.`)
	}
	if e, ok := errors.AsType[*search.ScopeError](err); ok {
		return tool.Faultf(tool.CodeInvalidQuery, "%w", err).With("position", e.Pos)
	}
	if _, ok := errors.AsType[*search.OptionError](err); ok {
		return tool.Faultf(tool.CodeBadArguments, "%w", err)
	}
	if errors.Is(err, search.ErrTooLong) {
		return tool.Faultf(tool.CodeInvalidQuery, "%w", err)
	}
	return nil
}

// short is a query as answers repeat it.
func short(query string) string {
	return item.Clip(query, 200)
}

// contentFault is for errors of what items and settings contain.
func contentFault(err error) *tool.Fault {
	if e, ok := errors.AsType[*parse.Error](err); ok {
		return tool.Faultf(tool.CodeInvalidItem, "%w", err).With("path", e.Path).With("line", e.Line).
			WithHint("The item itself must be mended; rye_fetch shows its text.")
	}
	if e, ok := errors.AsType[*item.UnknownNamesError](err); ok {
		return tool.Faultf(tool.CodeInvalidItem, "%w", err).With("path", e.Path).With("line", e.Names[0].Line).
			WithHint("If the directive is yours, mend the names in its file and check it with dry_run. If not, tell the person, or use another one (rye_search).").
			WithTry("mend the names in the file, then rye-mcp validate %s, and sign it again", e.Directive)
	}
	if e, ok := errors.AsType[*inputs.Error](err); ok {
		declared := e.Declared
		if declared == nil {
			declared = []inputs.Declared{}
		}
		return tool.Faultf(tool.CodeInvalidInputs, "%w", err).With("declared_inputs", declared).
			WithHint("Correct parameters and call again.")
	}
	if e, ok := errors.AsType[*config.Error](err); ok {
		f := tool.Faultf(tool.CodeInvalidConfig, "%w", err).With("path", e.Path).With("line", e.Line)
		if e.LeftOut {
			return f.WithHint("Ask the person.").WithTry("rye-mcp trust")
		}
		return f
	}
	if e, ok := errors.AsType[*config.NotFoundError](err); ok {
		return tool.Faultf(tool.CodeNoProvider, "%w", err).With("known_providers", e.Known)
	}
	if e, ok := errors.AsType[*trust.RefusedError](err); ok {
		return refusal(err, e)
	}
	if errors.Is(err, sign.ErrNoKey) {
		return tool.Faultf(tool.CodeNoKey, "%w", err).WithHint("Tell the person that there is no signing key yet.").
			WithTry("rye-mcp init, or rye-mcp keys generate, once")
	}
	return nil
}

// refusal is for an item that may not be used. To a model it names no command: what
// it reads there may be a stranger's item, and a model that helps to have it accepted
// is what its author hopes for.
func refusal(err error, e *trust.RefusedError) *tool.Fault {
	if broken, ok := errors.AsType[*parse.Error](e.Broken); ok {
		return tool.Faultf(tool.CodeInvalidItem, "%w", err).With("path", broken.Path).With("line", broken.Line).
			With("signature", e.Verdict.Status).WithTry("%s", e.Try()).
			WithHint("If the item is yours, mend it; rye_fetch shows its text. If not, tell the person, or use another one (rye_search).")
	}
	return tool.Faultf(tool.CodeIntegrity, "%w", err).With("item_id", e.Subject.ID).With("path", e.Subject.Path).
		With("signature", e.Verdict.Status).WithTry("%s", e.Try()).
		WithHint("A person has to read it and decide whether it may be used: tell them which item it is and why it is refused. Do without it, or use another one (rye_search).")
}

// badArgument is for a value that passed the schema and is refused later.
func badArgument(name string, err error) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "%s: %w", name, err)
}
