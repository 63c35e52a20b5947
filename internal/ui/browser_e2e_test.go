//go:build e2e

package ui_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// screenshots is where pages are kept as they looked.
var screenshots = flag.String("screenshots", os.Getenv("SCREENSHOTS"), "directory for a picture of each page that the browser tests open")

// installChromium is what to do without it.
const installChromium = "install it: apt-get install chromium (or name it: CHROMIUM=/path/to/chromium)"

// chromium is the browser, which .ci/run installs.
func chromium(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("the browser tests need chromium, which is not on PATH; " + installChromium)
	return ""
}

// tab is a page of a browser, with what went wrong on it.
type tab struct {
	t   testing.TB
	ctx context.Context
	at  string

	mu     sync.Mutex
	errors []string
}

// open starts a browser that shows a dashboard.
func open(t testing.TB, d *daemon) *tab {
	t.Helper()
	s := httptest.NewServer(d.ui)
	t.Cleanup(func() {
		close(d.stop) // streams end, as on a shutdown
		s.Close()
	})
	return openAt(t, s.URL)
}

// openAt starts a browser for a server, which may have a certificate of a test's own.
func openAt(t testing.TB, at string) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("ignore-certificate-errors", strings.HasPrefix(at, "https:")),
	)
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, at: at}
	if err := chromedp.Listen(ctx, b.listen); err != nil { // it starts the browser
		t.Fatalf("start the browser: %v", err)
	}
	call(b, runtime.Enable, cdp.Empty{})
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	return b
}

// listen keeps what the browser complains of: exceptions, console errors, requests that
// failed or went elsewhere.
func (b *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			text = "console: " + fmt.Sprint(e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			text = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.at) && !strings.HasPrefix(u, "about:") {
			text = "request elsewhere: " + u
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.errors = append(b.errors, text)
	}
}

// patience is how long anything in the browser may take.
const patience = time.Minute

// run does things in the browser.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// call is a command of the browser's protocol.
func call[P, R any](b *tab, c cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// of is an action's value.
func of[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
	return v
}

// eval is a script's value.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	return of(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// show opens a path in a window of a width, light or dark.
func (b *tab) show(path string, width int64, dark bool) {
	b.t.Helper()
	b.look(width, dark)
	b.run(chromedp.Navigate(b.at+path), chromedp.WaitVisible("main"))
}

// look makes the window another.
func (b *tab) look(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 1000, DeviceScaleFactor: 1})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// calm fails where the browser complained since the last time.
func (b *tab) calm(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.errors {
		b.t.Errorf("%s: %s", where, text)
	}
	b.errors = []string{}
}

// picture keeps how the page looks, where it is asked for.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	png := of(b, chromedp.FullScreenshot(100))
	if err := os.MkdirAll(*screenshots, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// axe runs axe's rules on the page, or some of them.
func (b *tab) axe(where string, rules ...string) {
	b.t.Helper()
	source, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		b.t.Fatal(err)
	}
	only := ""
	if len(rules) > 0 {
		only = fmt.Sprintf(", runOnly: ['%s']", strings.Join(rules, "','"))
	}
	if !eval[bool](b, `!!window.axe`) {
		eval[bool](b, string(source)+`; true`)
	}
	found := eval[string](b, `axe.run(document, {resultTypes: ['violations']`+only+`}).then(r => JSON.stringify(r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 200) + ' ' + (n.failureSummary || '').slice(0, 300))}))))`)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatalf("%s: axe answered %.200q: %v", where, found, err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: axe: %s (%s), %d times, first %s", where, v.ID, v.Help, len(v.Nodes), v.Nodes[0])
	}
}

// fits fails where a page is wider than its window.
func (b *tab) fits(where string) {
	b.t.Helper()
	over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	if over > 0 {
		who := eval[string](b, `Array.from(document.querySelectorAll('main *')).filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0,5).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0,40)).join(' | ')`)
		b.t.Errorf("%s: is %d pixels wider than its window: %s", where, over, who)
	}
}

