package ui_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// contractOf is a contract of an intent in the small fleet.
func contractOf(t testing.TB, b *plantest.Builder, intent string) string {
	t.Helper()
	list := b.Contracts(intent)
	if len(list) == 0 {
		t.Fatalf("%s holds nothing", intent)
	}
	return list[0].Metadata.Name
}

// paths are one address of each page of the small fleet, by template.
func paths(t testing.TB, b *plantest.Builder) []string {
	return []string{
		"/", "/intents", "/intents/vision/train", "/intents/nlp/giant", "/intents/nlp/giant/offers", "/queue", "/contracts", "/contracts?state=all", "/contracts/" + contractOf(t, b, "vision/train"),
		"/flavors", "/flavors/paris/h100-pool", "/providers", "/providers/paris", "/providers/rome", "/tenants", "/tenants/vision", "/tenants/nlp", "/peerings", "/peerings/rome/paris", "/calendar", "/calendar?days=90&q=paris", "/cost", "/cost?by=label:team", "/cost?by=month", "/cost?by=contract&month=all", "/commits", "/audit", "/capacity", "/capacity/" + aJob,
	}
}

// address is a pointer that was written in place of what it points to.
var address = regexp.MustCompile(`\b0,?xc?[0-9a-f,]{8,}`)

// TestPages: each page is there, has its JSON under the same path, and redirects to it.
func TestPages(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b, view.Notice{Level: "warning", Text: "a notice"})
	for _, path := range paths(t, b) {
		w := d.get(t, "/ui"+path)
		text := w.Body.String()
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || !strings.Contains(text, "</html>") {
			t.Fatalf("%s: %d %s\n%.400s", path, w.Code, w.Header().Get("Content-Type"), text)
		}
		for _, bad := range []string{"ZgotmplZ", "&lt;nil&gt;", "%!", "<script>", "style=", " onclick", "javascript:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		if at := address.FindString(text); at != "" {
			t.Errorf("%s shows an address in memory: %s", path, at)
		}
		if !strings.Contains(text, "a notice") {
			t.Errorf("%s does not show the notice", path)
		}
		api := "/api/ui" + path
		if path == "/" {
			api = "/api/ui/fleet"
		}
		j := d.get(t, api)
		var got struct {
			Fleet, Version, Currency string
			Data                     map[string]any
		}
		if err := json.Unmarshal(j.Body.Bytes(), &got); err != nil || j.Code != http.StatusOK || got.Fleet != "acme" || got.Version == "" || got.Currency != "EUR" || len(got.Data) == 0 {
			t.Errorf("%s: %d, %v, %+v", api, j.Code, err, got)
		}
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		r := d.get(t, "/ui"+path+sep+"o=json")
		if to := r.Header().Get("Location"); r.Code != http.StatusSeeOther || strings.SplitN(to, "?", 2)[0] != strings.SplitN(api, "?", 2)[0] {
			t.Errorf("%s with o=json: %d to %s, want %s", path, r.Code, to, api)
		}
	}
}

// TestHeaders: nothing but the program's own files may be loaded, wherever the answer
// comes from, and nothing is kept.
func TestHeaders(t *testing.T) {
	d := newDaemon(t)
	for path, status := range map[string]int{"/ui/": 503, "/api/ui/fleet": 503, "/ui/nothing": 404, "/ui/assets/none.js": 404, "/ui/assets/style.css": 200} {
		w := d.get(t, path)
		h := w.Header()
		if w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	d.show(small())
	page := d.get(t, "/ui/").Body.String()
	at := strings.Index(page, "/ui/assets/style.css?v=")
	if at < 0 {
		t.Fatal("the page names no style sheet")
	}
	sheet, _, _ := strings.Cut(page[at:], `"`)
	if w := d.get(t, sheet); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("%s: %d %v", sheet, w.Code, w.Header())
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if w := d.send(t, method, "/ui/intents"); w.Code < 400 {
			t.Errorf("%s /ui/intents is answered %d", method, w.Code)
		}
	}
}

