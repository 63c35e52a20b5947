package gitobj_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// rawEntry is an entry as it is stored.
type rawEntry struct {
	mode, name string
	hash       tree.Hash
}

func rawDir(entries ...rawEntry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s\x00%s", e.mode, e.name, e.hash[:])
	}
	return b.Bytes()
}

// hostileNames are names that some program takes for others.
var hostileNames = []string{
	"", ".", "..", "...", ".git", ".GIT", ".giT", ".git ", ".git.", ".git . .", ".git:x", ".git::$INDEX_ALLOCATION", ".git\\x", ".gitx", ".git x",
	".gitattributes", ".gitignore", ".gi", "git", "git~1", "GIT~1", "git~1 ", "git~1.", "git~2", "git~10", "git~1:x", "g", "G", "x\\.git", "x\\.git ",
	"x\\git~1", "x\\y\\.GIT", "x\\.gitx", ".g\u200cit", ".\u200dgit", "\u200e.git", ".gi\u202at", ".git\u206f", "\ufeff.git", ".g\ufeffIT", ".g\u200bit",
	".git\u200c/", ".git\xff", ".git\xff\xfe", "\xe2.git", "\xe2\x80.git", ".git\uffff", ".gi\u0131t", "\u212a", ".gıt", ".git\u200cx", "\xed\xa0\x80.git",
	"/", "a/b", "a/", "/a", "../nlp", "a", "b", "a.b", "a-b", "a b", "a0", "fleet.yaml", "intents", "intents.yaml", "intents-", "tenants", "foo", "foo.bar",
	"foo.bar.baz", "foo-", "foo0", "foo!", ".gitmodules", ".GITMODULES", ".gitmodules ", ".gitmodules.", ".gitmodules:x", "gitmod~1", "GITMOD~4", "gitmod~5", "gi7eba~1",
	"gi7eb~10", "gi7e~123", "GI7EBA~9", "g~123456", "~1000000", "gi7eba~12", "gi7eba~1 .", "gi7eba~0", ".git\u200cmodules", "\x01", "\xff", "é", "con", "a\\b", "\\", "\\.git",
	"gitmod~1x", "gi7ebax1", ".gitmodulesx", ".gitmodules\\x", "gi7~1234", "gi7eba~1:x", "~", "~~", "gi~1~234",
}

var hostileModes = []string{"100644", "100755", "40000", "120000", "160000", "100664", "040000", "0100644", "100600", "100777", "0", "1", "644", "20000", "000000", "777777", "40755", "120777", ""}

// hostileDirs makes many trees, of which git refuses about half.
func hostileDirs(n int, object map[string]tree.Hash) [][]byte {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same trees each time
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	plain := []string{"a", "b", "a.b", "a-b", "a0", "ab", "foo", "foo.bar", "foo-", "foo0", "foo.bar.baz", "intents", "intents.yaml", "z"}
	var out [][]byte
	add := func(list []rawEntry) {
		for i := range list {
			kind := strings.TrimLeft(list[i].mode, "0")
			if list[i].hash.IsZero() {
				list[i].hash = object[kind]
				if list[i].hash.IsZero() {
					list[i].hash = object["100644"]
				}
			}
		}
		out = append(out, rawDir(list...))
	}
	for _, name := range hostileNames {
		for _, mode := range []string{"100644", "40000", "120000", "160000"} {
			add([]rawEntry{{mode: mode, name: name}})
		}
	}
	for _, mode := range hostileModes {
		add([]rawEntry{{mode: mode, name: "a"}})
	}
	out = append(out, nil, []byte("x"), rawDir(rawEntry{mode: "100644", name: "null"}), []byte("100644 a"), []byte("100644 a\x00short"), []byte(" a\x00aaaaaaaaaaaaaaaaaaaa"))
	for range n {
		var list []rawEntry
		for range rnd.IntN(6) {
			e := rawEntry{mode: pick([]string{"100644", "40000", "100755"}), name: pick(plain)}
			if rnd.IntN(12) == 0 {
				e.name = pick(hostileNames)
			}
			if rnd.IntN(20) == 0 {
				e.mode = pick(hostileModes[:17])
			}
			list = append(list, e)
		}
		if rnd.IntN(4) > 0 { // in order, but perhaps for some that are of one name
			slices.SortStableFunc(list, func(a, b rawEntry) int {
				key := func(e rawEntry) string {
					if strings.TrimLeft(e.mode, "0") == "40000" {
						return e.name + "/"
					}
					return e.name
				}
				return strings.Compare(key(a), key(b))
			})
		}
		add(list)
	}
	return out
}

