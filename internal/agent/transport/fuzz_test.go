package transport

import (
	"errors"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// FuzzAnswer: whatever a broker, or who stands in its place, answers: nothing
// panics, and nothing that is no success is taken for one.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		`{"version":"7","provide":[{"contract":"vision-a-0-aaaaaaaa","consumer":"rome","flavor":"h100","resources":{"cpu":"4","nvidia.com/gpu":"1"}}],"reservations":[]}`,
		`{"version":"7","version":"8"}`, `{"provide":[{"resources":{"memory":"1e2147483647"}}]}`, `{"provide":[{"resources":{"cpu":"-1"}}]}`,
		`{"provide":null}`, `[]`, `null`, ``, `<html>`, `{"error":"x","reason":"StaleEpoch","last":"7.3"}`, `{"error":"x","reason":"StaleEpoch","last":"x"}`,
	} {
		for _, status := range []int{200, 201, 202, 204, 304, 409, 412, 503} {
			f.Add(status, "1", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter string, body []byte) {
		a := &answer{url: "https://broker.example.org", status: status, header: map[string][]string{"Retry-After": {retryAfter}}, body: body}
		var in wire.Instructions
		var made wire.Reservation
		for _, err := range []error{a.verdict(), a.into(&in), a.into(&made)} {
			if err == nil && status/100 != 2 {
				t.Fatalf("%d was taken for a success", status)
			}
			var stale *StaleError
			if errors.As(err, &stale) && stale.Last.Epoch == 0 {
				t.Fatalf("a generation of %v was believed", stale.Last)
			}
		}
		for _, p := range in.Provide {
			for name, amount := range p.Resources {
				if amount.Int64() < 0 && a.into(&wire.Instructions{}) == nil {
					t.Fatalf("%s is to be given %d of %s", p.Contract, amount.Int64(), name)
				}
			}
		}
	})
}
