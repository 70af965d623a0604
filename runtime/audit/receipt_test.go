package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

func (s *scene) receipt(rec thread.Record) []byte {
	s.Helper()
	meta, err := s.folder(rec).ReadMeta(placetest.Seal(s.key))
	s.must(err)
	sealed, err := Receipt{
		IssuedAt: now(), ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: rec.Directive, Capabilities: meta.Capabilities,
		Limits: meta.Limits, Status: rec.Status, CreatedAt: now(), CompletedAt: now(), Cost: rec.Cost, TreeSpend: rec.Cost.Spend,
		Transcript: meta.Transcript,
	}.Seal(s.key)
	s.must(err)
	return sealed
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.whole("done")
	sealed := s.receipt(rec)
	r, key, err := OpenReceipt(sealed)
	s.must(err)
	if r.ThreadID != rec.ThreadID || r.Cost != rec.Cost || !key.Equal(s.key.Public()) || r.Signer.Fingerprint != s.key.Fingerprint() {
		t.Errorf("got %+v", r)
	}
	if again, err := r.Seal(s.key); err != nil || !bytes.Equal(again, sealed) {
		t.Errorf("sealed again: %s, %v", again, err)
	}
	path := s.folder(rec).Transcript()
	if report, err := r.CheckTranscript(records.File(path), key); err != nil || report.Turns != turns {
		t.Errorf("its transcript: %+v, %v", report, err)
	}
	var tampered *transcript.TamperError
	if _, err := r.CheckTranscript(records.File(s.folder(s.whole("other")).Transcript()), key); !errors.As(err, &tampered) {
		t.Errorf("another's transcript: %v", err)
	}
	s.edit(path, "Answer 2.", "Answer 9.")
	if _, err := r.CheckTranscript(records.File(path), key); !errors.As(err, &tampered) || tampered.Turn != 2 {
		t.Errorf("an edited transcript: %v", err)
	}
}

// TestForgedReceipts: nothing of a receipt can be changed, and nothing else that
// the same key has signed passes for one.
func TestForgedReceipts(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.whole("done")
	sealed := s.receipt(rec)
	var members map[string]json.RawMessage
	s.must(json.Unmarshal(sealed, &members))
	for name := range members {
		var forged map[string]json.RawMessage
		s.must(json.Unmarshal(sealed, &forged))
		delete(forged, name)
		text, err := json.Marshal(forged)
		s.must(err)
		if _, _, err := OpenReceipt(text); err == nil {
			t.Errorf("without %s it opens", name)
		}
	}
	other := newKey(t, 7)
	swapped, err := sign.EncodeSigned(map[string]any{"type": receiptType, "version": 1, "signer": Signer{PublicKey: string(s.key.Public().PEM())}}, other)
	s.must(err)
	for name, text := range map[string]string{
		"cheaper":         strings.Replace(string(sealed), `"tree_spend":`, `"tree_spend":9`, 1),
		"member added":    strings.Replace(string(sealed), `{`, `{"Signer":{},`, 1),
		"member twice":    strings.Replace(string(sealed), `{`, `{"type":"rye-mcp/thread-receipt",`, 1),
		"another's key":   string(swapped),
		"a thread.json":   s.read(s.folder(rec).Meta()),
		"newer":           strings.Replace(string(sealed), `"version":1`, `"version":2`, 1),
		"empty":           "",
		"an empty object": "{}",
		"no object":       "[]",
	} {
		if r, _, err := OpenReceipt([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func FuzzOpenReceipt(f *testing.F) {
	s := newScene(f, newKey(f, 1))
	sealed := s.receipt(s.whole("done"))
	f.Add(sealed)
	f.Add(bytes.Replace(sealed, []byte(`"type"`), []byte(`"TYPE"`), 1))
	f.Add([]byte(`{"type":"rye-mcp/thread-receipt","version":1,"signer":{}}`))
	want, _, err := OpenReceipt(sealed)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Without the key only the one receipt can be written in other bytes.
		got, key, err := OpenReceipt(data)
		if err == nil && key.Equal(s.key.Public()) && !reflect.DeepEqual(got, want) {
			t.Errorf("a forgery opens: %+v", got)
		}
	})
}
