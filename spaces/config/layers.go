package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Layer is one file of settings that are nobody's but a tool's.
type Layer struct {
	Path   string
	Values map[string]any
}

// Layers reads the files with the given slash-separated path below config/ of the
// system, the user and the project, in this order. They have no schema, so that a
// project's counts when its user has accepted it, and not at all otherwise. A file
// that does not parse is an [*Error]; a path that leaves config/ is fs.ErrInvalid.
func (sn *Snapshot) Layers(rel string) ([]Layer, error) {
	if !fs.ValidPath(rel) || rel == "." || strings.ContainsFunc(rel, unfit) {
		return nil, fmt.Errorf("config file %q: %w: want a path that stays below .ai/config, with / between its parts", rel, fs.ErrInvalid)
	}
	whole, _ := sn.project().whole(rel)
	var layers []Layer
	for _, place := range slices.Concat(sn.own, whole) {
		data, name, err := place.read(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("config file %s: %w", name, err)
		}
		l, err := parseLayer(name, data)
		if err != nil {
			return nil, err
		}
		layers = append(layers, Layer{Path: name, Values: l.values})
	}
	return layers, nil
}
