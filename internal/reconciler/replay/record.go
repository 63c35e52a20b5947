package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
)

// Trailers of a commit that carries decisions.
const (
	// Trailer names the record, by the hash of its file.
	Trailer = "Round"
	// PartTrailer says that a commit has only a part of what its round decided:
	// "2 of 5".
	PartTrailer = "Part"
)

// version of the form. A change that older programs would misread is another.
const version = 1

// Record is what a round knew beside inputs, ledger and market. Lists are
// sorted.
type Record struct {
	Version int `json:"version"`
	// Base is the ledger's commit that was planned on; empty: there was none.
	Base string `json:"base,omitempty"`
	// Accepted is the inputs' commit up to which signatures were verified before.
	Accepted string `json:"accepted,omitempty"`
	// Kept are the last good versions that stood in for broken files of the inputs, by path.
	Kept map[string]string `json:"kept,omitempty"`

	Deaf bool `json:"deaf,omitempty"`
	// Heard are providers that only another daemon heard, and Reached consumers that only
	// it reached: written by versions whose daemons knew different things, and read still.
	Heard        []string `json:"heard,omitempty"`
	Reached      []string `json:"reached,omitempty"`
	AllowEnds    bool     `json:"allowEnds,omitempty"`
	ForceRelease []string `json:"forceRelease,omitempty"`
	// Removed says who deleted the files of intents whose contracts change or are held back.
	Removed map[string]string `json:"removed,omitempty"`
	// Requests that came through the API in this round, by path, with their text:
	// not all of them need be in each of its commits.
	Requests map[string]string `json:"requests,omitempty"`
	// Authors of intents that the ledger did not know as they were, by path.
	Authors map[string]Author `json:"authors,omitempty"`
	// Since is when intents were first seen that wait for review, by "<tenant>/<name>".
	Since map[string]v1alpha1.Time `json:"since,omitempty"`
	// Offered are the intents whose contracts wait for review, "<tenant>/<name>".
	Offered []string `json:"offered,omitempty"`

	// Reported are flavors that stand in files, too, and that an agent reports.
	Reported []string `json:"reported,omitempty"`
	// Unread are pieces of the inputs that this round left out, and that the
	// ledger did not list as set aside.
	Unread []fleet.Unread `json:"unread,omitempty"`

	// Offers that are not in the market's tree: withdrawn and missing ones.
	Offers []Offer `json:"offers,omitempty"`
	// Unseen are providers with contracts whose agents were not heard.
	Unseen []string `json:"unseen,omitempty"`
	// Unheard are contracts that waited for their provider's word.
	Unheard []string `json:"unheard,omitempty"`
	// Silent: of contracts in no list of Said consumers said nothing; else all was in order.
	Silent bool `json:"silent,omitempty"`
	// Said is what consumers said.
	Said []Said `json:"said,omitempty"`
	// Demand is what agents said of pods, where an intent follows it.
	Demand map[string]*v1alpha1.DemandSeen `json:"demand,omitempty"`
}

// Author is who last changed an intent.
type Author struct {
	Commit string `json:"commit"`
	Author string `json:"author"`
}

// Offer is one that the market's tree does not hold.
type Offer struct {
	Flavor    *v1alpha1.Flavor `json:"flavor"`
	State     model.Freshness  `json:"state"`
	Since     v1alpha1.Time    `json:"since"`
	GraceEnds v1alpha1.Time    `json:"graceEnds"`
	Static    bool             `json:"static,omitempty"`
	// Missing: the market did not know it, but contracts are on it.
	Missing bool `json:"missing,omitempty"`
}

// Said is what consumers said of some contracts.
type Said struct {
	What v1alpha1.ConsumerObservation `json:"what"`
	// Whole: granted and allocatable is just what the contract says.
	Whole bool     `json:"whole,omitempty"`
	Of    []string `json:"of"`
}

// Encode is the record as a file.
func (r *Record) Encode() ([]byte, error) {
	r.Version = version
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write what the round knew: %w", err)
	}
	return append(b, '\n'), nil
}

// Decode reads a record.
func Decode(b []byte) (*Record, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	var only struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &only); err != nil {
		return nil, fmt.Errorf("read what the round knew: %w", err)
	}
	if only.Version != version {
		return nil, fmt.Errorf("read what the round knew: it is of version %d, and this program knows version %d: use the fleetbroker that wrote it", only.Version, version)
	}
	d.DisallowUnknownFields()
	var r Record
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("read what the round knew: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read what the round knew: something follows the record")
	}
	for i := range r.Said {
		r.Said[i].What = r.Said[i].What.Apart()
	}
	return &r, nil
}

// hashText is a commit's name, empty for none.
func hashText(h tree.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