// TestBadQueries: a query that is not understood is refused with its name, as page and as JSON.
func TestBadQueries(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	for path, want := range map[string]string{
		"/ui/contracts?page=0": "page", "/ui/contracts?size=1001": "size", "/ui/contracts?page=x": "page", "/api/ui/cost?by=colour": "by", "/api/ui/cost?by=label:": "by", "/ui/calendar?days=400": "days", "/ui/calendar?days=-1": "days",
		"/api/ui/intents?q=" + strings.Repeat("a", 201): "q",
	} {
		if w := d.get(t, path); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.60s: %d %.200s", path, w.Code, w.Body)
		}
	}
}

// TestHostileTexts: whatever people, agents and clusters write is shown as text: no
// markup of theirs, no character that is not seen, on no page. In JSON it is the same
// value.
func TestHostileTexts(t *testing.T) {
	d, b := newDaemon(t), small()
	texts := hostile.Texts()
	name := contractOf(t, b, "vision/train")
	for i, text := range texts {
		if i%7 == 0 { // a commit message has its trailers
			d.commit(text+"\n\nContract: "+name+" Active -> Degraded\n", text, plantest.Start.Time)
			d.input(text, text, plantest.Start.Time, map[string]string{"intents/vision/train.yaml": fmt.Sprint(i), "tenants/vision.yaml": fmt.Sprint(i)})
		}
	}
	all := strings.Join(texts, " ")
	b.Cluster("paris", func(c *v1alpha1.Cluster) {
		c.Spec.Labels = map[string]string{"x": all}
		c.Spec.Location.City = all
	})
	for _, o := range b.W.Offers {
		f := *o.Flavor
		f.Spec.Labels = map[string]string{"note": all}
		f.Spec.GPU = clone(f.Spec.GPU)
		if f.Spec.GPU != nil {
			f.Spec.GPU.Interconnect = all
		}
		o.Flavor = &f
		o.Location.Region = all
		o.Sources.LocationConflict = all
	}
	for _, c := range b.Contracts("vision/train") {
		c.Status.Reason, c.Status.Message = "Reason", all
		c.Spec.Intent.Author = all
		c.Status.History = append(c.Status.History, v1alpha1.PhaseChange{Phase: v1alpha1.PhaseDegraded, At: plantest.Start, Message: all})
	}
	b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Members, s.Namespaces = []string{all}, []string{all}
	})
	for _, in := range b.W.Intents {
		in.Metadata.Labels = map[string]string{"team": all}
	}
	d.show(b, view.Notice{Level: "error", Text: all})
	for _, path := range append(paths(t, b), "/nothing", "/intents/a/%3Cscript%3E", "/contracts?q=%3Cscript%3Ealert(1)%3C/script%3E&state=%22%3E%3Cb%3E") {
		text := d.get(t, "/ui"+path).Body.String()
		for _, tag := range []string{"<script>", "<img src=x", "<svg/onload", "<a href=https", "<style>", "<plaintext", "<details open ontoggle", "<!--", "javascript:alert(1)\"", "<iframe", "<meta http-equiv", "<base", "onfocus='alert", "</script><script"} {
			if strings.Contains(text, tag) {
				t.Errorf("%s has %q", path, tag)
			}
		}
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s has the character %U", path, r)
				break
			}
		}
		for _, once := range []string{"<script", "</title>", "</html>"} {
			if n := strings.Count(text, once); n != 1 {
				t.Errorf("%s has %s %d times", path, once, n)
			}
		}
	}
	rows, err := csv.NewReader(d.get(t, "/api/ui/cost.csv?by=label:team&month=all").Body).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	for _, row := range rows[1:] {
		if i := strings.IndexFunc(row[0], func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || strings.ContainsAny(row[0][:1], "=+-@") {
			t.Errorf("a row of the export begins %.40q", row[0][max(i, 0):])
		}
	}
	var got struct{ Data struct{ Message string } }
	if err := json.Unmarshal(d.get(t, "/api/ui/contracts/"+name).Body.Bytes(), &got); err != nil || got.Data.Message != asJSON(t, all) {
		t.Errorf("the message comes back as another: %v\n%.200q", err, got.Data.Message)
	}
}

