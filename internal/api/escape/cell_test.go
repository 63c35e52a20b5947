package escape

import "testing"

// A cell is no formula in any place: spreadsheets skip spaces, take wide signs where people
// write those, and split at ; where the comma is decimal, or at | on request.
func TestCellsAreNoFormulasAnywhere(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "  =1+1": "  '=1+1", "\t=1": " '=1", "＝1+1": "'＝1+1", "＠SUM(1)": "'＠SUM(1)", "－1+x": "'－1+x",
		"x;=1+1": "x;'=1+1", "x; @SUM(1)": "x; '@SUM(1)", "a|-b": "a|'-b", ";;=1": ";;'=1", "=;=": "'=;'=",
		"-2.5": "-2.5", "+3": "+3", "-1+cmd": "'-1+cmd", "vision/train": "vision/train", "a;b": "a;b", "1-2=3": "1-2=3", "": "",
	} {
		if got := Cell(text); got != want {
			t.Errorf("Cell of %q is %q, want %q", text, got, want)
		}
	}
}
