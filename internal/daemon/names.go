package daemon

import (
	"fmt"
	"os"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Requester is who asked for a contract: its tenant, or the cluster whose agent did,
// which the author of a request names ("cluster rome, for …").
func Requester(c *v1alpha1.Contract) string {
	in := c.Spec.Intent
	if cluster, ok := strings.CutPrefix(in.Author, "cluster "); ok && strings.HasPrefix(in.Path, "requests/") {
		cluster, _, _ = strings.Cut(cluster, ",")
		cluster, _, _ = strings.Cut(cluster, " ")
		return cluster
	}
	return c.Metadata.Namespace
}

// IdentityOf is a daemon's name among others.
func IdentityOf(flag string) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%s", host, flag)
}
