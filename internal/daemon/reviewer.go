package daemon

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
)

// Reviewer reaches the API server that reviews tokens: that of a kubeconfig, or "" for the
// pod's own; nil where there is none.
func Reviewer(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read --operators-kubeconfig: %w", err)
		}
		config.Wrap(redirects.Refuse)
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("use this pod's ServiceAccount: %w", err)
	}
	config.Wrap(redirects.Refuse)
	return config, nil
}