// asJSON is a text as it comes out of JSON: bytes that are no UTF-8 cannot.
func asJSON(t *testing.T, s string) (out string) {
	t.Helper()
	doc, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(doc, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// TestSight: who is in a tenant's group sees that tenant alone; who is in none sees
// totals and nothing that names a tenant, its intents or contracts.
func TestSight(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b, view.Notice{Level: "warning", Text: "intents/vision/train.yaml is broken"})
	vision, nlp := contractOf(t, b, "vision/train"), contractOf(t, b, "nlp/embed")
	everything := append(paths(t, b), "/contracts/"+nlp, "/intents/nlp/embed", "/commits?q="+nlp)
	cases := []struct {
		name   string
		viewer view.Viewer
		sees   []string
		never  []string
		refuse []string
	}{
		{"vision", view.Viewer{Name: "ada", Groups: []string{"other", "team-vision"}}, []string{vision}, []string{nlp, "nlp/", "nlp-", "giant", "nlp and vision", "Mallory"}, []string{"/intents/nlp/giant", "/intents/nlp/giant/offers", "/peerings/rome/berlin", "/tenants/nlp", "/contracts/" + nlp}},
		{"nlp", view.Viewer{Name: "bea", Groups: []string{"research"}}, []string{nlp}, []string{vision, "vision/", "vision-", "Mallory"}, []string{"/intents/vision/train", "/intents/vision/train/offers", "/peerings/rome/paris", "/tenants/vision", "/contracts/" + vision}},
		{"none", view.Viewer{Name: "eve", Groups: []string{"team"}}, nil, []string{vision, nlp, "vision", "nlp", "giant"}, []string{"/intents/nlp/giant", "/intents/vision/train", "/peerings/rome/paris", "/tenants/vision", "/contracts/" + vision}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d.look(c.viewer)
			shown := ""
			for _, root := range []string{"/ui", "/api/ui"} {
				for _, path := range everything {
					if root == "/api/ui" && path == "/" {
						path = "/fleet"
					}
					w := d.get(t, root+path)
					text := w.Body.String()
					if w.Code == http.StatusOK {
						shown += text
					}
					for _, secret := range c.never {
						// What the asker wrote into the address comes back to the asker.
						if !strings.Contains(path, secret) && strings.Contains(text, secret) {
							at := strings.Index(text, secret)
							t.Errorf("%s%s shows %q: …%.160s…", root, path, secret, text[max(at-80, 0):])
						}
					}
				}
			}
			for _, want := range c.sees {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is shown nowhere", want)
				}
			}
			for _, path := range c.refuse {
				if w := d.get(t, "/api/ui"+path); w.Code != http.StatusNotFound {
					t.Errorf("%s is answered %d", path, w.Code)
				}
			}
			if c.name == "none" && !strings.Contains(d.get(t, "/ui/").Body.String(), "Totals only") {
				t.Error("the page does not say that it shows totals only")
			}
		})
	}
}