// whole fails where a swatch is on another line than its word, a state or a unit is cut in
// two, or the bar of pages does not show which page it is.
func (b *tab) whole(where string) {
	b.t.Helper()
	for _, text := range eval[[]string](b, `Array.from(document.querySelectorAll('.kw, .unit, .st, .tag')).filter(e => e.getClientRects().length > 1 || e.scrollHeight > 2.2 * parseFloat(getComputedStyle(e).fontSize)).slice(0, 3).map(e => e.textContent)`) {
		b.t.Errorf("%s: %q is on more than one line", where, text)
	}
	// The window was made another just now: the page hears of it with its next frame.
	if at := eval[string](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => (a => { if (!a) { return ''; } const r = a.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth ? a.textContent : ''; })(document.querySelector('.top nav a[aria-current]')))`); at != "" {
		b.t.Errorf("%s: %s, the page that is shown, is out of sight in the bar of pages", where, at)
	}
}

// looks are the windows that each page is opened in.
var looks = []struct {
	name  string
	width int64
	dark  bool
}{{"desk", 1280, false}, {"dark", 1280, true}, {"phone", 360, false}, {"phone-dark", 360, true}, {"wall", 2560, false}}

// slug is a path as a file's name.
func slug(path string) string {
	return strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path), "-")
}

// TestBrowser_Pages: each page in each window is without complaint of the browser, of
// axe, and no wider than the window.
func TestBrowser_Pages(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	b.Intent("vision/night", plantest.Wants(2, "nvidia-h100"), windowed)
	b.Round()
	d.show(b, view.Notice{Level: "warning", Text: "clusters/milan.yaml:4:3: unknown field \"zone\"; its last good version is used"})
	tab := open(t, d)
	for _, path := range append(paths(t, b), "/nothing") {
		if strings.Contains(path, "?") || path == "/tenants/nlp" || path == "/providers/rome" { // of the form of another one
			continue
		}
		tab.show("/ui"+path, looks[0].width, looks[0].dark)
		name := orFleet(slug(path))
		if strings.HasPrefix(path, "/contracts/") {
			name = "contract"
		}
		for i, look := range looks {
			where := path + " " + look.name
			tab.look(look.width, look.dark)
			tab.fits(where)
			tab.whole(where)
			switch i {
			case 0:
				tab.axe(where)
			case 1: // other colours
				tab.axe(where, "color-contrast")
			case 2: // another form
				tab.axe(where, "scrollable-region-focusable", "target-size", "label", "heading-order")
			}
			tab.picture(name + "." + look.name)
		}
		if path == "/nothing" { // the browser reports the status itself
			tab.errors = []string{}
		}
		tab.calm(path)
	}
}

// TestBrowser_LongNames: the longest names that a fleet may have, without a hyphen to break
// them at, make no page wider than a phone.
func TestBrowser_LongNames(t *testing.T) {
	long := func(begin string, n int) string { return begin + strings.Repeat("x", n-len(begin)) }
	provider, consumer, flavor, tenant, intent := long("provider", 63), long("consumer", 63), long("flavor", 63), long("tenant", 40), long("intent", 40)
	b := plantest.New()
	b.W.FleetName = "acme"
	b.Provider(provider).Consumer(consumer)
	b.Offer(provider+"/"+flavor, plantest.Cards("nvidia-h100", 16, "80Gi"), plantest.Costs("2.85"), plantest.In("eu-west-3", "eu-west-3a"))
	b.Tenant(tenant, consumer, func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("20000")} })
	b.Intent(tenant+"/"+intent, plantest.Wants(8, "nvidia-h100"), plantest.For(72*time.Hour))
	b.Round()
	b.Deliver()
	b.Tick(time.Hour).Round()
	b.Intent(tenant+"/"+long("queued", 40), plantest.Wants(16, "nvidia-h100"))
	b.Intent(tenant+"/"+long("night", 40), plantest.Wants(2, "nvidia-h100"), windowed)
	b.Round()
	d := newDaemon(t)
	d.show(b)
	d.mu.Lock()
	next := *d.snap
	next.States, next.Version = slices.Clone(next.States), "away"
	next.States[0].Reason, next.States[0].Message = ledger.DegradedConsumerUnreachable, "no kubeconfig of cluster "+consumer
	d.snap = &next
	d.mu.Unlock()
	d.ui.Changed()
	tab := open(t, d)
	for _, path := range []string{
		"", "/intents", "/queue", "/contracts", "/flavors", "/providers", "/tenants", "/peerings", "/calendar", "/cost", "/cost?by=contract",
		"/intents/" + tenant + "/" + intent, "/intents/" + tenant + "/" + intent + "/offers", "/contracts/" + next.States[0].Name, "/flavors/" + provider + "/" + flavor,
		"/providers/" + provider, "/providers/" + consumer, "/tenants/" + tenant, "/peerings/" + consumer + "/" + provider,
	} {
		tab.show("/ui"+path, 360, false)
		tab.fits(path)
		tab.look(1280, false)
		tab.fits(path + " on a desk")
		tab.calm(path)
	}
}

func orFleet(name string) string {
	if name == "" {
		return "fleet"
	}
	return name
}

// TestBrowser_Empty: a fleet of nothing says so, on each list.
func TestBrowser_Empty(t *testing.T) {
	d, b := newDaemon(t), plantest.New()
	d.show(b)
	tab := open(t, d)
	for _, path := range []string{"/", "/intents", "/queue", "/contracts", "/flavors", "/providers", "/tenants", "/peerings", "/calendar", "/cost", "/commits", "/audit"} {
		tab.show("/ui"+path, 1280, false)
		tab.axe("empty " + path)
		tab.fits("empty " + path)
		tab.calm("empty " + path)
		words := eval[string](tab, `document.querySelector('main').innerText`)
		if !strings.Contains(words, "No ") && !strings.Contains(words, "Nothing") {
			t.Errorf("%s does not say that there is nothing: %q", path, words)
		}
		tab.picture("empty." + orFleet(slug(path)))
	}
}

// TestBrowser_Audit: what the audit finds is on its page, in each window.
func TestBrowser_Audit(t *testing.T) {
	d, _ := audited(t)
	auditOf(t, d, "")
	tab := open(t, d)
	tab.show("/ui/audit", looks[0].width, looks[0].dark)
	for _, look := range looks {
		tab.look(look.width, look.dark)
		tab.fits("audit " + look.name)
		tab.axe("audit " + look.name)
		tab.picture("audited." + look.name)
	}
	tab.calm("audit")
	if words := eval[string](tab, `document.querySelector('main').innerText`); !strings.Contains(words, "Violates") || !strings.Contains(words, "Verified") {
		t.Errorf("the page shows %s", words)
	}
}

// TestBrowser_Capacity: a person fills in the form; the page follows the simulation, which
// runs in a process of its own, and shows what came of it, in each window.
func TestBrowser_Capacity(t *testing.T) {
	d := planning(t)
	tab := open(t, d)
	tab.show("/ui/", looks[0].width, false)
	tab.run(chromedp.Click(`nav a[href="/ui/capacity"]`), chromedp.WaitVisible(`form.plan`))
	tab.axe("capacity, empty")
	tab.run(
		chromedp.SetValue(`input[name=days]`, "2"), chromedp.SetValue(`input[name=growth]`, "2.5"), chromedp.SetValue(`select[name=without]`, "berlin"),
		chromedp.SetValue(`select[name=of]`, "paris"), chromedp.SetValue(`input[name=times]`, "0.8"), chromedp.Click(`form.plan button`),
		chromedp.WaitVisible(`#job table`),
	)
	words := eval[string](tab, `document.querySelector('main').innerText`)
	for _, want := range []string{"demand × 2.5; without berlin; prices of paris × 0.8", "Done", "Never placed, and why", "gone"} {
		if !strings.Contains(words, want) {
			t.Errorf("the result lacks %q: %s", want, words)
		}
	}
	for _, path := range []string{"", "/ui/capacity"} {
		if path != "" {
			tab.show(path, looks[0].width, false)
		}
		for _, look := range looks {
			tab.look(look.width, look.dark)
			tab.fits("capacity " + path + look.name)
			tab.axe("capacity " + path + look.name)
			tab.picture("capacity" + slug(path) + "." + look.name)
		}
	}
	if words := eval[string](tab, `document.querySelector('#jobs').innerText`); !strings.Contains(words, "as it is") {
		t.Errorf("the list shows %s", words)
	}
	tab.calm("capacity")
}

