package core

import (
	"encoding/asn1"
	"encoding/pem"
	"strings"
)

// The largest private key that is compared with a certificate: its bytes, those of each of its integers (8192 bits and a sign), and
// the depth at which these are. With larger ones packages tls and rsa, which do not end with the request, compute for hours or take
// gigabytes, and only then see that the key is invalid.
const (
	maxPrivateKey     = 16 << 10
	maxPrivateInteger = 1024 + 1
	maxPrivateDepth   = 8
)

// costlyKey reports whether the private key that package tls would read from a text is too large.
func costlyKey(text []byte) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(" "+block.Type, " PRIVATE KEY") {
			return len(block.Bytes) > maxPrivateKey || largeInteger(block.Bytes, 0)
		}
	}
	return false
}

// largeInteger reports whether values of ASN.1 contain a large integer, also in octet strings, in which PKCS #8 has keys.
func largeInteger(der []byte, depth int) bool {
	for len(der) > 0 && depth <= maxPrivateDepth {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(der, &v)
		if err != nil {
			return false // nothing is read beyond
		}
		switch {
		case v.Class == asn1.ClassUniversal && v.Tag == asn1.TagInteger:
			if len(v.Bytes) > maxPrivateInteger {
				return true
			}
		case v.IsCompound, v.Class == asn1.ClassUniversal && v.Tag == asn1.TagOctetString:
			if largeInteger(v.Bytes, depth+1) {
				return true
			}
		}
		der = rest
	}
	return false
}