// TestFileHistory: a page tells who changed the files behind it, with a link to the commit;
// words that may be about other tenants are for who sees all.
func TestFileHistory(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b)
	train := contractOf(t, b, "vision/train")
	history := func(path string) string {
		t.Helper()
		var got struct {
			Data struct{ Files []ui.FileHistory }
		}
		for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
			w := d.get(t, "/api/ui"+path)
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, w.Body)
			}
			done := true
			for _, f := range got.Data.Files {
				done = done && f.Complete
			}
			if done && len(got.Data.Files) > 0 {
				break
			}
		}
		out := ""
		for _, f := range got.Data.Files {
			out += f.Path + ":"
			for _, c := range f.Changes {
				out += fmt.Sprintf(" [%s %s: %s]", c.What, c.Author, c.Subject)
			}
			out += fmt.Sprintf(" of %d\n", f.Searched)
		}
		return out
	}
	trained := "intents/vision/train.yaml: [changed Mallory: nlp and vision ask for more] [added Ada: vision trains] of 4\n"
	for path, want := range map[string]string{
		"/intents/vision/train": trained, "/contracts/" + train: trained,
		"/tenants/vision":          "tenants/vision.yaml: [changed Bo: vision's quota] [added Bo: A fleet] of 4\nintents/vision: [changed Mallory: nlp and vision ask for more] [added Ada: vision trains] of 4\n",
		"/providers/paris":         "clusters/paris.yaml: [added Bo: A fleet] of 4\nflavors/paris: [added Bo: A fleet] of 4\n",
		"/flavors/paris/h100-pool": "flavors/paris: [added Bo: A fleet] of 4\nprices: [added Bo: A fleet] of 4\n",
	} {
		if got := history(path); got != want {
			t.Errorf("%s: got\n%swant\n%s", path, got, want)
		}
		text := d.get(t, "/ui"+path).Body.String()
		if !strings.Contains(text, `href="https://git.example.org/acme/fleet/commit/`) || !strings.Contains(text, "Who changed its files") {
			t.Errorf("%s does not link to the commits", path)
		}
	}
	d.look(view.Viewer{Groups: []string{"team-vision"}})
	if got, want := history("/intents/vision/train"), "intents/vision/train.yaml: [changed : changes other files too] [added Ada: vision trains] of 4\n"; got != want {
		t.Errorf("a member: got\n%swant\n%s", got, want)
	}
	var flavor struct{ Data ui.FlavorAnswer }
	d.look(view.Viewer{All: true})
	if err := json.Unmarshal(d.get(t, "/api/ui/flavors/paris/h100-pool").Body.Bytes(), &flavor); err != nil || len(flavor.Data.Commits) == 0 || !flavor.Data.Commits[0].Touches(map[string]bool{train: true}) {
		t.Errorf("the flavor's commits: %v, %+v", err, flavor.Data.Commits)
	}
	d.look(view.Viewer{})
	if text := d.get(t, "/ui/flavors/paris/h100-pool").Body.String(); strings.Contains(text, train) || strings.Contains(text, "A fleet") {
		t.Error("who sees totals only sees commits of tenants, or words about them")
	}
}

// TestFigures: the fleet's page adds up to what the ledger and the offers have.
func TestFigures(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	var got struct {
		Data struct {
			Money   view.Money
			GPUs    view.Share
			Waiting int
		}
	}
	if err := json.Unmarshal(d.get(t, "/api/ui/fleet").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	held, hourly := int64(0), v1alpha1.Zero
	for c := range b.W.Ledger.Contracts() {
		if c.Status.Phase.Charged() {
			held, hourly = held+c.Spec.GPUs.Count, hourly.Add(c.Spec.Price.Hourly)
		}
	}
	if held != 18 || got.Data.GPUs.Capacity != 72 || got.Data.GPUs.Held != held || got.Data.GPUs.Free != 72-held {
		t.Errorf("GPUs: got %+v, want 72 of which %d are held", got.Data.GPUs, held)
	}
	if got.Data.Money.Hourly.Cmp(hourly) != 0 {
		t.Errorf("hourly: got %s, want %s", got.Data.Money.Hourly, hourly)
	}
	if spent := hourly.MulInt(3); got.Data.Money.Spent.Round(4).Cmp(spent.Round(4)) != 0 {
		t.Errorf("spent after three hours: got %s, want %s", got.Data.Money.Spent, spent)
	}
	if got.Data.Waiting < 1 {
		t.Errorf("waiting: got %d", got.Data.Waiting)
	}
	var offers struct {
		Data ui.OffersAnswer
	}
	if err := json.Unmarshal(d.get(t, "/api/ui/intents/nlp/giant/offers").Body.Bytes(), &offers); err != nil || len(offers.Data.Offers) != 4 || offers.Data.Fitting != 0 {
		t.Errorf("offers for nlp/giant: %v, %+v", err, offers.Data)
	}
	if page := d.get(t, "/ui/intents/nlp/giant/offers").Body.String(); !strings.Contains(page, `data-l="Free">28<`) {
		t.Error("the 28 free GPUs of berlin/a100-pool are not shown")
	}
	for _, o := range b.W.Offers {
		if o.Flavor.Metadata.Name == "h100-pool" {
			o.Price = &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("2.85"), "memoryGi": v1alpha1.MustDecimal("0.003")}}
		}
	}
	d.show(b)
	if page := d.get(t, "/ui/flavors/paris/h100-pool").Body.String(); !strings.Contains(page, "<dt>memoryGi</dt><dd>0.003 EUR</dd>") || !strings.Contains(page, "<dd>2.85 EUR</dd>") {
		t.Error("a price below a cent is not shown as it is")
	}
	if page := d.get(t, "/ui/cost").Body.String(); !strings.Contains(page, "vision") {
		t.Error("the cost page does not name vision")
	}
}

