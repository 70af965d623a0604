package eval

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"unicode"
)

// standIn makes vectors without a model: each word, and each three letters of it, is
// hashed to a place. Of the synonyms it knows a share and takes their words for one. It
// stands in for an embedding model, and says nothing about any that there is: a real one
// knows more words and takes more things for alike.
type standIn struct{ known map[string]string }

const (
	standInModel      = "stand-in"
	standInDimensions = 512
)

func newStandIn(seed uint64, share float64) standIn {
	s := standIn{known: map[string]string{}}
	r := rand.New(rand.NewPCG(seed, 2))
	for _, words := range synonyms {
		if r.Float64() >= share {
			continue
		}
		for _, word := range words {
			s.known[word] = words[0]
		}
	}
	return s
}

// Embed is the [Options.Embed] of a set.
func (s standIn) Embed(_ context.Context, texts []string) (Vectors, error) {
	v := Vectors{Model: standInModel, Vectors: make([][]float32, len(texts))}
	for i, text := range texts {
		v.Vectors[i] = s.vector(text)
		v.Tokens += int64(len(text) / 4)
	}
	return v, nil
}

// common are words that say nothing of what a text is about.
const common = " we decided that the of takes its from because demands it for each must respect otherwise breaks turned out and share one which is on account " +
	"until mended set to by hand ignored what did say about write part where meets mind change how handles with regard "

func (s standIn) vector(text string) []float32 {
	v := make([]float32, standInDimensions)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		weight := float32(1)
		if strings.Contains(common, " "+word+" ") {
			weight = 0.1
		}
		if one, is := s.known[word]; is {
			word = one
		}
		put(v, word, weight)
		for i := 0; i+3 <= len(word); i++ {
			put(v, "#"+word[i:i+3], weight*0.3)
		}
	}
	return v
}

func put(v []float32, what string, weight float32) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))
	sum := h.Sum64()
	if sum>>63 == 1 {
		weight = -weight
	}
	v[sum%uint64(len(v))] += weight
}
