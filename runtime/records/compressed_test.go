package records_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Variables that make this program one that compresses or restores, and dies meanwhile.
const (
	crashDir = "RECORDS_CRASH_DIR"
	crashAt  = "RECORDS_CRASH_AT"
)

const packed thread.ID = "packed-1"

// compressAndDie compresses a transcript and adds to it, and is killed on the way.
func compressAndDie(dir string) error {
	l := local(dir, nil)
	l.Crashpoints = func(at thread.Crashpoint) {
		if string(at) == os.Getenv(crashAt) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	of := l.Of(packed)
	if _, _, err := of.Whole().Compress(); err != nil {
		return err
	}
	_, err := of.Transcript().Append()
	return err
}

// written is a transcript of some content.
func written(t rapid.TB, l records.Local, content []byte) records.Thread {
	t.Helper()
	of := l.Of(packed)
	if err := of.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Home().Of(packed).Transcript(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return of
}

func readAll(t rapid.TB, of records.Thread) []byte {
	t.Helper()
	got, err := read(of)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func read(of records.Thread) ([]byte, error) {
	r, err := of.Transcript().Open()
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
	return got, errors.Join(err, r.Close())
}

// lines is content that can be compressed.
func lines(n int) []byte { return bytes.Repeat([]byte("{\"a\":\"line of so many\"}\n"), n/24+1)[:n] }

// TestKilledCompressor kills a process at each step of compressing and of restoring. It
// reads the same afterwards, is compressed by the next, and nothing is left over.
func TestKilledCompressor(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content := lines(700_000)
	for _, point := range records.Crashpoints() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			l := local(t.TempDir(), nil)
			of := written(t, l, content)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), crashDir+"="+l.Home().Dir, crashAt+"="+string(point))
			out, err := cmd.CombinedOutput()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it ended with %v: %s", err, out)
			}
			if got := readAll(t, of); !bytes.Equal(got, content) {
				t.Fatalf("%d bytes are read", len(got))
			}
			w, err := of.Transcript().Append()
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Write([]byte("more\n"))
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(content), "more\n"...)
			if got := readAll(t, of); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes are read after more", len(got))
			}
			if before, after, err := of.Whole().Compress(); err != nil || before != int64(len(want)) || after >= before {
				t.Fatalf("%d became %d, %v", before, after, err)
			}
			if got := readAll(t, of); !bytes.Equal(got, want) {
				t.Errorf("%d bytes are read in the end", len(got))
			}
			left, err := os.ReadDir(string(l.Home().Of(packed)))
			if err != nil || len(left) > 2 { // of a killed restoration a draft, which the next one replaces
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// TestStaleCompressed: where both are there the plain one counts, which may have been
// appended to; the other goes when it is written to.
func TestStaleCompressed(t *testing.T) {
	t.Parallel()
	l := local(t.TempDir(), nil)
	of := written(t, l, lines(20_000))
	if _, _, err := of.Whole().Compress(); err != nil {
		t.Fatal(err)
	}
	written(t, l, lines(30_000))
	if got := readAll(t, of); len(got) != 30_000 {
		t.Errorf("%d bytes are read", len(got))
	}
	w, err := of.Transcript().Append()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(l.Home().Of(packed).Compressed()); !os.IsNotExist(err) {
		t.Errorf("the stale one: %v", err)
	}
}

// TestCompressedReads: any content reads the same at any place.
func TestCompressedReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := local(dir, nil)
		size := rapid.SampledFrom([]int{16 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 512 << 10, 600_000}).Draw(t, "size")
		content := lines(size)
		copy(content[rapid.IntRange(0, size-1).Draw(t, "at"):], rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		of := written(t, l, content)
		if _, _, err := of.Whole().Compress(); err != nil {
			t.Fatal(err)
		}
		r, err := of.Transcript().Open()
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			at := rapid.IntRange(0, size+10).Draw(t, "from")
			part := make([]byte, rapid.IntRange(0, 300<<10).Draw(t, "length"))
			n, err := r.ReadAt(part, int64(at))
			want := content[min(at, size):min(at+len(part), size)]
			if !bytes.Equal(part[:n], want) || n < len(part) && !errors.Is(err, io.EOF) || n == len(part) && err != nil {
				t.Fatalf("%d of %d bytes at %d, %v", n, len(part), at, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// table is what stands behind frames.
func table(sizes ...uint32) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0x184D2A5E)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(sizes)*4+9))
	for _, n := range sizes {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(sizes)/2)), 0)
	return binary.LittleEndian.AppendUint32(out, 0x8F92EAB1)
}

