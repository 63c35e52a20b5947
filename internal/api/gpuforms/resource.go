package gpuforms

import (
	"fmt"
	"strings"
)

// resources are the names under which pods ask for a vendor's whole GPUs.
var resources = map[string]string{
	"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd", "gpu.intel.com/i915": "intel", "gpu.intel.com/xe": "intel",
}

// migPrefix begins the names under which pods ask for instances of a MIG profile.
const migPrefix = "nvidia.com/mig-"

// ByResource is whose GPUs pods ask for under a resource's name, and of which MIG
// profile, in lower case, which is "" for whole GPUs. is is false for any other name; the
// error is of one that begins as those of profiles do and names none.
func ByResource(name string) (vendor, profile string, is bool, err error) {
	if p, mig := strings.CutPrefix(name, migPrefix); mig {
		if profile = strings.ToLower(p); !IsProfile(profile) {
			return "", "", true, fmt.Errorf("%s: %q is not a MIG profile; write for example %s", name, p, Object(1, "nvidia", "1g.10gb"))
		}
		return "nvidia", profile, true, nil
	}
	vendor, is = resources[name]
	return vendor, "", is, nil
}

// Object is a GPU request in the form of an object, to show what to write; profile is ""
// for whole GPUs.
func Object(count int32, vendor, profile string) string {
	if profile != "" {
		profile = ", profile: " + profile
	}
	return fmt.Sprintf("gpu: {count: %d, vendor: %s%s}", count, vendor, profile)
}
