package fields

import "testing"

func TestCovered(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		live, want any
		covers     bool
	}{
		"equal":           {m{"a": "b"}, m{"a": "b"}, true},
		"more":            {m{"a": "b", "c": "d"}, m{"a": "b"}, true},
		"less":            {m{}, m{"a": "b"}, false},
		"other":           {m{"a": "c"}, m{"a": "b"}, false},
		"nested":          {m{"a": m{"b": int64(1), "c": "x"}}, m{"a": m{"b": int64(1)}}, true},
		"list":            {m{"a": []any{m{"k": "v", "default": true}}}, m{"a": []any{m{"k": "v"}}}, true},
		"longer list":     {m{"a": []any{"x", "y"}}, m{"a": []any{"x"}}, false},
		"other order":     {m{"a": []any{"y", "x"}}, m{"a": []any{"x", "y"}}, false},
		"empty dropped":   {m{}, m{"a": []any{}, "b": m{}}, true},
		"wrong type":      {m{"a": "x"}, m{"a": m{"b": "c"}}, false},
		"list for string": {m{"a": "x"}, m{"a": []any{"x"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Covered(tc.live, tc.want); got != tc.covers {
				t.Errorf("got %v, want %v", got, tc.covers)
			}
		})
	}
}
