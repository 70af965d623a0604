package config

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// onceCache keeps the first answer to each question.
type onceCache[T any] struct {
	mu      sync.Mutex
	answers map[string]func() T
}

// get is the answer to a question, which is asked at most once.
func (m *onceCache[T]) get(question string, ask func() T) T {
	m.mu.Lock()
	answer, known := m.answers[question]
	if !known {
		answer = sync.OnceValue(ask)
		if m.answers == nil {
			m.answers = map[string]func() T{}
		}
		m.answers[question] = answer
	}
	m.mu.Unlock()
	return answer()
}

// latestCache keeps the last answer to each question for as long as what it was made of
// is the same.
type latestCache[T any] struct {
	mu      sync.Mutex
	answers map[string]madeOf[T]
}

type madeOf[T any] struct {
	source string
	value  T
}

func (l *latestCache[T]) get(question, source string, make func() T) T {
	l.mu.Lock()
	last, known := l.answers[question]
	l.mu.Unlock()
	if known && last.source == source {
		return last.value
	}
	last = madeOf[T]{source, make()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers == nil {
		l.answers = map[string]madeOf[T]{}
	}
	l.answers[question] = last
	return last.value
}

// once keeps what reading some settings gave.
func once[T any](read func() (T, []string, error)) func() (T, []string, error) {
	first := sync.OnceValue(func() answer[T] { return answerOf(read()) })
	return func() (T, []string, error) {
		a := first()
		return a.value, a.warnings, a.err
	}
}

// compiled keeps what was made of the files of schema/.
type compiled[T any] struct {
	compile func(name string) (T, error)
	made    onceCache[made[T]]
}

type made[T any] struct {
	value T
	err   error
}

func (c *compiled[T]) get(name string) (T, error) {
	m := c.made.get(name, func() made[T] {
		value, err := c.compile(name)
		return made[T]{value, err}
	})
	return m.value, m.err
}

// maxNames is how many names of a folder are looked through: far more than there are
// files of settings.
const maxNames = 200

// cachedPlace is a place each of whose files and folders is read once. Of a folder it
// finds out first which names there are, as most files of settings are missing: to
// look for one opens all folders above it.
type cachedPlace struct {
	place
	seen  *Seen
	files onceCache[content]
	lists onceCache[listed]
	names onceCache[listed] // of folders, see absent
}

type content struct {
	data []byte
	path string
	err  error
}

type listed struct {
	names []string
	err   error
}

func (l *Loader) remembered(from place) place { return &cachedPlace{place: from, seen: l.Seen} }

func (r *cachedPlace) read(rel string) ([]byte, string, error) {
	c := r.files.get(rel, func() content {
		c := content{err: fs.ErrNotExist}
		if from, absent := r.absent(rel); absent {
			c.path = from.pathOf(rel)
		} else {
			c.data, c.path, c.err = r.place.read(rel)
		}
		r.seen.file(c.path)
		return c
	})
	return c.data, c.path, c.err
}

// absent reports whether a folder of the file system is known to have no such file or
// folder. Where its names cannot be read the file is looked for itself.
func (r *cachedPlace) absent(rel string) (from folder, absent bool) {
	from, ok := r.place.(folder)
	if !ok || rel == "." {
		return from, false
	}
	dir := path.Dir(rel)
	if _, absent := r.absent(dir); absent {
		return from, true
	}
	l := r.names.get(dir, func() listed {
		names, err := from.names(dir, maxNames+1)
		return listed{names, err}
	})
	// A file system that does not tell cases apart finds it under another name.
	named := func(name string) bool { return strings.EqualFold(name, path.Base(rel)) }
	return from, l.err == nil && len(l.names) <= maxNames && !slices.ContainsFunc(l.names, named)
}

func (r *cachedPlace) list(rel string) ([]string, error) {
	l := r.lists.get(rel, func() listed {
		if _, absent := r.absent(rel); absent {
			return listed{}
		}
		names, err := r.place.list(rel)
		return listed{names, err}
	})
	return l.names, l.err
}
