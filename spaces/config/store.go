package config

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/projectname"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// Store is config/agent/store.yaml: where the rows of threads are kept. But for the name of
// the project it is the user's alone: the server that keeps the rows says which threads are
// to run here, with the user's keys, and can read all that they say.
type Store struct {
	URL      storeurl.URL
	From     string // the file that says so; empty: the one that is shipped
	Project  string // what other machines know the project by; empty: see package projectname
	Fallback bool   // to the store of this machine, while no server can be reached
	// Password describes, as a provider, how the password is had; nil: as the client of the
	// database has it.
	Password *Provider
	// Key is the path of the private key of the fleet, whole or beginning with ~/; empty: the
	// user's own.
	Key string
}

// StoreFile is the file of the settings, below .ai/config.
const StoreFile = "agent/store.yaml"

// storeKey is the one key of the file.
const storeKey = "store"

// passwordName stands for the database where a provider has its name; no provider has it.
const passwordName = "database of store.yaml"

// Values of fallback.
const fallbackLocal = "local"

// storeSettings is the file as it is decoded.
type storeSettings struct {
	Store struct {
		URL              string   `yaml:"url"`
		Project          string   `yaml:"project"`
		Fallback         string   `yaml:"fallback"`
		PasswordCommand  []string `yaml:"password_command"`
		PasswordKeychain string   `yaml:"password_keychain"`
		Key              string   `yaml:"key"`
	} `yaml:"store"`
}

// Store reads store.yaml. A project is looked at only where the user has an address, or
// elsewhere names one.
func (sn *Snapshot) Store(elsewhere bool) (Store, []string, error) {
	if !elsewhere {
		own, err := ownStore(sn)
		if err != nil || own.URL.IsLocal() {
			return own, nil, err
		}
	}
	return sn.store()
}

// ownStore is what the user's own file says. It is all that is read at the start of a
// process whose threads are on this machine.
func ownStore(sn *Snapshot) (Store, error) {
	var s settings
	for _, from := range sn.own {
		if from.space() != item.User {
			continue
		}
		layers, err := sn.read(&s, storeKind, from)
		if err != nil {
			return Store{}, err
		}
		s.layers = append(s.layers, layers...)
	}
	if len(s.layers) == 0 {
		return Store{}, nil
	}
	return s.store()
}

func (sn *Snapshot) readStore() (Store, []string, error) {
	s, err := sn.load(storeKind)
	if err != nil {
		return Store{}, s.warnings, err
	}
	return valuesOf(sn, storeKind, s, func() (Store, []string, error) {
		st, err := s.store()
		return st, s.warnings, err
	})
}

// store is what the layers say together.
func (s *settings) store() (Store, error) {
	var said storeSettings
	if err := s.decode(&said); err != nil {
		return Store{}, err
	}
	in := said.Store
	st := Store{Project: in.Project, Fallback: in.Fallback == fallbackLocal, Key: in.Key, From: s.origin([]string{storeKey, "url"}, nil).Path}
	at := func(key string) []string { return []string{storeKey, key} }
	var err error
	if st.URL, err = storeurl.Parse(cmp.Or(in.URL, storeurl.Local)); err != nil {
		return Store{}, s.addressError(err)
	}
	if len(in.PasswordCommand) > 0 && !isProgram(in.PasswordCommand[0]) {
		return Store{}, s.errorAt(at("password_command"), "want the name of a program or its whole path, and its arguments, each a word of the list")
	}
	if in.Project != "" && projectname.Check(in.Project) != nil {
		return Store{}, s.errorAt(at("project"), "%v", projectname.ErrBad)
	}
	if in.PasswordKeychain != "" || len(in.PasswordCommand) > 0 {
		st.Password = &Provider{
			Name: passwordName, File: StoreFile, APIKeyKeychain: in.PasswordKeychain, APIKeyCommand: slices.Clone(in.PasswordCommand),
		}
	}
	return st, nil
}

// addressError says where the address stands, and not what it is.
func (s *settings) addressError(err error) error {
	bad, is := errors.AsType[*storeurl.Error](err)
	if !is {
		return err
	}
	at := s.origin([]string{storeKey, "url"}, nil)
	return &Error{Path: at.Path, Line: at.Line, Reason: dotted(at.Key) + ": " + bad.Error() + "; " + bad.Try()}
}

// canonicalStore brings "store: URL" into the form in which all keys have names.
func canonicalStore(l *layer) error {
	switch said := l.values[storeKey].(type) {
	case nil, map[string]any:
		return nil
	case string:
		l.values[storeKey] = map[string]any{"url": said}
		l.spellings = func([]string) [][]string { return [][]string{{storeKey}} }
		return nil
	}
	return l.errorAt([]string{storeKey}, "want a URL, or a mapping with url, project and fallback")
}
