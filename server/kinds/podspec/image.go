package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pullPolicyFor returns the default policy for an image: an image that may change under its name is always pulled.
// An invalid reference counts as one that does not change.
func pullPolicyFor(image string) corev1.PullPolicy {
	if floats(image) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// floats reports whether a reference means the tag latest, by name or by default.
func floats(image string) bool {
	if len(image) == 64 && allHex(image, false) {
		return false // the identifier of an image, which is not a name
	}
	rest, digest, hasDigest := strings.Cut(image, "@")
	if hasDigest && !okDigest(digest) {
		return false
	}
	domain, rest := splitDomain(rest)
	path, tag, hasTag := strings.Cut(rest, ":")
	if hasTag && !okTag(tag) {
		return false
	}
	if !okRepository(path) || !okDomain(domain) || len(domain)+1+len(path) > 255 {
		return false
	}
	if hasTag {
		return tag == "latest"
	}
	return !hasDigest
}

func allHex(s string, upper bool) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		if !(b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || upper && b >= 'A' && b <= 'F') {
			return false
		}
	}
	return true
}

// splitDomain separates a registry host. The first component is a host if it
// looks like one; otherwise the default registry is meant.
func splitDomain(ref string) (domain, rest string) {
	first, rest, found := strings.Cut(ref, "/")
	if !found || !strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first {
		first, rest = "docker.io", ref
	}
	if first == "index.docker.io" {
		first = "docker.io"
	}
	if first == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return first, rest
}

func okDomain(s string) bool {
	host := s
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 2 {
			return false
		}
		for _, b := range []byte(s[1:end]) {
			if b != ':' && !allHex(string(b), true) {
				return false
			}
		}
		return s[end+1:] == "" || s[end+1] == ':' && allDigits(s[end+2:])
	}
	host, port, hasPort := strings.Cut(host, ":")
	if hasPort && !allDigits(port) {
		return false
	}
	for _, label := range strings.Split(host, ".") {
		if label == "" || !alnum(label[0]) || !alnum(label[len(label)-1]) {
			return false
		}
		for i := range len(label) {
			if !alnum(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// okRepository matches components of lower-case letters and digits, joined by
// slashes; inside a component one dot, one or two underscores or dashes separate.
func okRepository(s string) bool {
	start := true
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case lowerAlnum(b):
			start = false
		case start:
			return false
		case b == '/':
			start = true
		case b == '.':
			start = true
		case b == '_':
			if i+1 < len(s) && s[i+1] == '_' {
				i++
			}
			start = true
		case b == '-':
			for i+1 < len(s) && s[i+1] == '-' {
				i++
			}
			start = true
		default:
			return false
		}
	}
	return !start
}

func okTag(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		b := s[i]
		if !alnum(b) && b != '_' && (i == 0 || b != '.' && b != '-') {
			return false
		}
	}
	return true
}

// okDigest knows the algorithms that have a fixed length.
func okDigest(s string) bool {
	algorithm, hex, _ := strings.Cut(s, ":")
	want := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	return want > 0 && len(hex) == want && allHex(hex, false)
}
