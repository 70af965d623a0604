package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// appender writes a transcript here, and ships it.
type appender struct {
	records.Appender // the file here

	of *kept
	by recordserver.Writer

	shipping sync.Mutex // one shipment at a time
	shipped  int64      // bytes that the server has of the file
	cut      bool       // the server has some that were cut off here
	drop     string     // a file of the server that goes with the first shipment
	refused  error      // another run or process has the transcript

	mu        sync.Mutex // of what follows
	puts      []recordserver.Put
	artifacts []recordserver.Artifact
	look      *time.Timer // nil while all is shipped
	closed    bool
}

var _ records.Appender = (*appender)(nil)

// followEvery is how often a thread is shipped that somebody follows, and how often it is
// asked whether somebody does while something is not shipped.
const followEvery = time.Second

// Write implements [io.Writer].
func (a *appender) Write(p []byte) (int, error) {
	n, err := a.Appender.Write(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.look == nil && !a.closed {
		a.look = time.AfterFunc(followEvery, a.shipIfFollowed)
	}
	return n, err
}

// shipIfFollowed ships what is new while somebody follows the thread.
func (a *appender) shipIfFollowed() {
	a.mu.Lock()
	a.look = nil
	a.mu.Unlock()
	followed, err := a.of.Server.Followed(context.Background(), a.by.Thread)
	if err == nil && followed {
		_ = a.tryShip(nil) // the next checkpoint meets the error, too
	}
	size, err := a.Size()
	if err != nil {
		return // it was closed
	}
	a.shipping.Lock()
	behind := a.shipped < size && a.refused == nil
	a.shipping.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if behind && a.look == nil && !a.closed {
		a.look = time.AfterFunc(followEvery, a.shipIfFollowed)
	}
}

// Truncate implements [records.Appender].
func (a *appender) Truncate(size int64) error {
	a.shipping.Lock()
	defer a.shipping.Unlock()
	if err := a.Appender.Truncate(size); err != nil {
		return err
	}
	if size < a.shipped {
		a.shipped, a.cut = size, true
	}
	return nil
}

// Sync implements [records.Appender]: what was written is on this disk, and then on the
// server.
func (a *appender) Sync() error {
	if err := a.Appender.Sync(); err != nil {
		return err
	}
	a.of.Crashpoints.At(CrashSynced)
	return a.ship(nil)
}

// Close implements [io.Closer]. It ships the new bytes.
func (a *appender) Close() error {
	a.mu.Lock()
	a.closed = true
	if a.look != nil {
		a.look.Stop()
	}
	a.mu.Unlock()
	err := a.ship(nil)
	a.of.mu.Lock()
	if a.of.open[a.by.Thread] == a {
		delete(a.of.open, a.by.Thread)
	}
	a.of.mu.Unlock()
	a.shipping.Lock() // no shipment reads it
	defer a.shipping.Unlock()
	return errors.Join(err, a.Appender.Close())
}

// later puts a document into the next shipment.
func (a *appender) later(p recordserver.Put) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.puts = slices.DeleteFunc(a.puts, func(o recordserver.Put) bool { return o.Name == p.Name })
	a.puts = append(a.puts, p)
}

// keep puts an artifact into the next shipment.
func (a *appender) keep(artifact recordserver.Artifact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.artifacts, artifact) {
		a.artifacts = append(a.artifacts, artifact)
	}
}

// holds reports whether a document waits for the next shipment.
func (a *appender) holds(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.puts, func(p recordserver.Put) bool { return p.Name == name })
}

// waiting are the artifacts that wait for the next shipment.
func (a *appender) waiting() []recordserver.Artifact {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.artifacts)
}

// Waits between two tries of a shipment.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 2 * time.Second
)

// ship is tryShip that tries again while the server does not answer, or cannot write now.
func (a *appender) ship(now *recordserver.Put) error {
	give := time.NewTimer(a.of.Patience)
	defer give.Stop()
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := a.tryShip(now)
		if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, errHere) || recordserver.Final(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-give.C:
			return err
		}
	}
}

// errHere says that the transcript on this disk cannot be read.
var errHere = errors.New("read what is to be shipped")

// tryShip ships all that is new: in one transaction, unless that is more than one can
// have. Now, which may be nil, is a document that goes with it.
func (a *appender) tryShip(now *recordserver.Put) error {
	a.shipping.Lock()
	defer a.shipping.Unlock()
	if a.refused != nil {
		return a.refused
	}
	err := a.shipNow(now)
	if errors.Is(err, store.ErrFenced) {
		a.refused = err
	}
	return err
}

// shipNow ships all that is new. Where the server has lost something, as a standby has that
// was promoted, it gets that again.
func (a *appender) shipNow(now *recordserver.Put) error {
	err := a.shipOnce(now)
	gap, is := errors.AsType[*recordserver.GapError](err)
	if !is {
		return err
	}
	if a.shipped, err = a.stillThere(gap); err != nil {
		return err
	}
	a.cut = true
	if err := errors.Join(a.unshipped(), a.unshippedDocument(metaName)); err != nil { // lost with it
		return err
	}
	return a.shipOnce(now)
}

