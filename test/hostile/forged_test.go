//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// signedLedger is a small ledger that the real programs have made under a trust root,
// with what its auditor keeps.
type signedLedger struct {
	t                          *testing.T
	dir, repo, root, witness   string
	head                       string // of the ledger
	first, decided             string // commits that decide, the first and the second of three
	beforeDecided              string
	policy, daemon, strangers  string // private keys
	contract, contractsContent string // a file that decided brings, and its text
}

func (l *signedLedger) git(args ...string) string { return git(l.t, l.repo, args...) }

// ask commits intents, signed by a person of the list policy, and lets the daemon
// decide.
func (l *signedLedger) ask(files map[string]string, subject string) {
	l.t.Helper()
	work := filepath.Join(l.dir, "fleet")
	put(l.t, work, files)
	git(l.t, work, "add", "-A")
	git(l.t, work, "-c", "gpg.format=ssh", "-c", "user.signingkey="+l.policy, "commit", "-q", "-S", "-m", subject)
	git(l.t, work, "push", "-q", l.repo, "main")
	r := run(l.t, "fleetbroker", "reconcile", "--once", "--repo", "file://"+l.repo, "--market", filepath.Join(work, "flavors/paris/l4.yaml"),
		"--trust-root", l.root, "--signing-key", l.daemon, "--state-dir", filepath.Join(l.dir, "state"))
	if r.code != 0 {
		l.t.Fatalf("reconcile: exit code %d: %s%s", r.code, r.out, r.said)
	}
}

