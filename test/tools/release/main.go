package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/chart"
	"github.com/fleetbroker/fleetbroker/internal/newfleet"
)

// fivePlatforms are those of a release.
const fivePlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

// Names of what a release has once.
const (
	sumsFile  = "SHA256SUMS"
	notesFile = "RELEASE_NOTES.md"
	proofFile = "provenance.intoto.jsonl" // as `fleetbroker version --verify` looks for it
	krewFile  = "krew-fleetbroker.yaml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &release{}
	set := flag.NewFlagSet("release", flag.ExitOnError)
	set.StringVar(&r.checkout, "checkout", ".", "checkout to build")
	set.StringVar(&r.version, "version", "", "version, for example v0.1.0")
	set.StringVar(&r.releases, "releases", "", "URL below which each version has its directory, and #REGISTRY of the images where that is not ghcr.io/OWNER of github.com")
	set.StringVar(&r.dir, "to", "", "directory to write, empty or new (default: dist/VERSION)")
	set.StringVar(&r.platforms, "platforms", fivePlatforms, "platforms to build for")
	set.StringVar(&r.builder, "builder", "", "who builds, for the provenance (default: as images has it)")
	set.StringVar(&r.key, "key", "", "key that signs the checksums and the provenance: PEM of ECDSA P-256, or cosign's")
	_ = set.Parse(os.Args[1:]) // it exits
	if err := r.make(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println(r.dir)
}

// release is one, in the making.
type release struct {
	checkout, version, releases, dir, platforms, key, builder string

	time     time.Time // the commit's
	archives []archive
	built    []string // what the provenance is of, as NAME=PATH
	images   string   // the program that makes images
}

var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func (r *release) make(ctx context.Context) error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("version %q: want VERSION=v0.1.0 or VERSION=v0.1.0-rc.1", r.version)
	}
	if r.releases == "" {
		return errors.New("no URL of the releases: name where this one will be, for example RELEASES=https://github.com/acme/fleetbroker/releases/download")
	}
	if err := newfleet.CheckReleases(r.releases); err != nil {
		return err
	}
	var err error
	if r.checkout, err = filepath.Abs(r.checkout); err != nil {
		return err
	}
	if r.dir == "" {
		r.dir = filepath.Join(r.checkout, "dist", r.version)
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.dir); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another directory with TO=", r.dir)
	}
	notes, err := r.notes()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "fleetbroker-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := r.write(notesFile, []byte(notes)); err != nil {
		return err
	}
	for _, step := range []func(context.Context, string) error{r.commit, r.tool, r.programs, r.chart, r.layouts, r.attest} {
		if err := step(ctx, scratch); err != nil {
			return err
		}
	}
	if err := r.write(krewFile, r.krew()); err != nil {
		return err
	}
	return r.sums(ctx)
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644) //nolint:gosec // it is to be published
}

// commit reads the time of what is released.
func (r *release) commit(ctx context.Context, _ string) error {
	cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
	cmd.Dir = r.checkout
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read the commit to release: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return fmt.Errorf("read the commit to release: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

// tool builds the program that makes images, SBOMs and signatures.
func (r *release) tool(ctx context.Context, scratch string) error {
	r.images = filepath.Join(scratch, "images")
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-o", r.images, ".")
	cmd.Dir = filepath.Join(r.checkout, "test", "tools", "images")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	return said(cmd)
}

// said runs a program; what it printed is in the error.
func said(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// run runs the images program and returns what it printed.
func (r *release) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.images, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("images %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// layouts writes the images of both programs, those of Linux.
func (r *release) layouts(ctx context.Context, _ string) error {
	var linux []string
	for p := range strings.SplitSeq(r.platforms, ",") {
		if strings.HasPrefix(p, "linux/") {
			linux = append(linux, p)
		}
	}
	if len(linux) == 0 {
		return nil
	}
	_, err := r.run(ctx, "write", "-checkout", r.checkout, "-to", filepath.Join(r.dir, "images"), "-version", r.version, "-releases", r.releases, "-platforms", strings.Join(linux, ","))
	return err
}

// chart packs the Helm chart as `helm package` does.
func (r *release) chart(context.Context, string) error {
	files, err := chart.Files(r.version, r.releases)
	if err != nil {
		return err
	}
	var members []member
	for name, content := range files {
		members = append(members, member{name: "fleetbroker/" + name, content: content, mode: 0o644})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	packed, err := tarball(members, r.time)
	if err != nil {
		return err
	}
	name := "fleetbroker-chart_" + r.version + ".tgz"
	r.built = append(r.built, name+"="+filepath.Join(r.dir, name))
	return r.write(name, packed)
}

// attest writes the signed provenance of archives, their programs and the chart. Without a
// key there is none: who would believe it.
func (r *release) attest(ctx context.Context, _ string) error {
	if r.key == "" {
		return nil
	}
	args := []string{"attest", "-checkout", r.checkout, "-key", r.key, "-version", r.version, "-releases", r.releases, "-platforms", r.platforms, "-builder", r.builder}
	proof, err := r.run(ctx, append(args, r.built...)...)
	if err != nil {
		return err
	}
	return r.write(proofFile, proof)
}

// sums writes the checksums, and signs them.
func (r *release) sums(ctx context.Context) error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	text := ""
	for _, e := range entries {
		if e.Type()&fs.ModeType != 0 || e.Name() == proofFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.dir, e.Name()))
		if err != nil {
			return err
		}
		text += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name())
	}
	if err := r.write(sumsFile, []byte(text)); err != nil || r.key == "" {
		return err
	}
	signature, err := r.run(ctx, "sign", "-key", r.key, filepath.Join(r.dir, sumsFile))
	if err != nil {
		return err
	}
	return r.write(sumsFile+".sig", signature)
}
