package ui_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// used is the small fleet with reports of how it is used: vision's training has no pod for
// half an hour, nlp's embedding has three, and of vision's serving nobody reports.
func used(t *testing.T) (*plantest.Builder, *v1alpha1.Contract) {
	t.Helper()
	b := small()
	var train *v1alpha1.Contract
	for c := range b.W.Ledger.Contracts() {
		switch c.Spec.Intent.Name {
		case "train":
			train = c
			b.Uses(c, 0)
		case "embed":
			b.Uses(c, 3)
		}
	}
	b.Tick(30 * time.Minute)
	for _, o := range b.W.Offers {
		switch o.Flavor.Ref() {
		case "paris/h100-pool":
			half := v1alpha1.Resources{v1alpha1.CPU: train.Spec.Resources[v1alpha1.CPU], v1alpha1.GPU: v1alpha1.AmountOf(2)}
			o.Flavor.Spec.Usage = map[string]v1alpha1.Resources{train.Spec.Slice: half, "another": half}
		case "berlin/a100-pool":
			o.Flavor.Spec.Overcommit = v1alpha1.Overcommit{v1alpha1.GPU: *plantest.Money("1.5")}
		case "milan/l4-pool":
			o.Flavor.Spec.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(4) // it shrank below the 6 that it sold
		}
	}
	return b, train
}

func read[T any](t *testing.T, d *daemon, path string) (data T) {
	t.Helper()
	var page struct{ Data *T }
	page.Data = &data
	w := d.get(t, path)
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v %.300s", path, w.Code, err, w.Body)
	}
	return data
}

