//go:build e2e

package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// daemon is a fleetbroker that runs on a repository of its own, with real
// ports and certificates.
type daemon struct {
	*env.Program
	t                           *testing.T
	repo                        string
	agents, operators, webhooks string
	clients                     map[string]*http.Client
	asked                       int
}

const secret = "the secret of the webhooks of this test"

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	return startDaemonWith(t, t.TempDir(), nil)
}

// startDaemonWith is startDaemon with more files of the fleet and more flags.
func startDaemonWith(t *testing.T, dir string, more map[string]string, flags ...string) *daemon {
	t.Helper()
	forgetPeak(t)
	d := &daemon{t: t, repo: filepath.Join(dir, "fleet.git"), clients: map[string]*http.Client{"": {Timeout: wall}}}
	files := Fleet()
	files["clusters/rome.yaml"] = group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], delivery: none, reservations: {tenant: vision, defaultDuration: 24h}}\n"
	maps.Copy(files, more)
	put(t, filepath.Join(dir, "inputs"), files)
	put(t, dir, map[string]string{"hooks/generic": secret, "hooks/github": secret, "hooks/gitlab": secret, "hooks/gitea": secret, "logs/x": ""})
	git(t, "", "init", "-q", "--bare", "-b", "main", d.repo)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "orderly"}, {"push", "-q", d.repo, "main"}} {
		git(t, filepath.Join(dir, "inputs"), args...)
	}
	ca, err := pki.InitCA(filepath.Join(dir, "pki"), "hostile", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []pki.Request{{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}, {Name: "paris"}, {Name: "rome"}} {
		bundle, err := ca.Issue(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := bundle.WriteDir(filepath.Join(dir, q.Name)); err != nil {
			t.Fatal(err)
		}
		if q.Role == pki.Server {
			continue
		}
		f, err := pki.OpenFiles(filepath.Join(dir, q.Name))
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		d.clients[q.Name] = &http.Client{Timeout: wall, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities}}}
	}
	for _, address := range []*string{&d.agents, &d.operators, &d.webhooks} {
		a, release, err := env.ReserveAddress()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		*address = a
	}
	d.Program, err = env.StartProgram("daemon", filepath.Join(dir, "logs"), filepath.Join(bin, "fleetbroker"), append([]string{
		"run", "--unsigned", "--repo", d.repo, "--state-dir", filepath.Join(dir, "state"), "--cert-path", filepath.Join(dir, "broker"), "--poll-interval", "1h",
		"--agents-address", d.agents, "--operators-address", d.operators, "--webhooks-address", d.webhooks, "--webhooks-tls=false", "--webhook-secrets-dir", filepath.Join(dir, "hooks"),
	}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
		log, err := os.ReadFile(d.LogFile())
		if err != nil {
			t.Error(err)
		}
		visible(t, "the daemon's log", string(log))
		if bytes.Contains(log, []byte("panic")) {
			t.Errorf("the daemon's log:\n%.4000s", log)
		}
		if t.Failed() {
			t.Logf("the end of the log:\n%s", log[max(0, len(log)-3000):])
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), wall)
	defer cancel()
	if err := d.Await(ctx, "http://"+d.operators+"/readyz"); err != nil {
		t.Fatal(err)
	}
	return d
}

