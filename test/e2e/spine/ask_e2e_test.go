//go:build e2e

package spine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// cli runs the user's program and returns its output and exit code.
func (f *fleet) cli(args ...string) (stdout, stderr string, code int) {
	f.t.Helper()
	cmd := exec.CommandContext(f.ctx, filepath.Join(bin, "fleetbroker"), args...)
	cmd.Dir = f.Dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// reconcile makes one round as an operator would, beside the daemon and on its
// state directory.
func (f *fleet) reconcile(d *rig.Daemon, args ...string) (string, int) {
	f.t.Helper()
	out, said, code := f.cli(append([]string{
		"reconcile", "--once", "--repo", f.Git.URL(rig.Repo), "--state-dir", filepath.Join(f.Dir, "state-"+d.Name),
		"--kubeconfigs-dir", filepath.Join(f.Dir, "kubeconfigs"), "--identity", "operator",
		"--market", "http://" + d.Operators + "/market",
	}, append(f.Trust(), args...)...)...)
	return out + said, code
}

// get is a page of the operators' port.
func (f *fleet) get(d *rig.Daemon, path string) (string, error) {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+d.Operators+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// notReady is an error unless the daemon says that it is not ready, for a
// reason that contains the text.
func (f *fleet) notReady(d *rig.Daemon, text string) error {
	r, err := d.Readiness(f.ctx)
	if err != nil {
		return err
	}
	for _, c := range r.Checks {
		if !c.OK && strings.Contains(c.Reason, text) {
			return nil
		}
	}
	return fmt.Errorf("want the daemon not to be ready because of %q, it says %+v", text, r)
}

// ready is an error unless the daemon says that it is ready.
func (f *fleet) ready(d *rig.Daemon) error {
	r, err := d.Readiness(f.ctx)
	if err != nil {
		return err
	}
	if !r.Ready {
		return fmt.Errorf("it is not ready: %+v", r)
	}
	return nil
}

// logged is an error unless the daemon's log contains the text.
func logged(d *rig.Daemon, text string) error {
	b, err := os.ReadFile(d.LogFile())
	if err != nil {
		return err
	}
	if !strings.Contains(string(b), text) {
		return fmt.Errorf("the log does not say %q", text)
	}
	return nil
}

// ref is a commit of the remote, "" when there is none.
func (f *fleet) ref(name string) string {
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "rev-parse", "--verify", "--quiet", name)
	if err != nil {
		return ""
	}
	return out
}

// treeOf is the tree of the ledger's head.
func (f *fleet) treeOf() string { return f.ref(f.ledger + "^{tree}") }

// kubectl runs kubectl on a cluster and must succeed.
func (f *fleet) kubectl(cluster string, args ...string) string {
	f.t.Helper()
	out, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// tenantNamespace is where Liqo's objects of a provider lie on a consumer.
func tenantNamespace(provider string) string { return "liqo-tenant-" + provider }

// resources are the Liqo kinds that a contract is made of.
const (
	sliceKind       = "resourceslices.authentication.liqo.io"
	virtualNodeKind = "virtualnodes.offloading.liqo.io"
)

// only is the one contract of an intent that is in one of the phases.
func (f *fleet) only(intent string, phases ...string) string {
	f.t.Helper()
	found := ""
	for name, p := range f.phases(intent) {
		for _, want := range phases {
			if p == want {
				if found != "" {
					f.t.Fatalf("%s has two contracts in %v: %s and %s", intent, phases, found, name)
				}
				found = name
			}
		}
	}
	if found == "" {
		f.t.Fatalf("%s has no contract in %v: %v", intent, phases, f.phases(intent))
	}
	return found
}

// contractFile is a contract's text at the ledger's head. Its path and its text
// are of one commit: a rename moves the file while a test looks.
func (f *fleet) contractFile(name string) string {
	f.t.Helper()
	head, err := f.head()
	if err != nil {
		f.t.Fatal(err)
	}
	path := f.find(head, name)
	if path == "" {
		f.t.Fatalf("contract %s is not on the ledger", name)
	}
	return f.fileAt(head, path)
}

// head is the commit of the ledger's head, or an error while it has none.
func (f *fleet) head() (string, error) {
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "rev-parse", "--verify", f.ledger)
	return strings.TrimSpace(out), err
}

// contractSays is an error unless a contract's file contains the text.
func (f *fleet) contractSays(name, text string) error {
	f.t.Helper()
	if s := f.contractFile(name); !strings.Contains(s, text) {
		return fmt.Errorf("contract %s does not say %q:\n%s", name, text, s)
	}
	return nil
}

// list are the paths below a directory at a revision, one a line.
func (f *fleet) list(rev, dir string) string {
	f.t.Helper()
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", rev, dir)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// find is where a contract lies at a revision, "" when it is not there.
func (f *fleet) find(rev, name string) string {
	f.t.Helper()
	for _, path := range strings.Fields(f.list(rev, "contracts/")) {
		if strings.HasSuffix(path, "/"+name+".yaml") {
			return path
		}
	}
	return ""
}

// contractPath is where a contract lies on the ledger, which has it.
func (f *fleet) contractPath(name string) string {
	f.t.Helper()
	path := f.find(f.ledger, name)
	if path == "" {
		f.t.Fatalf("contract %s is not on the ledger", name)
	}
	return path
}

// file is a file's text at the ledger's head.
func (f *fleet) file(path string) string {
	f.t.Helper()
	return f.fileAt(f.ledger, path)
}

// fileAt is a file's text at a revision.
func (f *fleet) fileAt(rev, path string) string {
	f.t.Helper()
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "show", rev+":"+path)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// state is the text of an intent's state, or an error.
func (f *fleet) state(intent string) (string, error) {
	head, err := f.head()
	if err != nil {
		return "", err
	}
	for _, path := range strings.Fields(f.list(head, "contracts/")) {
		if strings.HasSuffix(path, "/"+intent+"/_intent.yaml") {
			return f.fileAt(head, path), nil
		}
	}
	return "", fmt.Errorf("intent %s has no state on the ledger", intent)
}

// stateSays is an error unless an intent's state contains the text.
func (f *fleet) stateSays(intent, text string) error {
	s, err := f.state(intent)
	if err != nil {
		return err
	}
	if !strings.Contains(s, text) {
		return fmt.Errorf("the state of %s does not say %q:\n%s", intent, text, s)
	}
	return nil
}

func (f *fleet) read(path string) string {
	f.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *fleet) write(path, text string) {
	f.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}
