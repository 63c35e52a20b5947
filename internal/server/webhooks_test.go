package server

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a body that says how much of it was read.
type counted struct {
	left int
	read atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n := min(len(b), c.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range b[:n] {
		b[i] = 'x'
	}
	c.left -= n
	c.read.Add(int64(n))
	return n, nil
}

// What a delivery carries takes no memory, whoever sends it, and who cannot know
// the secret is not even read.
func TestWebhooks_KeepNoPayload(t *testing.T) {
	secret := []byte("s3cret")
	triggered := 0
	handler := NewWebhooks(Webhooks{Secret: func(string) []byte { return secret }, Trigger: func(string) { triggered++ }})
	send := func(forge, header, value string, size int) (status int, read int64) {
		body := &counted{left: size}
		r := httptest.NewRequest("POST", "/hooks/"+forge, body)
		r.Header.Set(header, value)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer.Code, body.read.Load()
	}
	mac := hmac.New(sha256.New, secret)
	if _, err := io.Copy(mac, &counted{left: maxWebhook}); err != nil {
		t.Fatal(err)
	}
	good := hex.EncodeToString(mac.Sum(nil))
	for name, tc := range map[string]struct {
		forge, header, value string
		size, status         int
		unread               bool
	}{
		"no signature":           {"github", "X-Other", "x", maxWebhook, 401, true},
		"a short signature":      {"gitea", "X-Gitea-Signature", "00", maxWebhook, 401, true},
		"a signature of letters": {"github", "X-Hub-Signature-256", "sha256=zz", maxWebhook, 401, true},
		"another token":          {"gitlab", "X-Gitlab-Token", "other", maxWebhook, 401, true},
		"no token":               {"generic", "Authorization", string(secret), maxWebhook, 401, true},
		"the largest, signed":    {"github", "X-Hub-Signature-256", "sha256=" + good, maxWebhook, 202, false},
		"the largest, a token":   {"gitlab", "X-Gitlab-Token", string(secret), maxWebhook, 202, false},
		"too large, a token":     {"gitlab", "X-Gitlab-Token", string(secret), 10 * maxWebhook, 413, false},
		"too large, signed":      {"gitea", "X-Gitea-Signature", good, 10 * maxWebhook, 413, false},
	} {
		before := triggered
		status, read := send(tc.forge, tc.header, tc.value, tc.size)
		if status != tc.status || (read == 0) != tc.unread || read > maxWebhook+1 || (triggered > before) != (status == 202) {
			t.Errorf("%s: answered %d after %d bytes, triggered %v; want %d, unread %v", name, status, read, triggered > before, tc.status, tc.unread)
		}
	}
	var before, after runtime.MemStats
	const times = 20
	runtime.ReadMemStats(&before)
	for range times {
		send("github", "X-Hub-Signature-256", "sha256="+good, maxWebhook)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > maxWebhook/8 {
		t.Errorf("a delivery of %d bytes takes %d bytes of memory", maxWebhook, each)
	}
}

// A delivery that unpacks to more than is taken in is refused, though it is signed.
func TestWebhooks_RefuseAGzipBomb(t *testing.T) {
	secret := []byte("s3cret")
	mac := hmac.New(sha256.New, secret)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.Copy(io.MultiWriter(w, mac), &counted{left: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/hooks/gitea", &packed)
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
	answer := httptest.NewRecorder()
	NewWebhooks(Webhooks{Secret: func(string) []byte { return secret }, Trigger: func(string) { t.Error("triggered") }}).ServeHTTP(answer, r)
	if answer.Code != 413 {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
}

// However often one delivery is sent again, the git server is asked a bounded
// number of times, and once after the last.
func TestWebhooks_AskInMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var triggered atomic.Int64
		var last atomic.Int64
		began := time.Now()
		handler := NewWebhooks(Webhooks{Secret: func(string) []byte { return []byte("s3cret") }, Trigger: func(string) {
			triggered.Add(1)
			last.Store(int64(time.Since(began)))
		}})
		send := func() {
			r := httptest.NewRequest("POST", "/hooks/gitlab", nil)
			r.Header.Set("X-Gitlab-Token", "s3cret")
			answer := httptest.NewRecorder()
			if handler.ServeHTTP(answer, r); answer.Code != 202 {
				t.Fatalf("answered %d", answer.Code)
			}
		}
		for i := range callsAtOnce { // each at once: as many pushes in a row are heard as they come
			if send(); triggered.Load() != int64(i+1) {
				t.Fatalf("call %d: %d asked", i+1, triggered.Load())
			}
		}
		const each = time.Millisecond
		for range 10_000 {
			<-time.After(each)
			send()
		}
		sent := time.Since(began)
		synctest.Wait()
		<-time.After(2 * callPause)
		if most := callsAtOnce + int64(sent/callPause) + 1; triggered.Load() > most {
			t.Errorf("%d calls in %s asked %d times, want %d at most", 10_000+callsAtOnce, sent, triggered.Load(), most)
		}
		if time.Duration(last.Load()) < sent {
			t.Errorf("asked last after %s, and the last call came after %s", time.Duration(last.Load()), sent)
		}
	})
}

// A webhook of a source is held to that source's own secret, in the form of its forge,
// and leads to a call for it alone.
func TestWebhooks_OfSources(t *testing.T) {
	secrets := map[string][2]string{"vision": {"github", "of vision"}, "ml": {"gitlab", "of ml"}, "bare": {"generic", "of bare"}, "odd": {"unknown", "of odd"}, "mute": {"github", ""}}
	called := map[string]int{}
	handler := NewWebhooks(Webhooks{
		Secret: func(string) []byte { return []byte("of the fleet") }, Trigger: func(string) { called["the fleet"]++ },
		Source:  func(name string) (string, []byte) { return secrets[name][0], []byte(secrets[name][1]) },
		Sourced: func(name string) { called[name]++ },
	})
	const body = `{"ref":"refs/heads/main"}`
	sign := func(secret string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = io.WriteString(mac, body)
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	for name, tc := range map[string]struct {
		source, header, value string
		status, calls         int
	}{
		"signed":               {"vision", "X-Hub-Signature-256", sign("of vision"), 202, 1},
		"by another's":         {"vision", "X-Hub-Signature-256", sign("of ml"), 401, 0},
		"by the fleet's":       {"vision", "X-Hub-Signature-256", sign("of the fleet"), 401, 0},
		"another forge's form": {"vision", "X-Gitlab-Token", "of vision", 401, 0},
		"unsigned":             {"vision", "X-Nothing", "", 401, 0},
		"token":                {"ml", "X-Gitlab-Token", "of ml", 202, 1},
		"generic":              {"bare", "Authorization", "Bearer of bare", 202, 1},
		"no such forge":        {"odd", "X-Gitlab-Token", "of odd", 401, 0},
		"no secret":            {"mute", "X-Hub-Signature-256", sign(""), 401, 0},
		"no such source":       {"nobody", "X-Hub-Signature-256", sign(""), 401, 0},
		"a path":               {"..%2fgithub", "X-Hub-Signature-256", sign("of the fleet"), 401, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clear(called)
			r := httptest.NewRequest("POST", "/hooks/sources/"+tc.source, strings.NewReader(body))
			r.Header.Set(tc.header, tc.value)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if answer.Code != tc.status || called[tc.source] != tc.calls || len(called) > tc.calls {
				t.Errorf("got %d and calls %v, want %d and %d: %s", answer.Code, called, tc.status, tc.calls, answer.Body)
			}
			if strings.Contains(answer.Body.String(), "of "+tc.source) {
				t.Errorf("the answer shows the secret: %s", answer.Body)
			}
		})
	}
}

// Who knows no secret learns nothing of which sources there are, of what forge, or which
// take webhooks: all are answered alike, whatever is sent.
func TestWebhooks_SourcesAreNotToldApart(t *testing.T) {
	secrets := map[string][2]string{"vision": {"github", "of vision"}, "ml": {"gitlab", "of ml"}, "bare": {"generic", "of bare"}, "tea": {"gitea", "of tea"}, "mute": {"github", ""}, "odd": {"unknown", "x"}}
	handler := NewWebhooks(Webhooks{
		Secret: func(string) []byte { return nil }, Trigger: func(string) {},
		Source:  func(name string) (string, []byte) { return secrets[name][0], []byte(secrets[name][1]) },
		Sourced: func(name string) { t.Errorf("%s was called", name) },
	})
	sum := strings.Repeat("ab", 32)
	for what, q := range map[string]struct {
		header, value, body string
	}{
		"nothing":             {"X-Nothing", "", "{}"},
		"a token":             {"X-Gitlab-Token", "guess", "{}"},
		"a bearer":            {"Authorization", "Bearer guess", "{}"},
		"GitHub's signature":  {"X-Hub-Signature-256", "sha256=" + sum, "{}"},
		"Gitea's signature":   {"X-Gitea-Signature", sum, "{}"},
		"a signature":         {"X-Signature", "sha256=" + sum, "{}"},
		"a large body":        {"X-Hub-Signature-256", "sha256=" + sum, strings.Repeat("x", maxWebhook+1)},
		"a large one, unread": {"X-Gitlab-Token", "guess", strings.Repeat("x", maxWebhook+1)},
	} {
		var first string
		for _, source := range []string{"nobody", "vision", "ml", "bare", "tea", "mute", "odd", "..%2fgithub"} {
			r := httptest.NewRequest("POST", "/hooks/sources/"+source, strings.NewReader(q.body))
			r.Header.Set(q.header, q.value)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			got := fmt.Sprint(answer.Code, answer.Header(), answer.Body)
			if first == "" {
				first = got
			}
			if got != first || answer.Code < 400 {
				t.Errorf("%s to %s is answered %s; to one that there is not %s", what, source, got, first)
			}
		}
	}
}

// A source that calls without end is passed on a few times a second, and another's call
// at once.
func TestWebhooks_SourcesAreLimitedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loud, quiet atomic.Int64
		handler := NewWebhooks(Webhooks{
			Source: func(string) (string, []byte) { return "gitlab", []byte("s3cret") },
			Sourced: func(name string) {
				if name == "loud" {
					loud.Add(1)
				} else {
					quiet.Add(1)
				}
			},
		})
		call := func(name string) {
			r := httptest.NewRequest("POST", "/hooks/sources/"+name, nil)
			r.Header.Set("X-Gitlab-Token", "s3cret")
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 1000 {
			call("loud")
		}
		call("quiet")
		if quiet.Load() != 1 || loud.Load() > callsAtOnce {
			t.Errorf("%d calls of the loud one, %d of the quiet one", loud.Load(), quiet.Load())
		}
		<-time.After(time.Second)
		if n := loud.Load(); n != callsAtOnce+1 {
			t.Errorf("a second later %d calls of the loud one, want the booked one too", n)
		}
	})
}

