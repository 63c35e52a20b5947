package top

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// fill sets every text of a value that a daemon could have answered, and makes lists of two.
func fill(v reflect.Value, text string, n *int) {
	switch {
	case v.Type() == reflect.TypeFor[v1alpha1.Time]():
		v.Set(reflect.ValueOf(v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))))
		return
	case !v.CanSet() || v.Type() == reflect.TypeFor[v1alpha1.Decimal]():
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		*n++
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, n)
		}
	}
}

// TestPrint_Hostile: whatever a daemon answers, or files and agents say, is text on the
// terminal: no escape, no control, no turned or unseen character, and on a terminal no line
// is wider than it.
func TestPrint_Hostile(t *testing.T) {
	now := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	views := map[string]tables.View{
		"narrow": {Terminal: true, Width: 80, Now: func() time.Time { return now }},
		"wide":   {Terminal: true, Width: 200, Color: true, Now: func() time.Time { return now }},
		"pipe":   {Now: func() time.Time { return now }},
	}
	for _, text := range hostile.Texts() {
		p, texts := &Picture{}, 0
		fill(reflect.ValueOf(p).Elem(), text, &texts)
		if texts < 40 {
			t.Fatalf("only %d texts are set", texts)
		}
		for name, v := range views {
			var out strings.Builder
			if err := p.Print(&out, v); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) > 30 {
				t.Errorf("%s: %.60q makes %d lines", name, text, len(lines))
			}
			for _, line := range lines {
				if v.Color {
					line = strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(line)
				}
				bad := strings.ContainsFunc(line, func(r rune) bool {
					return r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\t' && v.Terminal
				})
				if bad || !utf8.ValidString(line) {
					t.Errorf("%s: %.60q is written as %.200q", name, text, line)
				}
				spacing := strings.Map(func(r rune) rune {
					if unicode.Is(unicode.Mn, r) {
						return -1 // it stands on the one before
					}
					return r
				}, line)
				if n := utf8.RuneCountInString(spacing); v.Terminal && n > v.Width {
					t.Errorf("%s: %.60q makes a line of %d characters: %.100q", name, text, n, line)
				}
			}
		}
	}
}
