package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// module is the project's path.
const module = "github.com/fleetbroker/fleetbroker"

// archive is a published file with programs for a platform.
type archive struct {
	os, arch, file, sum, bin string
}

// member is a file of an archive.
type member struct {
	name    string
	content []byte
	mode    int64
}

// programs builds both programs for each platform. The agent runs in clusters, so that it
// is in Linux's archives alone.
func (r *release) programs(ctx context.Context, scratch string) error {
	license, err := os.ReadFile(filepath.Join(r.checkout, "LICENSE"))
	if err != nil {
		return err
	}
	manual, err := manuals(r.version, r.time)
	if err != nil {
		return err
	}
	for platform := range strings.SplitSeq(r.platforms, ",") {
		goos, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("platform %q: want one such as linux/amd64", platform)
		}
		names := []string{"fleetbroker"}
		if goos == "linux" {
			names = append(names, "fleet-agent")
		}
		members := []member{{"LICENSE", license, 0o644}}
		if goos != "windows" {
			members = append(members, manual...)
		}
		exe := ""
		if goos == "windows" {
			exe = ".exe"
		}
		for _, name := range names {
			binary := filepath.Join(scratch, goos, arch, name+exe)
			if err := r.compile(ctx, binary, name, goos, arch); err != nil {
				return err
			}
			content, err := os.ReadFile(binary)
			if err != nil {
				return err
			}
			members = append(members, member{name + exe, content, 0o755})
			r.built = append(r.built, fmt.Sprintf("%s_%s_%s_%s%s=%s", name, r.version, goos, arch, exe, binary))
			sbom, err := r.run(ctx, "sbom", "-checkout", r.checkout, "-version", r.version, "-platforms", platform, binary)
			if err != nil {
				return err
			}
			if err := r.write(fmt.Sprintf("%s_%s_%s_%s.spdx.json", name, r.version, goos, arch), sbom); err != nil {
				return err
			}
		}
		a := archive{os: goos, arch: arch, file: fmt.Sprintf("fleetbroker_%s_%s_%s.tar.gz", r.version, goos, arch), bin: "fleetbroker" + exe}
		pack := tarball
		if goos == "windows" {
			a.file, pack = strings.TrimSuffix(a.file, ".tar.gz")+".zip", zipped
		}
		packed, err := pack(members, r.time)
		if err != nil {
			return fmt.Errorf("pack %s: %w", a.file, err)
		}
		sum := sha256.Sum256(packed)
		a.sum = hex.EncodeToString(sum[:])
		if err := r.write(a.file, packed); err != nil {
			return err
		}
		r.built = append(r.built, a.file+"="+filepath.Join(r.dir, a.file))
		r.archives = append(r.archives, a)
	}
	return nil
}

// compile links a program for a platform, with what images are linked with.
func (r *release) compile(ctx context.Context, target, name, goos, arch string) error {
	stamp := module + "/internal/api/version."
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X "+stamp+"stamp="+r.version+" -X "+stamp+"releases="+r.releases,
		"-o", target, "./cmd/"+name)
	cmd.Dir = r.checkout
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+goos, "GOARCH="+arch)
	return said(cmd)
}

// tarball is a .tar.gz whose bytes follow from its files alone.
func tarball(members []member, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(m.content)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zipped is the same as a .zip.
func zipped(members []member, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(m.mode)) //nolint:gosec // 0o644 or 0o755
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
