package escape

import "log/slog"

// Attr makes texts and errors of a log record visible as Line does; it is a
// slog.HandlerOptions.ReplaceAttr. JSON's own encoding lets formatting
// characters through.
func Attr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Line(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok && err != nil {
			a.Value = slog.StringValue(Line(err.Error()))
		}
	}
	return a
}
