package transcript

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// wantDamage checks that verification fails with that damage, in that turn when
// it is not 0.
func wantDamage(t *testing.T, path string, v Verifier, head *thread.TranscriptHead, want Damage, turn int, doing string) {
	t.Helper()
	_, err := Verify(records.File(path), v, head)
	tampered, ok := errors.AsType[*TamperError](err)
	if !ok || tampered.Damage != want {
		t.Fatalf("%s: got %v, want %s", doing, err, want)
	}
	if turn != 0 && tampered.Turn != turn {
		t.Errorf("%s: turn %d is named, want %d", doing, tampered.Turn, turn)
	}
}

func TestVerifyWhole(t *testing.T) {
	t.Parallel()
	key := newTestKey(1)
	path := newPath(t)
	checkpoints, head := writeThread(t, path, key, 4)
	report, err := Verify(records.File(path), key, &head)
	must(t, err)
	want := Report{
		ThreadID: testID, Checkpoints: len(checkpoints), LastTurn: 4,
		Turns: 4, Bytes: int64(len(readFile(t, path))), SignedBytes: head.Bytes,
	}
	if report != want {
		t.Errorf("got %+v, want %+v", report, want)
	}
	if report.UnsignedBytes() != 0 {
		t.Errorf("%d unsigned bytes", report.UnsignedBytes())
	}
	_, err = Verify(records.File(newPath(t)), key, nil)
	if err == nil {
		t.Error("a missing file verifies")
	}
}

// Every change of a byte before the last checkpoint is found, and the turn it
// belongs to is named.
func TestVerifyFindsEveryByte(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	key := newTestKey(1)
	path := newPath(t)
	ends, head := writeThread(t, path, key, 3)
	whole := readFile(t, path)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	flips := []byte{0x01, 0x20, 0x80}
	for i := range whole {
		flip := flips[i%len(flips)]
		_, err := f.WriteAt([]byte{whole[i] ^ flip}, int64(i))
		must(t, err)
		withHead := errors.New("not tried")
		if i >= last || i%16 == 0 {
			_, withHead = Verify(records.File(path), key, &head)
		}
		_, err = Verify(records.File(path), key, nil)
		_, undo := f.WriteAt(whole[i:i+1], int64(i))
		must(t, undo)

		if withHead == nil {
			t.Fatalf("byte %d ^ %#x: not found with a head", i, flip)
		}
		if i >= last { // nothing vouches for the last checkpoint itself but the head
			continue
		}
		tampered, ok := errors.AsType[*TamperError](err)
		if !ok {
			t.Fatalf("byte %d ^ %#x: %v", i, flip, err)
		}
		// Turns 1 and 2 end with the lines of their checkpoints. The next one
		// vouches for what a checkpoint says, so that a change of it may show there.
		turn := 1 + countUpTo(ends, int64(i))
		inCheckpoint := strings.Contains(lineAt(whole, i), `"checkpoint"`)
		if tampered.Turn != turn && (!inCheckpoint || tampered.Turn != turn+1) {
			t.Fatalf("byte %d ^ %#x: turn %d is named, want %d: %v", i, flip, tampered.Turn, turn, err)
		}
	}
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Fatalf("unchanged again: %v", err)
	}
}

// countUpTo counts the ends at or before offset.
func countUpTo(ends []int64, offset int64) int {
	n := 0
	for _, end := range ends {
		if end <= offset {
			n++
		}
	}
	return n
}

func lineAt(data []byte, i int) string {
	start := bytes.LastIndexByte(data[:i], '\n') + 1
	end := i + bytes.IndexByte(data[i:], '\n')
	return string(data[start:end])
}

