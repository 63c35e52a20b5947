package ledger

import (
	"strconv"
	"strings"
	"testing"
)

func TestKnownFormat(t *testing.T) {
	for said, want := range map[string]string{
		"": "", strconv.Itoa(Format): "", strconv.Itoa(Format + 1): "the version of fleetbroker that wrote it", "0": "is no number from 1 on", "-1": "is no number", "one": "is no number", "1 2": "is no number",
	} {
		if err := KnownFormat(said); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", said, err, want)
		}
	}
}