// send sends a request and returns status and body.
func (d *daemon) send(r Request) (int, []byte, error) {
	url := "http://" + d.webhooks
	if r.As != "" {
		url = "https://" + d.agents
	}
	req, err := http.NewRequestWithContext(d.t.Context(), r.Method, url+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(r.Header); i += 2 {
		req.Header.Set(r.Header[i], r.Header[i+1])
	}
	client := *d.clients[r.As]
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, body, err
}

// decides demands that the daemon answers and still decides what an orderly
// cluster asks for.
func (d *daemon) decides(after string) {
	d.t.Helper()
	d.asked++
	key := fmt.Sprintf("good-%d", d.asked)
	status, body, err := d.send(Request{
		As: "rome", Method: "POST", Path: reserve, Header: []string{"Idempotency-Key", key},
		Body: []byte(`{"spec":{"resources":{"cpu":"1","memory":"1Gi","pods":"1","gpu":1},"offload":{"namespaces":[{"name":"vision","create":true}]}}}`),
	})
	if err != nil || status != http.StatusCreated {
		d.t.Fatalf("after %s an orderly request is answered %d %s, %v", after, status, body, err)
	}
}

// used is the daemon's processor time and the peak of its memory, as the kernel
// says.
func (d *daemon) used() (cpu time.Duration, peak int64) {
	d.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.PID()))
	if err != nil {
		d.t.Fatalf("the daemon is gone: %v", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			peak = kib << 10
		}
	}
	return cpu, peak
}

// bounded runs something and holds the daemon's use meanwhile to the bounds.
func (d *daemon) bounded(what string, work func()) {
	d.t.Helper()
	before, _ := d.used()
	work()
	after, peak := d.used()
	if after-before > maxCPU || peak > maxMemory {
		d.t.Errorf("%s took %s and %d MiB, want at most %s and %d MiB", what, after-before, peak>>20, maxCPU, maxMemory>>20)
	}
}

// TestDaemon_RefusesHostileRequests: reports, requests, releases and webhooks
// over the real ports. Each is refused with one line of reason, costs no more
// than its bounds, and after each the daemon decides an orderly request.
func TestDaemon_RefusesHostileRequests(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	list := Requests()
	if len(list) < 130 {
		t.Fatalf("the corpus has %d requests", len(list))
	}
	names := map[string]bool{}
	for _, r := range list {
		if names[r.Name] {
			t.Fatalf("two requests are called %s", r.Name)
		}
		names[r.Name] = true
		d.bounded(r.Name, func() {
			status, body, err := d.send(r)
			if err != nil { // nothing was sent, or the daemon closed the connection on what is too large
				if !strings.Contains(err.Error(), "invalid header") && !strings.Contains(err.Error(), "invalid URL") && len(r.Body) < 1<<20 {
					t.Errorf("%s: %v", r.Name, err)
				}
			} else if !slices.Contains(r.Want, status) {
				t.Errorf("%s %s %.80q: answered %d %.300s, want one of %v", r.Name, r.Path, r.Body, status, body, r.Want)
			} else if status >= 400 && status != 431 {
				reason(t, r.Name, body)
			}
			d.decides(r.Name)
		})
	}
	cpu, peak := d.used()
	t.Logf("%d requests and %d orderly ones: %s, %d MiB", len(list), d.asked, cpu, peak>>20)
}

// reason demands a refusal in one line.
func reason(t *testing.T, name string, body []byte) {
	t.Helper()
	var e struct{ Error, Reason string }
	if err := json.Unmarshal(body, &e); err != nil || e.Error == "" || e.Reason == "" || len(e.Error) > 4000 || strings.Contains(e.Error, "\n") {
		t.Errorf("%s: the answer is no reason of one line: %v %.500q", name, err, body)
	}
	visible(t, "the answer to "+name, e.Error)
}

