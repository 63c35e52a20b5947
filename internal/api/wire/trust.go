package wire

import (
	"fmt"
	"strings"
)

// HeaderTrust goes with a daemon's market, for operators and, with the number of alarms in
// their place, for readers: a Trust in JSON.
const HeaderTrust = "Fleetbroker-Trust"

// Trust is what a daemon holds signatures to.
type Trust struct {
	// Unsigned: no signature is asked for.
	Unsigned bool `json:"unsigned"`
	// Fleet is the fleet's id, Root the name and Keys the digest of its trust root;
	// empty without one.
	Fleet string `json:"fleet,omitempty"`
	Root  string `json:"root,omitempty"`
	Keys  string `json:"keys,omitempty"`
	// File is the root's, without its directory; Policy and Ledger are the ids of its
	// keys in short, without revoked ones.
	File   string   `json:"file,omitempty"`
	Policy []string `json:"policy,omitempty"`
	Ledger []string `json:"ledger,omitempty"`
	// Key signs the daemon's commits: whose, and its fingerprint; empty for none.
	Key string `json:"key,omitempty"`
	// Sequence is the number of the ledger commit that was accepted last; 0: none.
	Sequence uint64 `json:"sequence"`
	// Alarms are what contradicts the root, since the daemon's start. They stop
	// nothing.
	Alarms []string `json:"alarms,omitempty"`
	// AlarmsTotal is how many there are, where Alarms has not all of them; else 0.
	AlarmsTotal int `json:"alarmsTotal,omitempty"`
}

// Showing is it with no more than the first most alarms, and with how many there are.
func (t Trust) Showing(most int) Trust {
	if len(t.Alarms) > most {
		t.AlarmsTotal, t.Alarms = t.Raised(), t.Alarms[:most:most]
	}
	return t
}

// Raised is how many alarms there are, shown or not.
func (t Trust) Raised() int { return max(len(t.Alarms), t.AlarmsTotal) }

// Line is it in one line, for people, with the daemon's own key and without the
// alarms.
func (t Trust) Line() string {
	if t.Key == "" {
		return t.State() + ", signs nothing"
	}
	return t.State() + ", signs with " + t.Key
}

// State is what signatures are held to, in one line: `status`, `plan`, and the
// comments on pull requests show the same.
func (t Trust) State() string {
	if t.Unsigned {
		return "UNSIGNED: whoever may push gives rights and writes the ledger"
	}
	var of []string
	if t.File != "" {
		of = append(of, t.File)
	}
	if len(t.Policy) > 0 {
		of = append(of, "policy "+some(t.Policy))
	}
	if len(t.Ledger) > 0 {
		of = append(of, "ledger "+some(t.Ledger))
	}
	out := "signed under root " + t.Root + " of fleet " + t.Fleet
	if len(of) > 0 {
		out += " (" + strings.Join(of, "; ") + ")"
	}
	return out
}

// MaxKeys is how many keys of a list are shown.
const MaxKeys = 3

func some(keys []string) string {
	if n := len(keys) - MaxKeys; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:MaxKeys], ", "), n)
	}
	return strings.Join(keys, ", ")
}
