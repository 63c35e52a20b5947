package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"
)

// PagerDutyHost is where PagerDuty takes events.
const PagerDutyHost = "events.pagerduty.com"

// maxSummary is the most that PagerDuty takes of a summary, in characters.
const maxSummary = 1024

// routingKey is the URL's parameter with the key of the integration.
const routingKey = "routing_key"

type (
	teamsMessage struct {
		Type        string            `json:"type"`
		Attachments []teamsAttachment `json:"attachments"`
	}
	teamsAttachment struct {
		ContentType string `json:"contentType"`
		Content     card   `json:"content"`
	}
	card struct {
		Schema  string     `json:"$schema"`
		Type    string     `json:"type"`
		Version string     `json:"version"`
		Body    []richText `json:"body"`
	}
	richText struct {
		Type    string `json:"type"`
		Inlines []run  `json:"inlines"`
	}
	run struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

// Teams posts lines as one card to a workflow's webhook ("Post to a channel when a webhook
// request is received").
func Teams(ctx context.Context, client *http.Client, u *url.URL, lines []string) error {
	body := make([]richText, len(lines))
	for i, line := range lines {
		body[i] = richText{"RichTextBlock", []run{{"TextRun", line}}}
	}
	return post(ctx, client, u, teamsMessage{"message", []teamsAttachment{{
		"application/vnd.microsoft.card.adaptive",
		card{"http://adaptivecards.io/schemas/adaptive-card.json", "AdaptiveCard", "1.4", body},
	}}})
}

// Severity is PagerDuty's.
type Severity string

// The severities that are used.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Alert is one event for PagerDuty.
type Alert struct {
	// Key joins what is about the same thing: its end resolves what its beginning triggered.
	Key string
	// Resolve is that it is over; else it is triggered.
	Resolve bool
	// Summary for people.
	Summary string
	// Source is who tells, Component what it is about, Group whose it is, Class of which kind.
	Source, Component, Group, Class string
	Severity                        Severity
	At                              time.Time
	// Details are shown with it.
	Details any
}

// PagerDuty sends an alert to the Events API v2. The key of the integration is the URL's
// parameter routing_key, and is sent in the body.
func PagerDuty(ctx context.Context, client *http.Client, u *url.URL, a Alert) error {
	key := u.Query().Get(routingKey)
	if key == "" {
		return errors.New("the address of PagerDuty needs ?routing_key=KEY, of an integration of the Events API v2")
	}
	at := *u
	at.RawQuery = ""
	if at.Path == "" || at.Path == "/" {
		at.Path = "/v2/enqueue"
	}
	action := "trigger"
	if a.Resolve {
		action = "resolve"
	}
	return post(ctx, client, &at, map[string]any{
		"routing_key": key, "event_action": action, "dedup_key": a.Key,
		"payload": map[string]any{
			"summary": cut(a.Summary), "source": a.Source, "severity": a.Severity, "timestamp": a.At.UTC().Format(time.RFC3339),
			"component": a.Component, "group": a.Group, "class": a.Class, "custom_details": a.Details,
		},
	})
}

// cut is a summary of at most maxSummary characters.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxSummary {
		return s
	}
	return string([]rune(s)[:maxSummary-1]) + "…"
}

func post(ctx context.Context, client *http.Client, u *url.URL, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	return Send(client, req)
}

// Send sends a request whose answer says nothing but whether it was taken: a status other
// than 2xx is an error that names it.
func Send(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answers %s", resp.Status)
	}
	return nil
}
