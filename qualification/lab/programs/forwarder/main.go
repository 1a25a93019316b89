// Command envoy stands in for the Envoy proxy in front of several control planes where no registry has it: kind
// starts it under that name and writes the API servers into /home/envoy/cds.yaml in Envoy's own format. It
// forwards TCP connections to them in turn, skips one that does not answer, and rereads the file each second.
// It understands nothing of Envoy but the addresses in that file.
package main

import (
	"errors"
	"io"
	"log"
	"net"
	"os"
	"regexp"
	"sync/atomic"
	"time"
)

const (
	clusterFile  = "/home/envoy/cds.yaml"
	listenOn     = ":6443"
	dialTimeout  = 500 * time.Millisecond
	rereadPeriod = time.Second
)

func main() {
	listener, err := net.Listen("tcp", listenOn)
	if err != nil {
		log.Fatal(err)
	}
	forwarder := &forwarder{}
	forwarder.load(clusterFile)
	go func() {
		for range time.Tick(rereadPeriod) {
			forwarder.load(clusterFile)
		}
	}()
	log.Fatal(forwarder.serve(listener))
}

type forwarder struct {
	backends atomic.Pointer[[]string]
	next     atomic.Uint64
}

var backendPattern = regexp.MustCompile(`address: ([A-Za-z0-9._:-]+)\s+port_value: (\d+)`)

// backends returns the host:port pairs of an Envoy cluster file in their order.
func backends(file []byte) []string {
	addresses := []string{}
	for _, match := range backendPattern.FindAllSubmatch(file, -1) {
		addresses = append(addresses, net.JoinHostPort(string(match[1]), string(match[2])))
	}
	return addresses
}

// load keeps the last good list where the file cannot be read: kind replaces it by a rename.
func (f *forwarder) load(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	found := backends(content)
	f.backends.Store(&found)
}

func (f *forwarder) serve(listener net.Listener) error {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // out of file descriptors: let some connections end
			continue
		}
		go f.forward(client)
	}
}

func (f *forwarder) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	server := f.dial()
	if server == nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client) // a side that breaks off ends the connection, and that is all there is to tell
		closeWrite(server)
	}()
	_, _ = io.Copy(client, server)
	closeWrite(client)
	<-done
}

func (f *forwarder) dial() net.Conn {
	list := f.backends.Load()
	if list == nil {
		return nil
	}
	for range *list {
		address := (*list)[f.next.Add(1)%uint64(len(*list))]
		if server, err := net.DialTimeout("tcp", address, dialTimeout); err == nil {
			return server
		}
	}
	return nil
}

func closeWrite(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // refused where the side has gone
	}
}
