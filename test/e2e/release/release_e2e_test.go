//go:build e2e

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	version  = "v0.9.0-test"
	releases = "https://example.org/acme/fleetbroker/releases/download"
)

// make makes a release for this platform into dir.
func makeRelease(ctx context.Context, dir string, flags ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./test/tools/release", "-to", dir, "-platforms", platform}, flags...)...)
	cmd.Dir = "../../.."
	return cmd.CombinedOutput()
}

var platform = runtime.GOOS + "/" + runtime.GOARCH

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpack is what a .tar.gz holds; modes by name.
func unpack(t *testing.T, packed []byte) (files map[string][]byte, modes map[string]int64) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files, modes = map[string][]byte{}, map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
}

// A release has what a user takes: programs that know their version and where releases are,
// checksums that are true and signed, SBOMs, images, a chart, a krew manifest, notes.
func TestRelease(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir, keyFile := filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "key.pem")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := makeRelease(ctx, dir, "-version", version, "-releases", releases, "-key", keyFile); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	name := fmt.Sprintf("fleetbroker_%s_%s_%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	archive := read(t, dir, name)
	sums := read(t, dir, "SHA256SUMS")
	checkSums(t, dir, string(sums), name)
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(read(t, dir, "SHA256SUMS.sig"))))
	if digest := sha256.Sum256(sums); err != nil || !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
		t.Errorf("the signature of the checksums does not verify: %v", err)
	}

	files, modes := unpack(t, archive)
	bin := t.TempDir()
	for _, program := range []string{"fleetbroker", "fleet-agent"} {
		if err := os.WriteFile(filepath.Join(bin, program), files[program], 0o700); err != nil || modes[program] != 0o755 {
			t.Fatalf("%s in the archive: mode %o, %v", program, modes[program], err)
		}
		out, err := exec.CommandContext(ctx, filepath.Join(bin, program), "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), version) {
			t.Errorf("%s version prints %s, %v", program, out, err)
		}
		var sbom struct {
			Packages []struct{ Name, VersionInfo string }
		}
		if err := json.Unmarshal(read(t, dir, fmt.Sprintf("%s_%s_%s_%s.spdx.json", program, version, runtime.GOOS, runtime.GOARCH)), &sbom); err != nil || len(sbom.Packages) < 50 || sbom.Packages[0].VersionInfo != version {
			t.Errorf("the SBOM of %s has %d packages, %v", program, len(sbom.Packages), err)
		}
		if index := read(t, dir, "images", program, "index.json"); !strings.Contains(string(index), "sha256:") {
			t.Errorf("the image of %s: %s", program, index)
		}
	}
	if len(files["LICENSE"]) == 0 {
		t.Error("the archive has no licence")
	}

	// What it makes names itself and its place.
	fleet := filepath.Join(t.TempDir(), "fleet")
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "fleetbroker"), "init", fleet).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "installs "+version+" from "+releases) {
		t.Errorf("init prints %s, %v", out, err)
	}
	ci := string(read(t, fleet, ".github", "workflows", "fleet.yml"))
	for _, want := range []string{`FLEETBROKER_VERSION: "` + version + `"`, `FLEETBROKER_RELEASES: "` + releases + `"`} {
		if !strings.Contains(ci, want+"\n") {
			t.Errorf("its CI has no %s", want)
		}
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(bin, "fleetbroker"), "demo", "--quick").CombinedOutput(); err != nil || !strings.Contains(string(out), "done: nothing is left running") {
		t.Errorf("demo --quick of the released program: %v\n%s", err, out)
	}

	checkProvenance(ctx, t, key, dir, name, filepath.Join(bin, "fleetbroker"))
	checkKrew(t, read(t, dir, "krew-fleetbroker.yaml"), name, archive)
	chart, _ := unpack(t, read(t, dir, "fleetbroker-chart_"+version+".tgz"))
	if !strings.Contains(string(chart["fleetbroker/Chart.yaml"]), strings.TrimPrefix(version, "v")) || len(chart["fleetbroker/values.schema.json"]) == 0 {
		t.Errorf("the chart is of another version: %s", chart["fleetbroker/Chart.yaml"])
	}
	if notes := string(read(t, dir, "RELEASE_NOTES.md")); !strings.HasPrefix(notes, "# fleetbroker "+version+"\n") || strings.Contains(notes, "](../") || !strings.Contains(notes, "### Added") {
		t.Errorf("the notes: %.300s", notes)
	}
}

