package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestFormOfDecided: a field more, or of another type, is another form.
func TestFormOfDecided(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, form := range []reflect.Type{
		reflect.TypeFor[decided](), reflect.TypeFor[Hooks](), reflect.TypeFor[ErrorRules](), reflect.TypeFor[Tools](), reflect.TypeFor[Provider](), reflect.TypeFor[Memory](),
	} {
		describe(&b, form, map[reflect.Type]bool{})
	}
	sum := sha256.Sum256([]byte(b.String()))
	if form := hex.EncodeToString(sum[:8]); form != formOfDecided {
		t.Errorf("formOfDecided must be %q", form)
	}
}

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
