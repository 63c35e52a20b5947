package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
)

func configuration() *admissionv1.MutatingWebhookConfiguration {
	service := func() admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "fleetbroker", Name: "fleet-agent-webhook"}}
	}
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "a", ClientConfig: service()}, {Name: "b", ClientConfig: service()}}}
}

// However two replicas' looks, failed writes and years come one after another, each
// replica shows at all times a certificate that the configuration trusts, for the
// Service's name. Each replica looks at least once in 24 days here; they look every minute.
func TestRotationIsTrustedAtEachStep(t *testing.T) {
	rotated, rooted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		client := fake.NewClientset(configuration(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetbroker", Name: SecretName}})
		failing := ""
		client.PrependReactor("update", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return failing == a.GetResource().Resource, nil, errors.New("no answer")
		})
		var replicas []*Keeper
		for range 2 {
			replicas = append(replicas, &Keeper{Client: client, Namespace: "fleetbroker", Configuration: "w", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
		}
		look := func(k *Keeper, fail string) {
			failing = fail
			if err := k.step(t.Context()); err != nil && fail == "" {
				t.Fatal(err)
			}
		}
		for _, k := range replicas {
			look(k, "")
		}
		var leaves, roots [][]byte
		for range 12 {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "hours")) * time.Hour)
			if rapid.IntRange(0, 49).Draw(t, "years pass") == 17 { // and all looked meanwhile
				for range 8 * 365 / 24 {
					now = now.Add(24 * 24 * time.Hour)
					for _, k := range replicas {
						look(k, "")
					}
				}
			}
			for _, k := range rapid.Permutation(replicas).Draw(t, "order") {
				look(k, rapid.SampledFrom([]string{"", "secrets", "mutatingwebhookconfigurations"}).Draw(t, "fails"))
				look(k, "")
				c, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "w", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, shows := range replicas {
					leaf, err := shows.Certificate(nil)
					if err != nil || !trusts(bundleIn(c), leaf, now) || !slices.Equal(leaf.Leaf.DNSNames, []string{"fleet-agent-webhook.fleetbroker.svc"}) {
						t.Fatalf("at %s a replica shows a certificate that is not trusted: %v", now, err)
					}
					if !slices.ContainsFunc(leaves, func(b []byte) bool { return bytes.Equal(b, leaf.Leaf.Raw) }) {
						leaves = append(leaves, leaf.Leaf.Raw)
					}
				}
				if b := bundleIn(c); len(roots) == 0 || !bytes.Equal(roots[len(roots)-1], b) {
					roots = append(roots, b)
				}
			}
		}
		rotated += len(leaves) - 1
		rooted += len(roots) - 1
	})
	if rotated == 0 || rooted == 0 {
		t.Errorf("%d certificates and %d authorities were renewed: nothing was tried", rotated, rooted)
	}
}

// A Secret that somebody has spoilt is made anew, and hosts follow the configuration.
func TestMaterialIsMadeAnew(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	first, changed, err := material{}.renew(now, []string{"a.svc"}, nil)
	if err != nil || !changed || !first.usable(now, []string{"a.svc"}) {
		t.Fatalf("got %t, %v", changed, err)
	}
	data, err := first.data()
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, _ := readMaterial(data).renew(now, []string{"a.svc"}, first.bundle()); changed {
		t.Error("what is right was renewed")
	}
	if next, changed, err := readMaterial(data).renew(now, []string{"b.svc", "127.0.0.1"}, first.bundle()); err != nil || !changed || !next.usable(now, []string{"127.0.0.1", "b.svc"}) {
		t.Errorf("other hosts: %t, %v", changed, err)
	}
	for key := range data {
		spoilt := map[string][]byte{}
		for k, v := range data {
			spoilt[k] = v
		}
		spoilt[key] = []byte("-----BEGIN NOTHING-----\n")
		if next, changed, err := readMaterial(spoilt).renew(now, []string{"a.svc"}, first.bundle()); err != nil || !changed || !next.usable(now, []string{"a.svc"}) {
			t.Errorf("without %s: %t, %v", key, changed, err)
		}
	}
}

// What is no review of ours is refused as a request, and a review of something else changes
// nothing.
func TestHandlerRefusesStrangers(t *testing.T) {
	lines := &logtest.Lines{}
	s := &Server{Client: fake.NewClientset(), Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }, Log: lines.Logger()}
	review := func(r *admissionreview.AdmissionRequest) string {
		b, err := json.Marshal(admissionreview.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	for name, tc := range map[string]struct {
		path, body string
		code       int
		want       string
	}{
		"not JSON":       {PathPods, "{", http.StatusBadRequest, "no AdmissionReview"},
		"no request":     {PathPods, review(nil), http.StatusBadRequest, "no AdmissionReview"},
		"old":            {PathPods, `{"apiVersion":"admission.k8s.io/v1beta1","request":{}}`, http.StatusBadRequest, "no AdmissionReview"},
		"too large":      {PathPods, strings.Repeat(" ", maxReview+1), http.StatusRequestEntityTooLarge, "too large"},
		"elsewhere":      {"/", "{}", http.StatusNotFound, ""},
		"another kind":   {PathPods, review(&admissionreview.AdmissionRequest{UID: "u", Operation: "CREATE", Resource: metav1.GroupVersionResource{Resource: "secrets"}}), http.StatusOK, `"allowed":true`},
		"a subresource":  {PathPods, review(&admissionreview.AdmissionRequest{UID: "u", Operation: "CREATE", Resource: pods, SubResource: "eviction"}), http.StatusOK, `"allowed":true`},
		"no pod":         {PathPods, review(&admissionreview.AdmissionRequest{UID: "u", Operation: "CREATE", Resource: pods, Object: runtime.RawExtension{Raw: []byte(`[]`)}}), http.StatusOK, "cannot be read"},
		"no namespace":   {PathPods, review(&admissionreview.AdmissionRequest{UID: "u", Operation: "CREATE", Resource: pods, Namespace: "gone", Object: runtime.RawExtension{Raw: []byte(`{}`)}}), http.StatusOK, `read namespace gone`},
		"a pod's update": {PathPods, review(&admissionreview.AdmissionRequest{UID: "u", Operation: "UPDATE", Resource: pods}), http.StatusOK, `"allowed":true`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, strings.NewReader(tc.body)))
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) || strings.Contains(w.Body.String(), `"patch"`) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	lines.Wants(t, "FB1179")
}

// A keeper that cannot read the configuration says so once, however often it tries.
func TestKeeper_NotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &logtest.Lines{}
		k := &Keeper{Client: fake.NewClientset(), Namespace: "fleetbroker", Configuration: "w", Now: time.Now, Log: lines.Logger()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := k.Start(ctx); err != nil {
			t.Fatal(err)
		}
		lines.Wants(t, "FB1175")
		if n := strings.Count(lines.String(), "\n"); n != 1 {
			t.Errorf("said %d times:\n%s", n, lines)
		}
	})
}
