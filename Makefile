# The usual targets. Everything works without make too: see CONTRIBUTING.md.
# grpcnotrace: without the pages of golang.org/x/net/trace, whose templates keep every exported method linked.
export GOFLAGS := -trimpath -tags=grpcnotrace

.PHONY: all test check cover long fuzz vulncheck bench pgo release reproducible image clean

# The static binary, ./bin/rowlock, and the small etcd of test environments, ./bin/etcd.
all:
	CGO_ENABLED=0 go build -ldflags "-s -w" -o bin/etcd ./cmd/etcd
	CGO_ENABLED=0 go build -pgo=cmd/rowlock/load.pgo -ldflags "-s -w" -o bin/rowlock ./cmd/rowlock

# The unit tests, and a start of the built binary: minutes.
test:
	CGO_ENABLED=0 sh e2e/short.sh

# All that CI runs: 12 to 15 minutes on two cores, 15 to 20 from an empty cache.
check:
	.ci/run

# Coverage of the kinds by their own tests, compared with server/kinds/coverage.txt.
cover:
	sh e2e/cover.sh

# Tests with third-party servers, built from their public modules; the folders in e2e/apart.txt; all recorded answers
# against the built binary.
long:
	sh e2e/long.sh

# Every fuzz target for SECONDS each; PACKAGES="./codecs/json ./server/apply" for some.
SECONDS ?= 20
fuzz:
	sh e2e/fuzz.sh $(SECONDS) $(PACKAGES)

# The benchmarks next to the code, then those of the built binary (BENCH are their arguments).
bench:
	go test -run '^$$' -bench . -benchmem ./codecs/... ./server/...
	go run ./e2e/bench $(BENCH)

# Records the profile of release builds (cmd/rowlock/load.pgo) in a run of the benchmark.
pgo:
	sh e2e/pgo.sh

# Known vulnerabilities in called functions, if their database can be reached.
vulncheck:
	sh e2e/vulncheck.sh

# The files of a release: binaries, bills of materials, manual pages, completions, checksums.
release:
	sh e2e/release.sh $(VERSION)

# Checks that two releases of the last commit, built with different folders, build caches, homes and time zones, are identical.
reproducible:
	sh e2e/reproducible.sh

# Builds and starts the container image without a container engine.
image:
	sh e2e/image.sh

clean:
	rm -rf bin dist
