//go:build e2e

package hostile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestDaemon_BranchesOfNoCommit: a server that lets a branch stand on a tag, a tree, a blob,
// nothing, or itself. The ledger's stops the writing with a reason of one line; the inputs'
// changes nothing that is decided. Once it is put back all goes on.
func TestDaemon_BranchesOfNoCommit(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	stand := func(branch, on string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.repo, "refs", "heads", branch), []byte(on+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d.push()
	}
	known := map[string]string{}
	const nothing = "1111111111111111111111111111111111111111"
	for branch, stands := range map[string]map[string]string{
		"ledger": {"a tag": object(t, d.repo, "tag", fmt.Appendf(nil, "object %s\ntype commit\ntag ledger\ntagger A <a@b> 1790000000 +0000\n\nx\n", git(t, d.repo, "rev-parse", "ledger")), known), "nothing": nothing, "itself": "ref: refs/heads/ledger"},
		"main":   {"a tree": git(t, d.repo, "rev-parse", "main^{tree}"), "nothing": nothing},
	} {
		for name, on := range stands {
			what := branch + " on " + name
			head := git(t, d.repo, "rev-parse", branch)
			d.bounded(what, func() {
				stand(branch, on)
				status, body, err := d.send(Request{
					As: "rome", Method: "POST", Path: reserve, Header: []string{"Idempotency-Key", what},
					Body: []byte(`{"spec":{"resources":{"cpu":"1","memory":"1Gi","pods":"1","gpu":1},"offload":{"namespaces":[{"name":"vision","create":true}]}}}`),
				})
				if err != nil || status != http.StatusCreated && status != http.StatusServiceUnavailable {
					t.Errorf("%s: a reservation is answered %d %s, %v", what, status, body, err)
				}
				if status != http.StatusCreated {
					reason(t, what, body)
				} else if now := git(t, d.repo, "rev-parse", "ledger"); branch == "ledger" && now == head {
					t.Errorf("%s: a reservation is acknowledged, and stands nowhere", what)
				} else if branch == "ledger" {
					head = now
				}
				stand(branch, head)
				d.until(what+" is put back", func() (bool, string) { status, text := d.ready(); return status == http.StatusOK, text })
				d.decides(what)
			})
		}
	}
}