// TestDecodeDirRefusesWhatGitRefuses compares with `git fsck --strict`: what it
// calls an error is refused, but for a zero before 40000; modes that git reports
// and reads are refused, but for 100664; and nothing else.
func TestDecodeDirRefusesWhatGitRefuses(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) []byte {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "fsck" {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	git("init", "-q", "--bare", ".")
	write := func(o gitobj.Object) tree.Hash {
		h := o.Hash()
		name := filepath.Join(dir, "objects", h.String()[:2], h.String()[2:])
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		fmt.Fprintf(z, "%s %d\x00%s", o.Type, len(o.Data), o.Data)
		if err := errors.Join(z.Close(), os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		return h
	}
	object := map[string]tree.Hash{
		"100644": write(gitobj.Object{Type: gitobj.Blob, Data: []byte("file")}),
		"40000":  write(gitobj.Object{Type: gitobj.Tree}),
	}
	object["160000"] = write(gitobj.Object{Type: gitobj.Commit, Data: []byte("tree " + object["40000"].String() + "\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n")})
	trees := map[tree.Hash][]byte{}
	for _, data := range hostileDirs(6000, object) {
		trees[write(gitobj.Object{Type: gitobj.Tree, Data: data})] = data
	}
	found := map[tree.Hash]map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(error|warning) in tree ([0-9a-f]{40}): (\w+)`).FindAllStringSubmatch(string(git("fsck", "--strict", "--no-dangling")), -1) {
		h, _ := tree.ParseHash(m[2])
		if found[h] == nil {
			found[h] = map[string]bool{}
		}
		found[h][m[1]+" "+m[3]] = true
	}
	refused, wrong := 0, 0
	for h, data := range trees {
		stored, _ := gitobj.StoredDir(data)
		_, err := gitobj.DecodeDir(data)
		want := ""
		for what := range found[h] { // …Blob tells of what a file holds
			if strings.HasPrefix(what, "error ") && what != "error zeroPaddedFilemode" && !strings.HasSuffix(what, "Blob") {
				want = what
			}
		}
		if want == "" {
			want = oddMode(data, len(stored))
		}
		if want != "" {
			refused++
		}
		if broken := new(tree.BrokenError); (err != nil) != (want != "") || err != nil && !errors.As(err, &broken) {
			if wrong++; wrong < 20 {
				t.Errorf("%q: got %v, git says %q of %v", data, err, want, found[h])
			}
		}
	}
	t.Logf("%d trees, %d refused", len(trees), refused)
	if refused < 1000 || len(trees)-refused < 1000 {
		t.Errorf("%d of %d trees are refused: too few of one sort to tell", refused, len(trees))
	}
}

// oddMode is the first mode of a tree that is none of those git writes or wrote.
func oddMode(data []byte, n int) string {
	known := []string{"100644", "100755", "40000", "120000", "160000", "100664", "040000"}
	for range n {
		mode, rest, _ := bytes.Cut(data, []byte(" "))
		if !slices.Contains(known, string(mode)) {
			return "mode " + string(mode)
		}
		_, rest, _ = bytes.Cut(rest, []byte{0})
		data = rest[20:]
	}
	return ""
}