func (a *appender) shipOnce(now *recordserver.Put) error {
	a.mu.Lock()
	puts, artifacts := slices.Clone(a.puts), slices.Clone(a.artifacts)
	a.mu.Unlock()
	if now != nil {
		puts = append(slices.DeleteFunc(puts, func(p recordserver.Put) bool { return p.Name == now.Name }), *now)
	}
	size, err := a.Size()
	if err != nil {
		return fmt.Errorf("%w: %w", errHere, err)
	}
	if size == a.shipped && !a.cut && a.drop == "" && len(puts)+len(artifacts) == 0 {
		return nil
	}
	if err := a.of.keepContents(a.by, artifacts); err != nil {
		return err
	}
	if len(artifacts) > 0 {
		a.of.Crashpoints.At(CrashContents)
	}
	if err := a.shipWords(size, puts, artifacts); err != nil {
		return err
	}
	a.of.Crashpoints.At(CrashShipped)
	a.sent(puts, artifacts)
	return nil
}

// sent forgets what was shipped.
func (a *appender) sent(puts []recordserver.Put, artifacts []recordserver.Artifact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.puts = slices.DeleteFunc(a.puts, func(p recordserver.Put) bool {
		return slices.ContainsFunc(puts, func(s recordserver.Put) bool { return s.Name == p.Name && string(s.Content) == string(p.Content) })
	})
	a.artifacts = slices.DeleteFunc(a.artifacts, func(w recordserver.Artifact) bool { return slices.Contains(artifacts, w) })
	a.cut, a.drop = false, ""
}

// shipWords ships the transcript up to a size, and documents and artifacts with the last
// of it. The error is a [recordserver.GapError] where the server has lost something.
func (a *appender) shipWords(size int64, puts []recordserver.Put, artifacts []recordserver.Artifact) error {
	buffer := make([]byte, min(max(0, size-a.shipped), recordserver.PageChunks*recordserver.ChunkBytes))
	for {
		part := buffer[:min(int64(len(buffer)), max(0, size-a.shipped))]
		if n, err := a.ReadAt(part, a.shipped); n < len(part) {
			return fmt.Errorf("%w: %w", errHere, err)
		}
		p := recordserver.Parcel{From: a.shipped, Chunks: slices.Collect(slices.Chunk(part, recordserver.ChunkBytes))}
		if len(part) > 0 || a.cut {
			p.Name = plainName
		}
		last := a.shipped+int64(len(part)) == size
		if last {
			p.Puts, p.Artifacts, p.Drop = puts, artifacts, a.drop
		}
		_, err := a.of.Server.Ship(context.Background(), a.by, p)
		if err != nil {
			return err
		}
		a.shipped, a.cut = a.shipped+int64(len(part)), false
		if last {
			return nil
		}
	}
}

// stillThere is how much of the transcript the server has that has lost some of it, or all: this
// process becomes the writer again, unless another has.
func (a *appender) stillThere(gap *recordserver.GapError) (int64, error) {
	if !gap.Gone {
		return a.left()
	}
	err := a.of.Server.Take(context.Background(), a.by, plainName, nil)
	if errors.Is(err, recordserver.ErrChanged) {
		err = fmt.Errorf("%w: %w", store.ErrFenced, err)
	}
	return 0, err
}

// left is how much of the transcript here a server has that has lost some of it.
func (a *appender) left() (int64, error) {
	f, _, err := a.of.words().standing()
	if err != nil {
		return 0, err
	}
	return a.of.words().same(f)
}

// unshipped puts what is here and the server lacks into the next shipment: the record of
// capabilities and the artifacts of a process that was killed before it shipped them.
func (a *appender) unshipped() error {
	if err := a.unshippedDocument(capabilitiesName); err != nil {
		return err
	}
	list, err := a.of.local.Artifacts().List()
	if err != nil || len(list) == 0 {
		return err
	}
	has, err := a.of.Server.Artifacts(context.Background(), a.by.Thread)
	if err != nil {
		return err
	}
	for _, here := range list {
		if slices.ContainsFunc(has, func(s recordserver.Artifact) bool { return s.Name == here.Name }) || !isArtifact().MatchString(here.Name) {
			continue
		}
		artifact, err := a.of.artifactHere(here.Name)
		if err != nil {
			return err
		}
		a.keep(artifact)
	}
	return nil
}

func (a *appender) unshippedDocument(name string) error {
	text, err := regular.ReadFollowed(a.of.copy.path(name), maxMeta)
	if errors.Is(err, fs.ErrNotExist) || err == nil && a.holds(name) {
		return nil
	}
	if err != nil {
		return err
	}
	files, err := a.of.Server.Files(context.Background(), a.by.Thread)
	hash := sha256.Sum256(text)
	if err == nil && !slices.ContainsFunc(files, func(f recordserver.File) bool { return f.Name == name && bytes.Equal(f.Hash, hash[:]) }) {
		a.later(recordserver.Put{Name: name, Content: text})
	}
	return err
}
