package filters

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Origins reads the expressions of --cors-allowed-origins. Each must pin the start
// and the end of the host, so that evil-example.com is not taken for example.com.
func Origins(expressions []string) ([]*regexp.Regexp, error) {
	list := make([]*regexp.Regexp, 0, len(expressions))
	for _, text := range expressions {
		if text == "" {
			return nil, errors.New("empty value in --cors-allowed-origins")
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("--cors-allowed-origins has an invalid regular expression: %w", err)
		}
		start := strings.Contains(text, "^") || strings.Contains(text, "//")
		end := strings.Contains(text, "$") || strings.Contains(text, ":")
		if !start || !end {
			return nil, fmt.Errorf("--cors-allowed-origins has an invalid regular expression: %q does not pin to start/end of host in the origin header", text)
		}
		list = append(list, re)
	}
	return list, nil
}

// CORS lets pages of allowed origins read answers, and answers the preflight requests of browsers. It returns nil without
// origins.
func CORS(origins []*regexp.Regexp) Filter {
	if len(origins) == 0 {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			origin := r.Header.Get("Origin")
			if origin == "" || !matches(origins, origin) {
				next.ServeHTTP(w, r)
				return
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH")
			h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since")
			h.Set("Access-Control-Expose-Headers", "Date")
			h.Set("Access-Control-Allow-Credentials", "true")
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func matches(list []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// StrictTransport joins the directives of --strict-transport-security-directives
// into the value of the header.
func StrictTransport(directives []string) (string, error) {
	for _, d := range directives {
		if strings.TrimSpace(d) == "" {
			return "", errors.New("empty value in strict-transport-security-directives")
		}
		if name, age, is := strings.Cut(d, "="); d != "includeSubDomains" && d != "preload" && (!is || name != "max-age" || strings.Contains(age, "=")) {
			return "", errors.New("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information")
		}
	}
	return strings.Join(directives, "; "), nil
}

// HSTS makes browsers use only TLS. It returns nil without directives.
func HSTS(value string) Filter {
	if value == "" {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Strict-Transport-Security", value)
			next.ServeHTTP(w, r)
		})
	}
}