// TestBrowser_CapacityCancelled: a simulation of a big fleet is begun and cancelled by the
// page's buttons, its process ends, and the list says so.
func TestBrowser_CapacityCancelled(t *testing.T) {
	d := planningOf(t, big(10_000, 1000))
	tab := open(t, d)
	tab.show("/ui/capacity", looks[0].width, false)
	tab.run(
		chromedp.SetValue(`input[name=days]`, "90"), chromedp.SetValue(`input[name=growth]`, "2"), chromedp.Click(`form.plan button`),
		chromedp.WaitVisible(`#job progress`), chromedp.Click(`#job form button`), chromedp.WaitVisible(`#jobs table`),
	)
	of(tab, chromedp.Poll[bool](`document.querySelector('#jobs').textContent.includes('Cancelled')`, chromedp.WithPollingTimeout(patience)))
	await(t, "the end of the process", func() bool { return len(simulating(t)) == 0 })
	tab.axe("a cancelled simulation")
	tab.picture("capacity-cancelled")
	tab.calm("cancel")
}

// elsewhere has a simulation that another replica runs, until that is gone.
type elsewhere struct {
	planned

	gone atomic.Bool
}

func (e *elsewhere) Job(context.Context, string, string) (scenario.Job, error) {
	if e.gone.Load() {
		return scenario.Job{}, &scenario.Away{Replica: "broker-1", Lost: true}
	}
	job := doneJob()
	job.State, job.Progress, job.AsIs, job.Changed = scenario.Running, 40, nil, nil
	return job, nil
}

