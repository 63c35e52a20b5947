package checker

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// contract is the part of a contract file that the checker looks at.
type contract struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Intent                            struct{ Name, Path, Commit string }
		Consumer, Provider, Flavor, Slice string
		Stage                             string
		Resources                         map[string]string
		Nodes                             []map[string]any
		VirtualNode                       struct {
			Shares              []map[string]any
			KubeconfigSecretRef struct{ Name string }
		}
		GPUs *struct {
			Count        int64
			Model        string
			ResourceName string
			UnitsPerGPU  int64
		}
	}
	Decision struct{ Market string }
	Status   struct {
		Phase   string
		Target  string
		Drained string
	}

	path string
}

func (c *contract) flavor() string { return c.Spec.Provider + "/" + c.Spec.Flavor }

func (c *contract) held() bool {
	switch c.Status.Phase {
	case "Reserved", "Peering", "Active", "Degraded", "Releasing":
		return true
	}
	return false
}

func (c *contract) wantsSlice() bool {
	return c.held() && c.Spec.Stage != "reserve" && (c.Status.Phase != "Releasing" || c.Status.Drained == "")
}

// flavor is the part of a market snapshot that the checker looks at.
type flavor struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Capacity   map[string]any
		Used       map[string]any
		Held       map[string]map[string]any
		Overcommit map[string]any
		ScalableTo map[string]any
		Pool       string
		GPU        *struct{ ResourceName string }
	}
}

// state is all contracts and slices at one commit.
type state struct {
	contracts map[string]*contract // by path
	slices    map[string]*slice    // by path
}

type slice struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
		Labels      map[string]string
	}
	Spec struct{ Resources map[string]string }
}

func (s *state) clone() *state {
	out := &state{make(map[string]*contract, len(s.contracts)), make(map[string]*slice, len(s.slices))}
	for k, v := range s.contracts {
		out.contracts[k] = v
	}
	for k, v := range s.slices {
		out.slices[k] = v
	}
	return out
}

func isContractPath(p string) bool {
	return strings.HasPrefix(p, "contracts/") && strings.Count(p, "/") == 4 && !strings.HasSuffix(p, "/_intent.yaml")
}

func parseContract(path string, b []byte) (*contract, error) {
	var c contract
	if err := yaml.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.path = path
	return &c, nil
}

// quantity reads what a person reads: "16", 16, "128Gi".
func quantity(v any) (resource.Quantity, error) {
	switch x := v.(type) {
	case string:
		return resource.ParseQuantity(x)
	case float64:
		return resource.ParseQuantity(fmt.Sprintf("%d", int64(x)))
	case int64:
		return *resource.NewQuantity(x, resource.DecimalSI), nil
	case nil:
		return resource.Quantity{}, nil
	}
	return resource.Quantity{}, fmt.Errorf("%v is not a quantity", v)
}
