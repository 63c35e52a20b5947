package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWhatIsRefused(t *testing.T) {
	cases := map[string]struct{ document, want string }{
		"no JSON":             {`{"a":`, "not JSON"},
		"two documents":       {`{} {}`, "not JSON"},
		"NaN":                 {`{"a":NaN}`, "not JSON"},
		"Infinity":            {`[-Infinity]`, "not JSON"},
		"bare hexadecimal":    {`[0x10]`, "not JSON"},
		"not UTF-8":           {"{\"a\":\"\xff\"}", "not UTF-8"},
		"half a surrogate":    {`{"a":"\ud800"}`, "U+FFFD"},
		"one key twice":       {`{"a":1,"b":2,"a":3}`, `"a" is there twice`},
		"once escaped":        {`{"a":1,"\u0061":3}`, `"a" is there twice`},
		"in another case":     {`{"clusterID":"a","clusterid":"b"}`, `"clusterid" is there twice`},
		"the Kelvin sign":     {"{\"\u212a\":1}", "not plain ASCII"},
		"the long s":          {"{\"cla\u017fs\":1}", "not plain ASCII"},
		"a Cyrillic a":        {"{\"cl\u0430ss\":1}", "not plain ASCII"},
		"labels twice":        {`{"labels":{"a":"1","a":"2"}}`, `"a" is there twice`},
		"deep lists":          {strings.Repeat("[", 33) + strings.Repeat("]", 33), "deeper than 32"},
		"deep objects":        {strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "deeper than 32"},
		"a number of a book":  {`[` + strings.Repeat("9", 1<<16) + `]`, "a number of 65536"},
		"a string of a book":  {`["` + strings.Repeat("x", 1<<16) + `"]`, "a string of 65536"},
		"a bell":              {`["\u0007"]`, "U+0007"},
		"an escape sequence":  {`["\u001b[2J"]`, "U+001B"},
		"right to left":       {"[\"\u202egnp.exe\"]", "U+202E"},
		"zero width":          {"[\"h100\u200b\"]", "U+200B"},
		"a byte order mark":   {"[\"\ufeffa\"]", "U+FEFF"},
		"private use":         {"[\"\ue000\"]", "U+E000"},
		"no character at all": {"[\"\ufffe\"]", "U+FFFE"},
		"a line separator":    {"[\"a\u2028b\"]", "U+2028"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var into any
			err := Decode([]byte(tc.document), &into)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 300 || into != nil {
				t.Errorf("%v (%v); want %q", err, into, tc.want)
			}
		})
	}
}

func TestWhatIsLetThrough(t *testing.T) {
	for _, document := range []string{
		`null`, `{}`, ` { "a" : { "a" : [ { "a" : -1.5e3 } ] } } `, `[{"a":1},{"a":1}]`,
		`{"labels":{"App":"x","app":"y"},"nodeSelector":{"A":"","a":""}}`, `{"city":"Zürich 東京 कोलकाता"}`, `{"a":"x\n\ty \"q\" \\"}`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32),
	} {
		var got, want any
		if err := Decode([]byte(document), &got); err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if err := json.Unmarshal([]byte(document), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s was read as %v, want %v (%v)", document, got, want, err)
		}
	}
}

// TestWhatWeWriteIsRead: no document that Go's encoder makes of plain values is
// refused.
func TestWhatWeWriteIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.MapOf(rapid.StringMatching(`[a-z]{1,8}`), rapid.SliceOf(rapid.StringMatching(`[ -~äß東\n]{0,20}`))).Draw(t, "value")
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		if err := Decode(data, &got); err != nil || !reflect.DeepEqual(got, value) {
			t.Fatalf("%s: %v", data, err)
		}
	})
}

// FuzzCheck: nothing panics, and what is let through has no key twice, by the
// count of another reader.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,"x",null,true]}}`, `{"a":1,"A":2}`, `["\u0061\ud800"]`, `{"\\":"\""}`, "[\"\u202e\"]", `{"a" :1}`, `[[[[]]]]`, `-1e5`, `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data)
		if err != nil {
			if !errors.Is(err, ErrRefused) || len(err.Error()) > 400 {
				t.Fatalf("%v", err)
			}
			return
		}
		decoder, depth, keys := json.NewDecoder(strings.NewReader(string(data))), 0, 0
		type object struct {
			seen map[string]bool
			key  bool
		}
		var open []*object
		for {
			token, err := decoder.Token()
			if err != nil {
				break
			}
			if n := len(open); n > 0 && open[n-1] != nil && open[n-1].key {
				if name, ok := token.(string); ok {
					if open[n-1].seen[name] {
						t.Fatalf("%q stands twice in %s", name, data)
					}
					open[n-1].seen[name], open[n-1].key = true, false
					keys++
					continue
				}
			}
			switch token {
			case json.Delim('{'):
				open = append(open, &object{seen: map[string]bool{}, key: true})
				depth = max(depth, len(open))
				continue
			case json.Delim('['):
				open = append(open, nil)
				depth = max(depth, len(open))
				continue
			case json.Delim('}'), json.Delim(']'):
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 && open[n-1] != nil {
				open[n-1].key = true
			}
		}
		if depth > MaxDepth {
			t.Fatalf("%d levels were let through", depth)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	one := `{"metadata":{"name":"h100-pool"},"spec":{"capacity":{"cpu":"256","memory":"2Ti","gpu":16},"used":{"gpu":"2"},"labels":{"compliance":"gdpr"},"gpu":{"model":"nvidia-h100","memory":"80Gi"}}}`
	data := []byte(`{"flavors":[` + strings.Repeat(one+",", 9) + one + `]}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Check(data); err != nil {
			b.Fatal(err)
		}
	}
}

// A value of another kind is named by its field and what the field wants, not by Go's types.
func TestDecode_NamesFieldAndWhatItWants(t *testing.T) {
	type inner struct {
		Size uint8 `json:"size"`
	}
	var into struct {
		Days   int               `json:"days"`
		Growth string            `json:"growth"`
		On     bool              `json:"on"`
		Names  []string          `json:"names"`
		Files  map[string]string `json:"files"`
		Inner  inner             `json:"inner"`
	}
	for doc, want := range map[string]string{
		`{"days": "x"}`:            "days: it is a string; write a whole number, without quotes",
		`{"days": 1.5}`:            "days: it is a number; write a whole number",
		`{"growth": 2}`:            "growth: it is a number; write a string, in quotes",
		`{"on": "yes"}`:            "on: it is a string; write true or false, without quotes",
		`{"names": "a"}`:           "names: it is a string; write a list",
		`{"files": []}`:            "files: it is a list; write an object",
		`{"inner": {"size": -1}}`:  "inner.size: it is a number; write a whole number from 0",
		`[1]`:                      "the document: it is a list; write an object",
		`{"days": 3, "later": {}}`: "",
	} {
		err := Decode([]byte(doc), &into)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}
