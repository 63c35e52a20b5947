package celenv

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A pattern that stands for much, or is not written out, is refused where it is: hundreds of
// intents of half a kilobyte each took gigabytes, since each keeps what its pattern stands
// for.
func TestPatternsAreBounded(t *testing.T) {
	for source, want := range map[string]string{
		`flavor.name.matches("^nvidia-(a|h)100[a-z0-9.-]{0,40}$")`:                      "",
		`flavor.name.matches("(?i)h100") && matches(flavor.provider, "^(paris|rome)$")`: "",
		`flavor.name.find("[0-9]+") == "100"`:                                           "",
		`flavor.name.matches("\\pL{1000}")`:                                             "1:21 the pattern stands for 1001 states and 6",
		"true &&\n" + `flavor.name.findAll("([a-z]{30}){33}[a-z]{90}").size() > 0`:      "2:21 the pattern stands for 11",
		`flavor.name.find("` + strings.Repeat(`[\\pL\\pN]`, 20) + `") == ""`:            "ranges of characters, and at most 1000 and 10000 are allowed: repeat less",
		`matches(flavor.name, "(((a{10}){10}){10}){10}")`:                               "1:22 error parsing regexp", // RE2 has its own bound
		`flavor.name.matches(intent.labels.app)`:                                        "1:34 the pattern of matches() is computed, and must be a text in quotes",
		`flavor.name.matches("a{9}" + "{9}")`:                                           "the pattern of matches() is computed",
		`["a", "b"].exists(p, flavor.name.find(p) != "")`:                               "the pattern of find() is computed",
	} {
		_, err := Compile(source)
		got := ""
		var e *Error
		if errors.As(err, &e) {
			got = fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Message)
		}
		if (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

// What a pattern stands for counts, not the characters that it is written with.
func TestPatternsCostWhatTheyStandFor(t *testing.T) {
	cost := func(pattern string) int64 {
		p, err := Compile(`flavor.name.matches("` + pattern + `")`)
		if err != nil {
			t.Fatal(err)
		}
		return p.Cost()
	}
	if short, long := cost("aaaaaaaaaaaa"), cost("(a{20}){20}"); long < 25*short {
		t.Errorf("a pattern of 12 states costs %d, one of 420 states %d", short, long)
	}
	if _, err := Compile(`intent.annotations.exists(k, intent.annotations[k].matches("(ab{20}){4}"))`); err == nil {
		t.Error("one on 64 texts of 4096 characters is allowed")
	}
}

// The largest pattern that is allowed takes little.
func TestPatternsTakeLittle(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept []*Program
	for i := range 100 {
		p, err := Compile(fmt.Sprintf(`flavor.name.matches("[\\pL]{7}(a{20}){20}%d")`, i))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := (after.HeapAlloc - before.HeapAlloc) / uint64(len(kept)); n > 250<<10 {
		t.Errorf("each takes %d KiB", n>>10)
	} else {
		t.Logf("each takes %d KiB", n>>10)
	}
	runtime.KeepAlive(kept)
}
