package attested

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// attest signs a payload as `make release` does.
func attest(t *testing.T, key *ecdsa.PrivateKey, kind, payload string) string {
	t.Helper()
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"payloadType": kind, "payload": base64.StdEncoding.EncodeToString([]byte(payload)), "signatures": []any{map[string]any{"sig": base64.StdEncoding.EncodeToString(signature)}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key, other := newKey(t), newKey(t)
	public, foreign := put("cosign.pub", publicPEM(t, key)), put("other.pub", publicPEM(t, other))
	archive, changed := put("fleetbroker_v0.1.0_linux_amd64.tar.gz", "the programs"), put("changed.tar.gz", "other programs")
	statement := fmt.Sprintf(`{"predicateType":"https://slsa.dev/provenance/v1","subject":[{"name":"x","digest":{"sha256":"00"}},{"name":"fleetbroker_v0.1.0_linux_amd64.tar.gz","digest":{"sha256":"%x"}}],
"predicate":{"buildDefinition":{"externalParameters":{"version":"v0.1.0"},"resolvedDependencies":[{"uri":"git+https://example.org","digest":{"gitCommit":"abc"}}]},"runDetails":{"builder":{"id":"https://example.org/ci"}}}}`, sha256.Sum256([]byte("the programs")))
	good := attest(t, key, statementType, statement)
	put(File, good)

	r, err := Check(archive, public, "", "")
	if err != nil || r.Subject != "fleetbroker_v0.1.0_linux_amd64.tar.gz" || r.Version != "v0.1.0" || r.Commit != "abc" || r.Builder != "https://example.org/ci" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if want := "fleetbroker_v0.1.0_linux_amd64.tar.gz of release v0.1.0, built of commit abc by https://example.org/ci\n"; !strings.HasSuffix(r.Text(), want) {
		t.Errorf("it is told as %q", r.Text())
	}
	// An older release's file says so itself, or the caller which release it is.
	renamed, program := put("fleetbroker_v0.2.0_linux_amd64.tar.gz", "the programs"), put("fleetbroker", "the programs")
	for _, file := range []string{archive, renamed, program} {
		if r, err := Check(file, public, "", "v0.1.0"); err != nil || r.Version != "v0.1.0" {
			t.Errorf("%s of v0.1.0: %+v, %v", file, r, err)
		}
	}
	for name, c := range map[string]struct{ file, key, provenance, want, release string }{
		"another file":                 {changed, public, "", "is none of the release's 2 files", ""},
		"an older release, renamed":    {renamed, public, "", "of release v0.1.0, which its name does not say", ""},
		"a name without a release":     {program, public, "", "of release v0.1.0, which its name does not say", ""},
		"of another release":           {archive, public, "", "it is of release v0.1.0, not of v0.2.0", "v0.2.0"},
		"another key":                  {archive, foreign, "", "the key has not signed it", ""},
		"no key":                       {archive, "", "", "no key to verify by", ""},
		"a private key":                {archive, put("key.pem", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"), "", "is no PEM of a PUBLIC KEY", ""},
		"no provenance":                {archive, public, filepath.Join(dir, "none"), "read the provenance", ""},
		"no envelope":                  {archive, public, put("none.json", "{"), "is no DSSE envelope", ""},
		"another type under that name": {archive, public, put("type.json", strings.Replace(good, statementType, "text/plain", 1)), "the key has not signed it", ""},
		"a changed statement":          {archive, public, put("forged.json", strings.Replace(good, base64.StdEncoding.EncodeToString([]byte(statement)), base64.StdEncoding.EncodeToString([]byte(strings.Replace(statement, "v0.1.0", "v0.2.0", 1))), 1)), "the key has not signed it", ""},
		"signed, but no statement":     {archive, public, put("plain.json", attest(t, key, "text/plain", statement)), `it is of type "text/plain"`, ""},
		"signed, of another predicate": {archive, public, put("sbom.json", attest(t, key, statementType, strings.Replace(statement, "slsa.dev/provenance", "spdx.dev/Document", 1))), "it states", ""},
		"no signature":                 {archive, public, put("bare.json", `{"payloadType":"application/vnd.in-toto+json","payload":"e30="}`), "the key has not signed it", ""},
	} {
		if r, err := Check(c.file, c.key, c.provenance, c.release); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v; want %q", name, r, err, c.want)
		}
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicPEM(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
