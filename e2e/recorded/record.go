package recorded

import "encoding/json"

// record returns an answer in the form of a recording.
func record(step *Step, got *answer, vars map[string]string) *Want {
	h := got.header
	w := &Want{
		Status: got.status, Type: h.Get("Content-Type"), RetryAfter: h.Get("Retry-After"), Allow: h.Get("Allow"),
		WWWAuthenticate: h.Get("WWW-Authenticate"), HasBody: got.body != nil,
	}
	for _, text := range h.Values("Warning") {
		w.Warnings = append(w.Warnings, normal(text, vars))
	}
	for _, name := range step.Show {
		if w.Headers == nil {
			w.Headers = map[string]*string{}
		}
		w.Headers[name] = nil
		if values := h.Values(name); len(values) > 0 {
			text := normal(values[0], vars)
			w.Headers[name] = &text
		}
	}
	body := deepCopy(got.body)
	if text, ok := body.(string); ok && step.Head > 0 {
		body = head(text, step.Head)
	}
	w.Body = tidy(body, vars)
	return w
}

// MarshalJSON writes the format that UnmarshalJSON reads.
func (w *Want) MarshalJSON() ([]byte, error) {
	out := map[string]any{"status": w.Status}
	for key, text := range map[string]string{"type": w.Type, "retry-after": w.RetryAfter, "allow": w.Allow, "www-authenticate": w.WWWAuthenticate} {
		if text != "" {
			out[key] = text
		}
	}
	if len(w.Warnings) > 0 {
		out["warnings"] = w.Warnings
	}
	if len(w.Headers) > 0 {
		out["headers"] = w.Headers
	}
	if w.HasBody {
		out["body"] = w.Body
	}
	return json.Marshal(out)
}
