package otlp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// closing is how long sending what is left may take at the end.
const closing = 3 * time.Second

// Flags say where traces are sent. They hold no secrets.
type Flags struct {
	endpoint, protocol, ca, ratio string
}

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "tracing-endpoint", "", "URL of an OpenTelemetry collector (OTLP) that traces are sent to, such as http://collector.observability:4318 (default: $OTEL_EXPORTER_OTLP_ENDPOINT; without either there are none)")
	fs.StringVar(&f.protocol, "tracing-protocol", "", "protocol of --tracing-endpoint: http/protobuf or grpc (default: $OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf)")
	fs.StringVar(&f.ca, "tracing-ca-file", "", "certificate authorities of a collector with https, in place of the system's (default: $OTEL_EXPORTER_OTLP_CERTIFICATE)")
	fs.StringVar(&f.ratio, "tracing-ratio", "", "share of the traces that is kept, 0 to 1 (default: $OTEL_TRACES_SAMPLER, else all)")
}

// Tracing sends traces; nil does not. Make it with Open, end it with Close.
type Tracing struct {
	provider *sdk.TracerProvider
	queue    *queue
	tracer   *tracing.Tracer
}

// env is a standard variable, that of traces alone before that of all signals.
func env(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// on reports whether traces are asked for.
func (f *Flags) on() bool {
	if f.endpoint != "" {
		return true
	}
	return env("ENDPOINT") != "" && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp") == "otlp"
}

// Open gives what sends traces of a service, nil where none are asked for. It does not
// wait for the collector. Errors are mistakes in the flags, which they name.
func (f *Flags) Open(ctx context.Context, service, instance string, log *slog.Logger) (*Tracing, error) {
	if !f.on() {
		if f.protocol != "" || f.ca != "" || f.ratio != "" {
			return nil, errors.New("--tracing-protocol, --tracing-ca-file and --tracing-ratio need --tracing-endpoint, or $OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		return nil, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces cannot be sent to the collector", "error", err) }))
	to, err := f.exporter(ctx)
	if err != nil {
		return nil, err
	}
	q := newQueue(to, fromEnv(), log)
	opts := []sdk.TracerProviderOption{
		sdk.WithSpanProcessor(q), sdk.WithResource(serviceOf(ctx, service, instance)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 32, AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8}),
	}
	if f.ratio != "" {
		ratio, err := strconv.ParseFloat(f.ratio, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, errors.Join(fmt.Errorf("--tracing-ratio: %q is no number from 0 to 1; write 0.1 for a tenth", f.ratio), q.Shutdown(ctx))
		}
		opts = append(opts, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratio))))
	}
	provider := sdk.NewTracerProvider(opts...)
	log.Info("traces are sent to a collector", "endpoint", shown(cmp.Or(f.endpoint, env("ENDPOINT"))))
	return &Tracing{provider, q, tracing.New(provider)}, nil
}

// serviceOf is what all spans are of; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go
// before what is known here.
func serviceOf(ctx context.Context, service, instance string) *resource.Resource {
	own := []attribute.KeyValue{attribute.String("service.name", service), attribute.String("service.version", version.Text())}
	if instance != "" {
		own = append(own, attribute.String("service.instance.id", instance))
	}
	r, err := resource.New(ctx, resource.WithAttributes(own...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if r == nil || err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return resource.NewSchemaless(own...)
	}
	return r
}

// exporter speaks to the collector.
func (f *Flags) exporter(ctx context.Context) (sdk.SpanExporter, error) {
	if f.endpoint != "" {
		if err := checked(f.endpoint); err != nil {
			return nil, fmt.Errorf("--tracing-endpoint: %w", err)
		}
	}
	var conf *tls.Config
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--tracing-ca-file: %w", err)
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tracing-ca-file: %s has no certificate in PEM", f.ca)
		}
	}
	switch protocol := cmp.Or(f.protocol, env("PROTOCOL"), "http/protobuf"); protocol {
	case "http/protobuf":
		opts := []otlptracehttp.Option{otlptracehttp.WithProxy(straight)}
		if f.endpoint != "" {
			opts = append(opts, otlptracehttp.WithEndpointURL(withPath(f.endpoint)))
		}
		if conf != nil {
			opts = append(opts, otlptracehttp.WithTLSClientConfig(conf))
		}
		return otlptrace.New(ctx, otlptracehttp.NewClient(opts...)) //nolint:wrapcheck // it only starts
	case "grpc":
		var opts []otlptracegrpc.Option
		if f.endpoint != "" {
			opts = append(opts, otlptracegrpc.WithEndpointURL(f.endpoint))
		}
		if conf != nil {
			opts = append(opts, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(conf)))
		}
		return otlptrace.New(ctx, otlptracegrpc.NewClient(opts...)) //nolint:wrapcheck // it only starts
	default:
		return nil, fmt.Errorf("--tracing-protocol: %q is not known; use http/protobuf or grpc", protocol)
	}
}

// straight is the way to the collector, by the environment's proxy if it has one. It is asked
// for each request: where the collector sends on to is not asked, because the answer of
// whatever that is would stand in the log.
func straight(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("the collector sends on to another address, which is not followed; where that is right, give it in --tracing-endpoint")
	}
	return http.ProxyFromEnvironment(r)
}

// withPath adds the standard path to an address that has none.
func withPath(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(endpoint, "/") + "/v1/traces"
	}
	return endpoint
}

// shown is an address without what may be secret in it.
func shown(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "of the environment"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// checked refuses an address that is none, or holds a secret.
func checked(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("it is no http or https URL; write http://collector:4318")
	case u.User != nil || u.RawQuery != "":
		return errors.New("it has a user or a query, and addresses are logged; put credentials into $OTEL_EXPORTER_OTLP_HEADERS")
	}
	if _, _, err := net.SplitHostPort(u.Host); err != nil && u.Port() != "" {
		return errors.New("its port is no number; write http://collector:4318")
	}
	return nil
}

// fromEnv are the queue's limits by the standard variables; what is no number takes the
// default.
func fromEnv() limits {
	number := func(name string, or, most int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
			return min(n, most)
		}
		return or
	}
	l := limits{waiting: number("OTEL_BSP_MAX_QUEUE_SIZE", 2048, 65_536)}
	l.batch = min(number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 8192), l.waiting)
	l.delay = time.Duration(number("OTEL_BSP_SCHEDULE_DELAY", 5000, 3_600_000)) * time.Millisecond
	l.timeout = time.Duration(number("OTEL_BSP_EXPORT_TIMEOUT", 10_000, 60_000)) * time.Millisecond
	return l
}

// Tracer makes spans; nil where nothing is sent.
func (t *Tracing) Tracer() *tracing.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Collectors count spans under a name: sent, failed (the collector did not take them),
// dropped (the queue was full). None where nothing is sent.
func (t *Tracing) Collectors(name string) []prometheus.Collector {
	if t == nil {
		return nil
	}
	return []prometheus.Collector{&counts{prometheus.NewDesc(name, "Spans of traces by result: sent, failed (the collector did not take them), dropped (too many waited).", []string{"result"}, nil), t.queue}}
}

// Close sends what waits, for some seconds at most.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what is not sent by then is lost
}