// Behind a proxy that ends TLS, a forge's deliveries come as they were signed: whole or in
// chunks, with what proxies add, and many from the proxy's one address.
func TestWebhooks_BehindAProxy(t *testing.T) {
	const secret, payload = "s3cret", `{"ref":"refs/heads/main"}`
	var called atomic.Int32
	daemon := httptest.NewServer(NewWebhooks(Webhooks{
		Secret:  func(forge string) []byte { return map[string][]byte{"github": []byte(secret)}[forge] },
		Trigger: func(string) { called.Add(1) },
	}))
	t.Cleanup(daemon.Close)
	at, err := url.Parse(daemon.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.SetXForwarded()
		r.Out.Host = "broker.example.org"
	}}
	proxy := httptest.NewTLSServer(forward)
	t.Cleanup(proxy.Close)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(payload))
	send := func(body io.Reader, signature string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/hooks/github", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Hub-Signature-256", "sha256="+signature)
		answer, err := proxy.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	good := hex.EncodeToString(mac.Sum(nil))
	for name, body := range map[string]io.Reader{"whole": strings.NewReader(payload), "in chunks": io.MultiReader(strings.NewReader(payload[:5]), strings.NewReader(payload[5:]))} {
		before := called.Load()
		if got := send(body, good); got != http.StatusAccepted || called.Load() != before+1 {
			t.Errorf("%s: %d, called %d times, want 202 and once", name, got, called.Load()-before)
		}
	}
	for range 20 {
		if got := send(strings.NewReader(payload), strings.Repeat("0", 64)); got != http.StatusUnauthorized {
			t.Fatalf("a wrong signature: %d", got)
		}
	}
	if got := send(strings.NewReader(payload), good); got != http.StatusAccepted {
		t.Errorf("after wrong ones through the same proxy: %d", got)
	}
}
