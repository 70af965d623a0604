package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// formOfDecided names the form of what is handed over: the names and types of all
// fields. A program of another version may have others, whose values would then be
// missing, and no such value has a default but in the shipped files.
var formOfDecided = sync.OnceValue(func() string {
	var b strings.Builder
	for _, t := range []reflect.Type{
		reflect.TypeFor[decided](), reflect.TypeFor[Hooks](), reflect.TypeFor[ErrorRules](), reflect.TypeFor[Tools](), reflect.TypeFor[Provider](), reflect.TypeFor[Memory](),
	} {
		describe(&b, t, map[reflect.Type]bool{})
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
})

// describe writes down a type and those of its exported fields.
func describe(b *strings.Builder, t reflect.Type, seen map[reflect.Type]bool) {
	_, _ = fmt.Fprintf(b, "%s %s\n", t, t.Kind()) // a builder takes everything
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		describe(b, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				_, _ = fmt.Fprintf(b, "%s %s ", field.Name, field.Tag)
				describe(b, field.Type, seen)
			}
		}
	default:
	}
}