// TestCostExport: costs as CSV, a row each, in which nothing is a formula.
func TestCostExport(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	w := d.get(t, "/api/ui/cost.csv?by=contract&month=all")
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") || len(rows) != 6 {
		t.Fatalf("%d %v %q", w.Code, err, rows)
	}
	if got := strings.Join(rows[0], ","); got != "contract,cost,list,saved,currency,month,idle contracts,idle per hour,still to come,without a rate,without a report" {
		t.Errorf("header: %s", got)
	}
	if rows[1][0] != contractOf(t, b, "vision/train") || rows[1][1] != "68.4" || rows[1][4] != "EUR" {
		t.Errorf("the most expensive: %q", rows[1])
	}
	d.look(view.Viewer{Groups: []string{"team-nlp"}})
	if text := d.get(t, "/api/ui/cost.csv?by=contract&month=all").Body.String(); strings.Contains(text, "vision") || !strings.Contains(text, "nlp-embed") {
		t.Errorf("to a member of nlp:\n%s", text)
	}
	d.look(view.Viewer{All: true})
	page := d.get(t, "/ui/cost?by=contract&month=all&q=vision-train").Body.String()
	_, link, _ := strings.Cut(page, `href="/api/ui/cost.csv?`)
	link, _, _ = strings.Cut(link, `"`)
	if rows, err = csv.NewReader(d.get(t, "/api/ui/cost.csv?"+html.UnescapeString(link)).Body).ReadAll(); err != nil || len(rows) != 2 || !strings.HasPrefix(rows[1][0], "vision-train") {
		t.Errorf("a page that was searched exports %q by %q, %v", rows, link, err)
	}
	if w := d.get(t, "/api/ui/cost.csv?by=colour"); w.Code != http.StatusBadRequest {
		t.Errorf("by=colour: %d", w.Code)
	}
}

// TestPaging: every contract is on one page and no other, and a page beyond the end is
// the last.
func TestPaging(t *testing.T) {
	d := newDaemon(t)
	d.show(big(235, 20))
	seen := map[string]int{}
	for page := 1; page <= 5; page++ {
		var got struct {
			Data view.List[view.ContractRow]
		}
		if err := json.Unmarshal(d.get(t, fmt.Sprintf("/api/ui/contracts?size=50&page=%d", page)).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Data.Total != 235 || got.Data.Pages != 5 || got.Data.Page != page {
			t.Fatalf("page %d: %d rows on %d pages, of which it is %d", page, got.Data.Total, got.Data.Pages, got.Data.Page)
		}
		for _, c := range got.Data.Items {
			seen[c.Name]++
		}
	}
	if len(seen) != 235 {
		t.Errorf("%d contracts were listed", len(seen))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s was listed %d times", name, n)
		}
	}
	if text := d.get(t, "/ui/contracts?page=99").Body.String(); !strings.Contains(text, "Page 5 of 5") {
		t.Error("a page beyond the end is not the last")
	}
	var all struct {
		Data view.List[view.ContractRow]
	}
	if err := json.Unmarshal(d.get(t, "/api/ui/contracts").Body.Bytes(), &all); err != nil || len(all.Data.Items) != 235 {
		t.Errorf("without a size: %d rows, %v", len(all.Data.Items), err)
	}
}

