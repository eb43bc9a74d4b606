//go:build !linux

package datadir

import "errors"

// anonymousFiles: there are none.
func anonymousFiles([]string) ([]string, func() error, error) {
	return nil, nil, errors.ErrUnsupported
}

func anonymous(string) bool { return false }
