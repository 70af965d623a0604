package palette

import "slices"

// ArtifactName is what a model calls read_artifact, with which it reads what was
// left out of a long result.
const ArtifactName = "rye_read_artifact"

// addArtifact offers read_artifact where there is a tool whose result can be too
// long. It needs no capability, and takes no room from the tools.
func (p *Palette) addArtifact(in Input) {
	if in.ReadArtifact.ID == "" || !slices.ContainsFunc(p.Entries, Entry.canBeLong) {
		return
	}
	p.Entries = append(p.Entries, Entry{Name: ArtifactName, ID: in.ReadArtifact.ID, Definition: in.ReadArtifact, Kind: KindArtifact})
}

func (e Entry) canBeLong() bool { return e.Kind != KindReturn }
