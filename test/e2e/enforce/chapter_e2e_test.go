//go:build e2e

package enforce

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

const chapter = "../../../fleet-repo-template/docs/reserving.md"

// blocks are the fenced blocks of a page in one language, in their order.
func blocks(page, language string) []string {
	var out []string
	for _, part := range strings.Split(page, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		out = append(out, block)
	}
	return out
}

// The chapter on reserving tells what works: its request and its commands, in
// the order in which they stand there.
func TestTheChapterOnReserving(t *testing.T) {
	text, err := os.ReadFile(chapter)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	f := start(t, func(o *rig.Options) {
		for _, block := range blocks(page, "yaml") {
			if rest, is := strings.CutPrefix(block, "# clusters/rome.yaml\n"); is {
				o.Inputs["clusters/rome.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\n" + rest + "\n"
			}
		}
	})
	dir := t.TempDir()
	for _, block := range blocks(page, "yaml") {
		if rest, is := strings.CutPrefix(block, "# request.yaml\n"); is {
			if err := os.WriteFile(filepath.Join(dir, "request.yaml"), []byte(rest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Put("vision", "serve", intent("serve", 1))
	contract := f.Contract("vision", "serve", "Active")
	f.answered(contract, accepted, "", 1)
	f.Eventually("both sides show it", func() error {
		for cluster, kind := range map[string]string{"paris": "providerinstructions", "rome": "reservationinstructions"} {
			if _, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, "get", kind+".fleetbroker.io", contract); err != nil {
				return err
			}
		}
		return nil
	})
	f.kubectlFor(dir)
	script := blocks(page, "sh")
	for i, block := range script {
		out, err := f.play(dir, contract, block)
		t.Logf("%s\n%s", block, out)
		if err != nil {
			t.Fatalf("block %d of the page: %v", i+1, err)
		}
		for line := range strings.Lines(block) {
			for command, want := range map[string]string{
				"get resourcerequests": "Active", "get advertisements": "nvidia-h100", "get providerinstructions": contract,
				"get reservationinstructions": contract, "get fleetbroker": "reservationinstruction.fleetbroker.io/" + contract,
			} {
				if strings.Contains(line, command) && !strings.Contains(out, want) {
					t.Errorf("%s does not show %s", strings.TrimSpace(line), want)
				}
			}
		}
	}
	if len(script) < 6 {
		t.Errorf("the page has only %d blocks of commands", len(script))
	}
	answer, err := os.ReadFile(filepath.Join(dir, "answer.json"))
	if err != nil || !strings.Contains(string(answer), `"commit":"`) || !strings.Contains(string(answer), `"targetClusterID":"paris"`) {
		t.Errorf("the reservation by HTTP was answered %s %v", answer, err)
	}
	f.Sound()
}

// kubectlFor lays a kubectl into a directory that knows the rig's clusters as
// contexts.
func (f *fleet) kubectlFor(dir string) {
	f.t.Helper()
	real, err := tools.Find(f.ctx, "kubectl", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --context ] || { echo which cluster? >&2; exit 1; }\nname=$2; shift 2\nexec %q --kubeconfig %q/\"$name.kubeconfig\" \"$@\"\n",
		real, filepath.Join(f.Dir, "kubeconfigs"))
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		f.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(f.Dir, "certs-agent-rome"), filepath.Join(dir, "rome-certs")); err != nil {
		f.t.Fatal(err)
	}
}

// play runs commands as a reader of the page would.
func (f *fleet) play(dir, contract, commands string) (string, error) {
	cmd := exec.CommandContext(f.ctx, "sh", "-euc", strings.ReplaceAll(commands, "broker.example.org:8443", f.daemon.Agents))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CONTRACT="+contract)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
