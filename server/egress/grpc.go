package egress

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	konnectivity "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

// askGRPC returns the proxy of a konnectivity server that listens at a socket. Each connection has its own tunnel,
// which ends with it.
func askGRPC(socket string) *proxy {
	p := &proxy{protocol: "grpc", transport: "uds"}
	p.connect = func(ctx context.Context) (tunnel, error) {
		alive, end := context.WithCancel(context.WithoutCancel(ctx))
		t, err := konnectivity.CreateSingleUseGrpcTunnelWithContext(ctx, alive, "passthrough:///"+socket,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			}),
			//nolint:staticcheck // that the proxy is away is to be known now, as a failure of its own
			grpc.WithBlock(), grpc.FailOnNonTempDialError(true), grpc.WithReturnConnectionError(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
		)
		if err != nil {
			end()
			return nil, err
		}
		return &grpcTunnel{t, end}, nil
	}
	return p
}

type grpcTunnel struct {
	konnectivity.Tunnel
	end context.CancelFunc
}

func (t *grpcTunnel) to(ctx context.Context, address string) (net.Conn, error) {
	conn, err := t.DialContext(ctx, "tcp", address)
	if err != nil {
		t.end()
		return nil, err
	}
	return &tunneled{conn, t.end}, nil
}

// tunneled is a connection in a tunnel.
type tunneled struct {
	net.Conn
	end context.CancelFunc
}

// Close ends the tunnel as well.
func (c *tunneled) Close() error {
	defer c.end()
	return c.Conn.Close()
}
