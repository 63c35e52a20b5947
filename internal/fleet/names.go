package fleet

import (
	"regexp"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var (
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	qualified    = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	userForm     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9:._@/]{0,252}$`)
)

// forbiddenNamespace: namespaces that no tenant may ever offload.
func forbiddenNamespace(name string) bool {
	return v1alpha1.SystemNamespace(name)
}
