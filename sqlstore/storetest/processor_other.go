//go:build !unix

package storetest

import "time"

// processor is not known here.
func processor() time.Duration { return 0 }
