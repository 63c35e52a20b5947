package wire

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Bounds of an agent's words: they end up in contracts, commits and on screens.
const (
	maxWords = 4 << 10 // bytes of one text
	maxTexts = 1000    // texts of one list
)

// AdmissionNone of Observed.Admission: the API server serves no MutatingAdmissionPolicy.
const AdmissionNone = "none"

var hashForm = regexp.MustCompile(`^([0-9a-f]{40})?$`)

// Observed is what an agent sees in its cluster.
type Observed struct {
	// Generation orders an agent's words, "<epoch>.<n>": the epoch grows with each
	// start, n with each word. An agent of an older form says none.
	Generation string `json:"generation,omitempty"`
	// Root of the manifests that it goes by.
	Root string `json:"root"`
	// Applied: all of them are.
	Applied bool `json:"applied"`
	// Contracts by name. Absent is said only of what those manifests would have
	// brought.
	Contracts map[string]v1alpha1.ConsumerObservation `json:"contracts"`
	// Leading, Pending, Problem and Troubles are how delivery stands there.
	Leading  bool     `json:"leading"`
	Pending  int      `json:"pending,omitempty"`
	Problem  string   `json:"problem,omitempty"`
	Troubles []string `json:"troubles,omitempty"`
	// Admission is the version of MutatingAdmissionPolicy that the API server serves,
	// AdmissionNone for no version; "" where that is not known.
	Admission string `json:"admission,omitempty"`
	// Differs: the ledger has other manifests than are rendered. Replicas of the daemon
	// tell each other; agents, which are given what is rendered, never say so.
	Differs bool `json:"differs,omitempty"`
}

// Check says what a report must not say, nil when it may be believed as far as
// its cluster is: the agent is another's program.
func (o *Observed) Check() error {
	if o.Generation != "" {
		if _, err := ParseGeneration(o.Generation); err != nil {
			return err
		}
	}
	if !hashForm.MatchString(o.Root) {
		return fmt.Errorf("root %.60q is not the hash of a tree", o.Root)
	}
	switch o.Admission {
	case "", AdmissionNone, v1alpha1.AdmissionV1, v1alpha1.AdmissionV1Beta1:
	default:
		return fmt.Errorf("admission is %.60q, which is no version of MutatingAdmissionPolicy", o.Admission)
	}
	if o.Pending < 0 {
		return fmt.Errorf("pending is %d", o.Pending)
	}
	if err := plain("problem", o.Problem); err != nil {
		return err
	}
	if err := plain("troubles", o.Troubles...); err != nil {
		return err
	}
	for name, c := range o.Contracts {
		at := fmt.Sprintf("contract %.60q: ", name)
		if max(c.Slice, c.VirtualNode, c.Node) > v1alpha1.Present {
			return fmt.Errorf("%san object is neither there, absent nor unknown", at)
		}
		if err := plain(at+"messages", c.Message, c.PeeringMessage, c.ProviderMessage, c.SliceDenied, c.NodeMessage, c.OffloadingReason, c.OffloadingMessage); err != nil {
			return err
		}
		if err := plain(at+"blockers", c.Blockers...); err != nil {
			return err
		}
	}
	return nil
}

// plain refuses texts that are none.
func plain(what string, texts ...string) error {
	if len(texts) > maxTexts {
		return fmt.Errorf("%s: %d of them, at most %d are taken", what, len(texts), maxTexts)
	}
	for _, text := range texts {
		switch {
		case len(text) > maxWords:
			return fmt.Errorf("%s: a text of %d bytes, at most %d are taken", what, len(text), maxWords)
		case !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
			return fmt.Errorf("%s: %.60q has characters that are not for people", what, text)
		}
	}
	return nil
}
