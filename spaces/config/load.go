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
			if err := sn.keepUsersAlone(s, k, file, layers); err != nil {
				return err
			}
			s.layers = append(s.layers, layers...)
			s.accepted += len(layers)
		}
	}
	return nil
}

// keepUsersAlone leaves to the user what no project decides, accepted or not, in files
// whose keys are merged.
func (sn *Snapshot) keepUsersAlone(s *settings, k kind, file string, layers []layer) error {
	if !k.merged || len(layers) == 0 {
		return nil
	}
	rules, err := sn.loader.rules.get(k.schema)
	if err != nil {
		return err
	}
	settling := settling{rules: rules, own: s.layers[:s.own:s.own], present: layers, file: file, path: layers[0].path}
	settling.usersAlone()
	s.leftOut = append(s.leftOut, settling.notices...)
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
	data, name, err := from.read(file)
	if err != nil {
		return layer{}, fmt.Errorf("settings %s: %w", name, err)
	}
	parse := func() parsed { return sn.checked(k, name, data, file, from.space()) }
	var p parsed
	if from.space() == item.User { // a project's are changed when they are settled
		p = sn.loader.users.get(file, string(data), parse)
	} else {
		p = parse()
	}
	s.warnings = append(s.warnings, p.warnings...)
	return p.layer, p.err
}

// checked parses and checks a file that was not shipped.
func (sn *Snapshot) checked(k kind, name string, data []byte, file string, of item.Space) parsed {
	p := parseFile(name, data, file, of)
	if p.err == nil {
		p.warnings, p.err = sn.check(p.layer, k.schema)
	}
	if p.err == nil && k.canonical != nil {
		p.err = k.canonical(&p.layer)
	}
	return p
}

func parseFile(name string, data []byte, file string, of item.Space) parsed {
	l, err := parseLayer(name, data)
	l.file, l.space = file, of
	return parsed{layer: l, err: err}
}

// shipped is a file of the system space, which is parsed once a process.
func (sn *Snapshot) shipped(k kind, from place, file string) (layer, error) {
	p := sn.loader.shipped.get(file, func() parsed {
		data, name, err := from.read(file)
		if err != nil {
			return parsed{err: fmt.Errorf("settings %s: %w", name, err)}
		}
		p := parseFile(name, data, file, item.System)
		if p.err == nil && k.canonical != nil {
			p.err = k.canonical(&p.layer)
		}
		return p
	})
	return p.layer, p.err
}

// parsed is what came of parsing a file.
type parsed struct {
	layer    layer
	warnings []string
	err      error
}

// check checks a layer; a test has checked the shipped ones.
func (sn *Snapshot) check(l layer, schema string) (warnings []string, err error) {
	compiled, err := sn.loader.schemas.get(schema)
	if err != nil {
		return nil, fmt.Errorf("settings schema %s: %w", schema, err)
	}
	return l.check(compiled)
}

// answer is what a kind of settings comes to.
type answer[T any] struct {
	value    T
	warnings []string
	err      error
}

func answerOf[T any](value T, warnings []string, err error) answer[T] {
	return answer[T]{value, warnings, err}
}

// valuesOf decodes a kind of settings. Where the project says nothing the values are
// those of before for as long as the user's files are the same.
func valuesOf[T any](sn *Snapshot, k kind, s settings, decode func() (T, []string, error)) (T, []string, error) {
	read := func() answer[T] { return answerOf(decode()) }
	source, own := s.ownSource()
	if !own {
		return decode()
	}
	a, ok := sn.loader.values.get(k.files[len(k.files)-1], source, func() any { return read() }).(answer[T])
	if !ok { // each kind has one type
		a = read()
	}
	return a.value, a.warnings, a.err
}

// ownSource is the text of the user's files, where nothing but those and what is
// shipped count.
func (s *settings) ownSource() (source string, own bool) {
	var b strings.Builder
	for _, l := range s.layers {
		switch l.space {
		case item.System:
		case item.User:
			_, _ = fmt.Fprintf(&b, "%s %d\n%s", l.file, len(l.source), l.source) // a builder takes everything
		default:
			return "", false
		}
	}
	return b.String(), len(s.leftOut) == 0
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
