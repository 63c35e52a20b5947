//go:build e2e

package spine

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// manySources is how many tenants keep their intents in repositories of their own.
const manySources = 50

// sources are the repositories of a fleet's tenants, behind one https server.
type sources struct {
	*fleet
	server *httptest.Server
	teams  map[string]*env.Team // by tenant
}

// Fifty tenants keep their intents in repositories of their own. All are placed; what goes
// wrong in one freezes that one alone, across a restart that leaves no local copy; and
// history needs none of them.
func TestSources(t *testing.T) {
	s := &sources{teams: map[string]*env.Team{}}
	s.fleet = start(t, func(o *rig.Options) {
		o.Providers = map[string][]env.GPUNode{"paris": {}}
		for i := range 8 {
			o.Providers["paris"] = append(o.Providers["paris"], h100(fmt.Sprint("paris-", i)))
		}
	})
	flags := s.serve()
	d := s.up(flags...)
	s.open()
	s.step("what fifty repositories ask for is placed", func(t *testing.T) {
		s.eventually("a contract for each", func() error { return s.held("", manySources) })
		for i := range manySources {
			tenant := tenantOf(i)
			if copied, head := strings.ReplaceAll(s.copied(tenant), `"`, ""), s.head(tenant); !strings.Contains(copied, "commit: "+head) || !strings.Contains(copied, tenant+"@example.org") {
				t.Errorf("the copy of %s is not of %s by its author:\n%s", tenant, head, copied)
			}
		}
		s.applied()
	})
	if t.Failed() {
		return // nothing further would be seen
	}
	s.step("what goes wrong in one freezes that one alone", func(t *testing.T) {
		s.spoil()
		s.eventually("who did nothing wrong has two", func() error {
			return errors.Join(s.held("t07-second-", 1), s.held("t04-second-", 1), s.held("t06-second-", 1))
		})
		s.eventually("three are frozen", func() error { return s.frozen(d, "t01", "t02", "t03") })
		if err := s.held("", manySources+3); err != nil {
			t.Error(err)
		}
		if err := s.held("t05-", 1); err != nil {
			t.Errorf("an intent of two repositories, or what a repository named that may not: %v", err)
		}
	})
	s.step("a daemon without its local copies knows it", func(t *testing.T) {
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(s.Dir, "state-"+d.Name)); err != nil {
			t.Fatal(err)
		}
		if err := d.Restart(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.await(d)
		s.eventually("three are frozen", func() error { return s.frozen(d, "t01", "t02", "t03") })
		if err := s.held("", manySources+3); err != nil {
			t.Error(err)
		}
	})
	s.step("who puts it right is read again", func(t *testing.T) {
		s.git("t01", "reset", "-q", "--hard", "before")
		s.ask("t01", "second", "+")
		if err := os.Rename(s.Git.RepoDir("t02.gone"), s.Git.RepoDir("t02")); err != nil {
			t.Fatal(err)
		}
		s.ask("t02", "second", "")
		s.eventually("both have two", func() error { return errors.Join(s.held("t01-second-", 1), s.held("t02-second-", 1)) })
		s.eventually("one is frozen", func() error { return s.frozen(d, "t03") })
		s.applied()
	})
	s.step("history needs none of them", func(t *testing.T) {
		s.server.Close()
		placed := strings.Fields(s.remote("log", "--format=%H", "--grep=^[0-9]* placed", s.ledger))
		if len(placed) == 0 {
			t.Error("no commit placed several")
		}
		s.audit("verify", s.Git.URL(rig.Repo))
		for _, commit := range placed {
			s.audit("replay", commit, s.Git.URL(rig.Repo))
		}
	})
	s.sound()
}

func tenantOf(i int) string { return fmt.Sprintf("t%02d", i+1) }

