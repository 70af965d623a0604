package config

import "sync"

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

// cachedPlace is a place each of whose files and folders is read once.
type cachedPlace struct {
	place
	seen  *Seen
	files onceCache[content]
	lists onceCache[listed]
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
		data, path, err := r.place.read(rel)
		r.seen.file(path)
		return content{data, path, err}
	})
	return c.data, c.path, c.err
}

func (r *cachedPlace) list(rel string) ([]string, error) {
	l := r.lists.get(rel, func() listed {
		names, err := r.place.list(rel)
		return listed{names, err}
	})
	return l.names, l.err
}
