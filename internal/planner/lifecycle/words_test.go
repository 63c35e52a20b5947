package lifecycle

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// maxMessage is how many bytes a message has at most.
const maxMessage = 1000

// Whatever a consumer's cluster writes into a condition, the contract is short, is read as
// it was written, and is not changed by the same condition again.
func TestWordsOfClusters(t *testing.T) {
	for name, text := range map[string]string{
		"escapes": "\x1b]0;owned\x07\x1b[2J", "bidi": "a\u202egpj.exe\u2066", "NUL": "a\x00b", "lines": "a\n---\nkind: Contract\r\n- b\u2028c\u0085", "not UTF-8": "\xff\xfe\xc0\x80",
		"yaml": "!!binary aGk=: {a: *b}\n# &x", "long": strings.Repeat("denied ", 200_000), "long and odd": strings.Repeat("\u202e\x00\xff", 500_000), "surrogate": "\xed\xa0\x80", "byte order mark": "\ufeffx",
	} {
		t.Run(name, func(t *testing.T) {
			for field, obs := range map[string]v1alpha1.ConsumerObservation{
				"denied":     {Reachable: true, Slice: v1alpha1.Present, SliceDenied: text},
				"node":       {Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, Granted: v1alpha1.Resources{"cpu": {}}, NodeMessage: text},
				"provider":   {Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, Granted: v1alpha1.Resources{"cpu": {}}, ProviderMessage: text},
				"offloading": {Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, NodeReady: true, Granted: v1alpha1.Resources{"cpu": {}}, OffloadingMessage: text},
				"delivery":   {Reachable: true, Message: text},
				"peering":    {Reachable: true, PeeringMessage: text},
			} {
				var c v1alpha1.Contract
				missing, _ := Missing(&c, &obs)
				r := waits(&c, v1alpha1.PhaseReserved, &obs, missing)
				if len(r.Message) > maxMessage || len(text) > maxMessage && !utf8.ValidString(r.Message) {
					t.Errorf("%s: %d bytes of a message, want %d at most", field, len(r.Message), maxMessage)
				}
				if r.Message == "" {
					t.Errorf("%s: the message says nothing", field)
				}
				c.Status.Reason, c.Status.Message = r.Code, r.Message
				raw, err := ledger.Encode(&c)
				if err != nil {
					t.Errorf("%s: %v", field, err)
					continue
				}
				var back v1alpha1.Contract
				if err := ledger.Decode(raw, &back); err != nil {
					t.Errorf("%s: what was written cannot be read: %v", field, err)
				} else if back.Status.Message != r.Message {
					t.Errorf("%s: written %.200q, read %.200q", field, r.Message, back.Status.Message)
				}
			}
		})
	}
}
