package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is whom the programs run as: nobody's account, the one that distroless images use.
const user = "65532"

// built is the image of a program, with one entry for each platform.
type built struct {
	program string
	index   v1.ImageIndex
	images  []platformImage
}

type platformImage struct {
	platform v1.Platform
	image    v1.Image
	sbom     []byte // SPDX 2.3 as JSON
}

// image makes the index of a program's images.
func (o *options) image(ctx context.Context, src source, program string, platforms []v1.Platform) (built, error) {
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		return built{}, err
	}
	defer os.RemoveAll(dir)
	made := built{program: program, index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, p := range platforms {
		binary, err := src.compile(ctx, dir, program, p)
		if err != nil {
			return built{}, err
		}
		image, err := o.platformImage(ctx, src, program, binary, p)
		if err != nil {
			return built{}, err
		}
		digest, err := image.Digest()
		if err != nil {
			return built{}, err
		}
		sbom, err := sbomOf(src, program, binary, p, "image", digest)
		if err != nil {
			return built{}, err
		}
		made.images = append(made.images, platformImage{platform: p, image: image, sbom: sbom})
		made.index = mutate.AppendManifests(made.index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}})
	}
	made.index = mutate.Annotations(made.index, src.labels(program)).(v1.ImageIndex)
	return made, nil
}

// platformImage is the base with a layer of the program.
func (o *options) platformImage(ctx context.Context, src source, program, binary string, p v1.Platform) (v1.Image, error) {
	image, err := o.baseImage(ctx, src, p)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	layer, err := src.layer(file{path: program, mode: 0o555, content: content})
	if err != nil {
		return nil, err
	}
	if image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: src.time}, CreatedBy: program + " " + src.version},
	}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Variant = p.Architecture, p.OS, p.Variant
	config.Created = v1.Time{Time: src.time}
	config.Config.User = user + ":" + user
	config.Config.WorkingDir = "/"
	config.Config.Entrypoint = []string{"/" + program}
	config.Config.Cmd = nil
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	labels := src.labels(program)
	for key, value := range labels {
		config.Config.Labels[key] = value
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	if base, digest, ok := strings.Cut(o.base, "@"); ok {
		labels["org.opencontainers.image.base.name"], labels["org.opencontainers.image.base.digest"] = base, digest
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

func (s source) labels(program string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    program,
		"org.opencontainers.image.version":  s.version,
		"org.opencontainers.image.revision": s.revision,
		"org.opencontainers.image.created":  s.time.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.source":   "https://" + module,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// baseImage is the base that was named, for the platform, or ours.
func (o *options) baseImage(ctx context.Context, src source, p v1.Platform) (v1.Image, error) {
	if o.base != "" {
		ref, err := name.NewDigest(o.base, o.name()...)
		if err != nil {
			return nil, fmt.Errorf("-base: %w", err)
		}
		image, err := remote.Image(ref, append(o.remote(ctx), remote.WithPlatform(p))...)
		if err != nil {
			return nil, fmt.Errorf("get base %s for %s: %w", o.base, p, err)
		}
		return image, nil
	}
	var roots bytes.Buffer
	for c := range bundle.Roots() {
		if c.Constraint != nil {
			continue // a file cannot state what such a root is good for
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate}); err != nil {
			return nil, err
		}
	}
	layer, err := src.layer(
		file{path: "etc/passwd", mode: 0o444, content: []byte("root:x:0:0:root:/root:/sbin/nologin\nfleetbroker:x:" + user + ":" + user + ":fleetbroker:/:/sbin/nologin\n")},
		file{path: "etc/group", mode: 0o444, content: []byte("root:x:0:\nfleetbroker:x:" + user + ":\n")},
		file{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o444, content: roots.Bytes()},
		file{path: "tmp", mode: 0o1777, dir: true},
	)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: src.time}, CreatedBy: "certificates, account"},
	})
}

// file is what a layer holds; its directories are made along with it.
type file struct {
	path    string
	mode    int64
	content []byte
	dir     bool
}

// layer packs files in the order given, all of root's and of the commit's time.
func (s source) layer(files ...file) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	put := func(h tar.Header, content []byte) error {
		h.Format, h.ModTime, h.Uname, h.Gname = tar.FormatPAX, s.time, "root", "root"
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	for _, f := range files {
		for _, dir := range parents(f.path) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := put(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil); err != nil {
				return nil, err
			}
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content))}
		if f.dir {
			h.Typeflag, h.Name = tar.TypeDir, f.path+"/"
		}
		if err := put(h, f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// parents are the directories above a path, the outermost first.
func parents(p string) []string {
	var all []string
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		all = append([]string{dir}, all...)
	}
	return all
}
