package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// settings are the layers of one kind of settings, checked, lowest precedence
// first. The layers of the project hold what counts of it.
type settings struct {
	layers   []layer
	own      int // how many of them are the system's and the user's
	accepted int // how many follow that the user has accepted
	warnings []string
	leftOut  []Notice
}

// broken is what remains when one of the files cannot be used: nothing holds
// then, not even what the others say.
func (s *settings) broken() settings { return settings{warnings: s.warnings} }

// load reads and checks the files of a kind in every space, when they are first
// asked for.
func (sn *Snapshot) load(k kind) (settings, error) {
	loaded := sn.kinds.get(k.files[len(k.files)-1], func() loaded {
		sn.loader.Seen.merged(k.files[len(k.files)-1])
		s, err := sn.loadFiles(k)
		s.warnings = slices.Clip(s.warnings) // more may be added to them
		return loaded{s, err}
	})
	return loaded.settings, loaded.err
}

// loaded is what came of loading a kind.
type loaded struct {
	settings settings
	err      error
}

func (sn *Snapshot) loadFiles(k kind) (settings, error) {
	if k.shipped {
		if _, name, err := sn.own[0].read(k.files[len(k.files)-1]); err != nil {
			return settings{}, fmt.Errorf("shipped settings %s: %w", name, err)
		}
	}
	var s settings
	for _, place := range sn.own {
		layers, err := sn.read(&s, k, place)
		if err != nil {
			return s.broken(), err
		}
		s.layers = append(s.layers, layers...)
	}
	s.own = len(s.layers)
	var err error
	project := sn.project()
	byKey := !k.whole || k.merged && project.follows(k.files[0])
	if byKey {
		err = sn.loadByKey(&s, k, project)
	} else {
		err = sn.loadWhole(&s, k, project)
	}
	if err != nil {
		return s.broken(), err
	}
	return s, nil
}

// loadWhole adds the files of a project that count as they are.
func (sn *Snapshot) loadWhole(s *settings, k kind, p project) error {
	for _, file := range k.files {
		places, notice := p.whole(file)
		if notice != nil {
			s.leftOut = append(s.leftOut, *notice)
		}
		for _, place := range places {
			layers, err := sn.read(s, k, place)
			if err != nil {
				return err
			}
			s.layers = append(s.layers, layers...)
			s.accepted += len(layers)
		}
	}
	return nil
}

// loadByKey adds the files of a project, without the keys that do not count.
func (sn *Snapshot) loadByKey(s *settings, k kind, p project) error {
	if p.present == nil {
		return nil
	}
	present, err := sn.read(s, k, p.present)
	if err != nil {
		return err
	}
	var accepted []layer
	if p.accepted != nil {
		if accepted, err = sn.read(&settings{}, k, p.accepted); err != nil {
			return err
		}
	}
	if len(present)+len(accepted) == 0 {
		return nil
	}
	rules, err := sn.loader.rules.get(k.schema)
	if err != nil {
		return err
	}
	file := k.files[len(k.files)-1]
	_, path, _ := p.present.read(file)
	settling := settling{
		rules: rules, own: s.layers[:s.own:s.own], accepted: accepted, present: present, file: file, path: path,
		followed: sn.allFollowed(p, present),
	}
	settling.settle()
	s.layers = slices.Concat(s.layers, accepted, present)
	s.accepted, s.leftOut = len(accepted), settling.notices
	return nil
}

func (sn *Snapshot) allFollowed(p project, present []layer) bool {
	for _, file := range present {
		if !p.followed(version{data: file.source, name: file.path, file: file.file, found: true}) {
			return false
		}
	}
	return len(present) > 0
}

// read reads and checks the files of a kind in one place; warnings go to s.
func (sn *Snapshot) read(s *settings, k kind, from place) ([]layer, error) {
	var layers []layer
	for _, file := range k.files {
		layer, err := sn.layer(s, k, from, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// layer reads and checks one file of a kind.
func (sn *Snapshot) layer(s *settings, k kind, from place, file string) (layer, error) {
	if from.space() == item.System {
		return sn.shipped(k, from, file)
	}
	l := readLayer(kind{}, from, file)
	if l.err == nil {
		l.err = sn.check(s, l.layer, k.schema)
	}
	if l.err == nil && k.canonical != nil {
		l.err = k.canonical(&l.layer)
	}
	return l.layer, l.err
}

// shipped is a file of the system space, which is parsed once a process.
func (sn *Snapshot) shipped(k kind, from place, file string) (layer, error) {
	p := sn.loader.shipped.get(file, func() parsed { return readLayer(k, from, file) })
	return p.layer, p.err
}

// parsed is what came of parsing a file.
type parsed struct {
	layer layer
	err   error
}

// readLayer parses a file and brings it into the form of its kind.
func readLayer(k kind, from place, file string) parsed {
	data, name, err := from.read(file)
	if err != nil {
		return parsed{err: fmt.Errorf("settings %s: %w", name, err)}
	}
	l, err := parseLayer(name, data)
	l.file, l.space = file, from.space()
	if err == nil && k.canonical != nil {
		err = k.canonical(&l)
	}
	return parsed{l, err}
}

// check checks a layer; its warnings go to s. What is shipped a test has checked.
func (sn *Snapshot) check(s *settings, layer layer, schema string) error {
	compiled, err := sn.loader.schemas.get(schema)
	if err != nil {
		return fmt.Errorf("settings schema %s: %w", schema, err)
	}
	warnings, err := layer.check(compiled)
	s.warnings = append(s.warnings, warnings...)
	return err
}

// merged is what the layers say together.
func (s *settings) merged() map[string]any {
	return mergedOf(s.layers)
}

// decode merges the layers into v.
func (s *settings) decode(v any) error {
	if err := nodeOf(s.merged()).Decode(v); err != nil {
		return fmt.Errorf("merge settings: %w", err)
	}
	return nil
}

// errorAt makes an error for the value at a path of keys, in the file that
// decided it.
func (s *settings) errorAt(at []string, format string, args ...any) error {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if s.layers[i].has(at) {
			return s.layers[i].errorAt(at, format, args...)
		}
	}
	top := s.layers[len(s.layers)-1]
	return &Error{Path: top.path, Reason: strings.TrimSpace(dotted(at) + ": " + fmt.Sprintf(format, args...))}
}

// merge lays over on top of base: maps merge, anything else replaces. Base is
// changed, over is not.
func merge(base, over map[string]any) {
	for key, value := range over {
		inner, ok := value.(map[string]any)
		if !ok {
			base[key] = value
			continue
		}
		// Not the map that is there: it may belong to another layer.
		merged := map[string]any{}
		if lower, ok := base[key].(map[string]any); ok {
			maps.Copy(merged, lower)
		}
		merge(merged, inner)
		base[key] = merged
	}
}