func (e *elsewhere) Of(context.Context, string) ([]scenario.Job, []string) {
	return []scenario.Job{doneJob()}, []string{"broker-1", "broker-2"}
}

// TestBrowser_ReplicaGone: a page that follows a simulation says so when the replica
// that runs it is gone; the list says who did not answer.
func TestBrowser_ReplicaGone(t *testing.T) {
	e := &elsewhere{}
	d := newDaemonWith(t, func(o *ui.Options) { o.Capacity = e })
	d.show(small())
	tab := open(t, d)
	tab.show("/ui/capacity", looks[0].width, false)
	tab.fits("the list without some replicas")
	tab.axe("the list without some replicas")
	if words := eval[string](tab, `document.querySelector('#jobs').innerText`); !strings.Contains(words, "Without the simulations of broker-1, broker-2, which did not answer.") {
		t.Errorf("the list shows %s", words)
	}
	tab.show("/ui/capacity/"+aJob, looks[0].width, false)
	tab.run(chromedp.WaitVisible(`#job progress`))
	e.gone.Store(true)
	tab.run(chromedp.WaitNotPresent(`#job progress`), chromedp.WaitVisible("main"))
	if words := eval[string](tab, `document.querySelector('main').innerText`); !strings.Contains(words, "broker-1") || !strings.Contains(words, "lives no more") {
		t.Errorf("the page shows %s", words)
	}
}

