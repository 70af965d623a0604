package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// corpusDir is the .ai folder of the corpus of existing directives: that of
// $RYE_CORPUS, or of ../shared/corpus beside the checkout, else the look-alikes
// in testdata/corpus.
func corpusDir() (string, error) {
	candidates := []string{filepath.Join("..", "..", "..", "shared", "corpus")}
	if dir := os.Getenv("RYE_CORPUS"); dir != "" {
		candidates = []string{dir}
	}
	for _, dir := range candidates {
		workspace := filepath.Join(dir, "rye-workspace", ".ai")
		if _, err := os.Stat(workspace); err == nil {
			return filepath.Abs(workspace)
		}
	}
	return filepath.Abs(lookAlikes)
}

// lookAlikes stand in for the corpus where it is not at hand.
var lookAlikes = filepath.Join("testdata", "corpus")

// copyCorpus is corpus DIR: it copies the directives of the corpus into a space.
func copyCorpus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: corpus DIR")
	}
	from := filepath.Join(ts.Getenv("CORPUS"), "directives")
	ts.Check(os.CopyFS(filepath.Join(ts.MkAbs(args[0]), "directives"), os.DirFS(from)))
}

// noLeftovers is noleftovers PROJECT: it checks that every thread has ended,
// that no money is reserved any more and that every life lock is free.
func noLeftovers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: noleftovers PROJECT")
	}
	state := placetest.Dir(ts.MkAbs(args[0]))
	// A thread tells its outcome before it completes its files and lets go.
	poll(ts.Fatalf, func() (bool, string) {
		err := locksFree(state)
		return err == nil, fmt.Sprint(err)
	})
	ts.Check(settled(context.Background(), state))
}

// noSecret is nosecret DIR [SECRET...]: it checks that the provider's key, and the
// others, are in no file below a folder, and that the model was sent none of them.
func noSecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: nosecret DIR [SECRET...]")
	}
	looked := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // SQLite removes its journal when the last process closes it
		}
		looked++
		for _, secret := range append(args[1:], testKey) {
			if bytes.Contains(content, []byte(secret)) {
				return fmt.Errorf("%s contains %s", path, secret)
			}
		}
		return err
	}))
	if looked == 0 {
		ts.Fatalf("there are no files in %s", args[0])
	}
	checkRequests(ts, append(args[1:], testKey))
}

// checkRequests fails when the model was sent one of the secrets.
func checkRequests(ts *testscript.TestScript, secrets []string) {
	server, served := ts.Value(modelKey{}).(*scripted.Server)
	if !served {
		return
	}
	for _, r := range server.Requests() {
		for _, secret := range secrets {
			if bytes.Contains(r.Body, []byte(secret)) {
				ts.Fatalf("the model was sent %s", secret)
			}
		}
	}
}
