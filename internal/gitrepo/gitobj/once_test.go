package gitobj

import "testing"

func TestRepeated(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"place\n\nLedger: ledger 7\nFleet: x\nPlan: y\n", ""},
		{"place\n\nContract: a - -> Binding\nContract: b - -> Binding\nSet-Aside: x\nSet-Aside: y\nDropped: a b\nDropped: a c\nSource: a b\nSource: c d\nRequested-By: a/b\nRequested-By: a/c\n", ""},
		{"place\n\nLedger: ledger 7\nFleet: x\nLedger: ledger 8\n", "Ledger"},
		{"place\n\nRules: 7\nrules: 7\r\n", "Rules"}, // git reads names in any case
		{"place\n\nPlan: a\n\nPlan: b\n", ""},        // the last paragraph's alone are trailers
		{"Plan: a\nPlan: b\n", ""},                   // a subject
		{"place\n\nCo-authored-by: a\nCo-authored-by: b\n", ""},
		{"\n\nPlan: a\nPlan: b", "Plan"},
		{"", ""},
		{"place\n\nPlan\nPlan: a\n", ""},
		// as git reads them
		{"place\n\nLedger:ledger 9\nLedger: ledger 8\n", "Ledger"},
		{"place\n\nLedger \t: ledger 9\nLedger: ledger 8\n", "Ledger"},
		{"place\n\nFleet: x\nLedger: ledger 8\n 9\nPlan: y\n", "Ledger"},
		{"place\n\nLedger: ledger 8\nContract: a - -> Binding\n\tand more\nPlan: y\n", ""},
		{"place\n\nLedger: ledger 8\nContract: a: - -> Plan: Binding\nPlan: y\n", ""},
	} {
		if got := Repeated(c.message); got != c.want {
			t.Errorf("%q: got %q, want %q", c.message, got, c.want)
		}
	}
}
