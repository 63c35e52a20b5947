package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

// hostile has what a terminal acts on, or shows elsewhere than it is; raw is what may not
// come out of a command.
const hostile = "\x1b]8;;http://evil.example/\x1b\\click\x1b[2J\u202eabc\u2066\u009b31m\r\nFORGED\a"

var raw = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f]|[\u0080-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]|\nFORGED")

var escapes = regexp.MustCompile("[\u0080-\uffff]")

// spoiled are all ways to add hostile to one text of a value, the keys of maps too.
func spoiled(v any) (out []any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, bad := range spoiled(v[key]) {
				m := maps.Clone(v)
				m[key] = bad
				out = append(out, m)
			}
			m := maps.Clone(v)
			delete(m, key)
			m[key+hostile] = v[key]
			out = append(out, m)
		}
	case []any:
		for i := range v {
			for _, bad := range spoiled(v[i]) {
				l := slices.Clone(v)
				l[i] = bad
				out = append(out, l)
			}
		}
	case string:
		return []any{v + hostile, hostile}
	}
	return out
}

// Whatever texts and files people, tenants among them, write into a fleet repo: no command
// hands a terminal more of it than signs that can be seen.
func TestHostileTextsReachNoTerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	run := func(args ...string) string {
		var out bytes.Buffer
		cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out, Terminal: true, Width: 100, Now: func() time.Time { return noon }}, args)
		return out.String()
	}
	run("init", dir)
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	check := func(what string, commands ...string) {
		t.Helper()
		for _, command := range commands {
			n++
			got := run(append(strings.Fields(command), "-C", dir)...)
			if at := raw.FindStringIndex(got); at != nil {
				t.Errorf("%s: %s shows %q", what, command, got[max(0, at[0]-80):min(len(got), at[1]+80)])
			}
		}
	}
	all := []string{"validate", "plan", "plan -o markdown", "explain vision/notebook", "status", "get intents -o wide", "get clusters -o wide", "get tenants -o wide", "get flavors -o wide", "how vision/notebook"}
	for _, name := range []string{"fleet.yaml", "intents/vision/notebook.yaml", "tenants/vision.yaml", "clusters/paris.yaml", "flavors/paris/l4.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		list := spoiled(v)
		if testing.Short() {
			list = list[:min(len(list), 4)]
		}
		for i, bad := range list {
			out, err := json.Marshal(bad) // YAML too, once all is written as escapes
			if err != nil {
				t.Fatal(err)
			}
			write(name, escapes.ReplaceAllFunc(out, func(b []byte) []byte { return fmt.Appendf(nil, `\u%04x`, []rune(string(b))[0]) }))
			// Each text is seen by those that say what is wrong, and by one of the others in turn.
			check(name, all[0], all[1], all[2+i%(len(all)-2)])
		}
		write(name, text)
	}
	odd := strings.ReplaceAll(hostile, "/", ":")
	for _, name := range []string{"intents/vision/" + odd + ".yaml", "tenants/" + odd + ".yaml", "clusters/" + odd + ".yaml", "intents/" + odd + "/a.yaml", "intents/vision/" + odd + "/kustomization.yaml"} {
		write(name, []byte("resources: [x\n"))
	}
	check("names of files", all...)
	if n < 60 {
		t.Errorf("%d commands are too few to say anything", n)
	}
}
