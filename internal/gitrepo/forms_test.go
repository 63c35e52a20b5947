package gitrepo_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// signedForms are commits as somebody with a key makes them by hand: head and message, to
// which a signature over the whole is added.
func signedForms(tree, parent string) map[string][2]string {
	head := "tree " + tree + "\nparent " + parent + "\n"
	const author, committer = "author A <a@b> 1790000000 +0000\n", "committer A <a@b> 1790000000 +0000\n"
	const people = author + committer
	at := func(date string) string { return head + author + "committer A <a@b> " + date + "\n" }
	return map[string][2]string{
		"plain":                      {head + people, "x\n"},
		"mergetag":                   {head + people + "mergetag object " + parent + "\n type commit\n tag v1\n tagger A <a@b> 1 +0000\n \n words\n -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----\n", "x\n"},
		"mergetag with gpgsig":       {head + people + "mergetag object " + parent + "\n gpgsig x\n author Eve <e@v> 1 +0000\n", "x\n"},
		"encoding":                   {head + people + "encoding ISO-8859-1\n", "caf\xe9\n"},
		"unknown between people":     {head + author + "x-y z\n" + committer, "x\n"},
		"unknown before people":      {head + "x-y z\n" + people, "x\n"},
		"unknown before parent":      {"tree " + tree + "\nx-y z\nparent " + parent + "\n" + people, "x\n"},
		"header without value":       {head + people + "x-y\n", "x\n"},
		"author goes on":             {head + "author A <a@b> 1 +0000\n Eve <e@v> 2 +0000\n" + committer, "x\n"},
		"name in two brackets":       {head + "author A <a@b> <e@v> 1790000000 +0000\n" + committer, "x\n"},
		"no brackets":                {head + "author A 1790000000 +0000\n" + committer, "x\n"},
		"CR in name":                 {head + "author A\r <a@b> 1790000000 +0000\n" + committer, "x\n"},
		"CR at line ends":            {head + "author A <a@b> 1790000000 +0000\r\n" + committer, "x\r\n\r\nLedger: a 1\r\n"},
		"NUL in name":                {head + "author A\x00 <a@b> 1790000000 +0000\n" + committer, "x\n"},
		"NUL before people":          {head + "x-y \x00\n" + people, "x\n"},
		"NUL in message":             {head + people, "x\x00\n\nLedger: a 1\n"},
		"invalid UTF-8":              {head + "author \xff\xfe <a@b> 1790000000 +0000\n" + committer, "\xc0\x80\n"},
		"long line":                  {head + people, strings.Repeat("x", 1<<20) + "\n"},
		"no newline":                 {head + people, "x"},
		"no message":                 {head + people, ""},
		"date negative":              {at("-1 +0000"), "x\n"},
		"date of 2^63":               {at("9223372036854775808 +0000"), "x\n"},
		"date of 2^64":               {at("18446744073709551616 +0000"), "x\n"},
		"date of year 10000":         {at("253402300800 +0000"), "x\n"},
		"date of the last year":      {at("253402127999 +1400"), "x\n"},
		"zone +9999":                 {at("1790000000 +9999"), "x\n"},
		"zone -0059":                 {at("1790000000 -0059"), "x\n"},
		"zone +14":                   {at("1790000000 +14"), "x\n"},
		"zone of letters":            {at("1790000000 nowhere"), "x\n"},
		"date of signs":              {at("+1790000000 +0000"), "x\n"},
		"date with space":            {at(" 1790000000  +0000"), "x\n"},
		"date before a word":         {at("1790000000 +0000 1"), "x\n"},
		"gpgsig-sha256":              {head + people + "gpgsig-sha256 x\n y\n", "x\n"},
		"header called gpgsigs":      {head + people + "gpgsigs x\n y\n", "x\n"},
		"signature of nothing":       {head + people + "gpgsig\n", "x\n"},
		"two trees":                  {"tree " + tree + "\ntree " + tree + "\nparent " + parent + "\n" + people, "x\n"},
		"committer twice":            {head + people + committer, "x\n"},
		"trailers in the middle":     {head + people, "x\n\nLedger: a 1\n\nwords\n"},
		"trailers twice":             {head + people, "x\n\nLedger: a 1\nLedger: a 2\nRenderer: 1\nrenderer: 2\n"},
		"trailers of other case":     {head + people, "x\n\nledger: a 1\n"},
		"paragraph of spaces":        {head + people, "x\n \nLedger: a 1\n"},
		"line of dashes":             {head + people, "x\n\n---\n\nLedger: a 1\n"},
		"message with header's look": {head + people, "gpgsig x\nparent " + parent + "\n"},
	}
}

// What a signature counts for here is signed for git too, and says the same to both: tree,
// parents, who made it and when.
func TestSignedCommitsSayToGitWhatTheySayHere(t *testing.T) {
	file, pub := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := bare(t)
	gitIn := func(stdin string, args ...string) string {
		t.Helper()
		cmd := gitCmd(dir, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	empty := gitIn("", "mktree")
	parent := gitIn("", "commit-tree", "-m", "parent", empty)
	allowed := filepath.Join(t.TempDir(), "allowed")
	if err := os.WriteFile(allowed, []byte("a@b "+pub+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	counted := 0
	forms := signedForms(empty, parent)
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		form := forms[name]
		sig, err := signer.Sign([]byte(form[0] + "\n" + form[1]))
		if err != nil {
			t.Fatal(err)
		}
		raw := form[0] + "gpgsig " + strings.ReplaceAll(strings.TrimRight(sig, "\n"), "\n", "\n ") + "\n\n" + form[1]
		_, why := keys(t, pub).SignerOf([]byte(raw), noon)
		signed, err := keys(t, pub).Signed([]byte(raw))
		if err != nil || signed != (why == nil) {
			t.Errorf("%s: SignerOf: %v, Signed: %v, %v", name, why, signed, err)
		}
		c, err := gitobj.ParseCommit([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h := gitIn(raw, "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
		out, gitErr := gitCmd(dir, "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", h).CombinedOutput()
		if why != nil {
			continue
		}
		counted++
		if gitErr != nil {
			t.Errorf("%s: counts here and not for git: %v: %s", name, gitErr, out)
		}
		show, err := gitCmd(dir, "log", "-1", "--encoding=none", "--format=%T%n%P%n%ae%n%ce%n%at%n%ct%n%(trailers:key=Ledger,valueonly,separator=%x2C)", h).Output()
		if err != nil {
			t.Errorf("%s: git log: %v", name, err)
			continue
		}
		var b bytes.Buffer
		var parents []string
		for _, p := range c.Parents {
			parents = append(parents, p.String())
		}
		fmt.Fprintf(&b, "%s\n%s\n%s\n%s\n%d\n%d\n%s\n", c.Tree, strings.Join(parents, " "), c.Author.Email, c.Committer.Email, c.Author.When.Unix(), c.Committer.When.Unix(), strings.Join(gitobj.Trailers(c.Message, "Ledger"), ","))
		if got, want := b.String(), string(show); got != want {
			t.Errorf("%s: here\n%q, for git\n%q", name, got, want)
		}
		if y := c.Committer.When.Year(); y < 1970 || y > 9999 {
			t.Errorf("%s: year %d", name, y)
		}
		if _, err := time.Parse(time.RFC3339, c.Committer.When.Format(time.RFC3339)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if counted < 15 {
		t.Errorf("the signatures of %d forms count, want 15 at least", counted)
	}
}
