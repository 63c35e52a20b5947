package ui_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/hostile"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// remote is a repository in memory as the dashboard reads it.
type remote struct{ *memremote.Remote }

func (r remote) RawCommit(h tree.Hash) ([]byte, error) { return r.Objects().Commit(h) }
func (remote) Offered() (gitrepo.Commit, error)        { return gitrepo.Commit{}, nil }

func (r remote) Info(h tree.Hash) (gitrepo.Commit, error) {
	raw, err := r.RawCommit(h)
	if err != nil {
		return gitrepo.Commit{}, err
	}
	c, err := gitobj.ParseCommit(raw)
	return gitrepo.Commit{Hash: h, Tree: c.Tree, Parents: c.Parents, Author: c.Author, Committer: c.Committer, Message: c.Message, Signed: c.Signature != ""}, err
}

// audited is a dashboard of a ledger that a real daemon wrote, with a foreign commit on top
// whose message is hostile. The name of a tenant's contract comes with it.
func audited(t testing.TB) (d *daemon, foreign tree.Hash) {
	t.Helper()
	s := story.Lived(t, "ledger", nil, "")
	puts := map[string][]byte{"contracts/vision/00/x/y.yaml": []byte("z: 1\n")}
	for i := range 6 {
		puts[fmt.Sprintf("contracts/vision/00/x/z%d.yaml", i)] = []byte("z: 1\n")
	}
	var err error
	if foreign, err = s.Remote.Commit("ledger", gitobj.Person{Name: "Eve <script>", Email: "eve@example.org", When: s.At}, strings.Join(hostile.Texts(), " ")[:500]+"\n", gitobj.Change{Puts: puts}); err != nil {
		t.Fatal(err)
	}
	d = newDaemonWith(t, func(o *ui.Options) { o.History, o.Audited = remote{s.Remote}, remote{s.Remote} })
	b := small()
	root, err := s.Remote.Tree(s.Remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := ledger.Read(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.W.Ledger = read
	d.head, d.inputs = s.Remote.Head("ledger"), s.Remote.Head("main")
	d.now = s.At.Add(time.Hour)
	d.show(b)
	return d, foreign
}

// auditOf is the audit page once nothing more is judged.
func auditOf(t testing.TB, d *daemon, query string) (out ui.AuditAnswer) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-time.After(10 * time.Millisecond) {
		var got struct{ Data ui.AuditAnswer }
		w := d.get(t, "/api/ui/audit"+query)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v: %.300s", err, w.Body)
		}
		if s := got.Data.Summary; s == nil || s.Head != "" && !s.Running {
			return got.Data
		}
	}
	t.Fatal("the audit does not end")
	return out
}

// TestAudit: each commit says whether it holds, a foreign one what it breaks; it can be
// searched; a member sees states of their own commits, and no words about others'.
func TestAudit(t *testing.T) {
	d, foreign := audited(t)
	all := auditOf(t, d, "")
	if all.Summary.Violating != 1 || all.Summary.Commits != all.Looked || all.Summary.Trouble != "" || all.Rows.Total != all.Looked || all.Looked < 5 {
		t.Fatalf("%+v of %d commits, %d rows", all.Summary, all.Looked, all.Rows.Total)
	}
	for i, r := range all.Rows.Items {
		if want := map[bool]string{true: "Violates", false: "Verified"}[i == 0]; r.State != want || (r.Hash == foreign.String()) != (i == 0) || len(r.Violations) > 0 != (i == 0) {
			t.Errorf("row %d: %s %s %+v", i, r.Hash, r.State, r.Violations)
		}
	}
	for query, want := range map[string]int{"?state=violates": 1, "?state=verified": all.Looked - 1, "?state=notjudged": 0, "?q=foreign": 1, "?q=" + all.Rows.Items[2].Hash: 1, "?q=nothing+at+all": 0, "?size=2&page=2": all.Looked} {
		if got := auditOf(t, d, query); got.Rows.Total != want {
			t.Errorf("%s: %d rows, want %d", query, got.Rows.Total, want)
		}
	}
	text := d.get(t, "/ui/audit").Body.String()
	unsigned := 0 // they break no rule, and nobody proves whose they are
	for _, r := range all.Rows.Items {
		if r.State == "Verified" && !r.Signed {
			unsigned++
		}
	}
	if got := strings.Count(text, "Verified, unsigned</span>"); unsigned == 0 || got != unsigned || strings.Count(text, ">Verified</span>") != all.Looked-1-unsigned {
		t.Errorf("%d commits are shown as verified and unsigned, want %d", got, unsigned)
	}
	more := len(all.Rows.Items[0].Violations) - 4 // what is folded
	if want := fmt.Sprintf(`<details id="v-%s"><summary>%d more findings</summary>`, foreign, more); more < 3 || !strings.Contains(text, want) || strings.Count(text, `<p class="reason">`) != more+4 || strings.Count(text, "<details") != strings.Count(text, "</details>") {
		t.Errorf("%d findings of one commit: the page lacks %s, or some of them", more+4, want)
	}
	if strings.Count(text, "<script") != 1 || !strings.Contains(text, "Violates") || !strings.Contains(text, "contracts/vision/00/x/y.yaml") {
		t.Error("the page shows markup of a message, or not what is wrong")
	}
	d.look(view.Viewer{Groups: []string{"team-vision"}})
	mine := auditOf(t, d, "?size=100")
	if mine.Summary != nil || mine.Rows.Total == 0 || mine.Rows.Total >= all.Looked || slices.ContainsFunc(mine.Rows.Items, func(r ui.AuditRow) bool { return len(r.Violations) > 0 || r.State != "Verified" }) {
		t.Errorf("a member sees %+v", mine)
	}
	d.look(view.Viewer{})
	if none := auditOf(t, d, ""); none.Rows.Total != 0 || none.Summary != nil {
		t.Errorf("who sees totals only sees %+v", none)
	}
}

// TestAudit_Without: a dashboard without an audit shows the history alone.
func TestAudit_Without(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b)
	got := auditOf(t, d, "")
	if got.Summary != nil || got.Rows.Total == 0 || got.Rows.Items[0].State != "NotJudged" {
		t.Errorf("%+v", got)
	}
}
