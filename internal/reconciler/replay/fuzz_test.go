package replay_test

import (
	"bytes"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// FuzzRecord: whatever a round's record holds, it is refused, or says the same
// when it is written again.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		`{"version":1}`, `{"version":2}`, `{"version":1,"version":2}`, `{"version":1} {}`, `{"version":1,"evil":true}`, `[]`, `null`, ``,
		`{"version":1,"base":"x","kept":{"a":"b"},"unread":[{"path":"intents/vision/","hash":"x","why":"y","again":true}],"offers":[{"flavor":null,"state":"Lost"}]}`,
		`{"version":1,"said":[{"what":{"reachable":true,"granted":{"cpu":"1e2147483647"}},"of":["a"]}],"demand":{"a":null},"since":{"a":"2026-13-01T00:00:00Z"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := replay.Decode(text)
		if err != nil {
			if first != nil {
				t.Fatal("a record beside an error")
			}
			return
		}
		once, err := first.Encode()
		if err != nil {
			return // what cannot be written is not what we wrote
		}
		second, err := replay.Decode(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		twice, err := second.Encode()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\nwritten again\n%s", err, once, twice)
		}
	})
}