// TestDaemon_BrokenTreesStopNothing: a branch of inputs that a careless server
// let in, with a tree that git fsck refuses or that unfolds without end. The
// daemon goes on by what it accepted before, decides orderly requests, and acts
// on the next whole commit. The same commits go through validate and audit.
func TestDaemon_BrokenTreesStopNothing(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	head := git(t, d.repo, "rev-parse", "main")
	root := rootOf(t, d.repo, "main")
	trees, refused := Trees(), 0
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		served := true
		d.bounded(name, func() {
			bad := store(t, d.repo, append(slices.Clone(root), trees[name]...))
			commit := git(t, d.repo, "commit-tree", bad, "-p", head, "-m", name)
			// What git itself cannot walk no server takes: it looks whether a push is
			// connected. What it walks may be pushed where nothing is checked further.
			if _, err := env.Git(t.Context(), d.repo, "rev-list", "--objects", "--count", commit); err != nil {
				if _, err := env.Git(t.Context(), d.repo, "fsck", "--strict", commit); err == nil {
					t.Errorf("%s: git cannot walk it, and finds it whole", name)
				}
				served = false
				return
			}
			git(t, d.repo, "update-ref", "refs/heads/main", commit)
			d.push()
			d.decides(name)
		})
		if !served {
			refused++
			continue
		}
		r := run(t, "fleetbroker", "validate", "file://"+d.repo)
		if len(r.out)+len(r.said) > 16<<10 {
			t.Errorf("%s: validate says %d bytes", name, len(r.out)+len(r.said))
		}
		visible(t, "validate of "+name, r.out)
		head = git(t, d.repo, "commit-tree", head+"^{tree}", "-p", git(t, d.repo, "rev-parse", "main"), "-m", "orderly again")
		git(t, d.repo, "update-ref", "refs/heads/main", head)
		d.push()
	}
	d.decides("the last")
	if r := run(t, "fleetbroker", "audit", "verify", "file://"+d.repo); strings.Contains(r.out+r.said, "evil") {
		t.Errorf("audit verify: exit code %d: %.2000s%.2000s", r.code, r.out, r.said)
	}
	if files := git(t, d.repo, "ls-tree", "-r", "--name-only", "ledger"); strings.Contains(files, "evil") {
		t.Errorf("an intent of a broken tree was acted on:\n%s", files)
	}
	cpu, peak := d.used()
	t.Logf("%d trees, of which git itself cannot walk %d: %s, %d MiB", len(trees), refused, cpu, peak>>20)
}

// rootOf are the entries of a commit's tree.
func rootOf(t *testing.T, repo, commit string) []Entry {
	t.Helper()
	var root []Entry
	for line := range strings.SplitSeq(git(t, repo, "ls-tree", commit), "\n") {
		f := strings.Fields(line)
		root = append(root, Entry{Mode: strings.TrimPrefix(f[0], "0"), Name: f[3], Blob: "=" + f[2]})
	}
	return root
}

// push tells the daemon of a push.
func (d *daemon) push() {
	d.t.Helper()
	status, body, err := d.send(Request{Method: "POST", Path: "/hooks/generic", Header: []string{"Authorization", "Bearer " + secret}, Body: []byte("{}")})
	if err != nil || status != http.StatusAccepted {
		d.t.Fatalf("the webhook is answered %d %s, %v", status, body, err)
	}
}

// store writes a tree object as its entries stand, and returns its hash. A blob
// that begins with = is a hash.
func store(t *testing.T, repo string, entries []Entry) string {
	t.Helper()
	known, dirs := map[string]string{}, map[*Entry]string{}
	var write func(entries []Entry) string
	write = func(entries []Entry) string {
		var b bytes.Buffer
		for _, e := range entries {
			var h string
			switch {
			case len(e.Sub) > 0:
				first := &e.Sub[0] // equal directories share their list
				if dirs[first] == "" {
					dirs[first] = write(e.Sub)
				}
				h = dirs[first]
			case e.Mode == "40000" && e.Blob == "":
				h = write(nil)
			case strings.HasPrefix(e.Blob, "="):
				h = e.Blob[1:]
			default:
				h = object(t, repo, "blob", []byte(e.Blob), known)
			}
			raw, err := tree.ParseHash(h)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(e.Mode + " " + e.Name + "\x00")
			b.Write(raw[:])
		}
		return object(t, repo, "tree", b.Bytes(), known)
	}
	return write(entries)
}

// object writes one object without looking at what is in it.
func object(t *testing.T, repo, kind string, data []byte, known map[string]string) string {
	t.Helper()
	if h, ok := known[kind+string(data)]; ok {
		return h
	}
	path := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	h := git(t, repo, "hash-object", "-w", "--literally", "-t", kind, path)
	known[kind+string(data)] = h
	return h
}
