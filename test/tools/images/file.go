package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// sbom writes the SBOM of a binary that was built for the only platform named.
func (o *options) sbom(ctx context.Context, out io.Writer, binary string) error {
	platforms, err := o.onPlatforms()
	switch {
	case err != nil:
		return err
	case binary == "" || o.version == "" || len(platforms) != 1:
		return fmt.Errorf("sbom takes -version, one platform and a binary, for example: sbom -version v0.1.0 -platforms linux/amd64 bin/fleetbroker")
	}
	src, err := sourceOf(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	file, err := os.Open(binary)
	if err != nil {
		return fmt.Errorf("read the binary: %w", err)
	}
	defer file.Close()
	digest, _, err := v1.SHA256(file)
	if err != nil {
		return fmt.Errorf("read the binary: %w", err)
	}
	doc, err := sbomOf(src, strings.TrimSuffix(filepath.Base(binary), ".exe"), binary, platforms[0], "file", digest)
	if err != nil {
		return err
	}
	_, err = out.Write(doc)
	return err
}

// signFile writes the signature of a file, which `cosign verify-blob --key` checks.
func (o *options) signFile(ctx context.Context, out io.Writer, path string) error {
	if path == "" || o.key == "" {
		return fmt.Errorf("sign takes -key and a file, for example: sign -key cosign.key SHA256SUMS")
	}
	signer, err := readSigner(o.key)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read what to sign: %w", err)
	}
	signature, err := signer.Sign(ctx, content)
	if err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	_, err = fmt.Fprintln(out, base64.StdEncoding.EncodeToString(signature))
	return err
}
