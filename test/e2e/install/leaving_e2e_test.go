//go:build e2e && full

package install

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// TestPage_Backup runs docs/backup.md: the git server loses the repository, it comes back
// from the mirror, and the daemon goes on with the same ledger.
func TestPage_Backup(t *testing.T) {
	f := start(t)
	b := open(t, "backup.md", f.Git.URL(rig.Repo), nil)
	if err := os.Symlink(filepath.Dir(f.TrustRoot()), filepath.Join(b.dir, "fleet.keys")); err != nil {
		t.Fatal(err)
	}
	d, err := f.Daemon(f.ctx, "one", "--poll-interval", "1s")
	if err != nil {
		t.Fatal(err)
	}
	f.held(d)
	b.next(bin, "clone --mirror")
	f.push("Ask more", map[string]string{"intents/vision/more.yaml": strings.ReplaceAll(strings.Replace(train, "name: train", "name: more", 1), "count: 4", "count: 1")})
	f.eventually("the second slice", func() error { return f.slices("vision-more-0-") })
	f.eventually("a quiet ledger, saved", func() error {
		before, err := f.ledger("rev-parse", rig.Ledger)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(f.ctx, "git", "-C", filepath.Join(b.dir, "fleet-backup.git"), "remote", "update", "--prune")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		after, err := f.ledger("rev-parse", rig.Ledger)
		if err == nil && after != before {
			err = errors.New("the ledger moved")
		}
		return err
	})
	b.next(bin, "remote update")
	saved, err := f.ledger("rev-parse", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	dir := f.Git.RepoDir(rig.Repo)
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil { // the disk is lost
		t.Fatal(err)
	}
	if _, err := f.git("init", "-q", "--bare", "-b", env.DefaultBranch, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	b.next(bin, "push --mirror")
	if got, err := f.ledger("merge-base", "--is-ancestor", strings.TrimSpace(saved), rig.Ledger); err != nil {
		t.Errorf("the restored ledger lacks %s: %s %v", saved, got, err)
	}
	if err := errors.Join(f.slices("vision-train-0-"), f.slices("vision-more-0-")); err != nil {
		t.Errorf("after the restore: %v", err)
	}
	f.push("Ask last", map[string]string{"intents/vision/last.yaml": strings.ReplaceAll(strings.Replace(train, "name: train", "name: last", 1), "count: 4", "count: 1")})
	f.eventually("a slice decided after the restore", func() error { return f.slices("vision-last-0-") })
}

// TestPage_Uninstall runs docs/uninstall.md: contracts end, peerings are undone, and what
// the install made is gone from each cluster; teams' namespaces are left, without marks.
func TestPage_Uninstall(t *testing.T) {
	f := start(t)
	clusters := map[string]*env.Cluster{"home": f.Clusters["rome"], "rome": f.Clusters["rome"], "paris": f.Clusters["paris"]}
	b := open(t, "uninstall.md", f.Git.URL(rig.Repo), clusters)
	for _, name := range []string{"rome", "paris"} { // from the fleet repo that init made
		installed(t, f.Laid, f.Clusters[name])
	}
	if err := os.CopyFS(filepath.Join(f.Platform.Dir, "install"), os.DirFS(filepath.Join(f.Laid, "install"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.Platform.Dir, filepath.Join(b.dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	d, err := f.Daemon(f.ctx, "one", "--poll-interval", "1s")
	if err != nil {
		t.Fatal(err)
	}
	f.held(d)
	f.eventually("the peering", func() error {
		out, err := f.Clusters["paris"].Kubectl(f.ctx, f.Dir, "get", "tenants.authentication.liqo.io", "-n", "liqo-tenant-rome", "-o", "name")
		if err == nil && out == "" {
			err = errors.New("no Tenant on the provider")
		}
		return err
	})
	b.next(bin, "rm -rq intents")
	b.next(bin, "until")
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	b.next(bin, "delete -k")
	b.next(bin, "label namespaces")
	// The rig defines the kinds of both programs in each cluster, the pages' bases one's.
	rigs := map[string]*regexp.Regexp{"rome": regexp.MustCompile(`/[a-z]+\.fleetbroker\.io\n$`), "paris": regexp.MustCompile(`/[a-z]+\.market\.fleetbroker\.io\n$`)}
	left := func(name string, cluster *env.Cluster) error {
		out, err := cluster.Kubectl(f.ctx, f.Dir, "get", "-A", "-o", "name",
			"clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,customresourcedefinitions,deployments,statefulsets,services,networkpolicies,poddisruptionbudgets,prioritylevelconfigurations,flowschemas,resourceslices.authentication.liqo.io,virtualnodes,namespaceoffloadings")
		for line := range strings.Lines(out) {
			if (strings.Contains(line, "fleet") || strings.Contains(line, "/vision")) && !(strings.HasPrefix(line, "customresourcedefinition") && rigs[name].MatchString(line)) {
				err = errors.Join(err, fmt.Errorf("%s still has %s", name, line))
			}
		}
		return err
	}
	for name, cluster := range f.Clusters { // the page does not wait for the last of it
		f.eventually("nothing to be left in "+name, func() error { return left(name, cluster) })
	}
	out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "namespace", "vision", "-o", "jsonpath={.metadata.labels} {.status.phase}")
	if err != nil || strings.Contains(out, "fleetbroker.io/tenant") || !strings.HasSuffix(out, "Active") {
		t.Errorf("the team's namespace is %s (%v)", bytes.TrimSpace([]byte(out)), err)
	}
}
