package renew

import (
	"encoding/base64"
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
		if got := k.Config(t.Context(), "rome", &rest.Config{Host: "https://rome", BearerToken: token}); got.BearerToken != token || k.of("rome").Token != token {
			t.Errorf("with the file %s: %s", text, k.of("rome").Token)
		}
	}
}
