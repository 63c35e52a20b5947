package env

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/schemas"
)

// liqoCRDs are Liqo's definitions; crds/README.md says where they are from.
//
//go:embed crds/*.yaml
var liqoCRDs embed.FS

// crdPatience is how long definitions may take to be served where the caller
// sets no bound: a busy machine needs more than controller-runtime's ten seconds.
const crdPatience = 2 * time.Minute

// InstallLiqoCRDs creates or updates Liqo's CustomResourceDefinitions on a
// cluster and returns once they are served. Without Liqo's controllers nothing
// acts on their objects.
func InstallLiqoCRDs(ctx context.Context, config *rest.Config) error {
	crds, err := readCRDs(liqoCRDs, "crds/*.yaml")
	if err != nil {
		return fmt.Errorf("install Liqo's CRDs: %w", err)
	}
	if err := InstallCRDs(ctx, config, crds...); err != nil {
		return fmt.Errorf("install Liqo's CRDs: %w", err)
	}
	return nil
}

// InstallAgentCRDs does the same with the definitions of the kinds that the
// project's own agents serve.
func InstallAgentCRDs(ctx context.Context, config *rest.Config) error {
	crds, err := readCRDs(schemas.CRDs, "crds/*.yaml")
	if err != nil {
		return fmt.Errorf("install the agents' CRDs: %w", err)
	}
	if err := InstallCRDs(ctx, config, crds...); err != nil {
		return fmt.Errorf("install the agents' CRDs: %w", err)
	}
	return nil
}

// InstallCRDsOf does the same with the files *.yaml of a directory.
func InstallCRDsOf(ctx context.Context, config *rest.Config, files fs.FS) error {
	crds, err := readCRDs(files, "*.yaml")
	if err != nil {
		return err
	}
	return InstallCRDs(ctx, config, crds...)
}

// InstallCRDs creates or updates definitions on a cluster and returns once
// they are served.
func InstallCRDs(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	log.SetLogger(logr.Discard()) // else controller-runtime complains with a stack trace
	patience := crdPatience
	if end, ok := ctx.Deadline(); ok {
		patience = time.Until(end)
	}
	_, err := crenvtest.InstallCRDs(config, crenvtest.CRDInstallOptions{CRDs: crds, MaxTime: patience})
	return err
}

func readCRDs(files fs.FS, pattern string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(paths))
	for _, path := range paths {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
