// Package ui is the dashboard: pages for people under /ui/ and the same as JSON under
// /api/ui/, on the operators' port.
//
//	ui.go        options, routes, headers of every answer
//	pages.go     which pages there are, and what each shows
//	offers.go    every offer towards one intent, which costs a plan
//	history.go   the ledger's commits, newest first, read once each
//	audit.go     the same commits with what the audit says of them (package judge)
//	files.go      who changed the files behind a page (package changes)
//	capacity.go   simulations: the only requests that begin or end something
//	tokens.go    what a page gives its reader to begin and end them
//	events.go    server-sent events: "there is something new"
//	render.go    templates, and how values are written on a page
//	chart.go     bars as SVG
//	axis.go      dates below charts
//	export.go    costs as CSV
//	openapi.go   the routes, for the description of the JSON (internal/api/openapi)
//	apigen/      makes schemas/v1alpha1 and part of schemas/client of them
//	templates/, assets/   HTML, CSS and JavaScript, built into the program
//
// Invariants:
//   - Read-only: no route changes anything of the fleet. All are GETs that change nothing but
//     caches, except those that begin and end a simulation (capacity.go): they are for who
//     sees all tenants, with a token that a page gave the same person, from this site alone.
//   - No page needs the network, a script or a font from elsewhere; the content security
//     policy allows the page's own files alone, and no inline script or style.
//   - Without JavaScript everything can be read and reached; with it pages follow the
//     fleet by themselves.
//   - All text that people, agents or clusters wrote goes through escape.Line and the
//     escaping of html/template, whichever template writes it (render.go).
//   - A caller gets what their Viewer may see and no more (package view): a test lists every
//     route with what a reader's certificate is answered (certificate_test.go).
//   - A request costs at most one model a round, and a plan only for offers, one at a time.
//
// Callers are authenticated before (internal/server, and its package login for people who
// sign in); Say writes the pages of that. The cli makes the handler and reports rounds to it
// (Changed). All of it is safe for concurrent use.
package ui
