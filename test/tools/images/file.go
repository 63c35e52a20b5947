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
	digest, err := digestOf(binary)
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

// attest writes the signed provenance of files, one line, each given as NAME=PATH.
func (o *options) attest(ctx context.Context, out io.Writer, files []string) error {
	if o.key == "" || o.version == "" || len(files) == 0 {
		return fmt.Errorf("attest takes -key, -version and files, for example: attest -key cosign.key -version v0.1.0 fleetbroker.tar.gz=dist/fleetbroker.tar.gz")
	}
	signer, err := readSigner(o.key)
	if err != nil {
		return err
	}
	src, err := sourceOf(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	var of []subject
	for _, file := range files {
		name, path, ok := strings.Cut(file, "=")
		if !ok {
			return fmt.Errorf("attest: %q: want NAME=PATH", file)
		}
		digest, err := digestOf(path)
		if err != nil {
			return fmt.Errorf("attest: %w", err)
		}
		of = append(of, subject{name, map[string]string{digest.Algorithm: digest.Hex}})
	}
	statement, err := o.statement(src, "archives", map[string]any{"version": src.version, "platforms": o.platforms, "releases": o.releases}, of...)
	if err != nil {
		return err
	}
	envelope, err := signer.envelope(ctx, statement)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", envelope)
	return err
}

func digestOf(path string) (v1.Hash, error) {
	file, err := os.Open(path)
	if err != nil {
		return v1.Hash{}, err
	}
	defer file.Close()
	digest, _, err := v1.SHA256(file)
	return digest, err
}
