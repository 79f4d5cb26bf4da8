// The serving side of `examples/sctp_peer.rs`, on pion: the same messages, judged the same way, over UDP (RFC 6951).
//
//	peer serve ADDRESS PORT OWN-UDP PEER-UDP echo|discard
//
// pion takes whatever ports the peer's packets have, and answers where they come from.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	front = 10
	most  = 65536
)

// peer is a UDP socket that speaks with whoever spoke to it last.
type peer struct {
	*net.UDPConn
	lock sync.Mutex
	at   *net.UDPAddr
}

func (p *peer) Read(octets []byte) (int, error) {
	n, from, err := p.ReadFromUDP(octets)
	if err == nil {
		p.lock.Lock()
		p.at = from
		p.lock.Unlock()
	}
	return n, err
}

func (p *peer) Write(octets []byte) (int, error) {
	p.lock.Lock()
	to := p.at
	p.lock.Unlock()
	return p.WriteToUDP(octets, to)
}

func (p *peer) RemoteAddr() net.Addr {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.at
}

type tally struct {
	sync.Mutex
	messages, octets, wrong uint64
	streams                 int
}

func right(stream uint16, number uint32, length int) []byte {
	octets := make([]byte, length)
	binary.BigEndian.PutUint16(octets, stream)
	binary.BigEndian.PutUint32(octets[2:], number)
	binary.BigEndian.PutUint32(octets[6:], uint32(length))
	for i := front; i < length; i++ {
		octets[i] = byte(uint32(i) + uint32(stream) + number)
	}
	return octets
}

// serve judges the messages of a stream, which have to be in their order, until its end.
func serve(stream *sctp.Stream, echo bool, all *tally) {
	octets := make([]byte, most)
	for number := uint32(0); ; number++ {
		n, kind, err := stream.ReadSCTP(octets)
		if err != nil {
			return
		}
		all.Lock()
		if number == 0 {
			all.streams++
		}
		all.messages++
		all.octets += uint64(n)
		if n < front || !bytes.Equal(octets[:n], right(stream.StreamIdentifier(), number, n)) {
			all.wrong++
		}
		all.Unlock()
		if echo {
			// Zero stands for no protocol in what is sent here, as in what has come.
			if _, err := stream.WriteSCTP(octets[:n], kind); err != nil {
				all.Lock()
				all.wrong++
				all.Unlock()
				return
			}
		}
	}
}

func run(address, udp string, echo bool) error {
	at, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(address, udp))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", at)
	if err != nil {
		return err
	}
	association, err := sctp.Server(sctp.Config{
		NetConn:       &peer{UDPConn: socket},
		LoggerFactory: logging.NewDefaultLoggerFactory(),
	})
	if err != nil {
		return err
	}
	var all tally
	var serving sync.WaitGroup
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		serving.Add(1)
		go func() {
			defer serving.Done()
			serve(stream, echo, &all)
		}()
	}
	serving.Wait()
	fmt.Printf("{\"role\":\"server\",\"messages\":%d,\"octets\":%d,\"streams\":%d,\"wrong\":%d,\"changes\":[0,0,0,0],\"end\":\"finished\"}\n",
		all.messages, all.octets, all.streams, all.wrong)
	return nil
}

func main() {
	if len(os.Args) != 7 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "usage: peer serve ADDRESS PORT OWN-UDP PEER-UDP echo|discard")
		os.Exit(2)
	}
	if err := run(os.Args[2], os.Args[4], os.Args[6] == "echo"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
