package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// unpack pulls an image for the first platform named and writes its files below o.to,
// with the modes that they have, and its configuration to o.to + ".json".
func (o *options) unpack(ctx context.Context, reference string) error {
	ref, err := name.ParseReference(reference, o.name()...)
	if err != nil {
		return err
	}
	if o.to == "" {
		return fmt.Errorf("no -to: name a directory")
	}
	platform, err := v1.ParsePlatform(firstOf(o.platforms))
	if err != nil {
		return err
	}
	image, err := remote.Image(ref, append(o.remote(ctx), remote.WithPlatform(*platform))...)
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.to+".json", config, 0o644); err != nil { //nolint:gosec // anybody may read it
		return err
	}
	if err := os.MkdirAll(o.to, 0o755); err != nil { //nolint:gosec // as a root directory
		return err
	}
	root, err := os.OpenRoot(o.to)
	if err != nil {
		return err
	}
	defer root.Close()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := place(root, h, r); err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

// place writes one entry below root, which no name and no link leads out of.
func place(root *os.Root, h *tar.Header, content io.Reader) error {
	path, mode := filepath.Clean(h.Name), h.FileInfo().Mode()
	if path == "." {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(path, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		f, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, content); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("an entry of type %q", h.Typeflag)
	}
	return root.Chmod(path, mode)
}
