package loop

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// haveSecrets refuses to run without the values of the secret inputs. They go
// from the starter to this process and are nowhere else, so they are lost when the
// starter dies between the two and somebody else starts the process.
func (r *run) haveSecrets() error {
	for _, name := range inputs.Secrets(r.task.doc, r.meta.Inputs) {
		if !r.Secrets.Has(name) {
			return tool.Faultf(tool.CodeInvalidInputs, "the value of the secret input %s was lost with the process that started the thread", name).
				WithHint("start it again")
		}
	}
	return nil
}

// secrets is what the tools of this thread may be given; nil when there is
// nothing.
func (r *run) secrets() executor.Secrets {
	if r.Secrets.Empty() {
		return nil
	}
	return r.Secrets
}

func (r *run) maskedAttachments(list []tool.Attachment) []tool.Attachment {
	if r.Secrets.Empty() {
		return list
	}
	list = slices.Clone(list)
	for i, a := range list {
		list[i].Name, list[i].Data = r.Secrets.Mask(a.Name), r.Secrets.MaskBytes(a.Data)
		list[i].Picture = a.Picture && bytes.Equal(list[i].Data, a.Data)
	}
	return list
}

// withoutSecrets is an outcome as everybody may see it. Its texts are a model's,
// which has no secrets, and those of errors, of which nobody knows what they quote.
func (r *run) withoutSecrets(o thread.Outcome) thread.Outcome {
	if r.Secrets.Empty() {
		return o
	}
	plain, err := json.Marshal(o)
	if err != nil {
		return o // the writer refuses an outcome that cannot be written
	}
	var shown thread.Outcome
	masked := r.Secrets.MaskJSON(plain)
	if string(masked) == string(plain) || json.Unmarshal(masked, &shown) != nil {
		return o
	}
	shown.Handoff = o.Handoff // an id is what it is
	return shown
}
