package palette

import (
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ArtifactName is what a model calls read_artifact, with which it reads what was
// left out of a long result.
const ArtifactName = "rye_read_artifact"

// addArtifact offers read_artifact. A thread that has any tool has it from the first
// request on: to add it later would make the provider read everything before it
// again. It needs no capability, and takes no room from the tools.
func (p *Palette) addArtifact(in Input) {
	if in.ReadArtifact.ID == "" || len(p.Entries) == 0 {
		return
	}
	d := in.ReadArtifact
	d.Description, d.Schema = artifactText, artifactSchema()
	p.Entries = append(p.Entries, Entry{Name: ArtifactName, ID: d.ID, Definition: d, Kind: KindArtifact})
}

// artifactText is as short as it can be, since every thread pays for it. How to go on
// is said where something was left out.
const artifactText = "Read on in a long result."

func artifactSchema() json.RawMessage {
	s := &tool.Schema{Type: item.TypeObject}
	s.Set("ref", text(""))
	s.Set("offset", &tool.Schema{Type: item.TypeInteger})
	s.Set("pattern", text(""))
	return s.JSON()
}
