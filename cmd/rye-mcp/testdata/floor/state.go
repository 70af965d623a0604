package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/gowebpki/jcs"
	_ "modernc.org/sqlite"
)

const (
	stateDir  = ".floor"
	budget    = 50_000 // micro-dollars
	ledgerDDL = `CREATE TABLE IF NOT EXISTS budgets (thread_id TEXT PRIMARY KEY, reserved INTEGER NOT NULL, spent INTEGER NOT NULL, status TEXT NOT NULL) STRICT`
	threadDDL = `CREATE TABLE IF NOT EXISTS threads (thread_id TEXT PRIMARY KEY, directive TEXT NOT NULL, status TEXT NOT NULL, turns INTEGER NOT NULL, result TEXT) STRICT`
)

// state is what a server and its threads share.
type state struct {
	registry, ledger *sql.DB
	key              ed25519.PrivateKey
}

// openState opens the state of the working folder, and makes it.
func openState(create bool) (*state, error) {
	keyFile := filepath.Join(stateDir, "key")
	if create {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			err = os.MkdirAll(stateDir, 0o700)
		}
		if err == nil {
			err = os.WriteFile(keyFile, key, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	s := &state{key: key}
	if s.registry, err = openDatabase("registry.db"); err != nil {
		return nil, err
	}
	if s.ledger, err = openDatabase("budget_ledger.db"); err != nil || !create {
		return s, err
	}
	_, registryErr := s.registry.Exec("PRAGMA journal_mode = WAL; " + threadDDL)
	_, ledgerErr := s.ledger.Exec("PRAGMA journal_mode = WAL; " + ledgerDDL)
	return s, errors.Join(registryErr, ledgerErr)
}

// openDatabase opens a file with the pragmas of rye-mcp's.
func openDatabase(name string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(stateDir, name))
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (s *state) close() { _ = errors.Join(s.registry.Close(), s.ledger.Close()) }

func (s *state) register(id string) error {
	_, registryErr := s.registry.Exec(`INSERT INTO threads VALUES (?, 'work', 'created', 0, NULL)`, id)
	_, ledgerErr := s.ledger.Exec(`INSERT INTO budgets VALUES (?, ?, 0, 'active')`, id, budget)
	return errors.Join(registryErr, ledgerErr)
}

// meta is thread.json.
type meta struct {
	ID        string `json:"thread_id"`
	Directive string `json:"directive"`
	Status    string `json:"status"`
	Turns     int    `json:"turns"`
	Result    string `json:"result,omitempty"`
}

// signed is a document and the signature over its canonical form.
type signed struct {
	Meta meta   `json:"meta"`
	Sig  string `json:"_signature"`
}

func (s *state) writeSigned(id string, m meta) error {
	hash, err := hashOf(m)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(signed{m, base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, hash))}, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(stateDir, id, "thread.json"), text, 0o600)
}

func (s *state) readSigned(id string) (meta, error) {
	text, err := os.ReadFile(filepath.Join(stateDir, id, "thread.json"))
	if err != nil {
		return meta{}, err
	}
	var read signed
	if err := json.Unmarshal(text, &read); err != nil {
		return meta{}, err
	}
	hash, err := hashOf(read.Meta)
	if err != nil {
		return meta{}, err
	}
	sig, err := base64.StdEncoding.DecodeString(read.Sig)
	if err == nil && !ed25519.Verify(s.key.Public().(ed25519.PublicKey), hash, sig) {
		err = fmt.Errorf("thread.json of %s is not what was signed", id)
	}
	return read.Meta, err
}

func hashOf(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil {
		text, err = jcs.Transform(text)
	}
	hash := sha256.Sum256(text)
	return hash[:], err
}