// serve makes the repositories and serves them; the flags are those by which a daemon
// may read them.
func (s *sources) serve() []string {
	s.t.Helper()
	git, err := url.Parse(s.Git.BareURL(""))
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(git))
	s.t.Cleanup(s.server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	secrets := filepath.Join(s.Dir, "source-credentials")
	for i := range manySources {
		tenant := tenantOf(i)
		if err := s.Git.Init(s.ctx, tenant); err != nil {
			s.t.Fatal(err)
		}
		if s.teams[tenant], err = env.CloneTeam(s.ctx, s.Git.URL(tenant), filepath.Join(s.Dir, "sources", tenant), tenant); err != nil {
			s.t.Fatal(err)
		}
		s.ask(tenant, "job", "")
		s.git(tenant, "tag", "before")
		if err := os.MkdirAll(filepath.Join(secrets, tenant), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(secrets, tenant, "ca.crt"), authority, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return []string{"--source-hosts", strings.TrimPrefix(s.server.URL, "https://"), "--source-credentials-dir", secrets}
}

// open names the repositories in the fleet repo.
func (s *sources) open() {
	s.t.Helper()
	files, entries := map[string]*string{}, "  sources:\n"
	for i := range manySources {
		tenant := tenantOf(i)
		entries += fmt.Sprintf("  - {name: %s, url: %s/%s, tenants: [%s]}\n", tenant, s.server.URL, tenant, tenant)
		files["tenants/"+tenant+".yaml"] = ptr(fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [rome], namespaces: [%s]}\n", tenant, tenant))
	}
	files["fleet.yaml"] = ptr(fleetFile(s.ledger, entries))
	s.push("Let tenants keep their own intents", files)
}

// spoil is what goes wrong: t01 rewrites its history, t02's repository is gone, t03 has
// more files than are read, t04 names an intent of t05, the fleet repo has t05's intent
// too, and t06 has a file that nobody can read. t04, t06 and t07 ask for a second GPU.
func (s *sources) spoil() {
	s.t.Helper()
	s.git("t01", "commit", "-q", "--amend", "--message", "Another history")
	s.git("t01", "push", "-q", "--force", "origin", env.DefaultBranch)
	if err := os.Rename(s.Git.RepoDir("t02"), s.Git.RepoDir("t02.gone")); err != nil {
		s.t.Fatal(err)
	}
	many := map[string]string{}
	for i := range 2001 {
		many[fmt.Sprintf("intents/t03/n%04d.yaml", i)] = "# nothing\n"
	}
	s.write("t03", many)
	s.write("t04", map[string]string{"intents/t05/steal.yaml": oneGPU("t05", "steal")})
	s.push("Ask for what t05 asks for", map[string]*string{"intents/t05/job.yaml": ptr(oneGPU("t05", "job"))})
	s.write("t06", map[string]string{"intents/t06/broken.yaml": "kind: ResourceIntent\n\tspec: {"})
	for _, tenant := range []string{"t04", "t06", "t07"} {
		s.ask(tenant, "second", "")
	}
}

func oneGPU(tenant, name string) string {
	return strings.NewReplacer("namespace: vision", "namespace: "+tenant, "{name: vision,", "{name: "+tenant+",").Replace(intent(name, 1))
}

// ask pushes an intent for one GPU to a tenant's own repository, by force with "+".
func (s *sources) ask(tenant, name, force string) {
	s.t.Helper()
	if _, err := s.teams[tenant].Commit(s.ctx, "Ask for "+name, map[string]string{"intents/" + tenant + "/" + name + ".yaml": oneGPU(tenant, name)}); err != nil {
		s.t.Fatal(err)
	}
	s.git(tenant, "push", "-q", "origin", force+env.DefaultBranch)
}

func (s *sources) write(tenant string, files map[string]string) {
	s.t.Helper()
	if _, err := s.teams[tenant].CommitAndPush(s.ctx, "Write", files); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sources) git(tenant string, args ...string) string {
	s.t.Helper()
	out, err := s.teams[tenant].Git(s.ctx, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// audit demands that the auditor finds nothing.
func (s *sources) audit(args ...string) {
	s.t.Helper()
	if out, said, code := s.cli(append([]string{"audit"}, args...)...); code != 0 {
		s.t.Errorf("audit %v ends with %d: %s%s", args, code, out, said)
	}
}

// head is the newest commit of a tenant's repository.
func (s *sources) head(tenant string) string { return s.git(tenant, "rev-parse", "HEAD") }

// copied is what the ledger says of its copy of a tenant's repository.
func (s *sources) copied(tenant string) string {
	s.t.Helper()
	return s.remote("show", s.ledger+":sources/"+tenant+"/source.yaml")
}

// remote is what git says of the fleet repo.
func (s *sources) remote(args ...string) string {
	s.t.Helper()
	out, err := env.Git(s.ctx, s.Git.RepoDir(rig.Repo), args...)
	if err != nil {
		s.t.Error(err)
	}
	return out
}

// held is an error unless so many contracts are held whose names begin so.
func (s *sources) held(prefix string, n int) error {
	var have []string
	for name := range s.check().Held {
		if strings.HasPrefix(name, prefix) {
			have = append(have, name)
		}
	}
	if len(have) != n {
		return fmt.Errorf("%d contracts %s* are held, want %d: %v", len(have), prefix, n, have)
	}
	return nil
}

// frozen is an error unless a daemon says of these sources, and no other, that they are
// frozen.
func (s *sources) frozen(d *rig.Daemon, tenants ...string) error {
	text, err := s.get(d, "/metrics")
	if err != nil {
		return err
	}
	for i := range manySources {
		tenant, value := tenantOf(i), 0
		for _, one := range tenants {
			if one == tenant {
				value = 1
			}
		}
		if line := fmt.Sprintf("fleetbroker_source_frozen{source=%q} %d\n", tenant, value); !strings.Contains(text, line) {
			return fmt.Errorf("the metrics do not say %s", line)
		}
	}
	return nil
}
