package renew

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func tokenOf(claims string) string {
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// Only what a ServiceAccount's token with an end says of itself counts; all else is used
// as it is. That tokens are renewed is tried on a real API server, in test/e2e/install.
func TestRead(t *testing.T) {
	for token, want := range map[string]bool{
		"abc":   false,
		"a.b.c": false,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":1000,"exp":2000}`):   true,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":1000}`):              false,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":3000,"exp":2000}`):   false,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker","iat":1000,"exp":2000}`):               false,
		tokenOf(`{"sub":"system:serviceaccount:a:../../x","iat":1000,"exp":2000}`):                 false,
		tokenOf(`{"sub":"ada@acme.example","iat":1000,"exp":2000}`):                                false,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":"x","exp":2000}`):    false,
		tokenOf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":-1000,"exp":20000}`): false,
	} {
		if namespace, name, _, ok := read(token); ok != want || ok && (namespace != "fleetbroker" || name != "fleetbroker") {
			t.Errorf("%s: %s/%s, %v, want %v", token, namespace, name, ok, want)
		}
	}
	if at, ok := Ends(tokenOf(`{"sub":"system:serviceaccount:a:b","iat":1000,"exp":2000}`)); !ok || at.Unix() != 2000 {
		t.Errorf("ends %v, %v", at, ok)
	}
}

// What is no ServiceAccount's stays the very configuration, and a file that is damaged or of
// another kubeconfig is not used.
func TestConfig_LeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	k := &Keeper{Dir: dir, Now: func() time.Time { return time.Unix(1100, 0) }}
	kubeconfigOf := func(cluster, server, token string) kubeconfig {
		sum := sha256.Sum256([]byte(token))
		return kubeconfig{cluster, server, hex.EncodeToString(sum[:])}
	}
	plain := &rest.Config{Host: "https://rome", BearerToken: "abc"}
	if got := k.Config(t.Context(), "rome", plain); got != plain {
		t.Errorf("got %v", got)
	}
	if got := (*Keeper)(nil).Config(t.Context(), "rome", plain); got != plain {
		t.Errorf("got %v", got)
	}
	token := tokenOf(`{"sub":"system:serviceaccount:a:b","iat":1000,"exp":2000}`)
	for _, text := range []string{"{", `{"origin":"other","token":"` + tokenOf(`{"sub":"system:serviceaccount:a:b","iat":1500,"exp":9000}`) + `"}`} {
		if err := os.WriteFile(filepath.Join(dir, "rome.token"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k := &Keeper{Dir: dir, Now: k.Now}
		if got := k.Config(t.Context(), "rome", &rest.Config{Host: "https://rome", BearerToken: token}); got.BearerToken != token || k.of(kubeconfigOf("rome", "https://rome", token)).Token != token {
			t.Errorf("with the file %s: %s", text, k.of(kubeconfigOf("rome", "https://rome", token)).Token)
		}
	}
}

// What uses a kubeconfig that was replaced shows its server no token of the new one.
func TestKeeper_AReplacedKubeconfig(t *testing.T) {
	shown := map[string]string{}
	serve := func(name string) *rest.Config {
		config := &rest.Config{Host: "https://" + name, BearerToken: tokenOf(`{"sub":"system:serviceaccount:a:` + name + `","iat":1000,"exp":2000}`)}
		config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			shown[name] = r.Header.Get("Authorization")
			return nil, errors.New("none")
		})
		return config
	}
	k := &Keeper{Dir: t.TempDir(), Now: func() time.Time { return time.Unix(1100, 0) }}
	ask := func(config *rest.Config) {
		t.Helper()
		config.BearerToken = "" // client-go would add it below
		next, err := rest.TransportFor(config)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = next.RoundTrip(r) // there is no answer
	}
	first, second := serve("first"), serve("second")
	old := k.Config(t.Context(), "rome", first)
	of := "Bearer " + first.BearerToken
	ask(old)
	ask(k.Config(t.Context(), "rome", second))
	ask(old)
	if shown["first"] != of || shown["second"] == of || shown["second"] == "" {
		t.Errorf("shown: %v", shown)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
