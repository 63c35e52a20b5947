package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// door is an enroller on a repository in memory, and time that stands still.
type door struct {
	lines logtest.Lines
	*enroller
	remote *memremote.Remote
	at     time.Time
	open   bool
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{remote: memremote.New(), at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), open: true}
	if _, err := d.remote.Commit("main", gitobj.Person{Name: "Ada", Email: "ada@example.org", When: d.at}, "Begin", gitobj.Change{Puts: map[string][]byte{"fleet.yaml": []byte("kind: Fleet\n")}}); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return d.at }
	repo, err := gitrepo.Open(t.Context(), d.remote, gitrepo.Options{Inputs: "main", Ledger: "ledger", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := repo.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := repo.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.enroller = newEnroller(func() (bool, string) { return d.open, "add {file}" }, repo.Propose, now, d.lines.Logger())
	return d
}

// knock is a provider's request, and what the worker makes of it.
func (d *door) knock(t *testing.T, cluster string) (reason string) {
	t.Helper()
	return d.knockAs(t, cluster, v1alpha1.RoleProvider)
}

func (d *door) knockAs(t *testing.T, cluster, role string) (reason string) {
	t.Helper()
	refused := d.admit(cluster, role)
	if refused == nil || refused.Status != 403 {
		t.Fatalf("cluster %s was let in: %+v", cluster, refused)
	}
	select {
	case next := <-d.queue:
		d.handle(t.Context(), next)
	default:
	}
	return refused.Body.Reason
}

func (d *door) branch(cluster string) bool { return !d.remote.Head("enroll/" + cluster).IsZero() }

func TestAnUnknownClusterIsProposedOnce(t *testing.T) {
	d := newDoor(t)
	main := d.remote.Head("main")
	for i, want := range []string{"EnrollmentPending", "EnrollmentProposed", "EnrollmentProposed"} {
		if got := d.knock(t, "oslo"); got != want || !d.branch("oslo") {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	log, err := d.remote.Log("enroll/oslo")
	if err != nil || len(log) != 2 {
		t.Errorf("the branch has %d commits (%v)", len(log), err)
	}
	if d.remote.Head("main") != main {
		t.Error("main moved")
	}
	// Who deletes the branch has said no, and is not asked again the same day.
	d.remote.SetRef("refs/heads/enroll/oslo", [20]byte{})
	d.at = d.at.Add(time.Hour)
	if d.knock(t, "oslo"); d.branch("oslo") {
		t.Error("the branch came back")
	}
	d.at = d.at.Add(proposalRest)
	if d.knock(t, "oslo"); !d.branch("oslo") {
		t.Error("the cluster is never proposed again")
	}
	d.lines.Wants(t, "FB1049")
}

func TestAClosedFleetProposesNothing(t *testing.T) {
	d := newDoor(t)
	d.open = false
	refused := d.admit("oslo", v1alpha1.RoleProvider)
	if refused.Status != 403 || refused.Body.Reason != "NotEnrolled" || !strings.Contains(refused.Body.Error, "add clusters/oslo.yaml") {
		t.Errorf("%+v", refused)
	}
	if d.knock(t, "oslo"); d.branch("oslo") {
		t.Error("a closed fleet made a branch")
	}
}

func TestProposalsAreLimited(t *testing.T) {
	d := newDoor(t)
	made := func() (n int) {
		for ref := range d.remote.AllRefs() {
			if strings.HasPrefix(ref, "refs/heads/enroll/") {
				n++
			}
		}
		return n
	}
	for i := range 3 * proposalsAnHour {
		d.knock(t, fmt.Sprintf("c%d", i))
	}
	if n := made(); n != proposalsAnHour {
		t.Errorf("%d branches at once, want %d", n, proposalsAnHour)
	}
	d.at = d.at.Add(time.Hour)
	for i := range 3 * proposalsAnHour {
		d.knock(t, fmt.Sprintf("c%d", i))
	}
	if n := made(); n != 2*proposalsAnHour {
		t.Errorf("%d branches an hour later, want %d", n, 2*proposalsAnHour)
	}
	for i := range 10 * proposalQueue { // nobody works
		_ = d.admit(fmt.Sprintf("d%d", i), v1alpha1.RoleProvider) // the answer is the same for all: come again later
	}
	if len(d.queue) != proposalQueue {
		t.Errorf("%d wait, want %d", len(d.queue), proposalQueue)
	}
	d.lines.Wants(t, "FB1047")
}

func TestAProposalThatFailsIsTriedAgainLater(t *testing.T) {
	d := newDoor(t)
	failing := errors.New("no route to host")
	d.remote.Fault = func(memremote.Op) (bool, error) { return false, failing }
	d.knock(t, "oslo")
	d.remote.Fault = nil
	if d.knock(t, "oslo"); d.branch("oslo") {
		t.Error("tried again at once")
	}
	d.at = d.at.Add(proposalRetry)
	if got := d.knock(t, "oslo"); got != "EnrollmentPending" || !d.branch("oslo") {
		t.Errorf("a minute later: %s, branch %v", got, d.branch("oslo"))
	}
	d.lines.Wants(t, "FB1048")
}

// TestWhatIsProposedIsAFile: also for names that YAML takes for something else.
func TestWhatIsProposedIsAFile(t *testing.T) {
	for i, cluster := range []string{"oslo", "no", "true", "null", "007", "1e3", "0x10", "y"} {
		file := clusterFile(knock{cluster, []string{v1alpha1.RoleProvider, v1alpha1.RoleConsumer}[i%2]})
		t.Run(cluster, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range map[string][]byte{
				"fleet.yaml":                    []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec: {}\n"),
				"clusters/" + cluster + ".yaml": file,
			} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var out, errs bytes.Buffer
			code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now}, []string{"validate", dir})
			if code != 0 {
				t.Errorf("exit %d\n%s%s\n%s", code, out.String(), errs.String(), file)
			}
		})
	}
}

// A cluster that reports no flavor is proposed as a consumer, and none before it
// has reported: an agent listens before it has read its cluster.
func TestTheRoleOfWhatIsProposed(t *testing.T) {
	d := newDoor(t)
	for _, c := range []struct{ cluster, role, want string }{
		{"oslo", v1alpha1.RoleProvider, "roles: [provider]"}, {"rome", v1alpha1.RoleConsumer, "roles: [consumer]"},
	} {
		if got := d.knockAs(t, c.cluster, ""); got != "EnrollmentPending" || d.branch(c.cluster) {
			t.Errorf("%s is proposed before it has reported: %s", c.cluster, got)
		}
		d.knockAs(t, c.cluster, c.role)
		if got := d.knockAs(t, c.cluster, ""); got != "EnrollmentProposed" {
			t.Errorf("%s is %s", c.cluster, got)
		}
		tree, err := d.remote.Tree(d.remote.Head("enroll/" + c.cluster))
		if err != nil {
			t.Fatal(err)
		}
		text, err := tree.ReadFile("clusters/"+c.cluster+".yaml", 1<<16)
		if err != nil || !strings.Contains(string(text), "\n  "+c.want+"\n") {
			t.Errorf("%s is proposed as\n%s%v", c.cluster, text, err)
		}
	}
}
