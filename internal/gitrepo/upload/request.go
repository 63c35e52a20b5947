package upload

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// The library drops multi_ack from what servers advertise, because it does not negotiate in
// rounds. Azure DevOps refuses who does not ask for it. Nothing is negotiated here: all haves
// go in one request that ends with done, which a server answers with a line for each common
// one and the pack, and these lines are skipped.
func init() { transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack} }

// Request asks for what some commits reach and others do not, of a server with these
// capabilities: without files that are larger than largest, in bytes, where it can leave
// them out; 0: with all.
func Request(caps *capability.List, want, have []tree.Hash, largest uint64) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequestFromCapabilities(caps)
	for _, h := range want {
		req.Wants = append(req.Wants, plumbing.Hash(h))
	}
	for _, h := range have {
		req.Haves = append(req.Haves, plumbing.Hash(h))
	}
	if largest > 0 && caps.Supports(capability.Filter) && req.Capabilities.Set(capability.Filter) == nil {
		req.Filter = packp.FilterBlobLimit(largest+1, packp.BlobLimitPrefixNone)
	}
	return req
}
