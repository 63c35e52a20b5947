package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const spdxType = "application/spdx+json"

// push uploads what is attached to an image, then the tag.
func (o *options) push(ctx context.Context, src source, made built, s *signer) error {
	repository, err := name.NewRepository(o.repository(made.program), o.name()...)
	if err != nil {
		return err
	}
	options := o.remote(ctx)
	digest, err := made.index.Digest()
	if err != nil {
		return err
	}
	ref := repository.Digest(digest.String())
	if err := remote.WriteIndex(ref, made.index, options...); err != nil {
		return err
	}
	for _, p := range made.images {
		descriptor, err := partial.Descriptor(p.image)
		if err != nil {
			return err
		}
		sbom, err := artefact(p.sbom, spdxType, nil)
		if err != nil {
			return err
		}
		sbom = mutate.Subject(sbom, *descriptor).(v1.Image)
		sum, err := sbom.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(repository.Digest(sum.String()), sbom, options...); err != nil {
			return fmt.Errorf("attach the SBOM: %w", err)
		}
		if s != nil {
			if err := o.attach(ctx, repository.Digest(descriptor.Digest.String()), "sig", s.image); err != nil {
				return err
			}
		}
	}
	if s != nil {
		if err := o.attach(ctx, ref, "sig", s.image); err != nil {
			return err
		}
		if err := o.attach(ctx, ref, "att", func(ctx context.Context, ref name.Digest) (v1.Image, error) {
			statement, err := o.statementOf(src, ref)
			if err != nil {
				return nil, err
			}
			return s.provenance(ctx, statement)
		}); err != nil {
			return err
		}
	}
	if err := remote.Tag(repository.Tag(o.version), made.index, options...); err != nil {
		return err
	}
	fmt.Printf("%s:%s@%s\n", repository.Name(), o.version, digest)
	return nil
}

// attach makes what belongs to a digest and pushes it under the tag where cosign looks.
func (o *options) attach(ctx context.Context, ref name.Digest, kind string, make func(context.Context, name.Digest) (v1.Image, error)) error {
	image, err := make(ctx, ref)
	if err != nil {
		return err
	}
	if err := remote.Write(attached(ref, kind), image, o.remote(ctx)...); err != nil {
		return fmt.Errorf("attach %s to %s: %w", kind, ref.DigestStr(), err)
	}
	return nil
}

// attached is cosign's tag of what belongs to a digest: sha256-<hex>.sig, .att.
func attached(ref name.Digest, kind string) name.Tag {
	return ref.Context().Tag(strings.ReplaceAll(ref.DigestStr(), ":", "-") + "." + kind)
}

// only is the one layer of an artefact, with its annotations.
func (o *options) only(ctx context.Context, ref name.Reference) ([]byte, map[string]string, error) {
	image, err := remote.Image(ref, o.remote(ctx)...)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	if len(manifest.Layers) != 1 {
		return nil, nil, fmt.Errorf("%s has %d layers, want one", ref, len(manifest.Layers))
	}
	layer, err := image.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		return nil, nil, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	content, err := io.ReadAll(io.LimitReader(reader, 1<<20))
	return content, manifest.Layers[0].Annotations, err
}

// artefact is an image that holds one blob of a type.
func artefact(content []byte, mediaType types.MediaType, annotations map[string]string) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if annotations == nil {
		image = mutate.ConfigMediaType(image, mediaType) // which is the artefact's type
	}
	return mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(content, mediaType), MediaType: mediaType, Annotations: annotations})
}

// write puts an image and its SBOMs into a directory: <to>/<program> is an OCI layout.
func (o *options) write(made built) error {
	dir := filepath.Join(o.to, made.program)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(made.index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})); err != nil {
		return err
	}
	for _, p := range made.images {
		file := filepath.Join(o.to, fmt.Sprintf("%s_%s_%s.spdx.json", made.program, p.platform.OS, p.platform.Architecture))
		if err := os.WriteFile(file, p.sbom, 0o644); err != nil { //nolint:gosec // anybody may read it
			return err
		}
	}
	digest, err := made.index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s:%s@%s\n", dir, o.version, digest)
	return nil
}

func (o *options) name() []name.Option {
	if o.insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// repository is a program's, as text.
func (o *options) repository(program string) string {
	return strings.TrimSuffix(o.registry, "/") + "/" + program
}

// remote speaks to registries as the user's docker configuration says.
func (o *options) remote(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}
