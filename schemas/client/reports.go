package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
)

// ReportFlavors reports all flavors of a cluster under a generation, "<epoch>.<n>": the epoch
// grows with each start of the reporter, n with each change. A nil report says that the list of
// that generation still holds; v1alpha1.ReasonUnknownBase then asks for the whole one.
func (c *Client) ReportFlavors(ctx context.Context, cluster, generation string, report *v1alpha1.FlavorReport) error {
	r := request{method: http.MethodPut, path: "/api/v2/clusters/" + url.PathEscape(cluster) + "/flavors", header: http.Header{}}
	r.header.Set(v1alpha1.HeaderGeneration, generation)
	if report != nil {
		body := *report
		if body.Honoured > 0 { // older daemons know the header alone
			r.header.Set(v1alpha1.HeaderHonoured, strconv.FormatUint(body.Honoured, 10))
			body.Honoured = 0
		}
		r.in = body
	}
	_, err := c.do(ctx, r, nil)
	return err
}

// Manifests are what the agent of a cluster with delivery: agent applies; nil when there is
// nothing newer.
func (c *Client) Manifests(ctx context.Context, cluster string, w Wait) (*v1alpha1.Manifests, error) {
	return news[v1alpha1.Manifests](ctx, c, manifestsPath(cluster), w.values())
}

// ManifestsRoot is the hash of those manifests in the repository now.
func (c *Client) ManifestsRoot(ctx context.Context, cluster string) (string, error) {
	var out v1alpha1.ManifestsRoot
	_, err := c.do(ctx, request{method: http.MethodGet, path: manifestsPath(cluster) + "/root"}, &out)
	return out.Root, err
}

// Observe reports what an agent sees of what it applied.
func (c *Client) Observe(ctx context.Context, cluster string, seen v1alpha1.Observed) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/api/v2/clusters/" + url.PathEscape(cluster) + "/observations", in: seen}, nil)
	return err
}

func manifestsPath(cluster string) string {
	return "/api/v2/clusters/" + url.PathEscape(cluster) + "/manifests"
}
