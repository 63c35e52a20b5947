package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/slack-go/slack"
	"github.com/wneessen/go-mail"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/notify/sinks"
)

// timeout bounds one message.
const timeout = 30 * time.Second

// maxLines is how many events a message to people has; a line says how many
// more there were.
const maxLines = 20

// send sends one message and tells Run what became of it.
func (n *Notifier) send(ctx context.Context, to target, insecure bool, events []Event) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := result{to: to, ids: map[string]bool{}}
	address, err := n.opts.Address(ctx, to.Tenant, v1alpha1.SecretKeyRef{Name: to.Secret, Key: to.Key})
	if err == nil {
		var took int
		took, r.pause, err = n.deliver(ctx, strings.TrimSpace(address), insecure, events)
		for _, e := range events[:took] {
			r.ids[e.ID] = true
		}
		err = discreet(err, address)
	}
	r.err = err
	n.done <- r
}

// deliver sends the first of the events, or all as one message, and returns how
// many were taken and how long to wait then. An address without TLS is refused
// unless the tenant's file allows it.
func (n *Notifier) deliver(ctx context.Context, address string, insecure bool, events []Event) (took int, pause time.Duration, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return 0, 0, errors.New("the Secret holds no address: write https://…, slack+https://…, teams+https://…, pagerduty+https://… or smtp://…")
	}
	form, scheme, named := strings.Cut(u.Scheme, "+")
	if !named {
		form, scheme = "", u.Scheme
	}
	if scheme == "http" && !insecure {
		return 0, 0, fmt.Errorf("the Secret holds an address of scheme %q, which sends events in clear text: write %ss, or set allowInsecure: true in the Tenant's notify", u.Scheme, u.Scheme)
	}
	web := scheme == "http" || scheme == "https"
	if web && named {
		u.Scheme = scheme
	}
	switch {
	case web && (form == "slack" || !named && u.Hostname() == "hooks.slack.com"):
		return len(events), n.opts.Paces.Chat, chat(ctx, n.client, u, events)
	case web && form == "teams":
		return len(events), n.opts.Paces.Chat, sinks.Teams(ctx, n.client, u, strings.Split(message(events, escape.Line), "\n"))
	case web && (form == "pagerduty" || !named && u.Hostname() == sinks.PagerDutyHost):
		return 1, n.opts.Paces.Chat, sinks.PagerDuty(ctx, n.client, u, alert(events[0]))
	case web && !named:
		return 1, n.opts.Paces.Webhook, webhook(ctx, n.client, u, events[0])
	case u.Scheme == "smtp", u.Scheme == "smtps":
		return len(events), n.opts.Paces.Mail, post(ctx, u, n.opts.CAs, events)
	}
	return 0, 0, fmt.Errorf("the Secret holds an address of scheme %q: write https, slack+https, teams+https, pagerduty+https, smtp or smtps", u.Scheme)
}

// alert is an event for PagerDuty. A contract that is degraded is resolved when it is
// active, a frozen repository when it is read again; all else is an alert by itself.
func alert(e Event) sinks.Alert {
	a := sinks.Alert{
		Key: e.ID, Summary: e.Text, Source: e.Fleet, Component: cmp.Or(e.Contract, e.Intent, e.Tenant), Group: e.Tenant, Class: e.Kind,
		Severity: sinks.SeverityInfo, At: e.At.Time, Details: e,
	}
	switch e.Kind {
	case "degraded", "sla", "frozen", "interrupted":
		a.Severity = sinks.SeverityError
	case "preempted", "refused", "budget", "expiring", "queued":
		a.Severity = sinks.SeverityWarning
	}
	switch {
	case e.Contract != "" && (e.Kind == "degraded" || e.Kind == "active"):
		a.Key, a.Resolve = strings.Join([]string{e.Fleet, e.Tenant, e.Contract}, "/"), e.Kind == "active"
	case e.Source != "":
		a.Key, a.Resolve = strings.Join([]string{e.Fleet, e.Tenant, "source", e.Source}, "/"), e.Reason == ReasonSourceRead
	}
	return a
}

