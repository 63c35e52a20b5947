package findings

import (
	"bytes"
	"strings"
	"testing"
)

func TestFindingsInEachForm(t *testing.T) {
	list := []Finding{
		{File: "intents/a,b/x.yaml", Line: 9, Column: 7, Message: "100% wrong:\nreally", Severity: "error", Code: "UnknownField"},
		{File: "fleet.yaml", Line: 1, Column: 1, Message: "odd \x1b[31m", Severity: "warning"},
	}
	cases := map[string][]string{
		"text":   {"intents/a,b/x.yaml:9:7: 100% wrong: really\n", "fleet.yaml:1:1: warning: odd \\u001b[31m\n"},
		"github": {"::error file=intents/a%2Cb/x.yaml,line=9,col=7::100%25 wrong:%0Areally\n", "::warning file=fleet.yaml,line=1,col=1::"},
		"gitlab": {`"severity": "major"`, `"begin": 9`, `"check_name": "fleetbroker/UnknownField"`},
		"sarif":  {`"version": "2.1.0"`, `"ruleId": "UnknownField"`, `"level": "warning"`, `"startColumn": 7`},
		"json":   {`"column": 7`, `"code": "UnknownField"`},
	}
	for form, wants := range cases {
		var b bytes.Buffer
		if err := Print(&b, form, list); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in\n%s", form, want, b.String())
			}
		}
	}
	for _, form := range Forms {
		var b bytes.Buffer
		if err := Print(&b, form, nil); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "null") {
			t.Errorf("%s: no findings are %s", form, b.String())
		}
	}
}
