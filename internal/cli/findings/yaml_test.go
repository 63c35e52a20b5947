package findings

import (
	"bytes"
	"testing"
)

func TestPrint_YAML(t *testing.T) {
	var out bytes.Buffer
	if err := Print(&out, "yaml", []Finding{{File: "fleet.yaml", Line: 3, Column: 1, Message: "a: b", Severity: "error", Code: "BadValue"}}); err != nil {
		t.Fatal(err)
	}
	const want = "findings:\n- code: BadValue\n  column: 1\n  file: fleet.yaml\n  line: 3\n  message: 'a: b'\n  severity: error\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