func TestVerifyNamesDamage(t *testing.T) {
	t.Parallel()
	key, other := newTestKey(1), newTestKey(2)
	dir := t.TempDir()
	path := dir + "/t.jsonl"
	_, head := writeThread(t, path, key, 3)
	lines := strings.SplitAfter(strings.TrimSuffix(string(readFile(t, path)), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	foreign := dir + "/other.jsonl"
	writeThread(t, foreign, other, 3)
	foreignBytes := string(readFile(t, foreign))

	isCheckpoint := func(line string) bool { return strings.Contains(line, `"event_type":"checkpoint"`) }
	first := slices.IndexFunc(lines, isCheckpoint)
	swapped := slices.Clone(lines)
	swapped[first+1], swapped[first+2] = swapped[first+2], swapped[first+1]
	spliced := slices.Clone(lines)
	spliced[first+1] = strings.Replace(spliced[first+1], string(testID), "test/other-1772357400", 1)

	for name, c := range map[string]struct {
		content string
		head    *thread.TranscriptHead
		damage  Damage
		turn    int
	}{
		"two lines swapped":        {join(swapped), nil, Reordered, 0},
		"a line repeated":          {join(slices.Insert(slices.Clone(lines), 1, lines[0])), nil, Reordered, 1},
		"a line of another thread": {join(spliced), nil, Spliced, 2},
		"a line removed":           {join(slices.Delete(slices.Clone(lines), first+1, first+2)), nil, Stripped, 2},
		"a checkpoint removed":     {join(slices.Delete(slices.Clone(lines), first, first+1)), nil, Stripped, 1},
		"all checkpoints removed":  {join(slices.DeleteFunc(slices.Clone(lines), isCheckpoint)), nil, Stripped, 1},
		"cut at a checkpoint":      {join(lines[:first+1]), &head, Truncated, 2},
		"emptied":                  {"", &head, Truncated, 1},
		"signed by another key":    {foreignBytes, nil, Foreign, 1},
		"appended to":              {join(lines) + lines[0], &head, Reordered, 0},
		"torn after the end":       {join(lines) + "{", &head, Altered, 0},
		"head of another thread":   {join(lines), &thread.TranscriptHead{Checkpoints: 3, Bytes: head.Bytes, Hash: "00"}, Altered, 3},
		"head between two lines":   {join(lines), &thread.TranscriptHead{Checkpoints: 3, Bytes: 10, Hash: "00"}, Altered, 0},
		"fewer checkpoints":        {join(lines), &thread.TranscriptHead{Checkpoints: 4, Bytes: head.Bytes, Hash: head.Hash}, Stripped, 0},
	} {
		writeFile(t, path, []byte(c.content))
		wantDamage(t, path, key, c.head, c.damage, c.turn, name)
	}
}

// Checkpoints that were taken out are missed without a head and with the lines
// numbered anew, as in a thread that died before it had a head.
func TestVerifyMissesCheckpoints(t *testing.T) {
	t.Parallel()
	for turns, want := range map[int]int{2: 1, 5: 1} {
		path := newPath(t)
		writeThread(t, path, newTestKey(1), turns)
		var kept bytes.Buffer
		for _, e := range allEvents(t, path) {
			if e.Type != thread.EventCheckpoint {
				line, err := encodeLine(stamp(e.Timestamp), e.ThreadID, int64(bytes.Count(kept.Bytes(), []byte("\n")))+1, e.Type, e.Payload)
				must(t, err)
				kept.Write(line)
			}
		}
		writeFile(t, path, kept.Bytes())
		wantDamage(t, path, newTestKey(1), nil, Stripped, want, "renumbered")
		wantDamage(t, path, nil, nil, Stripped, want, "renumbered, without a key")
	}
}

func TestVerifySignatures(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	_, head := writeThread(t, path, nil, 2)
	if _, err := Verify(records.File(path), nil, &head); err != nil {
		t.Errorf("unsigned, without a key: %v", err)
	}
	wantDamage(t, path, newTestKey(1), &head, Stripped, 1, "unsigned, with a key")
}

// A later process may append to a thread that has ended, as a resume does,
// when it signs what it appends.
func TestVerifyAcceptsSignedSuffix(t *testing.T) {
	t.Parallel()
	key := newTestKey(1)
	path := newPath(t)
	_, head := writeThread(t, path, key, 2)
	w := open(t, path, key)
	must(t, w.Append(thread.EventThreadResumed, ThreadResumed{NewThreadID: "test/demo-2"}))
	wantDamage(t, path, key, &head, Altered, 0, "appended and not signed")
	must(t, w.Checkpoint(2))
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
}

// FuzzVerify: nobody without the key makes a transcript that a head vouches for,
// and one that is taken without a head has its signed part from the key's holder.
func FuzzVerify(f *testing.F) {
	key := newTestKey(1)
	seed := newPath(f)
	_, head := writeThread(f, seed, key, 2)
	whole := readFile(f, seed)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), whole...))
	path := newPath(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		writeFile(t, path, data)
		if _, err := Verify(records.File(path), key, &head); err == nil && !bytes.Equal(data, whole) {
			t.Error("a forgery verifies")
		}
		report, err := Verify(records.File(path), key, nil)
		if err == nil && !bytes.HasPrefix(whole, data[:report.SignedBytes]) && !bytes.HasPrefix(data, whole) {
			t.Errorf("%d bytes of a forgery count as signed", report.SignedBytes)
		}
		if report.SignedBytes < 0 || report.UnsignedBytes() < 0 || report.TornBytes < 0 {
			t.Errorf("report %+v of %d bytes", report, len(data))
		}
	})
}

func join(lines []string) string { return strings.Join(lines, "") }