// TestBrowser_Big: 10,000 contracts and 1,000 flavors are on screen without delay.
func TestBrowser_Big(t *testing.T) {
	d := newDaemon(t)
	d.show(big(10_000, 1000))
	tab := open(t, d)
	tab.show("/ui/", 1280, false) // the first page makes the model
	for _, path := range []string{"/", "/contracts", "/contracts?page=100", "/flavors", "/flavors?size=1000", "/providers", "/tenants"} {
		tab.show("/ui"+path, 1280, false)
		tab.fits("big " + path)
		tab.calm("big " + path)
		answered := eval[float64](tab, `(n => n.responseEnd - n.requestStart)(performance.getEntriesByType('navigation')[0])`)
		drawn := eval[float64](tab, `(n => n.domContentLoadedEventEnd)(performance.getEntriesByType('navigation')[0])`)
		t.Logf("%s: answered in %.0f ms, drawn after %.0f ms", path, answered, drawn)
		if drawn > 5000 {
			t.Errorf("%s is drawn after %.0f ms", path, drawn)
		}
		tab.picture("big." + orFleet(slug(path)))
	}
}

// TestBrowser_Live: a page shows a commit by itself, without losing focus, scrolling or
// what is open, and says when the daemon is out of reach.
func TestBrowser_Live(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b)
	tab := open(t, d)
	tab.show("/ui/", 1280, false)
	tab.run(chromedp.WaitVisible(`#live[data-state=on]`))
	eval[int](tab, `(() => { document.querySelector('#commits details').open = true; document.querySelector('#commits summary').focus(); window.kept = true; return 1 })()`)
	b.Intent("nlp/late", plantest.Wants(1, "nvidia-l4")).Round()
	name := contractOf(t, b, "nlp/late")
	d.mu.Lock()
	d.commit("place nlp/late on milan/l4-pool\n\nContract: "+name+" - -> Reserved\n", "fleetbroker", b.W.Now.Time)
	d.mu.Unlock()
	d.show(b)
	of(tab, chromedp.Poll[bool](`document.querySelector('#commits').textContent.includes('nlp/late')`, chromedp.WithPollingTimeout(20*time.Second)))
	state := eval[struct {
		Kept, Open bool
		Focus      string
	}](tab, `({Kept: !!window.kept, Open: !!document.querySelector('#commits details[open]'), Focus: document.activeElement.tagName})`)
	if !state.Kept || !state.Open || state.Focus != "SUMMARY" {
		t.Errorf("after the update: %+v; want the same page, open, with the focus where it was", state)
	}
	tab.calm("live")
}

// TestBrowser_Keyboard: everything on a page can be reached by the tabulator, and what
// has the focus is seen.
func TestBrowser_Keyboard(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	tab := open(t, d)
	tab.show("/ui/contracts", 1280, false)
	seen := map[string]bool{}
	for range 60 {
		tab.run(chromedp.KeyEvent("\t"))
		at := eval[struct {
			Href, Tag string
			Outline   string
			Visible   bool
		}](tab, `(e => ({Href: e.getAttribute('href') || '', Tag: e.tagName, Outline: getComputedStyle(e).outlineStyle, Visible: e.getBoundingClientRect().width > 0}))(document.activeElement)`)
		if at.Tag == "BODY" {
			break
		}
		if at.Outline == "none" || !at.Visible {
			t.Errorf("%+v has the focus and does not show it", at)
		}
		seen[at.Tag+at.Href] = true
	}
	for _, want := range []string{"A#main", "A/ui/", "A/ui/intents", "A/ui/cost", "INPUT", "SELECT", "BUTTON", "A/ui/contracts/" + contractOf(t, b, "vision/train")} {
		if !seen[want] {
			t.Errorf("%s is not reached; reached were %v", want, seen)
		}
	}
}

// TestBrowser_WithoutScript: pages are whole without JavaScript.
func TestBrowser_WithoutScript(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	tab := open(t, d)
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	tab.show("/ui/", 1280, false)
	words := of(tab, chromedp.Text("main"))
	tab.run(chromedp.Navigate(tab.at+"/ui/contracts?q=train"), chromedp.WaitVisible("table"))
	if !strings.Contains(words, "GPUs free now") {
		t.Errorf("the page shows %q", words)
	}
}
