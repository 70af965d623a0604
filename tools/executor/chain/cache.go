package chain

import "sync"

// maxCached is how many values a [cache] holds. It is emptied when it is full: what
// is made again costs microseconds.
const maxCached = 1024

// cache keeps what was made of contents, by their hash, so that nothing in it is ever
// stale. It is safe for concurrent use.
type cache[T any] struct {
	mu   sync.Mutex
	made map[string]T
}

func (c *cache[T]) get(key string, make func() (T, error)) (T, error) {
	c.mu.Lock()
	value, known := c.made[key]
	c.mu.Unlock()
	if known {
		return value, nil
	}
	value, err := make()
	if err != nil {
		return value, err
	}
	c.put(key, value)
	return value, nil
}

func (c *cache[T]) put(key string, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= maxCached {
		c.made = map[string]T{}
	}
	c.made[key] = value
}
