package resource

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Scheme begins the URIs of resources.
const Scheme = "rye://"

// Part is what a URI shows.
type Part string

// The parts: how all threads stand, what there is of one, and an item.
const (
	Board      Part = "threads"
	Transcript Part = "transcript"
	Result     Part = "result"
	Cost       Part = "cost"
	Chain      Part = "chain"
	Item       Part = "items"
)

// threadParts are what there is of one thread.
func threadParts() []Part { return []Part{Transcript, Result, Cost, Chain} }

// Bounds of max_bytes, those of rye_fetch and read_transcript.
const (
	leastBytes = 500
	mostBytes  = 1_000_000
)

// Address is a URI that was read.
type Address struct {
	Part   Part
	Thread thread.ID // of a part of a thread
	Kind   item.Kind // of an item
	ItemID string

	Cursor  string // of a transcript or a result: where to read on
	Outputs bool   // of a result: the declared outputs
	Offset  int    // of an item: where to read on
	Bytes   int    // most bytes of content; 0: as many as an answer has
	Project string // absolute path; empty: that of the client
}

// Parameters that a URI may have behind its question mark.
const (
	keyCursor  = "cursor"
	keyPart    = "part"
	keyOffset  = "offset"
	keyBytes   = "max_bytes"
	keyProject = "project_path"
)

// parameters are those that the URI of a part may have.
func (p Part) parameters() []string {
	switch p {
	case Transcript:
		return []string{keyCursor, keyBytes, keyProject}
	case Result:
		return []string{keyCursor, keyPart, keyBytes, keyProject}
	case Item:
		return []string{keyOffset, keyBytes, keyProject}
	default:
		return []string{keyBytes, keyProject}
	}
}

// Parse reads a URI. Ids have "/" in them; every other character may be
// percent-encoded, and is decoded once. The error is a *tool.Fault that says what is
// valid.
func Parse(uri string) (Address, error) {
	if len(uri) < len(Scheme) || !strings.EqualFold(uri[:len(Scheme)], Scheme) {
		return Address{}, unknown(uri, "")
	}
	path, query, _ := strings.Cut(uri[len(Scheme):], "?")
	if strings.Contains(uri, "#") {
		return Address{}, unknown(uri, "it has a fragment; a # in an id is written %23")
	}
	a, err := parsePath(path)
	if err != nil {
		return Address{}, unknown(uri, err.Error())
	}
	if err := a.parseQuery(query); err != nil {
		return Address{}, tool.Faultf(tool.CodeBadArguments, "%s: %w", shown(uri), err).
			WithHint("the URI of a %s can have %s", a.Part, strings.Join(a.Part.parameters(), ", "))
	}
	return a, nil
}

func parsePath(path string) (Address, error) {
	root, rest, below := strings.Cut(path, "/")
	switch {
	case root == string(Board) && !below:
		return Address{Part: Board}, nil
	case root == string(Board):
		return parseThread(rest)
	case root == string(Item):
		return parseItem(rest)
	}
	return Address{}, errors.New("it begins with neither threads nor items")
}

// parseThread reads ID/PART. The part is the last segment as it is written, so that
// no encoded slash in an id makes one.
func parseThread(path string) (Address, error) {
	at := strings.LastIndexByte(path, '/')
	part := Part(path[at+1:])
	if at < 0 || !slices.Contains(threadParts(), part) {
		return Address{}, fmt.Errorf("behind the id of a thread comes %s, %s, %s or %s", Transcript, Result, Cost, Chain)
	}
	id, err := decode(path[:at])
	if err != nil {
		return Address{}, err
	}
	a := Address{Part: part}
	a.Thread, err = thread.ParseID(id)
	return a, err
}

// parseItem reads KIND/ID.
func parseItem(path string) (Address, error) {
	kind, rest, _ := strings.Cut(path, "/")
	a := Address{Part: Item}
	var err error
	if a.Kind, err = item.ParseKind(kind); err != nil {
		return Address{}, err
	}
	if a.ItemID, err = decode(rest); err != nil {
		return Address{}, err
	}
	return a, item.CheckID(a.ItemID)
}

func decode(escaped string) (string, error) {
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return "", fmt.Errorf("a %% in an id is written %%25: %w", err)
	}
	return text, nil
}

func (a *Address) parseQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("the parameters cannot be read: %w", err)
	}
	for key, given := range values {
		if !slices.Contains(a.Part.parameters(), key) {
			return fmt.Errorf("there is no parameter %.40q", key)
		}
		if len(given) != 1 {
			return fmt.Errorf("%s is given %d times", key, len(given))
		}
		if err := a.set(key, given[0]); err != nil {
			return err
		}
	}
	return nil
}

func (a *Address) set(key, value string) (err error) {
	switch key {
	case keyCursor:
		a.Cursor = value
	case keyProject:
		a.Project = value
	case keyPart:
		a.Outputs = value == tool.PartOutputs
		if !a.Outputs && value != tool.PartResult {
			return fmt.Errorf("%s is %s or %s", key, tool.PartResult, tool.PartOutputs)
		}
	case keyOffset:
		if a.Offset, err = strconv.Atoi(value); err != nil || a.Offset < 0 {
			return fmt.Errorf("%s is a whole number from 0", key)
		}
	case keyBytes:
		if a.Bytes, err = strconv.Atoi(value); err != nil || a.Bytes < leastBytes || a.Bytes > mostBytes {
			return fmt.Errorf("%s is a whole number from %d to %d", key, leastBytes, mostBytes)
		}
	}
	return nil
}

// String writes the URI that [Parse] reads.
func (a Address) String() string {
	var b strings.Builder
	b.WriteString(Scheme)
	switch a.Part {
	case Board:
		b.WriteString(string(Board))
	case Item:
		fmt.Fprintf(&b, "%s/%s/%s", Item, a.Kind, encode(a.ItemID))
	default:
		fmt.Fprintf(&b, "%s/%s/%s", Board, encode(string(a.Thread)), a.Part)
	}
	values := url.Values{}
	put := func(key, value string) {
		if value != "" {
			values.Set(key, value)
		}
	}
	put(keyCursor, a.Cursor)
	put(keyProject, a.Project)
	if a.Outputs {
		put(keyPart, tool.PartOutputs)
	}
	if a.Offset > 0 {
		put(keyOffset, strconv.Itoa(a.Offset))
	}
	if a.Bytes > 0 {
		put(keyBytes, strconv.Itoa(a.Bytes))
	}
	if len(values) > 0 {
		b.WriteString("?" + values.Encode())
	}
	return b.String()
}

// encode writes an id into a URI; its slashes stay.
func encode(id string) string {
	segments := strings.Split(id, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// unknown says that a URI names no resource, and what is valid.
func unknown(uri, why string) *tool.Fault {
	f := tool.Faultf(tool.CodeNotFound, "there is no resource %s", shown(uri))
	if why != "" {
		f.Message += ": " + why
	}
	valid := make([]string, 0, len(templates()))
	for _, t := range templates() {
		valid = append(valid, t.uri)
	}
	return f.WithHint("valid are %s, %s", Scheme+string(Board), strings.Join(valid, ", "))
}

// shown is a URI as messages repeat it: only what has the form of ids.
func shown(uri string) string {
	if item.IsPlain(uri) {
		return uri
	}
	return fmt.Sprintf("(a URI of %d bytes)", len(uri))
}