// packedAs puts the bytes of a compressed transcript in its place.
func packedAs(t testing.TB, l records.Local, data []byte) records.Thread {
	t.Helper()
	of := l.Of(packed)
	if err := errors.Join(of.Prepare(), os.WriteFile(l.Home().Of(packed).Compressed(), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return of
}

func zeros(t testing.TB, n int) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(make([]byte, n), nil)
}

// TestAttackTranscriptBomb: a compressed transcript has a few bytes that become gigabytes,
// or a table that lies about its frames. It is refused as damaged, with little memory, and
// nothing is written in its place.
func TestAttackTranscriptBomb(t *testing.T) { // alone: it measures memory
	bomb, small := zeros(t, 1<<30), zeros(t, 1000)
	huge := make([]uint32, 2*5000)
	for i := range huge {
		huge[i] = uint32(i%2)*(256<<10-1) + 1
	}
	for name, data := range map[string][]byte{
		"nothing":                nil,
		"one gigabyte":           append(slices.Clone(bomb), table(uint32(len(bomb)), 256<<10)...),
		"declared as such":       append(slices.Clone(bomb), table(uint32(len(bomb)), 1<<30)...),
		"no table":               bomb,
		"more than its table":    append(slices.Clone(small), table(uint32(len(small)), 999)...),
		"less than its table":    append(slices.Clone(small), table(uint32(len(small)), 1001)...),
		"frames beyond the file": append(slices.Clone(small), table(uint32(len(small))+1, 1000)...),
		"frames that leave some": append(slices.Clone(small), table(uint32(len(small))-1, 1000)...),
		"short frame in between": append(append(slices.Clone(small), small...), table(uint32(len(small)), 1000, uint32(len(small)), 1000)...),
		"frame of nothing":       append(slices.Clone(small), table(0, 0, uint32(len(small)), 1000)...),
		"two frames in one":      append(append(slices.Clone(small), small...), table(uint32(2*len(small)), 1000)...),
		"far too many":           append(make([]byte, 5000), table(huge...)...),
		"cut off":                append(slices.Clone(small), table(uint32(len(small)), 1000)[:20]...),
		"no zstd":                append(make([]byte, 50), table(50, 1000)...),
		"count beyond the file":  append(append(binary.LittleEndian.AppendUint32(nil, math.MaxUint32), 0), 0xB1, 0xEA, 0x92, 0x8F),
	} {
		l := local(t.TempDir(), nil)
		of := packedAs(t, l, data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := read(of)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, records.ErrDamaged) || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s: %d MiB of memory", name, used>>20)
		}
		if _, err := of.Transcript().Append(); !errors.Is(err, records.ErrDamaged) {
			t.Errorf("%s: written to: %v", name, err)
		}
		if kept, err := os.ReadDir(string(l.Home().Of(packed))); err != nil || len(kept) != 1 {
			t.Errorf("%s: left are %v, %v", name, kept, err)
		}
	}
}

// TestCompressedLink: what is no file is not read.
func TestCompressedLink(t *testing.T) {
	t.Parallel()
	l := local(t.TempDir(), nil)
	of := packedAs(t, l, append(zeros(t, 10), table(uint32(len(zeros(t, 10))), 10)...))
	if got := readAll(t, of); len(got) != 10 {
		t.Fatalf("%d bytes", len(got))
	}
	path := l.Home().Of(packed).Compressed()
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(path+".real", path) },
		"pipe": func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := errors.Join(os.Rename(path, path+".real"), put()); err != nil {
			t.Fatal(err)
		}
		if _, err := read(of); err == nil {
			t.Errorf("a %s is read", name)
		}
		if err := os.Rename(path+".real", path); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzCompressed: whatever bytes are there, reading ends with content of the size that was
// said, or with an error.
func FuzzCompressed(f *testing.F) {
	small := zeros(f, 1000)
	f.Add(append(slices.Clone(small), table(uint32(len(small)), 1000)...))
	f.Add(append(zeros(f, 300_000), table(uint32(len(zeros(f, 300_000))), 256<<10)...))
	f.Add(table())
	f.Fuzz(func(t *testing.T, data []byte) {
		of := packedAs(t, local(t.TempDir(), nil), data)
		got, err := read(of)
		stamp, stampErr := of.Transcript().Stamp()
		if err == nil && (stampErr != nil || stamp.Size != int64(len(got))) {
			t.Errorf("%d bytes, its stamp says %d, %v", len(got), stamp.Size, stampErr)
		}
		if err != nil && !errors.Is(err, records.ErrDamaged) {
			t.Error(err)
		}
	})
}

// TestCopy reads a copy wherever it lies, by what is in it, also through a link.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plain.zst", "{}\n")
	write("short", "{")
	write("other", "\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00{\x99\xe9\xd8\x51") // of the program zstd
	of := written(t, local(t.TempDir(), nil), lines(700_000))
	if _, _, err := of.Whole().Compress(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(of.Transcript().Where(), at("link.jsonl")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain.zst": "{}\n", "short": "{", "link.jsonl": string(lines(700_000))} {
		r, err := records.Copy(at(name)).Open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		size, err := r.Size()
		got, readErr := io.ReadAll(io.NewSectionReader(r, 0, size))
		if err := errors.Join(err, readErr, r.Close()); err != nil || string(got) != want {
			t.Errorf("%s: %.40q, %v", name, got, err)
		}
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"other": records.ErrDamaged, "missing": fs.ErrNotExist, ".": nil, "pipe": nil} {
		if _, err := records.Copy(at(name)).Open(); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
