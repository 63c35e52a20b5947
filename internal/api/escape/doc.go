// Package escape turns text that other people wrote (names, messages, errors of
// servers) into what one sink shows as text and never acts on. There is one
// encoder for each sink:
//
//	Line, Lines   terminals, logs, commit messages, mail: control and
//	              formatting characters are shown, not obeyed
//	Markdown      comments on forges and pages: no markup, link, mention,
//	              reference or quick action
//	Chat          messages of chats: no link or mention
//	Code          the inside of a markdown code span
//	Cell          a CSV cell: no formula
//	JSON          a whole JSON document: the same values, every rune visible
//
// HTML goes through html/template, which escapes by context.
//
// # Invariants
//
//   - What comes out of Line, Markdown, Chat, Code and Cell is one line of valid UTF-8
//     in which every rune is printable, but for the joiners that Markdown and Chat put in.
//   - Plain text of letters, digits and spaces comes out as it went in.
//   - Line is idempotent. Markdown, Chat and Cell are not: a text is encoded once,
//     where it enters the sink.
//
// Everybody who writes to one of these sinks calls it. The functions are pure
// and may be called from any goroutine.
package escape