// Tenants' own repositories are on the fleet's page, those that are frozen first, for who
// sees one of their tenants.
func TestSources(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	at := plantest.Start.Add(time.Hour)
	entry := func(name, tenant string) v1alpha1.IntentSource {
		return v1alpha1.IntentSource{Name: name, URL: "https://git.example.org/" + name + ".git", Tenants: []string{tenant}}
	}
	d.mu.Lock()
	policy := *d.snap.Fleet.Policy
	policy.Sources = []v1alpha1.IntentSource{entry("a-good", "vision"), entry("b-frozen", "vision"), entry("c-new", "vision"), entry("d-secret", "hidden")}
	d.snap.Fleet.Policy = &policy
	d.snap.Fleet.Copies = map[string]*v1alpha1.SourceCopy{}
	for _, e := range policy.Sources[:2] {
		d.snap.Fleet.Copies[e.Name] = &v1alpha1.SourceCopy{Commit: strings.Repeat("b", 40), Signer: "ada@example.org", Files: make([]v1alpha1.SourceCopyFile, 3)}
	}
	d.snap.Sources = []wire.SourceStatus{
		{Name: "a-good", ReadAt: at}, {Name: "d-secret", Frozen: "nobody's business", Since: at},
		{Name: "b-frozen", ReadAt: at, Since: at, Head: strings.Repeat("c", 40), Frozen: "its history was <b>rewritten</b>", Ignored: []string{"intents/other"}},
	}
	d.mu.Unlock()
	var page struct {
		Data struct{ Sources []view.SourceRow }
	}
	if err := json.Unmarshal(d.get(t, "/api/ui/fleet").Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range page.Data.Sources {
		got += fmt.Sprintf("%s %s %d %.4s\n", r.Name, r.State, r.Files, r.Copied)
	}
	if want := "b-frozen Frozen 3 bbbb\nd-secret Frozen 0 \na-good Current 3 bbbb\nc-new NotCopied 0 \n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	html := d.get(t, "/ui/").Body.String()
	for _, want := range []string{"Tenants' own repositories", "its history was &lt;b&gt;rewritten&lt;/b&gt;", "not taken: intents/other", "signed by ada@example.org"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	d.look(view.Viewer{Groups: []string{"nobody"}})
	if body := d.get(t, "/api/ui/fleet").Body.String(); strings.Contains(body, "nobody's business") || strings.Contains(body, "b-frozen") {
		t.Error("who sees no tenant sees sources")
	}
}

// TestQueue_BlockedBy: who waits for GPUs that are there and held sees who holds them; who
// may not see that tenant sees how much others hold, and who waits for what no offer has
// sees nobody.
func TestQueue_BlockedBy(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	blocked := func() map[string][]view.Holder {
		t.Helper()
		var got struct{ Data view.List[view.QueueRow] }
		if err := json.Unmarshal(d.get(t, "/api/ui/queue").Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		out := map[string][]view.Holder{}
		for _, r := range got.Data.Items {
			out[r.Name] = r.BlockedBy
		}
		return out
	}
	got := blocked()
	if h := got["giant"]; len(h) != 1 || !reflect.DeepEqual(h[0], view.Holder{Tenant: "vision", GPUs: 8, Contracts: 1}) {
		t.Errorf("16 of 16 GPUs, of which vision holds 8, are blocked by %+v", h)
	}
	if h, is := got["cheap"]; !is || len(h) != 0 {
		t.Errorf("4 GPUs of which 8 are free, at more than it pays, are blocked by %+v", h)
	}
	if page := d.get(t, "/ui/queue").Body.String(); !strings.Contains(page, `<a href="/ui/tenants/vision">vision</a>, 8 GPUs in 1 contract`) {
		t.Error("the page does not say it")
	}
	d.look(view.Viewer{Groups: []string{"team-nlp"}})
	if h := blocked()["giant"]; len(h) != 1 || !reflect.DeepEqual(h[0], view.Holder{GPUs: 8, Contracts: 1}) {
		t.Errorf("to nlp: %+v", h)
	}
	if page := d.get(t, "/ui/queue").Body.String(); strings.Contains(page, "vision") || !strings.Contains(page, "other tenants, 8 GPUs in 1 contract") {
		t.Error("the page of nlp names vision, or does not say what others hold")
	}
}