// newClient makes one that follows nobody: an address is where its owner said.
func newClient(cas *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: cas, MinVersion: tls.VersionTLS12}
	return &http.Client{
		Timeout: timeout, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// webhook posts an event as a CloudEvent in structured mode.
func webhook(ctx context.Context, client *http.Client, u *url.URL, e Event) error {
	ce := event.New()
	ce.SetID(e.ID)
	ce.SetSource("/fleets/" + url.PathEscape(e.Fleet))
	ce.SetType("io.fleetbroker." + e.Kind)
	ce.SetTime(e.At.Time)
	subject := e.Tenant
	for _, part := range []string{e.Intent, e.Contract} {
		if part != "" {
			subject += "/" + part
		}
	}
	ce.SetSubject(subject)
	if err := ce.SetData(event.ApplicationJSON, e); err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	if err := cehttp.WriteRequest(binding.WithForceStructured(ctx), binding.ToMessage(&ce), req); err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	return sinks.Send(client, req)
}

// chat posts events as one message to an incoming webhook of Slack or of
// what takes the same (Mattermost, Rocket.Chat).
func chat(ctx context.Context, client *http.Client, u *url.URL, events []Event) error {
	return slack.PostWebhookCustomHTTPContext(ctx, u.String(), client, &slack.WebhookMessage{Text: message(events, escape.Chat)})
}

// message is events for people, one a line, each as the sink's encoder gives it:
// names and reasons in it are of other people's making.
func message(events []Event, encode func(string) string) string {
	var b strings.Builder
	for i, e := range events {
		if i == maxLines {
			fmt.Fprintf(&b, "… and %d more\n", len(events)-maxLines)
			break
		}
		fmt.Fprintf(&b, "[%s] %s\n", e.Kind, encode(e.Text))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// post sends events as one mail: smtp://user:password@host:587/?from=a@b&to=c@d.
// The connection is encrypted, except to this machine.
func post(ctx context.Context, u *url.URL, cas *x509.CertPool, events []Event) error {
	from, to := u.Query().Get("from"), u.Query().Get("to")
	if from == "" || to == "" {
		return errors.New("the address of a mail server needs ?from=ADDRESS&to=ADDRESS")
	}
	m := mail.NewMsg()
	if err := m.From(from); err != nil {
		return errors.New("the sender in the Secret is no mail address")
	}
	if err := m.ToFromString(to); err != nil {
		return errors.New("a recipient in the Secret is no mail address")
	}
	subject := events[0].Text
	if len(events) > 1 {
		subject = fmt.Sprintf("%s: %d events", events[0].Tenant, len(events))
	}
	m.Subject(escape.Line("[" + events[0].Fleet + "] " + subject))
	m.SetDateWithValue(events[len(events)-1].At.Time)
	m.SetMessageIDWithValue(events[0].ID + "@fleetbroker")
	m.SetBodyString(mail.TypeTextPlain, message(events, escape.Line)+"\n")
	c, err := mailer(u, cas)
	if err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, m)
}

func mailer(u *url.URL, cas *x509.CertPool) (*mail.Client, error) {
	opts := []mail.Option{
		mail.WithTimeout(timeout),
		mail.WithTLSConfig(&tls.Config{ServerName: u.Hostname(), RootCAs: cas, MinVersion: tls.VersionTLS12}),
	}
	port, fallback := u.Port(), 587
	switch ip := net.ParseIP(u.Hostname()); {
	case u.Scheme == "smtps":
		opts, fallback = append(opts, mail.WithSSL()), 465
	case u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback()):
		opts, fallback = append(opts, mail.WithTLSPolicy(mail.TLSOpportunistic)), 25
	default:
		opts = append(opts, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if p, err := strconv.Atoi(port); err == nil {
		fallback = p
	}
	opts = append(opts, mail.WithPort(fallback))
	if u.User != nil {
		password, _ := u.User.Password()
		opts = append(opts, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	c, err := mail.NewClient(u.Hostname(), opts...)
	if err != nil {
		return nil, fmt.Errorf("reach the mail server: %w", err)
	}
	return c, nil
}

// discreet is an error without the address in it: net/http names the whole URL.
func discreet(err error, address string) error {
	if err == nil {
		return nil
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	if parsed, perr := url.Parse(strings.TrimSpace(address)); perr == nil {
		password, _ := parsed.User.Password()
		for _, secret := range []string{strings.TrimSpace(address), parsed.String(), parsed.RequestURI(), parsed.Path, password, parsed.RawQuery} {
			if len(secret) > 3 {
				text = strings.ReplaceAll(text, secret, "…")
			}
		}
	}
	return errors.New(text)
}
