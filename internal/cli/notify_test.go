package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// secrets are those of a namespace in memory, with one tenant's label on all.
type secrets map[string]map[string][]byte

// Secret implements access.Secrets.
func (s secrets) Secret(_ context.Context, name string) (map[string][]byte, map[string]string, error) {
	if s[name] == nil {
		return nil, nil, errors.New("not found")
	}
	return s[name], map[string]string{labelTenant: "vision"}, nil
}

// Addresses come from mounted Secrets first, then from Secrets that are labelled
// for the tenant; errors say what to do and not what is in them.
func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "mounted"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mounted", "url"), []byte("https://mounted"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := secrets{"kept": {"url": []byte("https://kept")}}
	for _, c := range []struct {
		name              string
		from              addresses
		tenant            string
		secret, key, want string
	}{
		{"mounted", addresses{dir, nil}, "vision", "mounted", "url", "https://mounted"},
		{"no way out of the directory", addresses{dir, nil}, "vision", "../" + filepath.Base(dir) + "/mounted", "url", "https://mounted"},
		{"not mounted", addresses{dir, nil}, "vision", "kept", "url", "no such file"},
		{"a Secret", addresses{dir, kept}, "vision", "kept", "url", "https://kept"},
		{"another's Secret", addresses{dir, kept}, "nlp", "kept", "url", "label it fleetbroker.io/tenant=nlp"},
		{"no key", addresses{"", kept}, "vision", "kept", "uri", "has no key uri"},
		{"no Secret", addresses{"", kept}, "vision", "lost", "url", "mount it below --notify-urls-dir"},
		{"nowhere", addresses{}, "vision", "kept", "url", "give --notify-urls-dir with a file kept/url"},
	} {
		got, err := c.from.of(t.Context(), c.tenant, v1alpha1.SecretKeyRef{Name: c.secret, Key: c.key})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (err == nil) != strings.HasPrefix(c.want, "https://") {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
}

// A daemon that runs tells a tenant's webhook of what it has just reserved.
func TestDaemonNotifies(t *testing.T) {
	told := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		told <- string(b)
	}))
	defer hook.Close()
	dir := t.TempDir()
	work, bare, urls := filepath.Join(dir, "fleet"), filepath.Join(dir, "fleet.git"), filepath.Join(dir, "urls")
	if code, out := command(t, "init", work); code != 0 {
		t.Fatal(out)
	}
	tenant, err := os.ReadFile(filepath.Join(work, "tenants/vision.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tenant = append(tenant, "  notify: [{events: [placed], urlSecretRef: {name: vision-events}, allowInsecure: true}]\n"...)
	if err := os.WriteFile(filepath.Join(work, "tenants/vision.yaml"), tenant, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(urls, "vision-events"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(urls, "vision-events", "url"), []byte(hook.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "A fleet"}, {"clone", "-q", "--bare", ".", bare}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var log strings.Builder
	go func() {
		ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &log, Now: time.Now},
			[]string{"run", "--unsigned", "--repo", "file://" + bare, "--state-dir", filepath.Join(dir, "state"), "--agents-address", "", "--operators-address", freeAddress(t), "--notify-urls-dir", urls})
	}()
	got := ""
	select {
	case got = <-told:
	case <-time.After(time.Minute):
	case code := <-ended:
		t.Fatalf("the daemon ends with %d: %s", code, log.String())
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("the daemon ends with %d", code)
	}
	for _, want := range []string{`"type":"io.fleetbroker.placed"`, `"subject":"vision/notebook/vision-notebook-0-`, `"flavor":"l4"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s; the daemon says\n%s", want, got, log.String())
		}
	}
}
