// Package decodable has the agent read Liqo's objects whatever is written in them. Their
// schemas are patterns that an API server holds them to, and allow what Kubernetes' types
// cannot read: a quantity of 1e5.5, at which a whole list is refused, one of 1e-2147483647,
// which keeps a decoder busy for days, an instant in small letters. A consumer's
// administrators write the slices that a provider's agent reads, with those of all others.
//
// Invariants:
//   - What comes out of an answer is decoded by the types of resources and instants, in time
//     that grows with its length. A quantity that cannot be read is one that nobody has, so
//     that it is granted to nobody; an instant that cannot be read is none.
//   - What can be read is left as it is, and so is every other field.
//   - An event of a watch is passed on when it has come, not later.
//
// Caller: package replies, for all clients of the agent. It keeps nothing between answers.
package decodable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Repair has answers about Liqo's objects made decodable.
func Repair(next http.RoundTripper) http.RoundTripper { return repairing{next} }

type repairing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t repairing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil || !ofLiqo(r.URL.Path) || answer.Body == nil || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return answer, err
	}
	answer.Body = &body{ReadCloser: answer.Body, in: json.NewDecoder(answer.Body)}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

// WrappedRoundTripper lets the library see through.
func (t repairing) WrappedRoundTripper() http.RoundTripper { return t.next }

// ofLiqo reports whether a path is of a group of Liqo's, /apis/<group>.liqo.io/….
func ofLiqo(path string) bool {
	_, rest, is := strings.Cut(path, "/apis/")
	group, _, _ := strings.Cut(rest, "/")
	return is && strings.HasSuffix(group, ".liqo.io")
}

// body is an answer's, one JSON value after the other.
type body struct {
	io.ReadCloser
	in  *json.Decoder
	out bytes.Buffer
	err error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for b.out.Len() == 0 {
		if b.err != nil {
			return 0, b.err
		}
		var raw json.RawMessage
		if b.err = b.in.Decode(&raw); b.err == nil {
			b.out.Write(repaired(raw))
			b.out.WriteByte('\n')
		}
	}
	return b.out.Read(p)
}

// suspect is what every text has in which anything is to be repaired: resources, or an
// instant that is not as Kubernetes writes it.
var (
	suspect = regexp.MustCompile(`"resources"\s*:|Time(stamp)?"\s*:`)
	// texts are maps of texts, whose keys people choose: an annotation startTime is no instant.
	texts   = regexp.MustCompile(`(?i)(labels|annotations|selector)$`)
	instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
)

func repaired(raw []byte) []byte {
	if !suspect.Match(raw) {
		return raw
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // figures stay as they are written
	var v any
	if in.Decode(&v) != nil || !repair(v) {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// unreadable takes the place of a quantity: more than there can be of anything.
const unreadable = "8E"

// repair changes what cannot be decoded below a value, and reports whether there was any.
func repair(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			changed = repair(one) || changed
		}
	case map[string]any:
		for key, one := range v {
			switch value := one.(type) {
			case string:
				if (strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Timestamp")) && !isInstant(value) {
					v[key], changed = nil, true
				}
			case map[string]any:
				if texts.MatchString(key) {
					continue
				}
				if key == "resources" {
					changed = quantities(value) || changed
				}
				changed = repair(value) || changed
			default:
				changed = repair(value) || changed
			}
		}
	}
	return changed
}

func isInstant(text string) bool {
	if !instant.MatchString(text) {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func quantities(list map[string]any) (changed bool) {
	for name, v := range list {
		switch v.(type) {
		case string, json.Number:
			if _, err := v1alpha1.ParseQuantity(fmt.Sprint(v)); err != nil {
				list[name], changed = unreadable, true
			}
		}
	}
	return changed
}