// checkSums holds the checksums to the files, and every file to a checksum.
func checkSums(t *testing.T, dir, sums, archive string) {
	t.Helper()
	listed := map[string]bool{}
	for line := range strings.Lines(sums) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[file] = true
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, dir, file))); got != sum {
			t.Errorf("%s has the checksum %s, listed %s", file, got, sum)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !listed[e.Name()] && !strings.HasPrefix(e.Name(), "SHA256SUMS") && e.Name() != "provenance.intoto.jsonl" {
			t.Errorf("%s has no checksum", e.Name())
		}
	}
	if !listed[archive] {
		t.Errorf("%s is not listed", archive)
	}
}

// checkProvenance has the released program check its own archive, itself and a file that
// is none of the release's.
func checkProvenance(ctx context.Context, t *testing.T, key *ecdsa.PrivateKey, dir, archive, program string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	revision, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commit := "of release " + version + ", built of commit " + strings.TrimSpace(string(revision))
	proof := filepath.Join(dir, "provenance.intoto.jsonl")
	for file, want := range map[string]string{
		filepath.Join(dir, archive):                             "is " + archive + " " + commit,
		filepath.Join(dir, "fleetbroker-chart_"+version+".tgz"): "is fleetbroker-chart_" + version + ".tgz " + commit,
		program:                                "is fleetbroker_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH + " " + commit,
		filepath.Join(dir, "RELEASE_NOTES.md"): "is none of the release's",
	} {
		args := []string{"version", "--verify", file, "--key", public, "--provenance", proof}
		if file == program { // whose name says no release
			args = append(args, "--release", version)
		}
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		if good := strings.HasPrefix(want, "is f"); (err == nil) != good || !strings.Contains(string(out), want) {
			t.Errorf("version --verify %s: %v, %s; want %q", file, err, out, want)
		}
	}
}

func checkKrew(t *testing.T, manifest []byte, file string, archive []byte) {
	t.Helper()
	var krew struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(manifest, &struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             any
	}{}); err != nil {
		t.Error(err)
	}
	if err := yaml.Unmarshal(manifest, &krew); err != nil {
		t.Fatal(err)
	}
	p := krew.Spec.Platforms
	if len(p) != 1 || krew.Spec.Version != version || p[0].URI != releases+"/"+version+"/"+file || p[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(archive)) ||
		p[0].Bin != "fleetbroker" || p[0].Selector.MatchLabels["os"] != runtime.GOOS {
		t.Errorf("the krew manifest is\n%s", manifest)
	}
}

// What is missing or wrong is said before anything is built or written.
func TestRelease_Refused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir   string
		flags []string
		want  string
	}{
		"no version":         {"", []string{"-releases", releases}, "VERSION=v0.1.0"},
		"no place":           {"", []string{"-version", version}, "RELEASES=https://"},
		"a bad place":        {"", []string{"-version", version, "-releases", "http://example.org/$(id)"}, "want an https URL"},
		"no section":         {"", []string{"-version", "v99.0.0", "-releases", releases}, `rename "## Unreleased" to "## v99.0.0"`},
		"a directory in use": {full, []string{"-version", version, "-releases", releases}, "is not empty"},
	} {
		dir := c.dir
		if dir == "" {
			dir = filepath.Join(t.TempDir(), "dist")
		}
		out, err := makeRelease(t.Context(), dir, c.flags...)
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s; want %q", name, err, out, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "RELEASE_NOTES.md")); err == nil {
			t.Errorf("%s: it has written something", name)
		}
	}
}
