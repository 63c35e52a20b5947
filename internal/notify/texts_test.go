package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/emersion/go-smtp"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// told are events with every hostile text, as many at a time as one message has.
func told() [][]Event {
	var out [][]Event
	for i, s := range hostile.Texts() {
		if i%maxLines == 0 {
			out = append(out, nil)
		}
		last := &out[len(out)-1]
		*last = append(*last, Event{ID: fmt.Sprintf("e%d", i), Kind: "refused", Fleet: "acme", Tenant: "vision", Text: "vision/llm: " + s, Reason: "x"})
	}
	return out
}

// plain demands lines of printable characters, one an event.
func plain(t *testing.T, sink, text string, events []Event) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(events) {
		t.Errorf("%s: %d lines of %d events: %.500q", sink, len(lines), len(events), text)
	}
	for _, line := range lines {
		line = strings.ReplaceAll(line, "\u200d", "")
		if !strings.HasPrefix(line, "[refused] vision/llm: ") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %.300q", sink, line)
		}
	}
}

var acted = regexp.MustCompile("(?i)@[\\w\"]|<|>|://|\\bwww\\.|mailto:|`|\\]\\(")

// A chat shows hostile texts: nobody is mentioned, nothing is a link.
func TestTexts_ChatShowsThem(t *testing.T) {
	r := newReceiver(t)
	u, err := url.Parse(r.URL + "/hooks/x")
	if err != nil {
		t.Fatal(err)
	}
	for i, events := range told() {
		if err := chat(t.Context(), http.DefaultClient, u, events); err != nil {
			t.Fatal(err)
		}
		var body struct{ Text string }
		if err := json.Unmarshal([]byte(r.bodies[i]), &body); err != nil {
			t.Fatal(err)
		}
		plain(t, "chat", body.Text, events)
		if m := acted.FindString(body.Text); m != "" {
			t.Errorf("a chat would act on %q in %.1000q", m, body.Text)
		}
	}
}

// A mail shows them too, and none of them becomes a header.
func TestTexts_MailShowsThem(t *testing.T) {
	backend := &mailbox{}
	server := smtp.NewServer(backend)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			t.Error(err)
		}
	})
	u, err := url.Parse("smtp://" + l.Addr().String() + "/?from=fleet@example.org&to=ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	// Alone, so that the text stands in the subject, and with others.
	var list [][]Event
	for _, events := range told() {
		list = append(list, events, events[:1])
	}
	for i, events := range list {
		if err := post(t.Context(), u, nil, events); err != nil {
			t.Fatal(err)
		}
		m, err := mail.ReadMessage(strings.NewReader(backend.mails[i]))
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range []string{"Bcc", "Cc", "Reply-To"} {
			if m.Header.Get(header) != "" {
				t.Errorf("header %s: %q", header, m.Header.Get(header))
			}
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.HasPrefix(subject, "[acme] ") {
			t.Errorf("subject %q, %v", subject, err)
		}
		body := m.Body
		if m.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(m.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("a mail of type %q", m.Header.Get("Content-Type"))
		}
		plain(t, "mail", strings.ReplaceAll(string(text), "\r\n", "\n"), events)
	}
	if len(backend.to) != len(list) {
		t.Errorf("%d recipients of %d mails", len(backend.to), len(list))
	}
}

// A webhook carries the texts as JSON, whole: its receiver is a program.
func TestTexts_WebhookCarriesThem(t *testing.T) {
	r := newReceiver(t)
	u, err := url.Parse(r.URL + "/hooks/x")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range hostile.Texts() {
		e := Event{ID: fmt.Sprintf("e%d", i), Kind: "refused", Fleet: s, Tenant: "vision", Intent: s, Text: s, At: v1alpha1.Time{}}
		if err := webhook(t.Context(), http.DefaultClient, u, e); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var body struct{ Data Event }
		if err := json.Unmarshal([]byte(r.bodies[i]), &body); err != nil || body.Data.Text != strings.ToValidUTF8(s, "\ufffd") && strings.ToValidUTF8(body.Data.Text, "") != strings.ToValidUTF8(s, "") && !strings.Contains(body.Data.Text, "\ufffd") {
			t.Errorf("%q: %v %.300q", s, err, r.bodies[i])
		}
	}
}
