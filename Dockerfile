# The static binary on an empty base, as a user without rights.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY codecs/jsoniterator codecs/jsoniterator
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o cmd/rowlock/internal/envtest/embedded/etcd ./cmd/etcd \
 && CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -pgo=cmd/rowlock/load.pgo -ldflags "-s -w -X github.com/rowlock/rowlock/cmd/rowlock/internal/program.Version=${VERSION}" -o /rowlock ./cmd/rowlock \
 && install -d -m 0700 -o 65532 -g 65532 /var-lib-rowlock

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /rowlock /rowlock
COPY --from=build --chown=65532:65532 /var-lib-rowlock /var/lib/rowlock
USER 65532:65532
VOLUME /var/lib/rowlock
EXPOSE 6443
ENTRYPOINT ["/rowlock"]
CMD ["serve", "--data-dir", "/var/lib/rowlock"]
