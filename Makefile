# The usual targets. Everything works without make too: see CONTRIBUTING.md.
# grpcnotrace: without the pages of golang.org/x/net/trace, whose templates keep every exported method linked.
export GOFLAGS := -trimpath -tags=grpcnotrace

.PHONY: all test check cover long fuzz vulncheck bench pgo release reproducible image clean

# The static binary, ./bin/rowlock, and the small etcd of test environments, ./bin/etcd.
all:
	CGO_ENABLED=0 go build -ldflags "-s -w" -o bin/etcd ./cmd/etcd
	CGO_ENABLED=0 go build -pgo=cmd/rowlock/load.pgo -ldflags "-s -w" -o bin/rowlock ./cmd/rowlock

# The tests beside the code, and some of the built binary: minutes.
test:
	CGO_ENABLED=0 sh e2e/short.sh

# All that CI runs: 12 to 15 minutes on two cores, 15 to 20 from an empty cache.
check:
	.ci/run

# How much of the kinds their own tests reach, against what is written down.
cover:
	sh e2e/cover.sh

# With servers that others wrote, built from their public modules; what e2e/apart.txt names; all recorded answers
# against the built binary.
long:
	sh e2e/long.sh

# Every fuzz target for SECONDS each; PACKAGES="./codecs/json ./server/apply" for some.
SECONDS ?= 20
fuzz:
	sh e2e/fuzz.sh $(SECONDS) $(PACKAGES)

# The benchmarks beside the code, then load on the built binary (BENCH are its arguments).
bench:
	go test -run '^$$' -bench . -benchmem ./codecs/... ./server/...
	go run ./e2e/bench $(BENCH)

# The profile that builds for use are guided by (cmd/rowlock/load.pgo), from a run of the bench.
pgo:
	sh e2e/pgo.sh

# Known vulnerabilities in what is called, where their database can be reached.
vulncheck:
	sh e2e/vulncheck.sh

# What is published: binaries, bills of materials, manual pages, completions, checksums.
release:
	sh e2e/release.sh $(VERSION)

# Checks that two releases of the last commit, made with other folders, build caches, homes and time zones, have the same bytes.
reproducible:
	sh e2e/reproducible.sh

# The container image, built and started without a container engine.
image:
	sh e2e/image.sh

clean:
	rm -rf bin dist