// TestUsage: pages show pods and utilisation where agents report them, and nothing
// where they do not.
func TestUsage(t *testing.T) {
	d := newDaemon(t)
	b, train := used(t)
	d.show(b)
	d.now = b.W.Now.Time
	p := read[ui.ContractAnswer](t, d, "/api/ui/contracts/"+train.Metadata.Name)
	if u := p.Usage; !u.Idle() || *u.Pods != 0 || d.now.Sub(u.IdleSince.Time) != 30*time.Minute {
		t.Errorf("training: %+v", u)
	}
	shares := map[string]int64{}
	for _, s := range p.Usage.Shares {
		shares[s.Resource] = s.Percent()
	}
	if shares["nvidia.com/gpu"] != 25 || shares[v1alpha1.CPU] != 100 {
		t.Errorf("training uses %v", shares)
	}
	for path, want := range map[string]string{
		"/ui/contracts/" + train.Metadata.Name: "<strong>No pod</strong> for 30m",
		"/ui/intents/vision/train":             `aria-label="25 % of nvidia.com/gpu used"`,
		"/ui/intents/nlp/embed":                "3 pods on its virtual nodes",
		"/ui/intents/vision/serve":             "No agent reports how it is used.",
		"/ui/contracts":                        "no pod for 30m",
	} {
		if text := d.get(t, path).Body.String(); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
	if row := read[ui.IntentAnswer](t, d, "/api/ui/intents/vision/serve").Contracts[0]; row.Usage != nil {
		t.Errorf("serving: %+v", row.Usage)
	}
}

// TestIdleCost: what active contracts without pods cost, to who may see it, and of how many
// nobody reports.
func TestIdleCost(t *testing.T) {
	d := newDaemon(t)
	b, train := used(t)
	d.show(b)
	d.now = b.W.Now.Time
	all := read[view.CostPage](t, d, "/api/ui/cost")
	if got := all.Total; !all.Present || got.Idle != 1 || got.IdleHourly.Cmp(train.Spec.Price.Hourly) != 0 || got.Unreported != 3 {
		t.Errorf("in total: %+v", got)
	}
	for _, r := range all.Rows.Items {
		if want := map[string]int{"vision": 1}[r.Name]; r.Idle != want {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	if before := read[view.CostPage](t, d, "/api/ui/cost?month=2020-01"); before.Present || before.Total.Idle != 0 {
		t.Errorf("of another month: %+v", before)
	}
	if text := d.get(t, "/ui/cost").Body.String(); !strings.Contains(text, "1 active contract without a pod; of 3 more no agent reports pods") {
		t.Errorf("the page does not say it")
	}
	d.look(view.Viewer{Groups: []string{"team-nlp"}})
	if got := read[view.CostPage](t, d, "/api/ui/cost").Total; got.Idle != 0 || !got.IdleHourly.IsZero() || got.Unreported != 0 {
		t.Errorf("to a member of nlp: %+v", got)
	}
}

// TestIdleCost_CSV: the export leaves cells empty where no agent reports pods, and in a month
// that is over.
func TestIdleCost_CSV(t *testing.T) {
	d := newDaemon(t)
	b, train := used(t)
	d.show(b)
	d.now = b.W.Now.Time
	idle := func(query string) map[string][3]string {
		rows, err := csv.NewReader(d.get(t, "/api/ui/cost.csv?by=intent"+query).Body).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		head, out := rows[0], map[string][3]string{}
		for _, row := range rows[1:] {
			out[row[0]] = [3]string{row[slices.Index(head, "idle contracts")], row[slices.Index(head, "idle per hour")], row[slices.Index(head, "without a report")]}
		}
		return out
	}
	now := idle("")
	for name, want := range map[string][3]string{"vision/train": {"1", train.Spec.Price.Hourly.String(), "0"}, "nlp/embed": {"0", "0", "0"}, "vision/serve": {"", "", "3"}} {
		if now[name] != want {
			t.Errorf("%s: got %q, want %q", name, now[name], want)
		}
	}
	d.now = d.now.AddDate(0, 2, 0)
	past := idle("&month=" + b.W.Now.UTC().Format("2006-01"))
	if len(past) == 0 {
		t.Fatal("the month that is over has no row")
	}
	for name, got := range past {
		if got != [3]string{} {
			t.Errorf("%s in a month that is over: got %q, want empty cells", name, got)
		}
	}
}

// TestCollector_Use: idle GPUs, and what is sold and may be sold beyond capacity.
func TestCollector_Use(t *testing.T) {
	d := newDaemon(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ui.Collector(d.ui))
	b, _ := used(t)
	d.show(b)
	text := scraped(r)
	for _, want := range []string{
		`fleetbroker_fleet_info{currency="EUR",fleet="acme"} 1`,
		`fleetbroker_gpus{kind="idle",model="nvidia-h100"} 8`, `fleetbroker_gpus{kind="idle",model="nvidia-a100"} 0`,
		`fleetbroker_gpus{kind="headroom",model="nvidia-a100"} 16`, `fleetbroker_gpus{kind="headroom",model="nvidia-h100"} 0`,
		`fleetbroker_gpus{kind="oversold",model="nvidia-l4"} 2`, `fleetbroker_gpus{kind="oversold",model="nvidia-a100"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestPullRequest: intents and contracts show the pull request that brought them, by the
// words of its merge.
func TestPullRequest(t *testing.T) {
	d := newDaemonWith(t, func(o *ui.Options) {
		o.PullPage = func(n int) string { return fmt.Sprintf("https://git.example.org/acme/fleet/pulls/%d", n) }
	})
	b := small()
	var train *v1alpha1.Contract
	for c := range b.W.Ledger.Contracts() {
		if c.Spec.Intent.Name == "train" {
			train = c
		}
	}
	d.input("A fleet", "Bo", plantest.Start.Time, map[string]string{"fleet.yaml": "1"})
	h := tree.BlobHash([]byte("the merge"))
	train.Spec.Intent.Commit = h.String()
	d.files[train.Spec.Intent.Path] = []byte("1")
	ada := gitobj.Person{Name: "Ada", When: plantest.Start.Time}
	d.commits[h] = gitrepo.Commit{Hash: h, Message: "vision trains (#12)\n", Author: ada, Committer: ada, Parents: []tree.Hash{d.inputs}}
	d.trees[h], d.inputs = tree.NewMemory().Build(d.files), h
	d.show(b)
	for _, path := range []string{"/intents/vision/train", "/contracts/" + train.Metadata.Name} {
		var past ui.Past
		for range 200 { // histories of files are made beside the page
			if past = read[ui.Past](t, d, "/api/ui"+path); past.Pull != 0 {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		text := d.get(t, "/ui"+path).Body.String()
		if past.Pull != 12 || !strings.Contains(text, `<dt>By way of</dt><dd><a href="https://git.example.org/acme/fleet/pulls/12" rel="noreferrer">pull request #12</a>`) {
			t.Errorf("%s: %+v", path, past.Pull)
		}
	}
}

// TestHowToUse: what the guide has between backticks is code on the page, and what people
// wrote into it, such as the file's name, is text in it.
func TestHowToUse(t *testing.T) {
	d, b := newDaemon(t), small()
	const hostile = "intents/vision/`<img src=x>`\u202e` & <b>.yaml"
	for _, c := range b.Contracts("vision/train") {
		c.Spec.Intent.Path = hostile
		c.Spec.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision"}}}
	}
	d.show(b)
	page := d.get(t, "/ui/intents/vision/train").Body.String()
	_, how, found := strings.Cut(page, `<div id="how"`)
	how, _, ended := strings.Cut(how, "<h3>Manifest</h3>")
	if !found || !ended {
		t.Fatalf("the page has no guide with a manifest: %.300s", page)
	}
	for _, want := range []string{
		"(<code>podOffloadingStrategy: Remote</code> in the intent",
		"delete intents/vision/<code>&lt;img src=x&gt;</code>\\u202e<code> &amp; &lt;b&gt;.yaml (or set </code>suspend: true`)",
	} {
		if !strings.Contains(how, want) {
			t.Errorf("the guide has no %q: %s", want, how)
		}
	}
	if strings.Contains(how, "<img") || strings.Contains(how, "<b>") || strings.ContainsRune(how, '\u202e') {
		t.Errorf("the guide has markup of a file's name: %s", how)
	}
	// Without such a name no backtick is left.
	_, how, _ = strings.Cut(d.get(t, "/ui/intents/vision/serve").Body.String(), `<div id="how"`)
	how, _, _ = strings.Cut(how, "<h3>Manifest</h3>")
	if !strings.Contains(how, "(or set <code>suspend: true</code>) by pull request") || strings.Contains(how, "`") {
		t.Errorf("got %s", how)
	}
}
