package hostile

import (
	"strings"
)

// Commits are raw commit objects of a tree on a parent, by name.
func Commits(tree, parent string) map[string]string {
	head := "tree " + tree + "\nparent " + parent + "\n"
	const people = "author A <a@b> 1790000000 +0000\ncommitter A <a@b> 1790000000 +0000\n"
	return map[string]string{
		"signature-huge":    head + people + "gpgsig -----BEGIN SSH SIGNATURE-----\n" + strings.Repeat(" "+strings.Repeat("A", 70)+"\n", 60_000) + " -----END SSH SIGNATURE-----\n\nx\n",
		"signature-garbage": head + people + "gpgsig -----BEGIN PGP SIGNATURE-----\n \n \x00\xff\n -----END PGP SIGNATURE-----\n\nx\n",
		"signature-twice":   head + people + "gpgsig a\ngpgsig b\n\nx\n",
		"headers-many":      head + people + strings.Repeat("x-header y\n", 100_000) + "\nx\n",
		"header-long":       head + people + "mergetag " + strings.Repeat("x", 4<<20) + "\n\nx\n",
		"encoding":          head + people + "encoding UTF-7\n\n+ADw-script+AD4-\n",
		"message-huge":      head + people + "\n" + strings.Repeat("/merge @root <b>\n", 200_000),
		"trailers-many":     head + people + "\nx\n\n" + strings.Repeat("Ledger: ledger 99\n", 100_000),
		"trailers-ours":     head + people + "\nx\n\nPlan: sha256:00\nInputs: 0\nRound: 0\nSet-Aside: intents/nlp/good.yaml x y\nRenderer: 99\n",
		"escapes":           head + "author \x1b[2J <\x07> 1790000000 +0000\ncommitter A <a@b> 1790000000 +0000\n\n\x1b]0;owned\x07\u202e\n",
		"future":            head + "author A <a@b> 99999999999999 +0000\ncommitter A <a@b> 99999999999999 +0000\n\nx\n",
		"past":              head + "author A <a@b> -1 +0000\ncommitter A <a@b> -1 +0000\n\nx\n",
		"zone":              head + "author A <a@b> 1790000000 +9999999\ncommitter A <a@b> 1790000000 nowhere\n\nx\n",
		"parents-same":      "tree " + tree + "\n" + strings.Repeat("parent "+parent+"\n", 5000) + people + "\nx\n",
		"name-long":         head + "author " + strings.Repeat("A", 1<<20) + " <a@b> 1790000000 +0000\ncommitter A <a@b> 1790000000 +0000\n\nx\n",
		"nul":               head + people + "\nx\x00y\n",
		"no-message":        head + people,
		"no-people":         head + "\nx\n",
	}
}

// Revocations are lists of revoked certificates that are none.
func Revocations() map[string]string {
	armour := func(kind, body string) string {
		return "-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----\n"
	}
	return map[string]string{
		"empty": "", "words": "none", "nul": strings.Repeat("\x00", 1<<20), "huge": strings.Repeat("x", 32<<20), "hollow": armour("X509 CRL", ""), "garbage": armour("X509 CRL", "AAAA"),
		"key": armour("PRIVATE KEY", "AAAA"), "many": strings.Repeat(armour("X509 CRL", "AAAA"), 20_000), "lengths": armour("X509 CRL", "MIT/////////////"), "headers": "-----BEGIN X509 CRL-----\n" + strings.Repeat("a: b\n", 100_000) + "\nAAAA\n-----END X509 CRL-----\n",
	}
}
