package egress_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/rowlock/rowlock/server/egress"
)

// agent is a konnectivity proxy that echoes all data.
type agent struct {
	client.UnimplementedProxyServiceServer
	refuses string
	ended   chan struct{} // holds an element for each tunnel that is over
}

func (a *agent) Proxy(stream client.ProxyService_ProxyServer) error {
	defer func() { a.ended <- struct{}{} }()
	for {
		p, err := stream.Recv()
		if err != nil {
			return err
		}
		answer := &client.Packet{}
		switch p.Type {
		case client.PacketType_DIAL_REQ:
			answer.Type = client.PacketType_DIAL_RSP
			answer.Payload = &client.Packet_DialResponse{DialResponse: &client.DialResponse{Random: p.GetDialRequest().Random, ConnectID: 7, Error: a.refuses}}
		case client.PacketType_DATA:
			answer.Type = client.PacketType_DATA
			answer.Payload = &client.Packet_Data{Data: &client.Data{ConnectID: 7, Data: p.GetData().Data}}
		case client.PacketType_CLOSE_REQ:
			answer.Type = client.PacketType_CLOSE_RSP
			answer.Payload = &client.Packet_CloseResponse{CloseResponse: &client.CloseResponse{ConnectID: 7}}
		default:
			continue
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func throughGRPC(t *testing.T, a *agent) *egress.Selector {
	path := filepath.Join(t.TempDir(), "s")
	l := listen(t, "unix", path)
	server := grpc.NewServer()
	client.RegisterProxyServiceServer(server, a)
	go func(l net.Listener) { _ = server.Serve(l) }(l)
	t.Cleanup(server.Stop)
	c, err := load(t, head+"- {name: cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: "+path+"}}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestThroughGRPC: a connection through konnectivity sends and receives, and its tunnel ends with it, or with
// the refusal.
func TestThroughGRPC(t *testing.T) {
	a := &agent{ended: make(chan struct{}, 1)}
	s := throughGRPC(t, a)
	try(t, s, "10.0.0.1:443")
	<-a.ended
	if metrics(t, s, "apiserver_egress_dialer_dial_duration_seconds") != 1 {
		t.Error("nothing is measured")
	}

	c, err := load(t, head+"- {name: cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /none}}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	away, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.To(egress.Cluster)(t.Context(), "tcp", "10.0.0.1:443"); err == nil || !strings.Contains(err.Error(), "/none") {
		t.Errorf("where there is no proxy: %v", err)
	}

	a = &agent{ended: make(chan struct{}, 1), refuses: "no such place"}
	s = throughGRPC(t, a)
	if _, err := s.To(egress.Cluster)(t.Context(), "tcp", "10.0.0.1:443"); err == nil || !strings.Contains(err.Error(), "no such place") {
		t.Errorf("refused with %v", err)
	}
	<-a.ended
	if metrics(t, s, "apiserver_egress_dialer_dial_failure_count") != 1 {
		t.Error("the failure is not counted")
	}
}
