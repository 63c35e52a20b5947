package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"

	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// lived is a bare repository of a fleet in which a daemon has worked for a while, as a
// URL, and the name of one of its contracts.
func lived(t *testing.T) (url, contract string) {
	t.Helper()
	s := story.Lived(t, "ledger", nil, "")
	dir := filepath.Join(t.TempDir(), "origin.git")
	repo, err := git.PlainInit(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, repo)
	return "file://" + dir, s.Contract("train").Metadata.Name
}

// output runs a command that ends well, in a pipe.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: func() time.Time { return noon.Add(24 * time.Hour) }}
	if code := cli.Run(context.Background(), s, args); code != 0 {
		t.Fatalf("%q ends with %d: %s", args, code, errs.String())
	}
	return out.String()
}

// leaves are the scalars of a JSON value.
func leaves(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			leaves(e, into)
		}
	case []any:
		for _, e := range v {
			leaves(e, into)
		}
	case nil:
	default:
		into[fmt.Sprint(v)] = true
	}
}

// What a list shows in its widest form, JSON has: every cell is made of its values.
func TestJSONHasWhatListsShow(t *testing.T) {
	url, _ := lived(t)
	lists := map[string][]string{"cost": {"cost"}, "cost by intent": {"cost", "--by", "intent"}, "audit log": {"audit", "log"}}
	for _, kind := range []string{"intents", "contracts", "flavors", "clusters", "tenants", "peerings"} {
		lists[kind] = []string{"get", kind}
	}
	for name, command := range lists {
		command = append(command, "-C", url)
		rows := strings.Split(strings.TrimRight(output(t, append(command, "-o", "wide")...), "\n"), "\n")
		var objects []map[string]any
		text := output(t, append(command, "-o", "json")...)
		if err := json.Unmarshal([]byte(text), &objects); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if len(rows) < 2 || len(objects) != len(rows)-1 {
			t.Errorf("%s: %d rows and %d objects", name, len(rows)-1, len(objects))
			continue
		}
		header := strings.Split(rows[0], "\t")
		for i, row := range rows[1:] {
			known := map[string]bool{}
			leaves(objects[i], known)
			if columns, has := objects[i]["columns"].(map[string]any); command[0] == "get" && (!has || len(columns) != len(header)) {
				t.Errorf("%s: %d columns of %d are in JSON: %v", name, len(columns), len(header), columns)
			}
			for j, cell := range strings.Split(row, "\t") {
				if cell == "-" || cell == "unknown" || known[cell] {
					continue
				}
				for _, word := range strings.FieldsFunc(cell, func(r rune) bool { return r == ' ' || r == ',' || r == '/' }) {
					if !known[word] && !strings.Contains(text, word) {
						t.Errorf("%s: %s %q is not in JSON:\n%v", name, header[j], cell, objects[i])
						break
					}
				}
			}
		}
	}
}

// `status` shows the pods on each contract, as the daemon knows them from the consumers'
// agents, and how old that is; from a daemon that tells nothing, nothing.
func TestStatusShowsPods(t *testing.T) {
	url, contract := lived(t)
	answers := true
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/market":
		case r.URL.Path == "/pods" && answers:
			fmt.Fprintf(w, `[{"cluster": "rome", "at": "2026-11-21T10:57:00Z", "contracts": {%q: 3}}, {"cluster": "milan", "contracts": {%q: 9}}]`, contract, contract)
		default:
			http.NotFound(w, r)
		}
	}))
	defer daemon.Close()
	text := output(t, "status", "-C", url, "--market", daemon.URL)
	if !strings.Contains(text, "\nPods\nCONTRACT ") || !strings.Contains(text, " 3         3m\n") {
		t.Errorf("it shows\n%s", text)
	}
	var page struct {
		Pods []struct {
			Contract string
			Pods     *int
			Reported time.Time
		}
	}
	if err := json.Unmarshal([]byte(output(t, "status", "-C", url, "--market", daemon.URL, "-o", "json")), &page); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range page.Pods {
		switch {
		case p.Contract == contract && p.Pods != nil && *p.Pods == 3 && p.Reported.Minute() == 57:
			found++
		case p.Contract != contract && p.Pods != nil:
			t.Errorf("%s has %d pods", p.Contract, *p.Pods)
		}
	}
	if found != 1 || len(page.Pods) < 2 {
		t.Errorf("%+v", page.Pods)
	}
	answers = false
	if text := output(t, "status", "-C", url, "--market", daemon.URL); strings.Contains(text, "\nPods\n") {
		t.Errorf("of a daemon that tells nothing it shows\n%s", text)
	}
}

// The reason of an intent is cut to the terminal's width, and is whole in wide and pipes.
func TestReasonsAreCut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	output(t, "init", dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("intents/vision/odd.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: odd, namespace: vision}\nspec: {consumer: nowhere, resources: {cpu: \"1\", memory: 1Gi}}\n")
	shown := func(width int, args ...string) string {
		var out, errs bytes.Buffer
		s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Terminal: true, Width: width, Now: func() time.Time { return noon }}
		if code := cli.Run(context.Background(), s, append([]string{"get", "intents", "-C", dir}, args...)); code != 0 {
			t.Fatal(errs.String())
		}
		return out.String()
	}
	whole := shown(0)
	longest := 0
	for line := range strings.Lines(whole) {
		longest = max(longest, len([]rune(strings.TrimRight(line, "\n"))))
	}
	narrow := shown(longest - 3)
	for line := range strings.Lines(narrow) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > longest-3 {
			t.Errorf("a line has %d columns of %d: %s", n, longest-3, line)
		}
	}
	if !strings.Contains(narrow, "…") || strings.Contains(whole, "…") {
		t.Errorf("narrow\n%s\nwhole\n%s", narrow, whole)
	}
	if wide := shown(longest-3, "-o", "wide"); strings.Contains(wide, "…") || !strings.Contains(wide, "nowhere") {
		t.Errorf("the wide form is cut, or has no message:\n%s", wide)
	}
}
