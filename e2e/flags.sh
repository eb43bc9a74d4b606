# Compiler flags of all test scripts. Binaries of tests have no debug information, and the compiler
# seldom collects garbage: together that saves a quarter of its time. Releases are built with other
# flags, from the same code.
export CGO_ENABLED=0 GOFLAGS="-trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'"
