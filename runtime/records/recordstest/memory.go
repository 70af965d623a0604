package recordstest

import (
	"bytes"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// InMemory are records of which transcripts are opened and metadata is peeked at, and
// nothing else. A thread without either has left nothing.
type InMemory struct {
	records.Records
	Transcripts map[thread.ID][]byte
	Metas       map[thread.ID]thread.Meta
}

// Of implements [records.Records].
func (m InMemory) Of(id thread.ID) records.Thread { return inMemory{of: m, id: id} }

type inMemory struct {
	records.Thread
	of InMemory
	id thread.ID
}

func (t inMemory) Transcript() records.Transcript { return wordsInMemory{inMemory: t} }
func (t inMemory) Meta() records.Meta             { return metaInMemory{inMemory: t} }

type wordsInMemory struct {
	records.Transcript
	inMemory inMemory
}

func (t wordsInMemory) Open() (records.Reader, error) {
	text, is := t.inMemory.of.Transcripts[t.inMemory.id]
	if !is {
		return nil, fs.ErrNotExist
	}
	return bytesReader{bytes.NewReader(text)}, nil
}

type bytesReader struct{ *bytes.Reader }

func (r bytesReader) Close() error         { return nil }
func (r bytesReader) Size() (int64, error) { return r.Reader.Size(), nil }

type metaInMemory struct {
	records.Meta
	inMemory inMemory
}

func (m metaInMemory) Peek() (thread.Meta, error) {
	of, id := m.inMemory.of, m.inMemory.id
	if meta, is := of.Metas[id]; is {
		return meta, nil
	}
	if _, is := of.Transcripts[id]; !is {
		return thread.Meta{}, fs.ErrNotExist
	}
	return thread.Meta{ThreadID: id}, nil
}
