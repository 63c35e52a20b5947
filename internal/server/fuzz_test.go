package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// The fuzz targets send whatever there is through the real routes. Their seeds
// run with every test; `make fuzz` looks for more.

// judged fails on an answer that is neither a success nor a refusal of ours.
func judged(t *testing.T, answer *httptest.ResponseRecorder) {
	t.Helper()
	if answer.Code/100 == 2 || answer.Code == http.StatusNotModified {
		return
	}
	var e wire.Error
	if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || e.Error == "" || e.Reason == "" || answer.Code/100 != 4 {
		t.Fatalf("answered %d %q", answer.Code, answer.Body)
	}
	if answer.Body.Len() > 64<<10 {
		t.Fatalf("answered %d bytes", answer.Body.Len())
	}
	harmless(t, answer.Body.Bytes())
}

// honest fails on a market that holds what no honest agent of paris said.
func (in *inside) honest(t *testing.T) {
	t.Helper()
	_, flavors, _ := in.market.Offers(market.Query{})
	for i := range flavors {
		f := &flavors[i]
		if f.Metadata.Namespace != "paris" {
			t.Fatalf("paris offers %s", f.Ref())
		}
		for name, amount := range f.Spec.Capacity {
			if amount.Int64() < 0 {
				t.Fatalf("%s has %d of %s", f.Ref(), amount.Int64(), name)
			}
		}
	}
	if _, err := yamlStream(flavors); err != nil {
		t.Fatal(err)
	}
}

func FuzzFlavorReport(f *testing.F) {
	for _, body := range hostile {
		if len(body) < 4<<10 {
			f.Add([]byte(body), "1.1", false)
		}
	}
	f.Add([]byte(h100), "7.1", false)
	f.Add([]byte(`{"flavors":[{"metadata":{"name":"a"},"spec":{"capacity":{"cpu":"8","gpu":2},"gpu":{"model":"H100","memory":"80Gi","unitsPerGPU":7},"price":{"currency":"EUR","perHour":{"gpu":"2"},"windows":[{"days":["Sat"],"from":"00:00","to":"24:00","timezone":"UTC","perHour":{"gpu":"1"}}]},"partition":{"min":{"gpu":1},"step":{"gpu":1}},"overcommit":{"cpu":"1.5"}}}]}`), "1.2", true)
	f.Add([]byte("\x1f\x8b\x08"), "1.1", true)
	f.Fuzz(func(t *testing.T, body []byte, generation string, zip bool) {
		in := newInside()
		headers := []string{wire.HeaderGeneration, generation}
		if zip {
			headers = append(headers, "Content-Encoding", "gzip")
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			if _, err := w.Write(body); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			judged(t, in.send("PUT", wire.FlavorsPath("paris"), body, headers...)) // as it is: no gzip at all
			body = packed.Bytes()
		}
		judged(t, in.send("PUT", wire.FlavorsPath("paris"), body, headers...))
		in.honest(t)
	})
}

func FuzzAdvertisement(f *testing.F) {
	f.Add([]byte(`{"clusterID":"paris","clusterName":"Paris","resources":{"allocatable":{"cpu":"8000m","memory":"8Gi","gpu":"2","storage":"100Gi"},"allocated":{"cpu":"1","memory":"1Gi"}},"timestamp":"2026-11-20T12:00:00Z"}`))
	f.Add([]byte(`{"clusterID":"lyon"}`))
	f.Add([]byte(`{"clusterID":"paris","resources":{"allocatable":{"cpu":"1e2147483647"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := newInside()
		judged(t, in.send("POST", "/api/v1/advertisements", body))
		in.honest(t)
	})
}

// listener is a broker that only hears what it is asked.
type listener struct {
	Broker
	heard *wire.Ask
}

func (l *listener) Reserve(_ context.Context, ask wire.Ask) (wire.Reservation, error) {
	l.heard = &ask
	return wire.Reservation{ID: "r"}, nil
}

func (l *listener) Answered(string, bool) {}

func FuzzReservation(f *testing.F) {
	for _, body := range []string{
		`{"requesterID":"paris","requestedResources":{"cpu":"2","memory":"4Gi"},"priority":1,"duration":"1h"}`,
		`{"spec":{"resources":{"cpu":"4","memory":"8Gi","gpu":"H100:2"},"queue":{"policy":"wait"}}}`,
		`{"spec":{"resources":{"gpu":{"count":1,"models":["h100"],"memory":"40Gi..80Gi"}},"alternatives":[{"gpu":"A100:8:40GB.."}],"placement":{"where":"true","spread":{"by":"region"}}},"requester":{"namespace":"a","name":"b","uid":"c","owner":"d"}}`,
		`{"spec":{"resources":{"memory":"1e2147483647"}}}`, `{"spec":{"replicas":-1}}`, `{"spec":{"spec":{}}}`, `[]`, `null`, `{"requesterID":"lyon"}`,
	} {
		f.Add([]byte(body), "key")
	}
	f.Add([]byte(`{}`), "\x00")
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		l := &listener{}
		in := newInside()
		in.broker(l)
		judged(t, in.send("POST", wire.ReservationsPath, body, wire.HeaderIdempotencyKey, key))
		if l.heard == nil {
			return
		}
		if l.heard.Cluster != "paris" || strings.ContainsAny(l.heard.Key, "\x00\n\r") {
			t.Fatalf("the broker is asked %+v", l.heard)
		}
		// What was understood is written to a file of the repo, and read again.
		if _, err := json.Marshal(l.heard.Request); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzWebhook(f *testing.F) {
	const secret = "s3cret"
	for _, forge := range []string{"github", "gitlab", "gitea", "generic", "bitbucket"} {
		f.Add(forge, "sha256=00", "Bearer x", []byte(`{"ref":"refs/heads/main"}`))
	}
	f.Add("generic", "", "Bearer "+secret, []byte(nil))
	f.Fuzz(func(t *testing.T, forge, signature, authorization string, body []byte) {
		triggered := false
		handler := NewWebhooks(Webhooks{Secret: func(string) []byte { return []byte(secret) }, Trigger: func(string) { triggered = true }})
		r := httptest.NewRequest("POST", "/hooks/x", bytes.NewReader(body))
		r.URL.Path = "/hooks/" + forge
		for _, name := range []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token", "X-Signature"} {
			r.Header.Set(name, signature)
		}
		r.Header.Set("Authorization", authorization)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		// Who does not know the secret cannot make its HMAC.
		knows := signature == secret || authorization == "Bearer "+secret
		if triggered && !knows || triggered != (answer.Code == http.StatusAccepted) {
			t.Fatalf("%s: triggered %v, answered %d", forge, triggered, answer.Code)
		}
	})
}
