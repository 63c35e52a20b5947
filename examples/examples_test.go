// Package examples holds complete fleets to learn from, and the test that what
// their READMEs show is what the commands print. It has no code of its own.
package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/internal/howto"
)

var update = flag.Bool("update", false, "rewrite the output in the READMEs")

// dated is a date in what a command prints.
var dated = regexp.MustCompile(`\b20\d\d-\d\d-\d\d`)

// noon is the clock of every example: a Friday in Rome.
var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)

// shown is a fenced block that begins with a command.
var shown = regexp.MustCompile("(?ms)^```\n\\$ fleetbroker ([^\n]*)\n(.*?)^```$")

func TestExamples(t *testing.T) {
	fleets, err := filepath.Glob("*/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(fleets) != 17 {
		t.Fatalf("there are %d fleets, want 17", len(fleets))
	}
	for _, page := range []string{"README.md", "../README.md"} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(strings.ToLower(string(text)), "seventeen complete fleets") {
			t.Errorf("%s does not say how many there are: %v", page, err)
		}
	}
	for _, f := range fleets {
		dir := filepath.Dir(f)
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			if code, out := fleetbroker(t, "validate"); code != 0 || out != "" {
				t.Errorf("validate ends with %d: %s", code, out)
			}
			compare(t)
			workloads(t)
		})
	}
}

// workloads compares each workload beside an intent with the manifest that is made of what
// the intent gets, or would get in its window.
func workloads(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("workloads/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		return
	}
	if intents, _ := filepath.Glob("intents/*/*.yaml"); len(intents) != len(files) {
		t.Errorf("there are %d workloads for %d intents", len(files), len(intents))
	}
	held := planned(t)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var is struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(b, &is); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		contracts := held[strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "workloads/"), ".yaml")]
		if len(contracts) == 0 {
			t.Errorf("%s: its intent gets nothing", file)
			continue
		}
		want := howto.Manifest(is.Kind, contracts)
		if *update {
			err = os.WriteFile(file, []byte(want), 0o644) //nolint:gosec // for everybody to read
		} else if string(b) != want {
			err = fmt.Errorf("it is\n%s\nand the intent gets\n%s", b, want)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// planned are the contracts that a plan makes, by intent: now, and where a window
// keeps an intent waiting, in its window.
func planned(t *testing.T) map[string][]*v1alpha1.Contract {
	t.Helper()
	out := map[string][]*v1alpha1.Contract{}
	for _, at := range []string{"2026-11-20T11:00:00Z", "2026-11-20T23:00:00Z"} {
		code, text := fleetbroker(t, "plan", "-o", "json", "--at", at)
		if code == 1 {
			t.Fatalf("plan: %s", text)
		}
		var plan struct {
			Intents []struct {
				Tenant, Name string
				Contracts    []struct {
					Name, Consumer string
					Resources      v1alpha1.Resources
					Nodes          []v1alpha1.ContractNode
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			t.Fatal(err)
		}
		for _, it := range plan.Intents {
			if len(out[it.Tenant+"/"+it.Name]) > 0 {
				continue
			}
			for _, has := range it.Contracts {
				c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: has.Name, Namespace: it.Tenant}}
				c.Spec.Intent.Name, c.Spec.Consumer, c.Spec.Slice, c.Spec.Resources = it.Name, has.Consumer, has.Name, has.Resources
				c.Spec.Nodes = has.Nodes
				c.Spec.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: it.Tenant}}}
				out[it.Tenant+"/"+it.Name] = append(out[it.Tenant+"/"+it.Name], c)
			}
		}
	}
	return out
}

// compare runs every command that the README shows.
func compare(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	now := shown.ReplaceAllFunc(page, func(block []byte) []byte {
		commands++
		m := shown.FindSubmatch(block)
		code, out := fleetbroker(t, strings.Fields(string(m[1]))...)
		if code == 1 {
			t.Errorf("fleetbroker %s fails: %s", m[1], out)
		}
		if dated.MatchString(out) && !strings.Contains(string(m[1]), "--at ") {
			t.Errorf("fleetbroker %s prints dates, which are others for who runs it later: show it with --at %s", m[1], noon.Format(time.RFC3339))
		}
		if strings.Contains(out, "not supported") {
			t.Errorf("an example uses what is not supported yet:\n%s", out)
		}
		return []byte("```\n$ fleetbroker " + string(m[1]) + "\n" + out + "```")
	})
	if commands == 0 {
		t.Error("the README shows no command")
	}
	if bytes.Equal(now, page) {
		return
	}
	if !*update {
		t.Fatalf("the README shows something else (run with -update to accept)\n--- now\n%s", now)
	}
	if err := os.WriteFile("README.md", now, 0o644); err != nil { //nolint:gosec // a README is for everybody
		t.Fatal(err)
	}
}

// fleetbroker runs a command as at a terminal without colours.
func fleetbroker(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &b, Err: &b, Now: func() time.Time { return noon }}
	code = cli.Run(context.Background(), s, args)
	return code, b.String()
}
