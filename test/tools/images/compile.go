package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programs are those that run in clusters.
var programs = []string{"fleetbroker", "fleet-agent"}

// module is the project's path.
const module = "github.com/fleetbroker/fleetbroker"

// source is what is built.
type source struct {
	root     string
	version  string
	releases string    // where releases are, "" for nowhere
	revision string    // the commit; with "-dirty" when files differ from it
	time     time.Time // the commit's
}

// sourceOf reads the commit of a checkout. Outside of git, SOURCE_DATE_EPOCH stands for
// the commit's time.
func sourceOf(ctx context.Context, root, version string) (source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return source{}, err
	}
	s := source{root: root, version: version, revision: "unknown", time: time.Unix(0, 0).UTC()}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return source{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds", epoch)
		}
		s.time = time.Unix(seconds, 0).UTC()
	}
	out, err := git(ctx, root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, nil //nolint:nilerr // a source archive has no git
	}
	revision, at, _ := strings.Cut(out, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("read the commit's time: %w", err)
	}
	s.revision, s.time = revision, time.Unix(seconds, 0).UTC()
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return source{}, err
	}
	if changed != "" {
		s.revision += "-dirty"
	}
	return s, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// compile links a program for a platform, and gives its path below dir.
func (s source) compile(ctx context.Context, dir, name string, p v1.Platform) (string, error) {
	target := filepath.Join(dir, p.Architecture, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X "+module+"/internal/api/version.stamp="+s.version+" -X "+module+"/internal/api/version.releases="+s.releases,
		"-o", target, "./cmd/"+name)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s for %s: %w\n%s", name, p, err, out)
	}
	return target, nil
}
