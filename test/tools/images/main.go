// Images makes the container images of both programs without a container engine, and
// puts them where a cluster pulls them from.
//
//	go build ──► layer ──┐
//	base of ours, BASE= ─┴─► image for each platform ─► index ─► registry or OCI layout
//	                              │                       │
//	                              └─► SBOM (SPDX)         └─► signature, provenance
//
//	main.go        the commands
//	compile.go     a program for a platform
//	image.go       layers, configuration, index
//	sbom.go        what a binary was linked from, as SPDX
//	sign.go        cosign's signatures and SLSA's provenance, by a key of its user's
//	publish.go     registry and OCI layout
//	file.go        the same of files: SBOMs of binaries, signatures of checksums, provenance
//	unpack.go      an image's files, as its container would see them
//	serve.go       a registry in memory, for tests
//
// # Invariants
//
//   - The same commit, version, base and Go make the same digests, on any machine: no
//     clock, no path and no random number gets into an image, its SBOM or its provenance.
//     Times are the commit's. (Signatures are random, and apart from what they sign.)
//   - An image holds the program, roots of certificates, an account and nothing to write
//     to: it runs as 65532 on a read-only root.
//   - A tag is pushed after all that it names.
//
// Who calls it: `make images`, `make release`, and test/e2e/images. One process, no state.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const usage = `images makes the images of fleetbroker and fleet-agent.

  images push -registry R -version V [-base REF@DIGEST] [-platforms P,...] [-key FILE] [-insecure]
  images write -to DIR -version V [...]     an OCI layout in place of a registry
  images unpack -to DIR [-insecure] REF     an image's files, as its container sees them
  images verify -key FILE.pub [-insecure] REF
  images sbom -version V -platforms P BINARY  what a binary was linked from, as SPDX
  images sign -key FILE PATH                a signature of a file, as cosign sign-blob makes it
  images attest -key FILE -version V -platforms P,... NAME=PATH...
                                            provenance of files, signed, as cosign attest-blob makes it
  images serve                              a registry in memory on the loopback interface, until it is interrupted
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("no command")
	}
	o := options{}
	set := o.flags(args[0])
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	o.builder = cmp.Or(o.builder, localBuilder)
	switch args[0] {
	case "push", "write":
		return o.make(ctx, args[0] == "push")
	case "unpack":
		return o.unpack(ctx, set.Arg(0))
	case "verify":
		return o.verify(ctx, set.Arg(0))
	case "sbom":
		return o.sbom(ctx, os.Stdout, set.Arg(0))
	case "sign":
		return o.signFile(ctx, os.Stdout, set.Arg(0))
	case "attest":
		return o.attest(ctx, os.Stdout, set.Args())
	case "serve":
		return serve(ctx, os.Stdout)
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
}

// localBuilder is who builds where nothing else is said.
const localBuilder = "https://fleetbroker.io/builders/local"

// options are what the flags say.
type options struct {
	root      string // the checkout
	registry  string // with the path of the images, without their names
	to        string
	version   string
	releases  string
	base      string // empty: the base of ours
	platforms string
	key       string
	builder   string
	insecure  bool // plain HTTP
}

func (o *options) flags(command string) *flag.FlagSet {
	set := flag.NewFlagSet("images "+command, flag.ContinueOnError)
	set.StringVar(&o.root, "checkout", "../../..", "checkout to build")
	set.StringVar(&o.registry, "registry", "", "registry and path to push to, for example ghcr.io/acme (default: REGISTRY of -releases URL#REGISTRY)")
	set.StringVar(&o.to, "to", "", "directory to write to")
	set.StringVar(&o.version, "version", "", "version of the images, for example v0.1.0: tag, label and what the programs print")
	set.StringVar(&o.base, "base", "", "base image with its digest (default: an empty one with roots of certificates and the account 65532)")
	set.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "platforms to build for")
	set.StringVar(&o.releases, "releases", "", "where releases are, as URL or URL#REGISTRY, which the programs write into what they make (default: none)")
	set.StringVar(&o.key, "key", "", "key to sign with or to verify by: PEM, or cosign's with COSIGN_PASSWORD")
	set.StringVar(&o.builder, "builder", "", "who builds, for the provenance (default: "+localBuilder+")")
	set.BoolVar(&o.insecure, "insecure", false, "speak plain HTTP to the registry")
	return set
}

// make builds, signs and publishes both images.
func (o *options) make(ctx context.Context, push bool) error {
	if o.registry == "" {
		_, o.registry, _ = strings.Cut(o.releases, "#")
	}
	switch {
	case push && o.registry == "":
		return fmt.Errorf("no registry: name where to push to, for example make images REGISTRY=ghcr.io/acme VERSION=v0.1.0")
	case o.version == "":
		return fmt.Errorf("no version: name one, for example VERSION=v0.1.0")
	case !push && o.to == "":
		return fmt.Errorf("no -to: name a directory for the OCI layout")
	case o.base != "" && !strings.Contains(o.base, "@sha256:"):
		return fmt.Errorf("-base %q has no digest, so that what is built would depend on the day: write it as name@sha256:...", o.base)
	}
	if push { // before minutes of building
		for _, program := range programs {
			if _, err := name.NewTag(o.repository(program)+":"+o.version, o.name()...); err != nil {
				return fmt.Errorf("no image can be called so: %w", err)
			}
		}
	}
	platforms, err := o.onPlatforms()
	if err != nil {
		return err
	}
	signer, err := readSigner(o.key)
	if err != nil {
		return err
	}
	src, err := sourceOf(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	src.releases = o.releases
	for _, program := range programs {
		made, err := o.image(ctx, src, program, platforms)
		if err != nil {
			return fmt.Errorf("make the image of %s: %w", program, err)
		}
		if push {
			err = o.push(ctx, src, made, signer)
		} else {
			err = o.write(made)
		}
		if err != nil {
			return fmt.Errorf("publish %s: %w", program, err)
		}
	}
	return nil
}

// onPlatforms are the platforms of the flag.
func (o *options) onPlatforms() (out []v1.Platform, err error) {
	for _, p := range strings.Split(o.platforms, ",") {
		parsed, err := v1.ParsePlatform(strings.TrimSpace(p))
		if err != nil {
			return nil, fmt.Errorf("-platforms: %w", err)
		}
		out = append(out, *parsed)
	}
	return out, nil
}