func makeLedger(t *testing.T) *signedLedger {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "fleet")
	l := &signedLedger{t: t, dir: dir, repo: filepath.Join(dir, "fleet.git"), root: work + ".keys/trust-root.yaml", witness: filepath.Join(dir, "witness.json"),
		policy: work + ".keys/policy", daemon: work + ".keys/ledger", strangers: filepath.Join(dir, "stranger")}
	if r := run(t, "fleetbroker", "init", work); r.code != 0 {
		t.Fatalf("init: %s%s", r.out, r.said)
	}
	stranger := run(t, "fleetbroker", "init", filepath.Join(dir, "other"))
	if stranger.code != 0 {
		t.Fatalf("init: %s%s", stranger.out, stranger.said)
	}
	l.strangers = filepath.Join(dir, "other.keys/ledger")
	git(t, "", "init", "-q", "--bare", "-b", "main", l.repo)
	git(t, work, "init", "-q", "-b", "main")
	rome, err := os.ReadFile(filepath.Join(work, "clusters/rome.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	notebook, err := os.ReadFile(filepath.Join(work, "intents/vision/notebook.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l.ask(map[string]string{"clusters/rome.yaml": string(rome) + "  delivery: none\n"}, "A fleet")
	l.first = l.git("rev-parse", "ledger^{/^place vision/notebook}")
	l.ask(map[string]string{"intents/vision/late.yaml": strings.ReplaceAll(string(notebook), "name: notebook", "name: late")}, "More")
	l.decided = l.git("rev-parse", "ledger^{/^place vision/late}")
	l.beforeDecided = l.git("rev-parse", l.decided+"^")
	l.ask(map[string]string{"intents/vision/last.yaml": strings.ReplaceAll(string(notebook), "name: notebook", "name: last")}, "Yet more")
	l.head = l.git("rev-parse", "ledger")
	for path := range strings.SplitSeq(l.git("diff", "--name-only", l.beforeDecided, l.decided, "--", "contracts"), "\n") {
		if strings.Contains(path, "/late/vision-late-0-") {
			l.contract = path
		}
	}
	if l.contract == "" {
		t.Fatal("the decision brings no contract")
	}
	l.contractsContent = l.git("show", l.decided+":"+l.contract) + "\n"
	if r := run(t, "fleetbroker", "audit", "export", "file://"+l.repo, "--trust-root", l.root, "-o", l.witness); r.code != 0 {
		t.Fatalf("audit export: %s%s", r.out, r.said)
	}
	return l
}

// commit makes a commit as the daemon does; key "" does not sign it.
func (l *signedLedger) commit(root, parent, message, key string) string {
	l.t.Helper()
	args := []string{"-c", "user.name=fleetbroker", "-c", "user.email=fleetbroker@example.org"}
	if key != "" {
		args = append(args, "-c", "gpg.format=ssh", "-c", "user.signingkey="+key)
	}
	args = append(args, "commit-tree", root, "-p", parent, "-F", "-")
	if key != "" {
		args = append(args, "-S")
	}
	return gitIn(l.t, l.repo, message, args...)
}

// message of a commit, edited.
func (l *signedLedger) message(commit string, edit ...string) string {
	return strings.NewReplacer(edit...).Replace(l.git("log", "-1", "--format=%B", commit)) + "\n"
}

// treeWith is a commit's tree with a file replaced; "" removes it.
func (l *signedLedger) treeWith(commit, path, content string) string {
	l.t.Helper()
	index := []string{"-c", "core.bare=false", "--git-dir", l.repo, "--work-tree", l.t.TempDir()}
	gitIn(l.t, l.repo, "", append(index, "read-tree", commit)...)
	line := "0 " + strings.Repeat("0", 40) + "\t" + path + "\n"
	if content != "" {
		line = "100644 blob " + object(l.t, l.repo, "blob", []byte(content), map[string]string{}) + "\t" + path + "\n"
	}
	gitIn(l.t, l.repo, line, append(index, "update-index", "--add", "--index-info")...)
	return gitIn(l.t, l.repo, "", append(index, "write-tree")...)
}

// plan is the digest of what a tree has changed of the contracts since a commit.
func (l *signedLedger) plan(root, since string) string {
	l.t.Helper()
	files := map[string]tree.Hash{}
	for line := range strings.SplitSeq(l.git("diff-tree", "-r", "--no-renames", since, root), "\n") {
		meta, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 5 && strings.HasPrefix(path, "contracts/") {
			h, err := tree.ParseHash(f[3])
			if err != nil {
				l.t.Fatal(err)
			}
			files[path] = h
		}
	}
	return ledger.Digest(files)
}

// judged is what a command says of the ledger at a commit, which nobody knows to have
// been another. It ends within the bounds of one input.
func (l *signedLedger) judged(head string, args ...string) ran {
	l.t.Helper()
	for _, ref := range []string{"refs/heads/ledger", "refs/fleetbroker/accepted/ledger"} {
		l.git("update-ref", ref, head)
	}
	began := time.Now()
	r := run(l.t, "fleetbroker", append([]string{"audit"}, append(args, "--trust-root", l.root)...)...)
	if took := time.Since(began); took > wall/2 {
		l.t.Errorf("audit %s took %s", args[0], took)
	}
	visible(l.t, "audit "+args[0], r.out)
	return r
}

// verdict is an exit code and what is said.
type verdict struct {
	code int
	says string
}

func (v verdict) hold(t *testing.T, what string, r ran) {
	t.Helper()
	if r.code != v.code || !strings.Contains(r.out+r.said, v.says) {
		t.Errorf("%s: exit code %d, want %d and %q:\n%.2000s%.2000s", what, r.code, v.code, v.says, r.out, r.said)
	}
}

// TestForgedLedgers: whoever may push, with and without a stolen key, writes another
// history than the daemon's. Each is told by audit verify, with the head that a witness
// keeps or without, and a decision that does not follow by audit replay.
func TestForgedLedgers(t *testing.T) {
	l := makeLedger(t)
	at := func(what string) string { return l.git("rev-parse", what) }
	root := func(commit string) string { return at(commit + "^{tree}") }
	resigned := func(message, key string) func() string {
		return func() string { return l.commit(root(l.decided), l.beforeDecided, message, key) }
	}
	// later is a commit of the daemon's key an hour after the one it follows.
	later := func(edit func(message string) string) func() string {
		return func() string {
			now, err := time.Parse(time.RFC3339, trailerOf(l, l.decided, "Now"))
			if err != nil {
				l.t.Fatal(err)
			}
			then := now.Add(time.Hour).Format(time.RFC3339)
			l.t.Setenv("GIT_COMMITTER_DATE", then)
			message := edit(l.message(l.decided, "\nNow: "+trailerOf(l, l.decided, "Now"), "\nNow: "+then))
			return l.commit(root(l.decided), l.beforeDecided, message, l.daemon)
		}
	}
	swap := func(trailer, value string) func(string) string {
		return strings.NewReplacer("\n"+trailer+": "+trailerOf(l, l.decided, trailer), "\n"+trailer+": "+value).Replace
	}
	drop := func(trailer string) func(string) string {
		return strings.NewReplacer(trailer+": "+trailerOf(l, l.decided, trailer)+"\n", "").Replace
	}
	cheaper := strings.Replace(l.contractsContent, "hourly: ", "hourly: \"0.01\" #", 1)
	if cheaper == l.contractsContent {
		t.Fatalf("no price in\n%s", l.contractsContent)
	}
	accept := func(n int, dropped string) string {
		return "accept a rewritten history\n\nInputs: " + trailerOf(l, l.head, "Inputs") + "\nMarket: " + trailerOf(l, l.head, "Market") +
			"\nPlan: accept\nNow: " + trailerOf(l, l.head, "Now") + "\nRenderer: " + trailerOf(l, l.head, "Renderer") + "\nRules: " + trailerOf(l, l.head, "Rules") +
			"\nFleet: " + trailerOf(l, l.head, "Fleet") + "\nLedger: " + fmt.Sprintf("ledger %d", n) + "\nDropped: ledger " + dropped + "\n"
	}
	const setBack = "sequence: the ledger was set back or rewritten: it does not hold "
	gone := verdict{1, setBack}
	for name, c := range map[string]struct {
		forge   func() string
		alone   verdict // audit verify, without anything else to go by
		witness verdict
		replay  verdict // of the forged head; code -1: not asked
	}{
		"honest":           {func() string { return l.head }, verdict{0, "everything follows: "}, verdict{0, "everything follows: "}, verdict{code: -1}},
		"honest, decided":  {func() string { return l.decided }, verdict{0, "everything follows: "}, gone, verdict{0, "the decision comes out the same: "}},
		"set back":         {func() string { return l.first }, verdict{0, "everything follows: "}, gone, verdict{0, "the decision comes out the same: "}},
		"signed by nobody": {resigned(l.message(l.decided), ""), verdict{1, ": signature: "}, gone, verdict{code: -1}},
		"stranger's key":   {resigned(l.message(l.decided), l.strangers), verdict{1, ": signature: "}, gone, verdict{code: -1}},
		"a person's key":   {resigned(l.message(l.decided), l.policy), verdict{1, ": signature: "}, gone, verdict{code: -1}},
		// With the daemon's key from here on.
		"another price": {func() string {
			return l.commit(l.treeWith(l.decided, l.contract, cheaper), l.beforeDecided, l.message(l.decided), l.daemon)
		}, verdict{1, ": plan: Plan says sha256:"}, gone, verdict{1, "the decision comes out otherwise: "}},
		"another price, and its plan": {func() string {
			is := l.treeWith(l.decided, l.contract, cheaper)
			return l.commit(is, l.beforeDecided, l.message(l.decided, trailerOf(l, l.decided, "Plan"), l.plan(is, l.beforeDecided)), l.daemon)
		}, verdict{0, "everything follows: "}, gone, verdict{1, "the decision comes out otherwise: "}}, // prices are for replay
		"no contract": {func() string {
			is := l.treeWith(l.decided, l.contract, "")
			return l.commit(is, l.beforeDecided, l.message(l.decided, trailerOf(l, l.decided, "Plan"), l.plan(is, l.beforeDecided)), l.daemon)
		}, verdict{1, ": trailers: "}, gone, verdict{1, "the decision comes out otherwise: "}},
		"rules 99":    {resigned(swap("Rules", "99")(l.message(l.decided)), l.daemon), verdict{3, "what was judged follows: "}, gone, verdict{0, "rules 99"}},
		"rules 1":     {later(swap("Rules", "1")), verdict{1, ": trailers: Rules is 1, and was "}, gone, verdict{code: -1}},
		"renderer 99": {resigned(swap("Renderer", "99")(l.message(l.decided)), l.daemon), verdict{3, "what was judged follows: "}, gone, verdict{code: -1}},
		"renderer 1":  {later(swap("Renderer", "1")), verdict{1, ": trailers: Renderer is 1, and was "}, gone, verdict{code: -1}},
		"renderer x":  {resigned(swap("Renderer", "x")(l.message(l.decided)), l.daemon), verdict{1, ": trailers: "}, gone, verdict{code: -1}},
		"a dropped head": {func() string {
			return l.commit(root(l.first), l.first, accept(2, l.head), l.daemon)
		}, verdict{0, "dropped  " + l.head}, verdict{1, "which any holder of a daemon's key can write"}, verdict{code: -1}},
		"a dropped head by a person": {func() string {
			return l.commit(root(l.first), l.first, accept(2, l.head), l.policy)
		}, verdict{1, ": signature: "}, gone, verdict{code: -1}},
		"without Plan":     {resigned(drop("Plan")(l.message(l.decided)), l.daemon), verdict{1, ": plan: "}, gone, verdict{code: -1}},
		"without Contract": {resigned(drop("Contract")(l.message(l.decided)), l.daemon), verdict{1, ": trailers: "}, gone, verdict{code: -1}},
		"without Inputs":   {resigned(drop("Inputs")(l.message(l.decided)), l.daemon), verdict{1, ": trailers: "}, gone, verdict{code: -1}},
		"without Market":   {resigned(drop("Market")(l.message(l.decided)), l.daemon), verdict{1, ": trailers: "}, gone, verdict{code: -1}},
		"without Now":      {resigned(drop("Now")(l.message(l.decided)), l.daemon), verdict{1, ": trailers: "}, gone, verdict{code: -1}},
		"without Round":    {resigned(drop("Round")(l.message(l.decided)), l.daemon), verdict{1, "the commit has no Round"}, gone, verdict{1, "nothing was decided in it"}},
		"without Ledger":   {resigned(drop("Ledger")(l.message(l.decided)), l.daemon), verdict{1, ": sequence: has no trailer Ledger"}, gone, verdict{code: -1}},
		"without Fleet":    {resigned(drop("Fleet")(l.message(l.decided)), l.daemon), verdict{1, ": sequence: has no trailer Fleet"}, gone, verdict{code: -1}},
		"without Rules":    {later(drop("Rules")), verdict{1, ": trailers: Rules is 0, and was "}, gone, verdict{code: -1}},
		"without Renderer": {later(drop("Renderer")), verdict{1, ": trailers: Renderer is 0, and was "}, gone, verdict{code: -1}},
		"without any":      {resigned("place vision/late on paris/l4\n", l.daemon), verdict{1, ": "}, gone, verdict{code: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			l.t = t
			head := c.forge()
			where := "file://" + l.repo
			c.alone.hold(t, "audit verify", l.judged(head, "verify", where))
			c.witness.hold(t, "audit verify --witness", l.judged(head, "verify", where, "--witness", l.witness))
			if c.replay.code >= 0 {
				c.replay.hold(t, "audit replay", l.judged(head, "replay", head, where))
			}
		})
	}
	l.t = t
	verdict{0, "everything follows: "}.hold(t, "the honest ledger again", l.judged(l.head, "verify", "file://"+l.repo, "--witness", l.witness))
}

func trailerOf(l *signedLedger, commit, key string) string {
	for line := range strings.SplitSeq(l.message(commit), "\n") {
		if v, ok := strings.CutPrefix(line, key+": "); ok {
			return v
		}
	}
	return ""
}
